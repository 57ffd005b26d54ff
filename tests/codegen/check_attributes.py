#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the attributes of docs/attributes.md with those that daemon and client change.

  check_attributes.py SOURCE_ROOT
"""
import os
import re
import sys

PREFIX = 'CU_DEVICE_ATTRIBUTE_'


def read(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        return file.read()


def changed(root):
    """The attributes that the description leaves out, and those that one of both ends sets."""
    api = re.search(r'GP_SET\(absent_attribute,(.*?)\)', read(root, 'codegen/api/device.h'), re.S)[1]
    device = read(root, 'client/context/device.c')
    names = re.findall(PREFIX + r'(\w+)', api)
    for text in (device, read(root, 'server/worker/connect/snapshot.c')):
        names += re.findall(r'attributes\[' + PREFIX + r'(\w+)\]\s*&?=[^=]', text)
    return set(names)


def documented(root):
    return re.findall(r'^\| `(\w+)` \|', read(root, 'docs/attributes.md'), re.M)


def main():
    root = sys.argv[1]
    names, page = changed(root), documented(root)
    wrong = [f'docs/attributes.md lacks {name}, which differs' for name in sorted(names - set(page))]
    wrong += [f'docs/attributes.md names {name}, which does not differ' for name in sorted(set(page) - names)]
    wrong += [f'docs/attributes.md names {name} twice' for name in sorted({n for n in page if page.count(n) > 1})]
    if len(names) < 40:
        wrong.append(f'only {len(names)} attributes were found in the sources')
    for line in wrong:
        print(line)
    print(f'{len(page)} attributes, {len(wrong)} wrong')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
