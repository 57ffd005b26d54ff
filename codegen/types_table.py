# SPDX-License-Identifier: Apache-2.0
"""How a C type travels: (field type in C, encoder suffix); an element of an array takes 8 bytes."""

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
# What counts things and bytes.
COUNTS = {"int", "unsigned int", "unsigned", "size_t", "unsigned long long", "cuuint64_t"}
# Kinds that generated code finds by hand-written functions, and the client's for it.
LOOKUPS = {"stream": "gpc_stream_id(&context, {value}, {out})", "event": "gpc_event_id({value}, {out})",
           "context": "gpc_context_to_wire(&context, {value}, {out})"}

kinds = {}      # type of a handle -> parse.Kind
described = {}  # name -> parse.Type
held = {}       # type of a handle -> parse.Held
held_named = {} # name -> parse.Held


def learn(api):
    """What the description itself says of types."""
    kinds.clear()
    described.clear()
    for kind in api.kinds:
        for name in kind.types:
            kinds[name] = kind
    described.update((t.name, t) for t in api.types)
    held.clear()
    held_named.clear()
    held_named.update((h.name, h) for h in api.held)
    held.update((t, h) for h in api.held for t in h.types)


def is_kernel(ctype):
    return ctype in KERNELS


def kind_of(ctype):
    """The kind of a handle that travels by its name; None: it is none."""
    kind = None if is_kernel(ctype) else kinds.get(ctype)
    return kind if kind and "COST" in kind.options else None


def is_handle(ctype):
    return kind_of(ctype) is not None


def is_object(ctype):
    return is_handle(ctype) and kind_of(ctype).is_object


def has_lookup(ctype):
    return is_object(ctype) or "LOOKUP" in kind_of(ctype).options


def is_address(ctype):
    return ctype in ADDRESSES


def is_number(ctype):
    """One field that means the same at both ends."""
    return ctype in SCALARS and ctype not in ADDRESSES | {"CUdevice", "gp_new_address"} or word_of(ctype) in ("ENUM", "OPTIONS")


def word_of(ctype):
    """Which word describes the type: ENUM or OPTIONS; None: none."""
    return described[ctype].word if ctype in described else None


def wire_type(ctype):
    """(field type, suffix) of a value; None: the type has no form on the wire."""
    if is_kernel(ctype):
        return U64
    if is_handle(ctype):
        return U32
    if word_of(ctype) in ("ENUM", "OPTIONS"):
        return I32
    return SCALARS.get(ctype)


def types_named(word):
    return [t for t in described.values() if t.word == word]
