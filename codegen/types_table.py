# SPDX-License-Identifier: Apache-2.0
"""How a C type travels: (field type in C, encoder suffix); and as an element of an array or a struct, in cells of 8 bytes."""

U32, I32, U64, F32 = ("uint32_t", "u32"), ("int32_t", "i32"), ("uint64_t", "u64"), ("float", "f32")

KERNELS = {"CUfunction", "CUkernel", "gp_kernel"}
ADDRESSES = {"CUdeviceptr", "gp_address"}
SCALARS = {
    "int": I32, "CUdevice": I32, "CUresult": I32, "CUfunction_attribute": I32, "CUfunc_cache": I32,
    "unsigned int": U32, "unsigned": U32, "unsigned short": U32, "unsigned char": U32,
    "size_t": U64, "unsigned long long": U64, "cuuint64_t": U64, "CUdeviceptr": U64,
    "gp_address": U64, "gp_new_address": U64,
    "float": F32,
}

kinds = {}      # type of a handle -> parse.Kind
described = {}  # name -> parse.Type


def learn(api):
    """What the description itself says of types."""
    kinds.clear()
    described.clear()
    for kind in api.kinds:
        for name in kind.types:
            kinds[name] = kind
    described.update((t.name, t) for t in api.types)


def is_kernel(ctype):
    return ctype in KERNELS


def kind_of(ctype):
    """The kind of a handle that travels by its name; None: it is none."""
    kind = None if is_kernel(ctype) else kinds.get(ctype)
    return kind if kind and "COST" in kind.options else None


def is_handle(ctype):
    return kind_of(ctype) is not None


def word_of(ctype):
    """Which word describes the type: ENUM, OPAQUE, STRUCT, ATTRIBUTES or OPTIONS; None: none."""
    return described[ctype].word if ctype in described else None


def struct_of(ctype):
    return described[ctype] if word_of(ctype) == "STRUCT" else None


def opaque_size(ctype):
    return int(described[ctype].fields[0]) if word_of(ctype) == "OPAQUE" else None


def wire_type(ctype):
    """(field type, suffix) of a value that is one field; None: it is none."""
    if is_kernel(ctype):
        return U64
    if is_handle(ctype):
        return U32
    if word_of(ctype) in ("ENUM", "ATTRIBUTES", "OPTIONS"):
        return I32
    return SCALARS.get(ctype)


def cells(ctype):
    """How many cells one element takes; None: the type has no form on the wire."""
    struct = struct_of(ctype)
    if struct:
        each = [cells(f.ctype) for f in struct.fields]
        return None if None in each else sum(n * (f.count or 1) for n, f in zip(each, struct.fields))
    if opaque_size(ctype):
        return (opaque_size(ctype) + 7) // 8
    return 1 if wire_type(ctype) else None


def structs_in(ctype):
    """The structs that a type is made of, innermost first, itself included."""
    struct = struct_of(ctype)
    if not struct:
        return []
    out = []
    for f in struct.fields:
        out += [s for s in structs_in(f.ctype) if s not in out]
    return out + [struct]


def types_named(word):
    return [t for t in described.values() if t.word == word]
