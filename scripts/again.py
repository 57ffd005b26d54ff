#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""again.py LOG COMMAND...: runs the failed tests of a log in JSON once more, one at a time.

COMMAND is the "meson test" of that log. A test that passes alone after it failed beside others has a
fault of its own: most often it judges by the machine's pace. The log then has the second result, and
under "before" the first, which summary.py shows; so one such test refuses no change, and is not
forgotten. What is no such fault is left as it is: a sanitizer's finding, and more than FEW failures.
"""
import json
import os
import subprocess
import sys

from summary import REPORT, count

FEW = 3


def findings(record):
    """whether a sanitizer has said something"""
    return bool(REPORT.search(record.get('stdout', '') + record.get('stderr', '')))


def read(path):
    with open(path) as log:
        return [json.loads(line) for line in log]


def main():
    path, command = sys.argv[1], sys.argv[2:]
    try:
        records = read(path)
    except FileNotFoundError:
        return
    failed = [record for record in records if count(record)[1]]
    if not 0 < len(failed) <= FEW or any(findings(record) for record in failed):
        return
    # meson names a test by its suites, and takes it by what follows these.
    names = [record['name'].split(' / ', 1)[-1] for record in failed]
    print('== once more, alone:', ', '.join(names), flush=True)
    subprocess.run([*command, '--no-rebuild', '--print-errorlogs', '--num-processes', '1',
                    '--logbase', 'again', *names], check=False)
    again = os.path.join(os.path.dirname(path), 'again.json')
    second = {record['name']: record for record in read(again)} if os.path.exists(again) else {}
    with open(path, 'w') as log:
        for record in records:
            if count(record)[1] and record['name'] in second:
                record = {**second[record['name']], 'before': record}
            log.write(json.dumps(record) + '\n')


if __name__ == '__main__':
    main()
