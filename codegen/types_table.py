# SPDX-License-Identifier: Apache-2.0
"""How a C type travels: (field type in C, encoder suffix)."""

U32, I32, U64, F32 = ("uint32_t", "u32"), ("int32_t", "i32"), ("uint64_t", "u64"), ("float", "f32")

HANDLES = {"CUcontext": "context", "CUstream": "stream", "CUevent": "event", "gp_context": "context",
           "gp_image": "image", "gp_function": "function", "gp_memory": "memory",
           "gp_array": "array", "gp_texture": "texture"}
KERNELS = {"CUfunction", "CUkernel", "gp_kernel"}

WIRE_TYPES = {
    "int": I32, "CUdevice": I32, "CUresult": I32, "CUfunction_attribute": I32, "CUfunc_cache": I32,
    "unsigned int": U32, "unsigned short": U32, "unsigned char": U32,
    "size_t": U64, "unsigned long long": U64, "cuuint64_t": U64, "CUdeviceptr": U64,
    "gp_address": U64, "gp_new_address": U64,
    "float": F32,
} | {name: U32 for name in HANDLES} | {name: U64 for name in KERNELS}


def is_handle(ctype):
    return ctype in HANDLES


def is_kernel(ctype):
    return ctype in KERNELS
