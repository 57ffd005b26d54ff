#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ends.py ROOT: checks the table "Both ends" of ARCHITECTURE.md against the tree, and prints each defect.

The files of a row exist, below client/ and below server/worker/. One of the worker's files defines the hook of
each message, and one of the client's sends it, unless only older clients do. Each message of protocol/abi.lock
is in a row.
"""
import os
import re
import sys

CELL = re.compile(r'`([^`]+)`')
SEND = re.compile(r'\bgpc_(?:post|wait|start|try|[a-z_]+)_(gp[A-Z]\w*)\(')


def read_rows(page):
    """(line number, chapter, client's files, worker's files, messages) of the table"""
    inside = False
    for number, line in enumerate(page.splitlines(), 1):
        if line.startswith('## '):
            inside = line == '## Both ends'
        cells = [cell.strip() for cell in line.strip('|').split('|')]
        if inside and line.startswith('|') and len(cells) == 4 and CELL.search(cells[1]):
            yield number, cells[0], CELL.findall(cells[1]), CELL.findall(cells[2]), CELL.findall(cells[3])


def read(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        return file.read()


def find_senders(root):
    """message -> the client's files that send it"""
    sent = {}
    for folder, _, files in os.walk(os.path.join(root, 'client')):
        for file in files:
            path = os.path.relpath(os.path.join(folder, file), root)
            for message in SEND.findall(read(root, path)) if file.endswith('.c') else ():
                sent.setdefault(message, set()).add(path)
    return sent


def main():
    root = sys.argv[1]
    sent = find_senders(root)
    defects, listed, rows = [], set(), 0
    numbers = {line.split()[1] for line in read(root, 'protocol/abi.lock').splitlines() if line.startswith('0x')}
    for number, chapter, client, worker, messages in read_rows(read(root, 'ARCHITECTURE.md')):
        rows += 1
        texts = {}
        for end, files in ('client', client), ('server/worker', worker):
            for file in files:
                path = f'{end}/{file}'
                if os.path.isfile(os.path.join(root, path)):
                    texts[path] = read(root, path)
                else:
                    defects.append(f'{number}: {chapter}: {path} does not exist')
        for message in messages:
            listed.add(message)
            hooks = [path for path, text in texts.items() if re.search(rf'^gpd_{message}\(', text, re.M)]
            if message not in numbers:
                defects.append(f'{number}: {chapter}: protocol/abi.lock has no {message}')
            elif message.startswith('gp') and not hooks:
                defects.append(f'{number}: {chapter}: no worker file of this row defines gpd_{message}()')
            elif message.startswith('gp') and message in sent and not sent[message] & set(texts):
                defects.append(f'{number}: {chapter}: {message} is sent by {", ".join(sorted(sent[message]))}')
    defects += [f'{message} is in no row' for message in sorted(numbers - listed) if message.startswith('gp')]
    for defect in defects:
        print(f'ARCHITECTURE.md:{defect}' if defect[0].isdigit() else f'ARCHITECTURE.md: {defect}')
    print(f'{rows} rows, {len(defects)} defects')
    return 1 if defects or not rows else 0


if __name__ == '__main__':
    sys.exit(main())
