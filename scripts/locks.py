#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/locks.py ROOT: checks base/lock_order.txt against the locks that there are.

Each mutex or lock for readers and writers that a file declares, as a member or a variable, has a
line in the part of its folder, which names that file; each line is of a declared one. A line names
only locks of lines below it. Prints each defect as file: defect.
"""
import collections
import os
import re
import sys

PART = re.compile(r'^In ([\w/, ]+)')
FOLDERS = ('base', 'client', 'ctl', 'image', 'nvml', 'protocol', 'server', 'transport')
DECLARED = re.compile(r'^\s*(?:static\s+)?pthread_(?:mutex|rwlock)_t\s+(\w+)(?:\[\w+\])?\s*(?:GP_\w+\([^)]*\)\s*)?(?:=[^;]*)?;')


def declared(root):
    """(top folder, file name, variable) -> how many, of all locks of the tree"""
    found = collections.Counter()
    for top in FOLDERS:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if not name.endswith(('.c', '.h')):
                    continue
                with open(os.path.join(folder, name)) as file:
                    for line in file:
                        lock = DECLARED.match(line)
                        if lock:
                            found[top, name, lock[1]] += 1
    return found


def table(text):
    """The parts of the table: (top folders, [(lock, file, locks that its line names)])"""
    parts = []
    for line in text.splitlines():
        part = PART.match(line)
        if part:
            parts.append((re.findall(r'(\w+)/', part[1]), []))
        cells = [cell.strip() for cell in line.split('|')]
        if len(cells) != 4 or cells[0] == 'lock':
            continue
        if cells[0]:
            parts[-1][1].append((cells[0], cells[1], []))
        parts[-1][1][-1][2].extend(re.findall(r'[\w.]+', cells[3]))
    return parts


def faults(root):
    with open(os.path.join(root, 'base/lock_order.txt')) as file:
        parts = table(file.read())
    missing = declared(root)
    for folders, rows in parts:
        names = [row[0] for row in rows]
        for at, (name, file, under) in enumerate(rows):
            variable = name.split('.')[-1]
            tops = [top for top in folders if missing[top, file, variable] > 0]
            if tops:
                missing[tops[0], file, variable] -= 1
            else:
                yield f'base/lock_order.txt: {file} declares no {name} that has no line yet'
            for lock in under:
                if lock not in names[at + 1:]:
                    yield f'base/lock_order.txt: {name} names {lock}, which is in no line below it'
    for (top, file, variable), count in sorted(missing.items()):
        if count > 0:
            yield f'{top}/.../{file}: {variable} is in no line of base/lock_order.txt'


def main():
    found = list(faults(sys.argv[1]))
    print('\n'.join(found) or 'every lock is in the table')
    sys.exit(bool(found))


main()
