#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tenants.py FOLDER [--rows 1,5-7] [--results FILE]: the shares of one GPU that tenants get, against those that they should get.

FOLDER is a build folder, or a flat one with gpupoold, libcuda.so.1, nbody, load and the programs of
tests/apps. Each row prints what is wanted and what was measured; FILE gets all as a list of
{row, wanted, measured, pass}. A row that a machine cannot measure prints the reason. Exit status 1 if one fails.
"""
import argparse
import importlib
import json
import os
import re
import shutil
import sys
import tempfile

from pool import Bench, Failed
from rows import ROWS, Report

for subject in ('clients', 'multiprocessors', 'memory', 'ends', 'places', 'turns', 'copies', 'gates'):
    importlib.import_module('rows_' + subject)


def chosen(text):
    wanted = set()
    for part in text.split(','):
        first, _, last = part.partition('-')
        wanted.update(str(n) for n in range(int(first), int(last) + 1)) if last else wanted.add(part)
    return wanted


def order(entry):
    """Sort key: 1, 1b, 2, ..., then rows without a number."""
    digits, rest = re.match(r'(\d*)(.*)', entry[0]).groups()
    return int(digits or 1000), rest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder')
    parser.add_argument('--rows', help='1,5-7; all without it')
    parser.add_argument('--results', help='write the list there')
    parser.add_argument('--driver', help="gpupoold's --driver")
    parser.add_argument('--seconds', type=float, default=5, help='of each measurement (5)')
    options = parser.parse_args()
    wanted = chosen(options.rows) if options.rows else None
    work = tempfile.mkdtemp(prefix='gpupool-tenants-')
    bench = Bench(options.folder, work, options.driver, options.seconds)
    report = Report()
    for number, title, function in sorted(ROWS, key=order):
        if wanted and number.rstrip('b') not in wanted and number not in wanted:
            continue
        try:
            function(bench, report)
        except Failed as failed:
            report.add(number, title, f'not measured: {failed}'.replace('\n', '; ')[:300], False)
    if options.results:
        with open(options.results, 'w') as file:
            json.dump(report.lines, file, indent=1)
            file.write('\n')
    out = os.environ.get('OUT')
    for name in os.listdir(work):
        if out and name.endswith('.log'):
            shutil.copy(os.path.join(work, name), out)
    shutil.rmtree(work)
    bad = sum(not line['pass'] for line in report.lines)
    print(f'{len(report.lines)} measured, {bad} not as wanted')
    return 1 if bad or not report.lines else 0


if __name__ == '__main__':
    sys.exit(main())
