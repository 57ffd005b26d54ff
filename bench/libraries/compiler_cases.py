# SPDX-License-Identifier: Apache-2.0
"""Programs of NVRTC and nvJitLink, and the driver that loads what they make."""
import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p

from cuda_libraries import Buffer, Failed, Library, architecture, case, require_near, runtime, show, wave

KERNEL = b'''extern "C" __device__ float twice(float);
template <int STEP> __global__ void scale(float *x, int n)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = x[i] * STEP + STEP; }
extern "C" __global__ void twice_all(float *x, int n)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = %s; }
'''
HELPER = b'extern "C" __device__ float twice(float x) { return 2 * x; }'


def compile_to(what, source, *options, name=None):
    """(bytes, the name that the compiler gave) of a program; what: PTX, CUBIN or LTOIR."""
    library = Library('nvrtc', 'nvrtc-builtins')
    program = library.make('nvrtcCreateProgram', c_char_p(source), c_char_p(b'program.cu'), 0, None, None)
    if name:
        library.nvrtcAddNameExpression(program, c_char_p(name))
    flags = (c_char_p * len(options))(*(option.encode() for option in options))
    try:
        library.nvrtcCompileProgram(program, len(options), flags)
    except Failed as error:
        size = c_size_t()
        library.nvrtcGetProgramLogSize(program, byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        raise Failed(f'{error}: {log.value.decode()}') from None
    size, lowered = c_size_t(), c_char_p()
    getattr(library, f'nvrtcGet{what}Size')(program, byref(size))
    code = ctypes.create_string_buffer(size.value)
    getattr(library, f'nvrtcGet{what}')(program, code)
    if name:
        library.nvrtcGetLoweredName(program, c_char_p(name), byref(lowered))
    return code.raw, lowered.value


def link(kind, parts, *options):
    """The output of nvJitLink for parts, (kind, bytes) each: 'Cubin' or 'Ptx'.  Kinds: 1 cubin, 2 PTX, 3 LTO-IR."""
    library = Library('nvJitLink')
    flags = (c_char_p * len(options))(*(option.encode() for option in options))
    linker = library.make('nvJitLinkCreate', ctypes.c_uint32(len(options)), flags)
    for number, (part_kind, code) in enumerate(parts):
        library.nvJitLinkAddData(linker, part_kind, code, c_size_t(len(code)), c_char_p(b'part %d' % number))
    library.nvJitLinkComplete(linker)
    size = c_size_t()
    getattr(library, f'nvJitLinkGetLinked{kind}Size')(linker, byref(size))
    code = ctypes.create_string_buffer(size.value)
    getattr(library, f'nvJitLinkGetLinked{kind}')(linker, code)
    library.nvJitLinkDestroy(byref(linker))
    return code.raw


class Driver:
    """cuda.h's functions; it finds what REMOTE_GPU's environment brings."""

    def __init__(self):
        runtime().cudaFree(None)
        self.functions = ctypes.CDLL('libcuda.so.1')

    def call(self, name, *arguments):
        status = getattr(self.functions, name)(*arguments)
        if status:
            raise Failed(f'{name}: {status}')

    def run(self, code, name, buffer):
        module, function, count = c_void_p(), c_void_p(), c_int(len(buffer.host))
        self.call('cuModuleLoadData', byref(module), code)
        self.call('cuModuleGetFunction', byref(function), module, c_char_p(name))
        arguments = (c_void_p * 2)(ctypes.addressof(buffer.at), ctypes.addressof(count))
        self.call('cuLaunchKernel', function, 4, 1, 1, 256, 1, 1, 0, None, arguments, None)
        result = list(buffer.read())
        self.call('cuModuleUnload', module)
        return result


def nvrtc_run(*kinds):
    driver, x = Driver(), wave(1000)
    for what in kinds:
        arch = ('compute_' if what == 'PTX' else 'sm_') + architecture()
        code, name = compile_to(what, KERNEL % b'2 * x[i]', f'-arch={arch}', name=b'scale<3>')
        require_near(what, driver.run(code, name, Buffer(x)), [3 * value + 3 for value in x])
        show(what, name.decode())
    try:
        compile_to('PTX', b'__global__ void broken() { nothing; }')
        show('compiled an invalid program')
    except Failed as error:
        show('nothing' in str(error) and 'program.cu(1)' in str(error))


@case
def nvrtc_ptx():
    nvrtc_run('PTX')


@case
def nvrtc_cubin():
    nvrtc_run('CUBIN')


def jitlink_run(kind, part_kind, what, *options):
    """The two halves of a program, linked."""
    driver, x, arch = Driver(), wave(1000), architecture()
    flags = (f'-arch={"compute" if what == "PTX" else "sm"}_{arch}', '-rdc=true', *(['-dlto'] if what == 'LTOIR' else []))
    parts = [(part_kind, compile_to(what, source, *flags)[0]) for source in (KERNEL % b'twice(x[i])', HELPER)]
    code = link(kind, parts, f'-arch=sm_{arch}', *options)
    require_near(f'{what} to {kind}', driver.run(code, b'twice_all', Buffer(x)), [2 * value for value in x])
    show(what, kind)


@case
def nvjitlink_cubin():
    jitlink_run('Cubin', 2, 'PTX')
    jitlink_run('Cubin', 1, 'CUBIN')
    jitlink_run('Cubin', 3, 'LTOIR', '-lto')


@case
def nvjitlink_ptx():
    jitlink_run('Ptx', 3, 'LTOIR', '-lto', '-ptx')
