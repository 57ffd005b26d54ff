#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""imagewords.py FILE...: natively, which words of an image end the process that loads it.

Each FILE is a fatbin, a cubin or PTX text.  Every word of a fatbin's headers, of an ELF's header and
of its table of sections is changed by itself, and cuModuleLoadData() gets the result.  A worker of
the daemon is such a process: image/ has to refuse each image listed here.  One line for each word and
value that ended it, or that took longer than ten seconds; then a sum for each file.
"""
import ctypes
import os
import struct
import subprocess
import sys

VALUES = (0, 1, 8, 0x7ffffff8, 0xffffffff)
SECONDS = 10


def words_of_elf(data, at):
    """Places in its header and its table of sections; a table elsewhere than in the bytes has none."""
    if data[at:at + 4] != b"\x7fELF":
        return
    yield from range(at, at + 64, 4)
    table, = struct.unpack_from("<Q", data, at + 40)
    size, count = struct.unpack_from("<HH", data, at + 58)
    yield from range(at + table, min(at + table + size * count, len(data) - 3), 4)


def find_words(data):
    if data[:4] != struct.pack("<I", 0xba55ed50):
        yield from words_of_elf(data, 0)
        return
    yield from range(4, 8, 4)
    at = 16
    while at + 64 <= len(data):
        header, payload = struct.unpack_from("<IQ", data, at + 4)
        yield from range(at, at + header, 4)
        yield from words_of_elf(data, at + header)
        at += header + payload


def make_changes(data):
    for word in find_words(data):
        for value in VALUES:
            if data[word:word + 4] != struct.pack("<I", value):
                yield word, value


def load(path, first):
    """In a separate process: prints the change before each load, and its result."""
    cuda = ctypes.CDLL("libcuda.so.1")
    context, module = ctypes.c_void_p(), ctypes.c_void_p()
    if cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) or cuda.cuCtxSetCurrent(context):
        sys.exit("no device")
    with open(path, "rb") as file:
        data = file.read()
    # Readable memory follows the image, as in a worker.
    room = ctypes.create_string_buffer(len(data) + (1 << 20))
    for number, (word, value) in enumerate(make_changes(data)):
        if number < first:
            continue
        ctypes.memmove(room, data, len(data))
        struct.pack_into("<I", room, word, value)
        os.write(1, b"%d\n" % number)
        if cuda.cuModuleLoadData(ctypes.byref(module), room) == 0:
            cuda.cuModuleUnload(module)
        # An error that stays would answer for all that follow.
        if cuda.cuCtxSynchronize():
            os._exit(3)
    os._exit(0)


def probe(path):
    with open(path, "rb") as file:
        changes = list(make_changes(file.read()))
    next_one, ended = 0, 0
    while next_one < len(changes):
        child = subprocess.Popen([sys.executable, __file__, "--load", path, str(next_one)], stdout=subprocess.PIPE)
        try:
            out, _ = child.communicate(timeout=SECONDS + len(changes) // 50)
        except subprocess.TimeoutExpired:
            child.kill()
            out, _ = child.communicate()
        if child.returncode == 0:
            break
        if not out:
            sys.exit(f"imagewords: no load was tried: status {child.returncode}")
        number = int(out.split()[-1])
        word, value = changes[number]
        print(f"{path}: word {word:#x} as {value:#x} ends the process: status {child.returncode}", flush=True)
        next_one, ended = number + 1, ended + 1
    print(f"{path}: {len(changes)} changes, {ended} of them end the process", flush=True)


def main():
    if sys.argv[1:2] == ["--load"]:
        load(sys.argv[2], int(sys.argv[3]))
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for path in sys.argv[1:]:
        probe(path)


if __name__ == "__main__":
    main()
