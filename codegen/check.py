# SPDX-License-Identifier: Apache-2.0
"""The rules of the description language. Each is one function and has a negative test."""
import re

from parse import ACCOUNT, CAPTURE, ORDER, SpecError
from model import owner_param
from types_table import cells, is_handle, is_kernel, kind_of, kinds, learn, struct_of, wire_type, word_of

OUTS = {"OUT", "OUT_N", "OUT_UP_TO", "OUT_BYTES", "OUT_ATTRIBUTE"}
SIZED = {"IN_N", "IN_BYTES", "IN_OPTIONS", "IN_ATTRIBUTE", "OUT_N", "OUT_UP_TO", "OUT_BYTES", "OUT_ATTRIBUTE"}
ELEMENTS = {"IN", "IN_N", "OUT", "OUT_N", "OUT_UP_TO"}
KEYWORDS = set("auto break case char const continue default do double else enum extern float for goto if inline int long "
               "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while "
               "asm bool true false typeof".split())
# What the generated code around the parameters of a call calls its own things.
OURS = {"args", "bulk", "bulk_count", "call", "dec", "header", "raw_p", "reply", "request", "result", "session", "unused"}
OURS_OF_STUBS = {"cells", "context", "i", "id", "object", "raw", "scratch"}


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
        needs = p.direction in SIZED
        if needs != (p.size is not None):
            fail(call, f"'{p.direction}' of '{p.name}' {'needs a' if needs else 'takes no'} size", p.line)
        if call.completion == "POST" and p.direction in OUTS | {"INOUT"} and "NEW" not in p.quals:
            fail(call, f"{call.name} is POST, but '{p.name}' is written", p.line)
        if call.on_wire and p.direction == "BY_HOOK" and not is_value_of_options(call, p):
            fail(call, f"'{p.direction}' on '{p.name}' of {call.name}, which travels as it is", p.line)
        if call.on_wire and p.depth > 1 and not is_value_of_options(call, p):
            fail(call, f"'{p.name}' of {call.name} points to a pointer, which has no form on the wire", p.line)
        if "STATIC" in p.quals and call.on_wire:
            fail(call, f"'STATIC' on '{p.name}' of {call.name}: what the daemon points to is not here", p.line)
        if p.span and p.ctype != "CUdeviceptr":
            fail(call, f"'SPAN' on '{p.name}', which is no device pointer", p.line)


def is_value_of_options(call, p):
    return any(q.direction == "IN_OPTIONS" and q.size and q.size.split(", ")[1:] == [p.name] for q in call.params)


def wire_size(call, p):
    """Sizes that the generated code can use."""
    by_name = {q.name: q for q in call.params}
    other = by_name.get(p.size)
    if p.direction in ("IN_N", "OUT_N") and p.size == "BY_HOOK":
        fail(call, f"'{p.direction}(BY_HOOK)' of '{p.name}', which travels as it is", p.line)
    if p.direction == "OUT_UP_TO":
        if not other or other.direction != "INOUT":
            fail(call, f"OUT_UP_TO({p.size}) of '{p.name}' needs an INOUT parameter of this name, which says how many there are", p.line)
    if p.direction == "IN_OPTIONS":
        words = p.size.split(", ")
        if len(words) != 2 or words[0] not in by_name or words[1] not in by_name:
            fail(call, f"IN_OPTIONS({p.size}) of '{p.name}' needs two parameters: how many, and their values", p.line)
        if word_of(p.ctype) != "OPTIONS":
            fail(call, f"type '{p.ctype}' of '{p.name}' has no GP_OPTIONS", p.line)
    if p.direction in ("IN_ATTRIBUTE", "OUT_ATTRIBUTE"):
        if not other or word_of(other.ctype) != "ATTRIBUTES":
            fail(call, f"{p.direction}({p.size}) of '{p.name}' needs a parameter whose type has GP_ATTRIBUTES", p.line)


def sizes(call):
    scalars = {p.name for p in call.params if not p.depth}
    for p in call.params:
        if call.on_wire:
            wire_size(call, p)
        if p.span and p.span not in scalars:
            fail(call, f"SPAN({p.span}) of '{p.name}': no such parameter of {call.name}", p.line)
        if p.direction in ("OUT_UP_TO", "IN_OPTIONS"):
            continue
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
        if call.on_wire and p.direction not in ("IN_BYTES", "OUT_BYTES", "IN_STRING", "IN_ATTRIBUTE", "OUT_ATTRIBUTE", "IN_OPTIONS", "BY_HOOK"):
            if p.direction in ELEMENTS and not cells(p.ctype) or p.direction not in ELEMENTS and not wire_type(p.ctype):
                fail(call, f"type '{p.ctype}' of '{p.name}' has no form on the wire", p.line)
            if p.direction is None and p.ctype == "gp_new_address" and "SERVER_HOOK" not in call.options:
                fail(call, f"'{p.name}' of {call.name} needs a SERVER_HOOK", p.line)
        if "NEW" in p.quals and not is_handle(p.ctype):
            fail(call, f"'NEW' on '{p.name}', which is no handle", p.line)
        if "DROP" in p.quals and (p.depth or not is_handle(p.ctype)):
            fail(call, f"'DROP' on '{p.name}', which is no handle", p.line)


def is_object(ctype):
    return is_handle(ctype) and kind_of(ctype).is_object


def has_lookup(ctype):
    return is_object(ctype) or "LOOKUP" in kind_of(ctype).options


def generated_ends(call):
    """What an end that is generated whole can do with its parameters."""
    for word, ours in (("CLIENT_HOOK", call.kind == "CALL"), ("SERVER_HOOK", call.on_wire)):
        if not ours or word in call.options:
            continue
        for p in call.params:
            made = "NEW" in p.quals or "DROP" in p.quals
            if made and not is_object(p.ctype) or is_handle(p.ctype) and not has_lookup(p.ctype):
                fail(call, f"'{p.name}' of {call.name} needs a {word}", p.line)
            if p.direction in OUTS and not made:
                for ctype in types_in(p.ctype):
                    if is_kernel(ctype) or is_handle(ctype) and not is_object(ctype):
                        fail(call, f"'{p.name}' of {call.name} brings back a '{ctype}', which needs a {word}", p.line)
            if p.direction == "OUT" and is_handle(p.ctype) and not made:
                fail(call, f"'{p.name}' of {call.name} is a handle that the call neither makes (NEW) nor lists (OUT_N, OUT_UP_TO)", p.line)
            if "NEW" in p.quals and kind_of(p.ctype).owner and not owner_param(call, p):
                fail(call, f"'{p.name}' of {call.name} is part of a {kind_of(p.ctype).owner}, which no parameter names", p.line)
            if p.direction == "OUT_BYTES" and p.size == "BY_HOOK":
                fail(call, f"'OUT_BYTES(BY_HOOK)' of '{p.name}' needs a {word}", p.line)
        if sum(bool({"NEW", "DROP"} & p.quals) for p in call.params) > 1:
            fail(call, f"{call.name} makes or drops more than one object, which needs a {word}")


def types_in(ctype):
    """A type, and those of its members."""
    struct = struct_of(ctype)
    return [ctype] + [t for f in struct.fields for t in types_in(f.ctype)] if struct else [ctype]


def kinds_are_whole(api):
    seen, types_seen = {}, {}
    for k in api.kinds:
        where = f"{k.file}:{k.line}"
        if k.name in seen:
            raise SpecError(f"{where}: kind '{k.name}' is already declared at {seen[k.name]}")
        seen[k.name] = where
        for t in k.types:
            if t in types_seen:
                raise SpecError(f"{where}: type '{t}' is already that of a kind, at {types_seen[t]}")
            types_seen[t] = where
        if "COST" not in k.options and len(k.options) > 1:
            raise SpecError(f"{where}: kind '{k.name}' has no COST, so the daemon has no objects of it")
        if not re.fullmatch(r"[1-9]\d{0,4}", k.options.get("COST", "1")) or int(k.options.get("COST", "1")) > 65535:
            raise SpecError(f"{where}: COST({k.options['COST']}) of kind '{k.name}' is no number of bytes from 1 to 65535")
        if k.owner and (k.destroy or not any(o.name == k.owner and o.destroy for o in api.kinds)):
            raise SpecError(f"{where}: PART_OF({k.owner}) of kind '{k.name}' needs a kind with OBJECT, and has none itself")
        if ("OBJECT" in k.options) != ("GOES_WITH" in k.options):
            raise SpecError(f"{where}: OBJECT and GOES_WITH of kind '{k.name}' come together")
        if k.options.get("GOES_WITH", "context") not in ("context", "session"):
            raise SpecError(f"{where}: GOES_WITH({k.options['GOES_WITH']}): it is context or session")
        if k.destroy and api.symbols and k.destroy not in {s.name for s in api.symbols}:
            raise SpecError(f"{where}: OBJECT({k.destroy}) is no symbol of the driver (symbols.h)")


def types_are_whole(api):
    seen = {}
    for t in api.types:
        where = f"{t.file}:{t.line}"
        if t.name in seen or t.name in kinds:
            raise SpecError(f"{where}: type '{t.name}' is already described{' at ' + seen[t.name] if t.name in seen else ''}")
        seen[t.name] = where
        if t.word == "OPAQUE" and not (len(t.fields) == 1 and t.fields[0].isdigit() and 0 < int(t.fields[0]) <= 4096):
            raise SpecError(f"{where}: GP_OPAQUE({t.name}) needs its size, 1 to 4096 bytes")
        if t.word in ("STRUCT", "ATTRIBUTES", "OPTIONS") and not t.fields:
            raise SpecError(f"{where}: GP_{t.word}({t.name}) describes nothing")
        if t.word == "STRUCT":
            struct_is_whole(t)


def struct_is_whole(t):
    names = []
    for f in t.fields:
        where = f"{t.file}:{f.line}"
        if f.name in names:
            raise SpecError(f"{where}: {t.name} has two members '{f.name}'")
        if f.ctype == t.name or not cells(f.ctype):
            raise SpecError(f"{where}: type '{f.ctype}' of '{f.name}' has no form on the wire")
        if is_handle(f.ctype) and not has_lookup(f.ctype):
            raise SpecError(f"{where}: '{f.name}' of {t.name} is a handle that generated code cannot look up")
        when = f.checks.get("WHEN")
        if when and (len(when) < 2 or when[0] not in names):
            raise SpecError(f"{where}: WHEN({', '.join(when)}) of '{f.name}' needs a member before it, and its values")
        names.append(f.name)


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


def order(call):
    """Words about a call's place among the others."""
    words = ORDER & set(call.options)
    if words and not call.on_wire:
        fail(call, f"{call.name} is GP_LOCAL: {min(words)} is for what travels")
    if "AWAITS_STREAM" in words and not any(p.ctype == "CUstream" for p in call.params):
        fail(call, f"{call.name} has AWAITS_STREAM, but names no stream")
    if "ASKS" in words and call.completion != "WAIT":
        fail(call, f"{call.name} ASKS, but nobody waits for the answer")
    if {"BARRIER", "BEFORE_ALL"} <= words:
        fail(call, f"{call.name} is both BEFORE_ALL and a BARRIER")
    barrier = call.options.get("BARRIER")
    if barrier and not any(p.name == barrier and p.ctype == "unsigned int" and not p.depth for p in call.params):
        fail(call, f"BARRIER({barrier}): no such flags of {call.name}")


def capture(call):
    """What takes a stream must say what it does while that is captured."""
    how = call.options.get("CAPTURE")
    streams = [p.name for p in call.params if p.ctype == "CUstream" and not p.depth]
    if how is None:
        if streams and call.kind != "MESSAGE":
            fail(call, f"{call.name} takes a stream, but does not say what it does while that is captured (CAPTURE)")
    elif how not in CAPTURE:
        fail(call, f"CAPTURE({how}) of {call.name}: it is {', '.join(sorted(CAPTURE))}")
    elif call.kind == "MESSAGE":
        fail(call, f"{call.name} is a message: CAPTURE is for CUDA calls")
    elif how == "refused" and len(streams) != 1:
        fail(call, f"CAPTURE(refused), but {call.name} names {'several streams' if streams else 'no stream'}")


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
    if call.kind == "MESSAGE" and "SERVER_HOOK" not in call.options:
        fail(call, f"{call.name} is a message, which needs a SERVER_HOOK: the driver has no such function")
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


def lacks_are_lacking(api):
    """What is said of a symbol that is not supported is not said of one that is."""
    symbols = {s.name for s in api.symbols}
    described = {name for c in api.calls for name in [c.name] + c.names("ALIAS")}
    seen = set()
    for lack in api.lacks:
        where = f"{lack.file}:{lack.line}"
        if symbols and lack.name not in symbols:
            raise SpecError(f"{where}: {lack.name} is no symbol of the driver (symbols.h)")
        if lack.name in described:
            raise SpecError(f"{where}: {lack.name} is described, so it is supported")
        if lack.name in seen:
            raise SpecError(f"{where}: {lack.name} is listed twice")
        seen.add(lack.name)


def check(api):
    learn(api)
    symbols_are_unique(api)
    kinds_are_whole(api)
    types_are_whole(api)
    driver_functions(api)
    lacks_are_lacking(api)
    for call in api.calls:
        for rule in (names, directions, types, sizes, account, makes_memory_allocates, hooks, generated_ends, order, launches_name_a_stream, capture):
            rule(call)
    unique_numbers_and_names(api)
    references(api)
    return api
