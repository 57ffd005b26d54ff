# SPDX-License-Identifier: Apache-2.0
"""The rules of the description language. Each is one function and has a negative test."""
import re

from parse import ACCOUNT, SpecError
from types_table import WIRE_TYPES, is_handle

OUTS = {"OUT", "OUT_N", "OUT_BYTES"}
KEYWORDS = set("auto break case char const continue default do double else enum extern float for goto if inline int long "
               "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while "
               "asm bool true false typeof".split())
# What the generated code around the parameters of a call calls its own things.
OURS = {"args", "bulk", "bulk_count", "call", "dec", "header", "raw_p", "reply", "request", "result", "session", "unused"}
OURS_OF_STUBS = {"context"}


def fail(call, message, line=None):
    raise SpecError(f"{call.file}:{line or call.line}: {message}")


def unique_numbers_and_names(api):
    numbers, names = {}, {}
    for call in api.calls:
        if call.number is not None:
            if call.number in numbers:
                fail(call, f"number 0x{call.number:04x} is taken by {numbers[call.number].name} "
                           f"({numbers[call.number].where})")
            if not 0 < call.number < 0xFF00:
                fail(call, f"number 0x{call.number:04x} is out of range (0x0001 to 0xfeff)")
            numbers[call.number] = call
        for name in [call.name] + call.names("ALIAS"):
            if name in names:
                fail(call, f"{name} is already described at {names[name].where}")
            names[name] = call


def directions(call):
    for p in call.params:
        if p.depth and not p.direction:
            fail(call, f"pointer '{p.name}' has no direction", p.line)
        if p.direction and not p.depth:
            fail(call, f"'{p.direction}' on '{p.name}', which is not a pointer", p.line)
        if p.const and p.direction in OUTS and p.depth == 1:
            fail(call, f"'{p.direction}' on const '{p.name}'", p.line)
        needs = p.direction in ("IN_N", "IN_BYTES", "OUT_N", "OUT_BYTES")
        if needs != (p.size is not None):
            fail(call, f"'{p.direction}' of '{p.name}' {'needs a' if needs else 'takes no'} size", p.line)
        if call.completion == "POST" and p.direction in OUTS and "NEW" not in p.quals:
            fail(call, f"{call.name} is POST, but '{p.name}' is written", p.line)
        if call.on_wire and p.direction in ("INOUT", "BY_HOOK"):
            fail(call, f"'{p.direction}' on '{p.name}' of {call.name}, which travels as it is", p.line)


def sizes(call):
    scalars = {p.name for p in call.params if not p.depth}
    for p in call.params:
        if p.size and not p.size.isdigit() and p.size not in scalars and p.size != "BY_HOOK":
            fail(call, f"size of '{p.name}' names '{p.size}', which is no parameter of {call.name}", p.line)
    for word in ("ALLOCATES", "FREES", "COPIES"):
        argument = call.options.get(word)
        if argument and argument != "BY_HOOK" and argument not in scalars:
            fail(call, f"{word}({argument}): no such parameter of {call.name}")
        if argument and argument != "BY_HOOK" and word != "COPIES" and "device" not in scalars:
            fail(call, f"{word}({argument}), but no parameter 'device' of {call.name} says of which device")
        if argument == "BY_HOOK" and "SERVER_HOOK" not in call.options:
            fail(call, f"{word}(BY_HOOK), but {call.name} has no SERVER_HOOK")


def names(call):
    """Each parameter has a name of its own, which C and the generated code leave to it."""
    seen = set()
    for p in call.params:
        if p.name in seen:
            fail(call, f"{call.name} has two parameters '{p.name}'", p.line)
        seen.add(p.name)
        ours = OURS | (OURS_OF_STUBS if call.kind == "CALL" else set()) if call.on_wire else set()
        if p.name in KEYWORDS | ours:
            fail(call, f"'{p.name}' of {call.name} is a reserved name", p.line)


def driver_functions(api):
    seen, symbols = set(), {s.name for s in api.symbols}
    for f in api.driver:
        where = f"{f.file}:{f.line}"
        if f.name in seen:
            raise SpecError(f"{where}: the driver's function {f.name} is listed twice")
        if symbols and f.name not in symbols:
            raise SpecError(f"{where}: {f.name} is no symbol of the driver (symbols.h)")
        seen.add(f.name)


def types(call):
    for p in call.params:
        if call.on_wire and p.direction not in ("IN_BYTES", "OUT_BYTES", "IN_STRING"):
            if p.ctype not in WIRE_TYPES:
                fail(call, f"type '{p.ctype}' of '{p.name}' has no form on the wire", p.line)
        if "NEW" in p.quals and not is_handle(p.ctype):
            fail(call, f"'NEW' on '{p.name}', which is no handle", p.line)
        if "DROP" in p.quals and (p.depth or not is_handle(p.ctype)):
            fail(call, f"'DROP' on '{p.name}', which is no handle", p.line)


def account(call):
    """What takes a stream or makes memory must say what that costs, so that no quota has a gap."""
    words = [w for w in call.options if w in ACCOUNT]
    if "CHARGES_NOTHING" in words and len(words) > 1:
        fail(call, f"{call.name} both charges and CHARGES_NOTHING")
    if words or "VIA" in call.options:
        return
    for p in call.params:
        if p.ctype == "CUstream":
            fail(call, f"{call.name} takes a stream, but does not say what it does to the account "
                       "(ALLOCATES, FREES, LAUNCHES, COPIES or CHARGES_NOTHING)")
        if p.ctype == "gp_new_address" or (p.ctype == "CUdeviceptr" and p.depth == 1
                                           and re.search("Alloc|Create|Import", call.name)):
            fail(call, f"{call.name} makes memory, but does not say so (ALLOCATES)")


def launches_name_a_stream(call):
    """The dispatcher asks for the stream's turn, so no launch may hide where it goes."""
    if call.on_wire and "LAUNCHES" in call.options and not any(p.ctype == "CUstream" for p in call.params):
        fail(call, f"{call.name} LAUNCHES, but names no stream")


def makes_memory_allocates(call):
    if any(p.ctype == "gp_new_address" for p in call.params) and "ALLOCATES" not in call.options:
        fail(call, f"{call.name} makes memory, but does not say so (ALLOCATES)")


def hooks(call):
    bulk = {"BULK_IN", "BULK_OUT"} & set(call.options)
    if bulk and "SERVER_HOOK" not in call.options:
        fail(call, f"{call.name} has {bulk.pop()}, but no SERVER_HOOK")
    if "BULK_OUT" in call.options and call.completion != "WAIT":
        fail(call, f"{call.name} has BULK_OUT, but nobody waits for it")
    if call.kind == "LOCAL" and {"SERVER_HOOK", "CLIENT_HOOK"} & set(call.options):
        fail(call, f"{call.name} is GP_LOCAL: it is always a hook of the client's")
    if call.kind == "CALL" and "CLIENT_HOOK" not in call.options:
        for p in call.params:
            if "NEW" in p.quals or "DROP" in p.quals or p.direction == "IN_N":
                fail(call, f"'{p.name}' of {call.name} needs a CLIENT_HOOK", p.line)
    if call.on_wire and "SERVER_HOOK" not in call.options:
        for p in call.params:
            if "NEW" in p.quals or "DROP" in p.quals or p.ctype == "CUstream" or p.direction not in (None, "OUT"):
                fail(call, f"'{p.name}' of {call.name} needs a SERVER_HOOK", p.line)
    if (call.result == "CUresult") != (call.kind != "MESSAGE"):
        fail(call, f"{call.name} must return {'void' if call.kind == 'MESSAGE' else 'CUresult'}")


def references(api):
    wire = {c.name for c in api.calls if c.on_wire}
    symbols = {s.name for s in api.symbols}
    for call in api.calls:
        for name in call.names("VIA"):
            if name not in wire:
                fail(call, f"VIA({name}): no such message or call")
        if symbols and call.kind != "MESSAGE":
            for name in [call.name] + call.names("ALIAS"):
                if name not in symbols:
                    fail(call, f"{name} is no symbol of the driver (symbols.h)")


def symbols_are_unique(api):
    seen = {}
    for s in api.symbols:
        if s.name in seen:
            raise SpecError(f"{s.file}:{s.line}: symbol {s.name} is listed twice")
        seen[s.name] = s


def check(api):
    symbols_are_unique(api)
    driver_functions(api)
    for call in api.calls:
        for rule in (names, directions, sizes, types, account, makes_memory_allocates, hooks, launches_name_a_stream):
            rule(call)
    unique_numbers_and_names(api)
    references(api)
    return api
