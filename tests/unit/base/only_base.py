#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clock, limited waits and the start of threads are in base/ only: says which file has its own, or
gives a thread a name that the kernel does not take (base/thread.h)."""
import pathlib
import re
import sys

OWN = re.compile(
    r'\b(?:pthread_(?:cond_(?:timedwait|clockwait|init)|condattr_\w+|mutex_(?:timed|clock)lock'
    r'|rwlock_(?:timed|clock)\w+|create)|sem_(?:timed|clock)wait|clock_nanosleep|nanosleep|usleep'
    r'|sleep|gettimeofday|clock_gettime)\s*\((?!CLOCK_PROCESS_CPUTIME_ID)|PTHREAD_COND_INITIALIZER')
NAMED = re.compile(r'\b\w*thread_start\w*\([^;"]*"([^"\n]{16,})"')
FOLDERS = ('client', 'ctl', 'image', 'protocol', 'server', 'softgpu', 'transport')


def main():
    root = pathlib.Path(sys.argv[1])
    found = 0
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob('*.[ch]')):
            text = path.read_text()
            for match in NAMED.finditer(text):
                print(f'{path.relative_to(root)}:{text.count(chr(10), 0, match.end()) + 1}: "{match.group(1)}": '
                      f'a thread\'s name has 15 characters at most')
                found += 1
            for number, line in enumerate(text.splitlines(), 1):
                for match in OWN.finditer(line):
                    print(f'{path.relative_to(root)}:{number}: {match.group(0).rstrip("( ")}: '
                          f'base/ has that, by the clock that nobody sets')
                    found += 1
    return 1 if found else 0


sys.exit(main())
