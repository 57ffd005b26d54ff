# SPDX-License-Identifier: Apache-2.0
"""Functions that the emitters share: the fields of a call on the wire, and common C text."""
from dataclasses import dataclass

from types_table import client_objects, client_objects_by_name, get_wire_type

BYTES_IN = {"IN_BYTES", "IN_STRING", "IN", "IN_N", "IN_OPTIONS"}
BYTES_OUT = {"OUT_BYTES", "OUT_N"}


@dataclass
class Field:
    name: str
    kind: str          # u32, i32, u64, f32 or bytes
    exact: int | None  # bytes: the only valid size
    string: bool
    param: object
    optional: bool = False  # bytes: size 0 is valid, too

    @property
    def ctype(self):
        return {"u32": "uint32_t", "i32": "int32_t", "u64": "uint64_t", "f32": "float",
                "bytes": "struct gp_bytes"}[self.kind]

    @property
    def signature(self):
        word = "string" if self.string else self.kind
        size = f"[{self.exact}{' or 0' if self.optional else ''}]" if self.exact else ""
        return f"{word}{size}:{self.name}".replace(" ", "_")


def get_exact_size(param):
    """Returns the size of the field in bytes, or None if the size is variable."""
    if param.direction == "IN":
        return 8
    count = int(param.size) if param.size and param.size.isdigit() else None
    if count and param.direction in ("IN_N", "OUT_N"):
        return count * 8
    return count


def param_to_field(param):
    if param.direction in BYTES_IN | BYTES_OUT:
        return Field(param.name, "bytes", get_exact_size(param), param.direction == "IN_STRING", param, "OPT" in param.quals)
    return Field(param.name, get_wire_type(param.ctype)[1], None, False, param)


def get_stream_params(call):
    """Returns the names of the parameters that are existing streams."""
    return [p.name for p in call.params if p.ctype == "CUstream" and not p.depth and "NEW" not in p.quals]


def get_implied_params(call):
    """Returns the parameters that are sent as part of others: lengths of bytes, count and values of options."""
    out = {p.size for p in call.params if p.direction == "IN_BYTES"}
    for p in call.params:
        if p.direction == "IN_OPTIONS":
            out |= set(p.size.split(", "))
    return out


def get_args(call):
    """Returns the fields of a record: the inputs, and the handles of new objects."""
    out = []
    for p in call.params:
        if p.name in get_implied_params(call):
            continue
        if p.direction is None or p.direction in BYTES_IN or p.direction == "INOUT" or "NEW" in p.quals:
            out.append(param_to_field(p))
    return out


def get_reply(call):
    """Returns the fields of a reply: the outputs without new objects."""
    return [param_to_field(p) for p in call.params
            if (p.direction in BYTES_OUT or p.direction in ("OUT", "INOUT")) and "NEW" not in p.quals]


def get_signature(call):
    """Returns the line of abi.lock for this call: its wire format."""
    words = [f"0x{call.number:04x}", call.name, call.completion.lower()]
    words += [w.lower() for w in ("BULK_IN", "BULK_OUT") if w in call.options]
    words += [f.signature for f in get_args(call)]
    reply = get_reply(call)
    return " ".join(words + (["->"] + [f.signature for f in reply] if reply else []))


def format_prototype(call, prefix):
    params = ", ".join(f"{'const ' if p.const else ''}{p.ctype} {'*' * p.depth}{p.name}" for p in call.params)
    return f"CUresult\n{prefix}{call.name}({params or 'void'})"


def format_declaration(call, prefix):
    return format_prototype(call, prefix).replace("\n", " ") + ";"


def is_forwarded(call):
    """True if generated code of the daemon calls the driver function of the same name."""
    return call.kind == "CALL" and "SERVER_HOOK" not in call.options


def get_entered_objects(call):
    """Returns the client objects of a generated GP_LOCAL call as (parameter or None, parse.ClientObject).

    The words of the call apply to the first one.
    """
    of = client_objects_by_name.get(call.options.get("CLIENT_OBJECT"))
    return ([(None, of)] if of else []) + [(p, client_objects[p.ctype]) for p in call.params if not p.depth and p.ctype in client_objects]


def emit_predicate(api, function, comment, *options):
    """Returns an inline function that is true for each call with one of these options."""
    calls = " || ".join(f"call == GP_CALL_{c.name}" for c in api.wire_calls if set(options) & set(c.options)) or "false"
    return f"\n/* {comment} ({', '.join(options)}). */\nstatic inline bool\n{function}(uint16_t call)\n{{\n\treturn {calls};\n}}\n"


def emit_sets(api, prefix):
    """Returns an inline function for each GP_SET."""
    return "".join(f"/* {t.file}:{t.line} */\nstatic inline bool\n{prefix}is_{t.name}(int64_t value)\n{{\n\tswitch (value) {{\n"
                   + "".join(f"\tcase {value}:\n" for value in t.fields)
                   + "\t\treturn true;\n\tdefault:\n\t\treturn false;\n\t}\n}\n\n" for t in api.types if t.word == "SET")


def emit_banner(*sources):
    return f"/* Generated from {', '.join(sources)}; do not edit. */\n"
