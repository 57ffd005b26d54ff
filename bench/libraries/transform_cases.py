# SPDX-License-Identifier: Apache-2.0
"""Programs of cuFFT and cuRAND."""
import math
from ctypes import byref, c_double, c_float, c_int, c_size_t, c_uint64, c_void_p

from cuda_libraries import Buffer, Captured, Library, case, make_stream, need_gpus, require_near, show, total, wave, zeros

# cuFFT

FORWARD, INVERSE = -1, 1
R2C, C2R, C2C, Z2Z = 0x2a, 0x2c, 0x29, 0x69


def tones(count, frequency):
    """Complex numbers, parts in turn, whose transform is `count` at this frequency."""
    angles = (2 * math.pi * frequency * i / count for i in range(count))
    return [part for angle in angles for part in (math.cos(angle), math.sin(angle))]


def peaks(count, frequency):
    return [float(count) if i == 2 * frequency else 0.0 for i in range(2 * count)]


def one_dimension(*counts):
    """There and back, of complex numbers."""
    library = Library('cufft')
    for count in counts:
        data = Buffer(tones(count, 3), 'd')
        plan = c_int()
        library.cufftPlan1d(byref(plan), count, Z2Z, 1)
        library.cufftExecZ2Z(plan, data.at, data.at, FORWARD)
        require_near(f'cufftExecZ2Z of {count}', [x / count for x in data.read()], [x / count for x in peaks(count, 3)], 1e-6)
        library.cufftExecZ2Z(plan, data.at, data.at, INVERSE)
        require_near(f'cufftExecZ2Z back of {count}', [x / count for x in data.read()], tones(count, 3), 1e-6)
        library.cufftDestroy(plan)
        show(count)


@case
def cufft_prime_length():
    one_dimension(10007)


@case
def cufft_plans():
    one_dimension(256, 1000, 8192)
    library, rows, columns = Library('cufft'), 48, 64
    plain, there = Buffer(wave(rows * columns)), zeros(rows * (columns // 2 + 1) * 2)
    for kind, function, ends in ((R2C, 'cufftExecR2C', (plain.at, there.at)), (C2R, 'cufftExecC2R', (there.at, plain.at))):
        plan = c_int()
        library.cufftPlan2d(byref(plan), rows, columns, kind)
        getattr(library, function)(plan, *ends)
    require_near('two dimensions', [x / (rows * columns) for x in plain.read()], wave(rows * columns))
    show(total(plain.host))


@case
def cufft_captured():
    library, stream, count = Library('cufft'), make_stream(), 1024
    plan, data = c_int(), zeros(2 * count)
    library.cufftPlan1d(byref(plan), count, C2C, 1)
    library.cufftSetStream(plan, stream)
    library.cufftExecC2C(plan, data.at, data.at, FORWARD)
    with Captured(stream) as graph:
        library.cufftExecC2C(plan, data.at, data.at, FORWARD)
    for frequency in range(1, 4):
        data.write(tones(count, frequency))
        graph.replay()
        require_near('cufftExecC2C', [x / count for x in data.read()], [x / count for x in peaks(count, frequency)])
        show(frequency)


@case
def cufft_two_gpus():
    need_gpus(2)
    library, count = Library('cufft'), 1 << 14
    plan, size = c_int(), (c_size_t * 2)()
    library.cufftCreate(byref(plan))
    library.cufftXtSetGPUs(plan, 2, (c_int * 2)(0, 1))
    library.cufftMakePlan1d(plan, count, C2C, 1, size)
    there = c_void_p()
    library.cufftXtMalloc(plan, byref(there), 2)
    data = (c_float * (2 * count))(*tones(count, 5))
    library.cufftXtMemcpy(plan, there, data, 0)
    library.cufftXtExecDescriptorC2C(plan, there, there, FORWARD)
    library.cufftXtExecDescriptorC2C(plan, there, there, INVERSE)
    library.cufftXtMemcpy(plan, data, there, 1)
    require_near('two GPUs', [x / count for x in data[:]], tones(count, 5))
    library.cufftXtFree(there)
    show(count)


# cuRAND

@case
def curand_generators():
    library = Library('curand')
    for kind in (101, 121, 141, 142, 161, 201, 202):
        generator = c_void_p()
        library.curandCreateGenerator(byref(generator), kind)
        if kind < 200:
            library.curandSetPseudoRandomGeneratorSeed(generator, c_uint64(1234))
        out, counts = zeros(20000), zeros(20000, 'I')
        library.curandGenerateUniform(generator, out.at, c_size_t(20000))
        require_near(f'mean of {kind}', [math.fsum(out.read()) / 20000], [0.5], 0.02)
        uniform = total(out.host)
        library.curandGenerateNormal(generator, out.at, c_size_t(20000), c_float(3), c_float(1))
        require_near(f'normal mean of {kind}', [math.fsum(out.read()) / 20000], [3.0], 0.02)
        library.curandGeneratePoisson(generator, counts.at, c_size_t(20000), c_double(10))
        require_near(f'Poisson mean of {kind}', [sum(counts.read()) / 20000], [10.0], 0.02)
        library.curandDestroyGenerator(generator)
        show(kind, uniform, total(out.host), sum(counts.host))


@case
def curand_captured():
    """A graph gives further numbers each time, as the state is in the device's memory."""
    library, stream = Library('curand'), make_stream()
    generator, out = c_void_p(), zeros(4096)
    library.curandCreateGenerator(byref(generator), 101)
    library.curandSetStream(generator, stream)
    library.curandGenerateUniform(generator, out.at, c_size_t(4096))
    with Captured(stream) as graph:
        library.curandGenerateUniform(generator, out.at, c_size_t(4096))
    for _ in range(3):
        graph.replay()
        show(total(out.read()))


@case
def curand_host():
    library, numbers = Library('curand'), (c_float * 1000)()
    generator = c_void_p()
    library.curandCreateGeneratorHost(byref(generator), 161)
    library.curandSetPseudoRandomGeneratorSeed(generator, c_uint64(7))
    library.curandGenerateUniform(generator, numbers, c_size_t(1000))
    require_near('mean', [math.fsum(numbers) / 1000], [0.5], 0.1)
    show(total(numbers[:]))
