# SPDX-License-Identifier: Apache-2.0
"""The wire format of each C type: (C type of the field, suffix of its encoder). An array has 8 bytes per element."""

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
# Types of sizes and counts.
COUNTS = {"int", "unsigned int", "unsigned", "size_t", "unsigned long long", "cuuint64_t"}
# Kinds with LOOKUP, and the hand-written function of the client that generated code calls for each.
LOOKUPS = {"stream": "gpc_stream_id(&context, {value}, {out})", "event": "gpc_event_id({value}, {out})",
           "context": "gpc_context_to_wire(&context, {value}, {out})"}

kinds = {}                   # type of a handle -> parse.Kind
described = {}               # name -> parse.Type
client_objects = {}          # type of a handle -> parse.ClientObject
client_objects_by_name = {}  # name -> parse.ClientObject


def load_types(api):
    """Fills the tables of this module from the description."""
    kinds.clear()
    described.clear()
    for kind in api.kinds:
        for name in kind.types:
            kinds[name] = kind
    described.update((t.name, t) for t in api.types)
    client_objects.clear()
    client_objects_by_name.clear()
    client_objects_by_name.update((o.name, o) for o in api.client_objects)
    client_objects.update((t, o) for o in api.client_objects for t in o.types)


def is_kernel(ctype):
    return ctype in KERNELS


def get_kind(ctype):
    """Returns the kind of a handle that is sent as a handle number; None for all other types."""
    kind = None if is_kernel(ctype) else kinds.get(ctype)
    return kind if kind and "COST" in kind.options else None


def is_handle(ctype):
    return get_kind(ctype) is not None


def is_object(ctype):
    return is_handle(ctype) and get_kind(ctype).is_object


def has_lookup(ctype):
    return is_object(ctype) or "LOOKUP" in get_kind(ctype).options


def is_address(ctype):
    return ctype in ADDRESSES


def is_number(ctype):
    """True if the value is sent unchanged."""
    return ctype in SCALARS and ctype not in ADDRESSES | {"CUdevice", "gp_new_address"} or get_word(ctype) in ("ENUM", "OPTIONS")


def get_word(ctype):
    """Returns the word that describes the type: ENUM or OPTIONS; None if there is none."""
    return described[ctype].word if ctype in described else None


def get_wire_type(ctype):
    """Returns (field type, suffix) of a value, or None if the type has no wire format."""
    if is_kernel(ctype):
        return U64
    if is_handle(ctype):
        return U32
    if get_word(ctype) in ("ENUM", "OPTIONS"):
        return I32
    return SCALARS.get(ctype)


def get_types_by_word(word):
    return [t for t in described.values() if t.word == word]
