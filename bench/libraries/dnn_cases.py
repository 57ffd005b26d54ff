# SPDX-License-Identifier: Apache-2.0
"""Programs of cuDNN."""
import math
from ctypes import byref, c_size_t

from cuda_libraries import (Buffer, Captured, Failed, Library, case, make_stream, none, one, require_near, show, total, wave, workspace,
                            zeros)


class Convolution:
    """Two images of three planes, eight filters of 3 x 3."""

    def __init__(self, library, handle):
        self.library, self.handle = library, handle
        self.x, self.w, self.y = Buffer(wave(2 * 3 * 16 * 16)), Buffer(wave(8 * 3 * 9, 2)), zeros(2 * 8 * 16 * 16)
        self.x_shape, self.y_shape = self.shape(2, 3, 16, 16), self.shape(2, 8, 16, 16)
        self.w_shape, self.what = library.make('cudnnCreateFilterDescriptor'), library.make('cudnnCreateConvolutionDescriptor')
        library.cudnnSetFilter4dDescriptor(self.w_shape, 0, 0, 8, 3, 3, 3)
        library.cudnnSetConvolution2dDescriptor(self.what, 1, 1, 1, 1, 1, 1, 1, 0)

    def shape(self, *sizes):
        shape = self.library.make('cudnnCreateTensorDescriptor')
        self.library.cudnnSetTensor4dDescriptor(shape, 0, 0, *sizes)
        return shape

    def space(self, algorithm):
        size = c_size_t()
        self.library.cudnnGetConvolutionForwardWorkspaceSize(self.handle, self.x_shape, self.w_shape, self.what, self.y_shape, algorithm,
                                                             byref(size))
        return workspace(size.value), size

    def run(self, algorithm, space):
        self.library.cudnnConvolutionForward(self.handle, one(), self.x_shape, self.x.at, self.w_shape, self.w.at, self.what, algorithm,
                                             space[0].at, space[1], none(), self.y_shape, self.y.at)

    def one_value(self, image, plane, row, column):
        """The value of y at this position."""
        return sum(self.x.host[((image * 3 + c) * 16 + row + i - 1) * 16 + column + j - 1] * self.w.host[(plane * 3 + c) * 9 + i * 3 + j]
                   for c in range(3) for i in range(3) for j in range(3) if 0 <= row + i - 1 < 16 and 0 <= column + j - 1 < 16)

    def check(self, what):
        y = self.y.read()
        some = [(i % 2, i % 8, i * 5 % 16, i * 11 % 16) for i in range(40)]
        require_near(what, [y[((n * 8 + k) * 16 + r) * 16 + c] for n, k, r, c in some], [self.one_value(*place) for place in some], 2e-2)
        return float(f'{math.fsum(map(abs, y)):.3g}')


def dnn(stream=None):
    library = Library('cudnn', 'cublasLt', 'cublas', 'nvrtc-builtins', 'nvrtc', 'nvJitLink')
    handle = library.make('cudnnCreate')
    if stream:
        library.cudnnSetStream(handle, stream)
    return library, handle


@case
def cudnn_algorithms():
    """Those that this cuDNN refuses are refused with the same status."""
    convolution = Convolution(*dnn())
    for algorithm in range(8):
        try:
            convolution.run(algorithm, convolution.space(algorithm))
        except Failed as refused:
            show(algorithm, str(refused))
        else:
            show(algorithm, convolution.check(f'algorithm {algorithm}'))


@case
def cudnn_layers():
    convolution = Convolution(*dnn())
    library, handle = convolution.library, convolution.handle
    convolution.run(0, convolution.space(0))
    show(convolution.check('convolution'))
    pooled, shape = zeros(2 * 8 * 8 * 8), convolution.shape(2, 8, 8, 8)
    pool = library.make('cudnnCreatePoolingDescriptor')
    library.cudnnSetPooling2dDescriptor(pool, 0, 0, 2, 2, 0, 0, 2, 2)
    library.cudnnPoolingForward(handle, pool, one(), convolution.y_shape, convolution.y.at, none(), shape, pooled.at)
    y = convolution.y.host
    require_near('pooling', pooled.read(), [max(y[(p * 16 + r) * 16 + c] for r in (2 * i, 2 * i + 1) for c in (2 * j, 2 * j + 1))
                                            for p in range(16) for i in range(8) for j in range(8)])
    flat, out = convolution.shape(16, 64, 1, 1), zeros(2 * 8 * 8 * 8)
    library.cudnnSoftmaxForward(handle, 1, 0, one(), flat, pooled.at, none(), flat, out.at)
    require_near('softmax', [math.fsum(out.read()[i * 64:(i + 1) * 64]) for i in range(16)], [1.0] * 16)
    show(total(pooled.host))


@case
def cudnn_captured():
    stream = make_stream()
    convolution = Convolution(*dnn(stream))
    space = convolution.space(0)
    convolution.run(0, space)
    with Captured(stream) as graph:
        convolution.run(0, space)
    for seed in range(3):
        convolution.x.write(wave(2 * 3 * 16 * 16, seed))
        graph.replay()
        show(convolution.check('captured'))
