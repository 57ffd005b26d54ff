#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""built.py OTHER NVCC ARG...: copies nvcc's output from another build folder of these sources, or runs nvcc.

nvcc's output does not depend on a build's sanitizer, and takes minutes of the check. So the
second build of the check copies the file that "-o" names from the same path in OTHER.
A missing file, or one older than its sources or than a header beside them, is compiled here.
"""
import glob
import os
import shutil
import sys


def find_inputs(args):
    """the files among the words, and the headers beside them"""
    for arg in args:
        if os.path.isfile(arg):
            yield arg
            yield from glob.glob(os.path.join(glob.escape(os.path.dirname(arg)), '*.h'))


def main():
    other, command = sys.argv[1], sys.argv[2:]
    words = command[1:]
    at = words.index('-o')
    output = words[at + 1]
    built = os.path.join(other, output)
    inputs = set(find_inputs(words[:at] + words[at + 2:]))
    if os.path.exists(built) and all(os.path.getmtime(path) <= os.path.getmtime(built) for path in inputs):
        # With its time: files made of it are then not rebuilt.
        shutil.copy2(built, output)
    else:
        os.execv(command[0], command)


if __name__ == '__main__':
    main()
