# SPDX-License-Identifier: Apache-2.0
"""Programs of cuSPARSE, cuSOLVER and cuSOLVERMg."""
import ctypes
import itertools
import math
from ctypes import byref, c_double, c_int, c_int64, c_size_t, c_void_p

from cuda_libraries import (Buffer, Captured, Library, NO, R_32F, R_64F, case, make_stream, need_gpus, none, one, product,
                            require_near, runtime, show, total, wave, workspace, zeros)

# cuSPARSE

class Sparse:
    """A band of three around the diagonal, its library and a handle."""

    def __init__(self, size, kind='f', stream=None):
        self.library = Library('cusparse', 'nvJitLink')
        self.handle = self.library.make('cusparseCreate')
        if stream:
            self.library.cusparseSetStream(self.handle, stream)
        self.size, self.code = size, R_32F if kind == 'f' else R_64F
        entries = [(row, column) for row in range(size) for column in (row - 1, row, row + 1) if 0 <= column < size]
        self.values = [4.0 if row == column else -1.0 for row, column in entries]
        self.columns = [column for _, column in entries]
        self.begins = [0, *itertools.accumulate(sum(1 for row, _ in entries if row == at) for at in range(size))]
        self.parts = [Buffer(self.begins, 'i'), Buffer(self.columns, 'i'), Buffer(self.values, kind)]
        self.matrix = self.library.make('cusparseCreateCsr', c_int64(size), c_int64(size), c_int64(len(entries)),
                                        *(part.at for part in self.parts), 2, 2, 0, self.code)

    def vector(self, buffer):
        return self.library.make('cusparseCreateDnVec', c_int64(self.size), buffer.at, self.code)

    def dense(self, buffer, columns):
        return self.library.make('cusparseCreateDnMat', c_int64(self.size), c_int64(columns), c_int64(self.size), buffer.at, self.code, 1)

    def space(self, function, *arguments):
        size = c_size_t()
        getattr(self.library, function)(self.handle, *arguments, byref(size))
        return workspace(size.value)

    def times(self, x):
        return [sum(self.values[i] * x[self.columns[i]] for i in range(self.begins[row], self.begins[row + 1])) for row in range(self.size)]


@case
def cusparse_products():
    sparse = Sparse(500)
    x, y = Buffer(wave(500)), zeros(500)
    call = (NO, one(), sparse.matrix, sparse.vector(x), none(), sparse.vector(y), R_32F, 0)
    space = sparse.space('cusparseSpMV_bufferSize', *call)
    sparse.library.cusparseSpMV(sparse.handle, *call, space.at)
    require_near('cusparseSpMV', y.read(), sparse.times(x.host))
    b, c = Buffer(wave(500 * 4)), zeros(500 * 4)
    call = (NO, NO, one(), sparse.matrix, sparse.dense(b, 4), none(), sparse.dense(c, 4), R_32F, 0)
    space = sparse.space('cusparseSpMM_bufferSize', *call)
    sparse.library.cusparseSpMM(sparse.handle, *call, space.at)
    require_near('cusparseSpMM', c.read(), [value for i in range(4) for value in sparse.times(b.host[i * 500:(i + 1) * 500])])
    show(total(y.host), total(c.host))


@case
def cusparse_matrix_squared():
    sparse, library = Sparse(300), Library('cusparse')
    begins = zeros(301, 'i')
    square = library.make('cusparseCreateCsr', c_int64(300), c_int64(300), c_int64(0), begins.at, None, None, 2, 2, 0, R_32F)
    what = library.make('cusparseSpGEMM_createDescr')
    call = (NO, NO, one(), sparse.matrix, sparse.matrix, none(), square, R_32F, 0, what)
    for function in ('cusparseSpGEMM_workEstimation', 'cusparseSpGEMM_compute'):
        size = c_size_t()
        getattr(library, function)(sparse.handle, *call, byref(size), None)
        space = workspace(size.value)
        getattr(library, function)(sparse.handle, *call, byref(size), space.at)
        sparse.parts.append(space)
    rows, columns, count = c_int64(), c_int64(), c_int64()
    library.cusparseSpMatGetSize(square, byref(rows), byref(columns), byref(count))
    places, values = zeros(count.value, 'i'), zeros(count.value)
    library.cusparseCsrSetPointers(square, begins.at, places.at, values.at)
    library.cusparseSpGEMM_copy(sparse.handle, *call)
    squared = sparse.times(sparse.times([1.0] * 300))
    found, begins = values.read(), begins.read()
    require_near('cusparseSpGEMM', [sum(found[begins[i]:begins[i + 1]]) for i in range(300)], squared)
    show(count.value, total(found))


@case
def cusparse_captured():
    stream = make_stream()
    sparse = Sparse(500, stream=stream)
    x, y = Buffer(wave(500)), zeros(500)
    call = (NO, one(), sparse.matrix, sparse.vector(x), none(), sparse.vector(y), R_32F, 0)
    space = sparse.space('cusparseSpMV_bufferSize', *call)
    sparse.library.cusparseSpMV(sparse.handle, *call, space.at)
    with Captured(stream) as graph:
        sparse.library.cusparseSpMV(sparse.handle, *call, space.at)
    for seed in range(3):
        x.write(wave(500, seed))
        graph.replay()
        require_near('cusparseSpMV', y.read(), sparse.times(x.host))
        show(total(y.host))


# cuSOLVER

def definite(size):
    """By columns: symmetric, with eigenvalues above 0."""
    return [float(size) if row == column else 1.0 / (1 + row + column) for column in range(size) for row in range(size)]


SOLVER = ('cublasLt', 'cublas', 'nvJitLink', 'cusparse')


@case
def cusolver_dense():
    library, size = Library('cusolver', *SOLVER), 96
    handle = library.make('cusolverDnCreate')
    need, info = c_int(), zeros(1, 'i')
    matrix, right, pivots = Buffer(definite(size), 'd'), Buffer(wave(size), 'd'), zeros(size, 'i')
    library.cusolverDnDpotrf_bufferSize(handle, 0, size, matrix.at, size, byref(need))
    library.cusolverDnDpotrf(handle, 0, size, matrix.at, size, workspace(8 * need.value).at, need, info.at)
    library.cusolverDnDpotrs(handle, 0, size, 1, matrix.at, size, right.at, size, info.at)
    require_near('cusolverDnDpotrs', product(definite(size), right.read(), size, size, 1), wave(size), 1e-9)
    matrix.write(definite(size))
    right.write(wave(size))
    library.cusolverDnDgetrf_bufferSize(handle, size, size, matrix.at, size, byref(need))
    library.cusolverDnDgetrf(handle, size, size, matrix.at, size, workspace(8 * need.value).at, pivots.at, info.at)
    library.cusolverDnDgetrs(handle, NO, size, 1, matrix.at, size, pivots.at, right.at, size, info.at)
    require_near('cusolverDnDgetrs', product(definite(size), right.read(), size, size, 1), wave(size), 1e-9)
    show(total(right.host), info.read()[0])


@case
def cusolver_eigenvalues():
    library, size = Library('cusolver', *SOLVER), 64
    handle = library.make('cusolverDnCreate')
    need, info = c_int(), zeros(1, 'i')
    matrix, values = Buffer(definite(size), 'd'), zeros(size, 'd')
    library.cusolverDnDsyevd_bufferSize(handle, 1, 0, size, matrix.at, size, values.at, byref(need))
    library.cusolverDnDsyevd(handle, 1, 0, size, matrix.at, size, values.at, workspace(8 * need.value).at, need, info.at)
    found = values.read()
    require_near('trace', [math.fsum(found)], [math.fsum(definite(size)[i * size + i] for i in range(size))], 1e-9)
    vector = matrix.read()[-size:]
    require_near('eigenvector', product(definite(size), vector, size, size, 1), [found[-1] * x for x in vector], 1e-9)
    matrix.write(definite(size))
    library.cusolverDnDgesvd_bufferSize(handle, size, size, byref(need))
    singular, left, right = zeros(size, 'd'), zeros(size * size, 'd'), zeros(size * size, 'd')
    library.cusolverDnDgesvd(handle, ctypes.c_char(b'A'), ctypes.c_char(b'A'), size, size, matrix.at, size, singular.at, left.at, size,
                             right.at, size, workspace(8 * need.value).at, need, None, info.at)
    require_near('singular values', singular.read(), found[::-1], 1e-9)
    show(total(found), info.read()[0])


@case
def cusolver_sparse():
    library, sparse = Library('cusolver', *SOLVER), Sparse(200, 'd')
    handle, what = library.make('cusolverSpCreate'), sparse.library.make('cusparseCreateMatDescr')
    right, x, singular = Buffer(wave(200), 'd'), zeros(200, 'd'), c_int()
    library.cusolverSpDcsrlsvqr(handle, 200, len(sparse.values), what, sparse.parts[2].at, sparse.parts[0].at, sparse.parts[1].at,
                                right.at, c_double(1e-12), 0, x.at, byref(singular))
    require_near('cusolverSpDcsrlsvqr', sparse.times(x.read()), wave(200), 1e-9)
    show(singular.value, total(x.host))


class Spread:
    """A matrix over some devices: blocks of columns go to them in turns."""

    def __init__(self, library, grid, devices, values, size, columns, block):
        self.devices = devices
        self.what = library.make('cusolverMgCreateMatrixDesc', c_int64(size), c_int64(columns), c_int64(size), c_int64(block), R_64F, grid)
        self.places = [[i for i in range(columns) if i // block % len(devices) == at] for at in range(len(devices))]
        self.parts = []
        for device, places in zip(devices, self.places):
            runtime().cudaSetDevice(device)
            # At least one block is everywhere.
            there = [value for i in places for value in values[i * size:(i + 1) * size]] or [0.0] * size * block
            self.parts.append(Buffer(there, 'd'))
        self.at = (c_void_p * len(devices))(*(part.at for part in self.parts))
        self.size, self.columns = size, columns

    def read(self):
        result = [0.0] * self.size * self.columns
        for device, part, places in zip(self.devices, self.parts, self.places):
            runtime().cudaSetDevice(device)
            values = part.read()
            for here, there in enumerate(places):
                result[there * self.size:(there + 1) * self.size] = values[here * self.size:(here + 1) * self.size]
        return result


def on_each(devices, count, kind):
    """Memory for COUNT numbers on each device, and the array of the addresses."""
    buffers = []
    for device in devices:
        runtime().cudaSetDevice(device)
        buffers.append(zeros(count, kind))
    runtime().cudaDeviceSynchronize()
    return buffers, (c_void_p * len(devices))(*(buffer.at for buffer in buffers))


def solve_over(devices):
    library, size, block = Library('cusolverMg', *SOLVER, 'cusolver'), 256, 32
    for one_device, other in itertools.permutations(devices, 2):
        runtime().cudaSetDevice(one_device)
        runtime().cudaDeviceEnablePeerAccess(other, 0)
    numbers = (c_int * len(devices))(*devices)
    handle = library.make('cusolverMgCreate')
    library.cusolverMgDeviceSelect(handle, len(devices), numbers)
    grid = library.make('cusolverMgCreateDeviceGrid', 1, len(devices), numbers, 0)
    matrix = Spread(library, grid, devices, definite(size), size, size, block)
    right = Spread(library, grid, devices, wave(size), size, 1, block)
    pivots, pivots_at = on_each(devices, size, 'i')
    need, more, info = c_int64(), c_int64(), c_int()
    library.cusolverMgGetrf_bufferSize(handle, size, size, matrix.at, 1, 1, matrix.what, pivots_at, R_64F, byref(need))
    library.cusolverMgGetrs_bufferSize(handle, NO, size, 1, matrix.at, 1, 1, matrix.what, pivots_at, right.at, 1, 1, right.what, R_64F,
                                       byref(more))
    need = c_int64(max(need.value, more.value))
    spaces, spaces_at = on_each(devices, need.value, 'd')
    library.cusolverMgGetrf(handle, size, size, matrix.at, 1, 1, matrix.what, pivots_at, R_64F, spaces_at, need, byref(info))
    library.cusolverMgGetrs(handle, NO, size, 1, matrix.at, 1, 1, matrix.what, pivots_at, right.at, 1, 1, right.what, R_64F, spaces_at,
                            need, byref(info))
    for device in devices:
        runtime().cudaSetDevice(device)
        runtime().cudaDeviceSynchronize()
    found = right.read()
    require_near('cusolverMgGetrs', product(definite(size), found, size, size, 1), wave(size), 1e-9)
    show(len(devices), info.value, len(pivots), len(spaces), total(found))
    eigenvalues(library, handle, grid, devices, size, block)


def eigenvalues(library, handle, grid, devices, size, block):
    matrix = Spread(library, grid, devices, definite(size), size, size, block)
    values, need, info = (c_double * size)(), c_int64(), c_int()
    call = (handle, 1, 0, size, matrix.at, 1, 1, matrix.what, values, R_64F, R_64F)
    library.cusolverMgSyevd_bufferSize(*call, byref(need))
    spaces, spaces_at = on_each(devices, need.value, 'd')
    library.cusolverMgSyevd(*call, spaces_at, need, byref(info))
    require_near('trace', [math.fsum(values)], [math.fsum(definite(size)[i * size + i] for i in range(size))], 1e-9)
    show(info.value, len(spaces), total(values))


@case
def cusolvermg_one_gpu():
    solve_over([0])


@case
def cusolvermg_two_gpus():
    need_gpus(2)
    solve_over([0, 1])
