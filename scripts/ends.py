#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ends.py ROOT: checks the table "Both ends" of ARCHITECTURE.md against the tree, and prints each defect.

The files of a row exist, below client/ and below server/worker/. They contain the functions that send and execute
each message of the row, unless these are generated. Each message of gpupool in protocol/abi.lock is in a row.
"""
import os
import re
import sys

CELL = re.compile(r'`([^`]+)`')
SEND = re.compile(r'\bgpc_(?:post|start|wait)_((?:cu|gp)[A-Z]\w*)\(')
HOOK = re.compile(r'^gpd_((?:cu|gp)[A-Z]\w*)\(', re.M)


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


def find_files(root, end, pattern):
    """message -> the files of this end in which the pattern finds it"""
    found = {}
    for folder, _, files in os.walk(os.path.join(root, end)):
        for file in files:
            path = os.path.relpath(os.path.join(folder, file), root)
            for message in pattern.findall(read(root, path)) if file.endswith('.c') else ():
                found.setdefault(message, set()).add(path)
    return found


def main():
    root = sys.argv[1]
    sent, executed = find_files(root, 'client', SEND), find_files(root, 'server/worker', HOOK)
    defects, listed, rows = [], set(), 0
    numbers = {line.split()[1] for line in read(root, 'protocol/abi.lock').splitlines() if line.startswith('0x')}
    for number, chapter, client, worker, messages in read_rows(read(root, 'ARCHITECTURE.md')):
        rows += 1
        paths = {f'client/{file}' for file in client} | {f'server/worker/{file}' for file in worker}
        defects += [f'{number}: {chapter}: {path} does not exist' for path in sorted(paths)
                    if not os.path.isfile(os.path.join(root, path))]
        for message in messages:
            listed.add(message)
            if message not in numbers:
                defects.append(f'{number}: {chapter}: protocol/abi.lock has no {message}')
            for what, files in ('sent', sent.get(message)), ('executed', executed.get(message)):
                if files and not files & paths:
                    defects.append(f'{number}: {chapter}: {message} is {what} by {", ".join(sorted(files))}')
    defects += [f'{message} is in no row' for message in sorted(numbers - listed) if message.startswith('gp')]
    for defect in defects:
        print(f'ARCHITECTURE.md:{defect}' if defect[0].isdigit() else f'ARCHITECTURE.md: {defect}')
    print(f'{rows} rows, {len(defects)} defects')
    return 1 if defects or not rows else 0


if __name__ == '__main__':
    sys.exit(main())
