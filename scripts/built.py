#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""built.py OTHER NVCC ARG...: what nvcc would make, taken from another build folder of these sources.

What nvcc makes is the same whichever sanitizer a build has, and takes minutes of the check. So the
second build of the check takes the file that "-o" names from OTHER, where it lies at the same place.
A file that is not there, or is older than what it is made of or than a header beside that, is made here.
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
        # With its time: what is made of it is then no younger than it was there.
        shutil.copy2(built, output)
    else:
        os.execv(command[0], command)


if __name__ == '__main__':
    main()
