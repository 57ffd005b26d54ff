# SPDX-License-Identifier: Apache-2.0
"""What the emitters share: the fields of a call, and text."""
from dataclasses import dataclass

from types_table import WIRE_TYPES, is_kernel


@dataclass
class Field:
    name: str
    kind: str          # u32, i32, u64, f32 or bytes
    exact: int | None  # bytes of exactly this size
    string: bool
    param: object

    @property
    def ctype(self):
        return {"u32": "uint32_t", "i32": "int32_t", "u64": "uint64_t", "f32": "float",
                "bytes": "struct gp_bytes"}[self.kind]

    @property
    def signature(self):
        word = "string" if self.string else self.kind
        return f"{word}{'[%d]' % self.exact if self.exact else ''}:{self.name}"


def field_of(param):
    if param.direction in ("IN_BYTES", "OUT_BYTES", "IN_STRING"):
        exact = int(param.size) if param.size and param.size.isdigit() else None
        return Field(param.name, "bytes", exact, param.direction == "IN_STRING", param)
    return Field(param.name, WIRE_TYPES[param.ctype][1], None, False, param)


def args_of(call):
    """What travels to the daemon: inputs, and the names of new objects; lengths come with their bytes."""
    lengths = {p.size for p in call.params if p.direction in ("IN_BYTES", "OUT_BYTES")}
    return [field_of(p) for p in call.params
            if p.name not in lengths and (p.direction not in ("OUT", "OUT_BYTES") or "NEW" in p.quals)]


def reply_of(call):
    return [field_of(p) for p in call.params if p.direction in ("OUT", "OUT_BYTES") and "NEW" not in p.quals]


def signature(call):
    """One line of abi.lock: what this call puts on the wire."""
    words = [f"0x{call.number:04x}", call.name, call.completion.lower()]
    words += [w.lower() for w in ("BULK_IN", "BULK_OUT") if w in call.options]
    words += [f.signature for f in args_of(call)]
    reply = reply_of(call)
    return " ".join(words + (["->"] + [f.signature for f in reply] if reply else []))


def prototype(call, prefix):
    params = ", ".join(f"{'const ' if p.const else ''}{p.ctype} {'*' * p.depth}{p.name}" for p in call.params)
    return f"CUresult\n{prefix}{call.name}({params or 'void'})"


def declaration(call, prefix):
    return prototype(call, prefix).replace("\n", " ") + ";"


def travels_as_it_is(call):
    """The daemon calls the driver's function of the same name, by generated code."""
    return call.kind == "CALL" and "SERVER_HOOK" not in call.options


def has_kernel(call):
    return any(is_kernel(p.ctype) for p in call.params)


def generated(*sources):
    return f"/* Generated from {', '.join(sources)}; edit that. */\n"
