# SPDX-License-Identifier: Apache-2.0
"""Programs of cuBLAS, cuBLASLt and cuBLASXt."""
import ctypes
import math
import struct
from ctypes import byref, c_double, c_float, c_int, c_int64, c_longlong, c_size_t, c_uint64

from cuda_libraries import (Buffer, Captured, Failed, Library, NO, R_16F, R_32F, case, make_stream, need_gpus, none, one, pointer_to,
                            product, require_near, runtime, show, total, wave, workspace, zeros)

M, N, K = 48, 32, 64


def blas(stream=None):
    """The library and a handle."""
    library = Library('cublas', 'cublasLt')
    handle = library.make('cublasCreate_v2')
    if stream:
        library.cublasSetStream_v2(handle, stream)
    return library, handle


def gemm(library, handle, a, b, c, beta=0.0):
    library.cublasSgemm_v2(handle, NO, NO, M, N, K, one(), a.at, M, b.at, K, pointer_to(c_float, beta), c.at, M)


@case
def cublas_products():
    library, handle = blas()
    a, b, c = Buffer(wave(M * K)), Buffer(wave(K * N, 2)), zeros(M * N)
    wanted = product(a.host, b.host, M, K, N)
    gemm(library, handle, a, b, c)
    require_near('cublasSgemm', c.read(), wanted)
    wide = [Buffer(buffer.host, 'd') for buffer in (a, b, c)]
    library.cublasDgemm_v2(handle, NO, NO, M, N, K, one(c_double), wide[0].at, M, wide[1].at, K, none(c_double), wide[2].at, M)
    require_near('cublasDgemm', wide[2].read(), wanted, 1e-6)
    halves = [Buffer(struct.pack(f'{len(part.host)}e', *part.host), 'B') for part in (a, b)]
    library.cublasGemmEx(handle, NO, NO, M, N, K, one(), halves[0].at, R_16F, M, halves[1].at, R_16F, K, none(), c.at, R_32F, M, 68, -1)
    require_near('cublasGemmEx', c.read(), wanted, 2e-2)
    batch = zeros(M * N * 3)
    library.cublasSgemmStridedBatched(handle, NO, NO, M, N, K, one(), a.at, M, c_longlong(0), b.at, K, c_longlong(0), none(),
                                      batch.at, M, c_longlong(M * N), 3)
    require_near('cublasSgemmStridedBatched', batch.read(), wanted * 3)
    show(total(c.host))


@case
def cublas_vectors():
    library, handle = blas()
    x, y = Buffer(wave(5000)), Buffer(wave(5000, 3))
    dot, norm, place = c_float(), c_float(), c_int()
    library.cublasSdot_v2(handle, 5000, x.at, 1, y.at, 1, byref(dot))
    library.cublasSnrm2_v2(handle, 5000, x.at, 1, byref(norm))
    library.cublasIsamax_v2(handle, 5000, y.at, 1, byref(place))
    require_near('sums', [dot.value, norm.value], [math.fsum(p * q for p, q in zip(x.host, y.host)), math.hypot(*x.host)])
    # With the result, and the factor, in the device's memory.
    library.cublasSetPointerMode_v2(handle, 1)
    there, factor = zeros(1), Buffer([2.0])
    library.cublasSaxpy_v2(handle, 5000, factor.at, x.at, 1, y.at, 1)
    library.cublasSasum_v2(handle, 5000, y.at, 1, there.at)
    require_near('cublasSasum', there.read(), [math.fsum(abs(2 * p + q) for p, q in zip(x.host, wave(5000, 3)))])
    library.cublasSetPointerMode_v2(handle, 0)
    a = Buffer([2.0 if row == column else (0.01 if row > column else 0.0) for column in range(N) for row in range(N)])
    b = Buffer(wave(N))
    library.cublasStrsm_v2(handle, 0, 0, NO, 0, N, 1, one(), a.at, N, b.at, N)
    back = product(a.host, b.read(), N, N, 1)
    require_near('cublasStrsm', back, wave(N))
    show(place.value, total(b.host))


@case
def cublas_captured():
    stream = make_stream()
    library, handle = blas(stream)
    space = workspace(32 << 20)
    library.cublasSetWorkspace_v2(handle, space.at, c_size_t(32 << 20))
    a, b, c, y = Buffer(wave(M * K)), Buffer(wave(K * N, 2)), zeros(M * N), zeros(M)
    gemm(library, handle, a, b, c)
    with Captured(stream) as graph:
        gemm(library, handle, a, b, c)
        library.cublasSgemv_v2(handle, NO, M, N, one(), c.at, M, b.at, 1, none(), y.at, 1)
    for seed in range(3):
        a.write(wave(M * K, seed))
        graph.replay()
        wanted = product(a.host, b.host, M, K, N)
        require_near('cublasSgemm', c.read(), wanted)
        require_near('cublasSgemv', y.read(), product(wanted, b.host[:N], M, N, 1))
        show(total(c.host), total(y.host))


# cuBLASLt

class Multiply:
    """relu(a b + bias) by cuBLASLt, with the algorithm that it likes best."""

    def __init__(self, a, b, out, bias):
        self.library, self.buffers = Library('cublasLt'), (a, b, out)
        self.handle = self.library.make('cublasLtCreate')
        self.what = self.library.make('cublasLtMatmulDescCreate', 68, R_32F)
        for attribute, value in ((7, c_int(6)), (8, bias.at)):
            self.library.cublasLtMatmulDescSetAttribute(self.what, attribute, byref(value), c_size_t(ctypes.sizeof(value)))
        self.shapes = [self.library.make('cublasLtMatrixLayoutCreate', R_32F, c_uint64(rows), c_uint64(columns), c_int64(rows))
                       for rows, columns in ((M, K), (K, N), (M, N))]
        preference = self.library.make('cublasLtMatmulPreferenceCreate')
        self.space = workspace(4 << 20)
        self.library.cublasLtMatmulPreferenceSetAttribute(preference, 1, pointer_to(c_size_t, 4 << 20), c_size_t(8))
        # An algorithm is 64 bytes of a result's 96.
        self.algorithm, found = (ctypes.c_char * 96)(), c_int()
        self.library.cublasLtMatmulAlgoGetHeuristic(self.handle, self.what, *self.shapes, self.shapes[2], preference, 1,
                                                    self.algorithm, byref(found))
        if found.value != 1:
            raise Failed('cublasLtMatmulAlgoGetHeuristic found nothing')

    def run(self, stream):
        a, b, out = self.buffers
        self.library.cublasLtMatmul(self.handle, self.what, one(), a.at, self.shapes[0], b.at, self.shapes[1], none(),
                                    out.at, self.shapes[2], out.at, self.shapes[2], self.algorithm, self.space.at,
                                    c_size_t(4 << 20), stream)


def multiplied(a, b, bias):
    return [max(0.0, value + bias[i % M]) for i, value in enumerate(product(a, b, M, K, N))]


@case
def cublaslt_captured():
    stream = make_stream()
    a, b, out, bias = Buffer(wave(M * K)), Buffer(wave(K * N, 2)), zeros(M * N), Buffer(wave(M, 5))
    multiply = Multiply(a, b, out, bias)
    multiply.run(stream)
    runtime().cudaStreamSynchronize(stream)
    require_near('cublasLtMatmul', out.read(), multiplied(a.host, b.host, bias.host), 5e-3)
    with Captured(stream) as graph:
        multiply.run(stream)
    for seed in range(3):
        a.write(wave(M * K, seed))
        graph.replay()
        require_near('cublasLtMatmul', out.read(), multiplied(a.host, b.host, bias.host), 5e-3)
        show(float(f'{math.fsum(out.host):.3g}'))


# cuBLASXt: the matrices are the host's.

def cublasxt(devices, pinned):
    library = Library('cublas', 'cublasLt')
    handle = library.make('cublasXtCreate')
    library.cublasXtDeviceSelect(handle, len(devices), (c_int * len(devices))(*devices))
    library.cublasXtSetBlockDim(handle, 128)
    library.cublasXtSetPinningMemMode(handle, pinned)
    size = 512
    a, b, c = ((c_double * (size * size))() for _ in range(3))
    a[:] = wave(size * size)
    # A matrix that turns the columns: the result is known.
    for column in range(size):
        b[(column + 1) % size + column * size] = 2.0
    sizes = [c_size_t(size)] * 3
    for _ in range(2):
        library.cublasXtDgemm(handle, NO, NO, *sizes, one(c_double), a, sizes[0], b, sizes[0], none(c_double), c, sizes[0])
        require_near('cublasXtDgemm', c[:], [2 * value for value in a[size:] + a[:size]], 1e-9)
    library.cublasXtDestroy(handle)
    show(len(devices), total(c[:]))


@case
def cublasxt_pageable():
    cublasxt([0], 0)


@case
def cublasxt_registers():
    cublasxt([0], 1)


@case
def cublasxt_two_gpus():
    need_gpus(2)
    cublasxt([0, 1], 0)
    cublasxt([0, 1], 1)
