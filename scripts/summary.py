#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""summary.py PASSED FAILED LOG...: adds up meson test runs by their logs in JSON.

Every test case of a TAP program counts for itself, and what ran before the two given numbers is
added. Prints "N passed, N failed, N skipped"; exit status 1 if any failed or none ran.
"""
import json
import re
import sys

# A sanitizer's report, from its head to its summary, and the parts of a line that are left out.
REPORT = re.compile(r'WARNING: ThreadSanitizer|ERROR: \w+Sanitizer|runtime error:')
REPORT_END = re.compile(r'SUMMARY: |^#? *=====+$')
NOISE = re.compile(r'^# ?|0x[0-9a-f]+ in |\.\./|\(lib[^)]*\)|\(BuildId:[^)]*\)')
POINT = re.compile(r'^\s*(not )?ok\b[^#\n]*(#\s*(skip|todo)\b)?', re.I | re.M)


def count(record):
    """(passed, failed, skipped) of one program"""
    result = record['result']
    bad = result not in ('OK', 'SKIP', 'EXPECTEDFAIL')
    passed = failed = skipped = 0
    for negated, directive, _ in POINT.findall(record.get('stdout', '')):
        if directive:
            skipped += 1
        elif negated:
            failed += 1
        else:
            passed += 1
    if passed + failed + skipped == 0:
        if result == 'SKIP':
            return 0, 0, 1
        return (0, 1, 0) if bad else (1, 0, 0)
    # A program that aborted, or that a sanitizer ended, has failed even if all its cases passed.
    if bad and failed == 0:
        failed = 1
    return passed, failed, skipped


def condensed(reason):
    """The end of why a test failed; a sanitizer's report comes first, without what is not its own."""
    report, inside = [], False
    for line in reason:
        if REPORT.search(line):
            inside = True
        elif inside and REPORT_END.search(line):
            inside = False
        if inside and line.strip('# '):
            report.append('# ' + NOISE.sub('', line).strip())
    return report[:40] + reason[-(20 if report else 60):]


def show(folder, record):
    """Prints each failure and its reason, so that the end of the output suffices."""
    print(f"failed in {folder}: {record['name']} ({record['result']})")
    lines = record.get('stdout', '').splitlines()
    reason = []
    for line in lines:
        if re.match(r'\s*not ok\b', line):
            print('\n'.join(condensed(reason) + [line]))
        reason = reason + [line] if line.startswith('#') else []
    print('\n'.join(record.get('stderr', '').splitlines()[-40:]))


def main():
    passed, failed, skipped = int(sys.argv[1]), int(sys.argv[2]), 0
    for path in sys.argv[3:]:
        try:
            with open(path) as log:
                records = [json.loads(line) for line in log]
        except FileNotFoundError:
            records = []
        if not records:
            print(f'{path}: no test was run')
            failed += 1
        for record in records:
            p, f, s = count(record)
            passed, failed, skipped = passed + p, failed + f, skipped + s
            if f:
                show(path.split('/')[0], record)
    print(f'{passed} passed, {failed} failed, {skipped} skipped')
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main())
