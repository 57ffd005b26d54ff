# SPDX-License-Identifier: Apache-2.0
"""CUDA's libraries by ctypes alone: where they are, memory of a device, and a stream's work captured as a graph.

A library is the one that pip installed (nvidia/*/lib), or a toolkit's (CUDA_HOME, /usr/local/cuda).
Calls raise Failed unless they return 0. A pointer or handle is a c_void_p; Python's ints are C ints.
"""
import array
import ctypes
import glob
import math
import os
import re
import site
import sys
from ctypes import byref, c_size_t, c_uint64, c_void_p

CASES = {}
# No matrix is transposed.
NO = 0
HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2
R_32F, R_64F, R_16F = 0, 1, 2


class Failed(Exception):
    """A call of a library returned an error, or a result is wrong."""


def case(function):
    CASES[function.__name__] = function
    return function


def show(*values):
    print(*(f'{value:.4g}' if isinstance(value, float) else value for value in values), flush=True)


def total(values):
    """Of numbers whose last digits may differ."""
    return float(f'{math.fsum(map(abs, values)):.4g}')


def parse_version(path):
    return [int(part) for part in re.findall(r'\d+', path.rpartition('.so')[2])]


def folders():
    packages = [*site.getsitepackages(), site.getusersitepackages()]
    for pattern in ('nvidia/cu[0-9]*/lib', 'nvidia/*/lib'):
        for package in packages:
            yield from sorted(glob.glob(os.path.join(package, pattern)), reverse=True)
    for home in (os.environ.get('CUDA_HOME'), '/usr/local/cuda'):
        if home:
            yield os.path.join(home, 'lib64')


def find(name):
    """The path of the newest lib<name>.so.N in the first folder that has one; None."""
    for folder in folders():
        found = [path for path in glob.glob(os.path.join(folder, f'lib{name}.so.*')) if parse_version(path)]
        if found:
            return max(found, key=parse_version)
    return None


class Library:
    """lib<name>.so; a library that needs others finds those that were opened before."""

    opened = {}

    def __new__(cls, name, *needs):
        if name not in cls.opened:
            for need in needs:
                cls(need)
            path = find(name)
            if not path:
                raise Failed(f'no lib{name}.so: pip install the nvidia package that has it, or set CUDA_HOME')
            self = super().__new__(cls)
            self.name, self.path, self.functions = name, path, ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
            cls.opened[name] = self
        return cls.opened[name]

    def __getattr__(self, name):
        function = getattr(self.functions, name)

        def call(*arguments):
            status = function(*arguments)
            if status:
                raise Failed(f'{name}: {status}')
        return call

    def make(self, name, *arguments):
        """Returns the handle that a function writes by its first parameter."""
        handle = c_void_p()
        getattr(self, name)(byref(handle), *arguments)
        return handle


def runtime():
    return Library('cudart')


def pointer_to(kind, value):
    """A pointer to a number."""
    return byref(kind(value))


def one(kind=ctypes.c_float):
    return pointer_to(kind, 1)


def none(kind=ctypes.c_float):
    return pointer_to(kind, 0)


def wave(count, seed=1):
    """Numbers between -1 and 1, the same everywhere."""
    return [((i * 7919 + seed * 104729) % 2003) / 1001.5 - 1 for i in range(count)]


class Buffer:
    """Memory of the current device with these numbers; kind as array.array has it."""

    def __init__(self, values, kind='f'):
        self.host = array.array(kind, values)
        self.bytes = len(self.host) * self.host.itemsize
        self.at = c_void_p()
        runtime().cudaMalloc(byref(self.at), c_size_t(max(self.bytes, 1)))
        self.write(values)

    def write(self, values):
        self.host = array.array(self.host.typecode, values)
        runtime().cudaMemcpy(self.at, c_void_p(self.host.buffer_info()[0]), c_size_t(self.bytes), HOST_TO_DEVICE)
        # Streams that do not block see it only then.
        runtime().cudaDeviceSynchronize()

    def read(self):
        runtime().cudaMemcpy(c_void_p(self.host.buffer_info()[0]), self.at, c_size_t(self.bytes), DEVICE_TO_HOST)
        return self.host


def zeros(count, kind='f'):
    return Buffer(bytes(count * array.array(kind).itemsize) if kind == 'B' else [0] * count, kind)


def workspace(size):
    return zeros(max(size, 1), 'B')


def make_stream():
    return runtime().make('cudaStreamCreateWithFlags', 1)


class Captured:
    """Work that a stream gets inside the with becomes a graph; every replay ends before it returns."""

    def __init__(self, stream):
        self.stream, self.graph, self.executable = stream, c_void_p(), c_void_p()

    def __enter__(self):
        # Earlier work of the stream must not be part of the capture.
        runtime().cudaStreamSynchronize(self.stream)
        runtime().cudaStreamBeginCapture(self.stream, 0)
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            runtime().cudaStreamEndCapture(self.stream, byref(self.graph))
            runtime().cudaGraphInstantiate(byref(self.executable), self.graph, c_uint64(0))

    def replay(self):
        runtime().cudaGraphLaunch(self.executable, self.stream)
        runtime().cudaStreamSynchronize(self.stream)


def device_count():
    count = ctypes.c_int()
    runtime().cudaGetDeviceCount(byref(count))
    return count.value


def need_gpus(count):
    if device_count() < count:
        sys.exit(f'needs {count} GPUs')


def architecture():
    """'90' of a device of compute capability 9.0."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    runtime().cudaDeviceGetAttribute(byref(major), 75, 0)
    runtime().cudaDeviceGetAttribute(byref(minor), 76, 0)
    return f'{major.value}{minor.value}'


def product(a, b, rows, inner, columns):
    """By columns, as BLAS has matrices: a (rows x inner) times b (inner x columns)."""
    return [sum(a[row + k * rows] * b[k + column * inner] for k in range(inner)) for column in range(columns) for row in range(rows)]


def require_near(what, found, wanted, tolerance=1e-3):
    """Ends the program where a result is wrong, natively too."""
    worst = max((abs(x - y) / max(1.0, abs(y)) for x, y in zip(found, wanted)), default=0.0)
    if len(found) != len(wanted) or not worst <= tolerance:
        raise Failed(f'{what}: {len(found)} numbers for {len(wanted)}, the worst differs by {worst:g}')
