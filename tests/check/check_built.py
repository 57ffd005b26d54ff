# SPDX-License-Identifier: Apache-2.0
"""check_built.py SCRIPT: built.py copies a file of another build folder if it is new enough."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = Path(sys.argv[1]).resolve()
# In place of nvcc: its output shows that it ran.
COMPILER = '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho made here >"$2"\n'
BEFORE, BUILT, AFTER = 1000, 2000, 3000


def check(ages):
    """Returns the output and its time if the files there have these times."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {'nvcc': COMPILER, 'source/a.cu': '', 'source/a.h': '', 'other/apps/a.o': 'made there\n'}.items():
            path = Path(folder, name)
            if name in ages or name == 'nvcc':
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
                path.chmod(0o755)
                os.utime(path, (ages.get(name, 0),) * 2)
        output = Path(folder, 'own/apps/a.o')
        output.parent.mkdir(parents=True)
        subprocess.run([sys.executable, SCRIPT, '../other', f'{folder}/nvcc', '-O2', '-c', '../source/a.cu', '-o', 'apps/a.o'],
                       cwd=output.parents[1], check=True)
        return output.read_text(), int(output.stat().st_mtime)


def what_is_newer_is_taken_with_its_time():
    assert check({'source/a.cu': BEFORE, 'source/a.h': BEFORE, 'other/apps/a.o': BUILT}) == ('made there\n', BUILT)


def what_is_older_than_its_source_is_made():
    assert check({'source/a.cu': AFTER, 'source/a.h': BEFORE, 'other/apps/a.o': BUILT})[0] == 'made here\n'


def what_is_older_than_a_header_is_made():
    assert check({'source/a.cu': BEFORE, 'source/a.h': AFTER, 'other/apps/a.o': BUILT})[0] == 'made here\n'


def what_is_not_there_is_made():
    assert check({'source/a.cu': BEFORE, 'source/a.h': BEFORE})[0] == 'made here\n'


def main():
    cases = [case for name, case in globals().items() if name.startswith('what_')]
    print(f'1..{len(cases)}')
    for number, case in enumerate(cases, 1):
        case()
        print(f'ok {number} - {case.__name__}')


main()
