#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/threadsafety.py BUILD [FOLDER...]: clang's -Wthread-safety over what has locks.

Reads how the files of the folders (all that have locks, but softgpu/) are compiled from the build
folder, and runs clang's analysis on each, without compiling it. base/lock.h has the annotations of functions
and locks; it is included first, so that every file's locks are known. Prints clang's errors.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

FOLDERS = ('base/', 'client/', 'ctl/', 'nvml/', 'server/', 'transport/')
# pthread_mutex_t is not a type that clang knows for a lock: which is all that -attributes finds.
FLAGS = ['-fsyntax-only', '-DGP_CHECK_LOCKS', '-Wno-everything', '-Wthread-safety', '-Werror', '-Wno-thread-safety-attributes',
         '-include']


def list_commands(build, folders):
    root = pathlib.Path(__file__).resolve().parent.parent
    seen = set()
    for entry in json.loads((build / 'compile_commands.json').read_text()):
        path = (pathlib.Path(entry['directory']) / entry['file']).resolve()
        if path in seen or path.suffix != '.c' or not path.is_relative_to(root):
            continue
        if not str(path.relative_to(root)).startswith(folders):
            continue
        seen.add(path)
        words = shlex.split(entry['command'])
        kept = [word for i, word in enumerate(words)
                if word.startswith(('-I', '-D', '-std')) or words[i - 1] == '-isystem'
                or word == '-isystem']
        yield ['clang', *kept, *FLAGS, str(root / 'base/lock.h'), str(path)], entry['directory']


def check(command, directory):
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def main():
    failed = files = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in pool.map(lambda job: check(*job), list_commands(pathlib.Path(sys.argv[1]), tuple(sys.argv[2:]) or FOLDERS)):
            files += 1
            failed += done.returncode != 0
            sys.stdout.write(done.stderr)
    print(f'{files} files, {failed} with locks that are not as they should be')
    return 1 if failed or not files else 0


sys.exit(main())
