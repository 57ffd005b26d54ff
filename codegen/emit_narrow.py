# SPDX-License-Identifier: Apache-2.0
"""Calls as they were while addresses and sizes had 32 bits: each widens what it is given, makes the call of today, and narrows what comes back."""
from model import prototype
from types_table import described

ADDRESS = "CUdeviceptr_v1"
WIDE = {ADDRESS: "CUdeviceptr", "unsigned int": "size_t"}


def struct_of_old(ctype):
    """The GP_NARROW of a struct, or None."""
    found = described.get(ctype)
    return found if found and found.word == "NARROW" else None


def widened(ctype):
    """What the call of today has instead of the type; None: the same."""
    struct = struct_of_old(ctype)
    return struct.fields[0] if struct else WIDE.get(ctype)


def changed(call, other):
    """(parameter, whether its type differs from the other call's), in order."""
    return [(p, p.ctype != q.ctype) for p, q in zip(call.params, other.params)]


def other_of(call, api):
    return next(c for c in api.cuda_calls if c.name == call.options["NARROW"])


def struct_helpers(struct, directions):
    old, wide, *members = struct.name, *struct.fields
    ways = [("IN", f"{wide}\nwiden_{old}(const {old} *from)", wide), ("OUT", f"{old}\nnarrow_{old}(const {wide} *from)", old)]
    return "".join(f"\n/* {struct.file}:{struct.line} */\nstatic {head}\n{{\n\treturn ({made}){{\n"
                   + "".join(f"\t\t.{m} = from->{m},\n" for m in members) + "\t};\n}\n"
                   for direction, head, made in ways if direction in directions)


def variable(p):
    value = f"{p.name} ? widen_{p.ctype}({p.name}) : ({widened(p.ctype)}){{ 0 }}" if p.direction == "IN" else "{ 0 }" if struct_of_old(p.ctype) else "0"
    return f"\t{widened(p.ctype)} wide_{p.name} = {value};\n"


def brought_back(p):
    if struct_of_old(p.ctype):
        return f"narrow_{p.ctype}(&wide_{p.name})"
    return f"(CUdeviceptr_v1)wide_{p.name}" if p.ctype == ADDRESS else f"wide_{p.name} > UINT_MAX ? UINT_MAX : (unsigned int)wide_{p.name}"


def wrapper(call, other, target):
    wide = [p for p, differs in changed(call, other) if differs and p.depth]
    given = ", ".join(f"{p.name} ? &wide_{p.name} : NULL" if p in wide else p.name for p in call.params)
    out = [f"\n/* {call.where} */\nstatic {prototype(call, 'narrow_')}\n{{\n", *(variable(p) for p in wide)]
    back = [p for p in wide if p.direction == "OUT"]
    if not back:
        return "".join(out) + ("\n" if wide else "") + f"\treturn {target}({given});\n}}\n"
    out.append(f"\tCUresult result = {target}({given});\n\n\tif (result != CUDA_SUCCESS)\n\t\treturn result;\n")
    for p in (p for p in back if p.ctype == ADDRESS):
        undo = call.options.get("UNDO")
        out.append(f"\tif (wide_{p.name} > UINT_MAX) {{\n" + (f"\t\t(void)gpc_{undo}(wide_{p.name});\n" if undo else "")
                   + f"\t\treturn {'CUDA_ERROR_OUT_OF_MEMORY' if undo else 'CUDA_ERROR_INVALID_VALUE'};\n\t}}\n")
    out += [f"\tif ({p.name})\n\t\t*{p.name} = {brought_back(p)};\n" for p in back]
    return "".join(out) + "\treturn CUDA_SUCCESS;\n}\n"


def narrow_c(api, target_of):
    """The functions, and what converts their structs."""
    calls = [c for c in api.cuda_calls if c.is_narrow]
    used = {}
    for p in (p for c in calls for p in c.params if struct_of_old(p.ctype)):
        used.setdefault(p.ctype, set()).add(p.direction)
    return ("".join(struct_helpers(struct_of_old(name), directions) for name, directions in used.items())
            + "".join(wrapper(c, other_of(c, api), target_of(other_of(c, api))) for c in calls))
