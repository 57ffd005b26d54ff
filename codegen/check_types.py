# SPDX-License-Identifier: Apache-2.0
"""The rules of what is not a call: kinds, types, what is held, symbols. Each has a negative test."""
from parse import SpecError
from types_table import (COUNTS, LOOKUPS, SCALARS, cells, has_lookup, is_address, is_handle, is_number, kinds, struct_of)

KEYWORDS = set("auto break case char const continue default do double else enum extern float for goto if inline int long "
               "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while "
               "asm bool true false typeof NULL errno".split())


def fail(of, message, line=None):
    raise SpecError(f"{of.file}:{line or of.line}: {message}")


def once(things, what, of=lambda thing: [thing.name]):
    """No two of these have the same name."""
    seen = {}
    for thing in things:
        for name in of(thing):
            if name in seen:
                fail(thing, f"{what} '{name}' is already described at {seen[name].file}:{seen[name].line}")
            seen[name] = thing


def kinds_are_whole(api):
    once(api.kinds, "kind", lambda k: [k.constant.lower()])
    once(api.kinds, "a kind's type", lambda k: k.types)
    for k in api.kinds:
        if k.constant == "COUNT":
            fail(k, f"kind '{k.name}' has a reserved name")
        if set(k.types) & (set(SCALARS) | KEYWORDS):
            fail(k, f"a type of kind '{k.name}' is no handle")
        if "COST" not in k.options and len(k.options) > 1:
            fail(k, f"kind '{k.name}' has no COST, so the daemon has no objects of it")
        if "LOOKUP" in k.options and k.name not in LOOKUPS:
            fail(k, f"LOOKUP of kind '{k.name}': it is for {', '.join(LOOKUPS)}; others have OBJECT, PART_OF or hooks")
        if k.owner and (k.destroy or not any(o.name == k.owner and o.destroy for o in api.kinds)):
            fail(k, f"PART_OF({k.owner}) of kind '{k.name}' needs a kind with OBJECT, and has none itself")
        if ("OBJECT" in k.options) != ("GOES_WITH" in k.options):
            fail(k, f"OBJECT and GOES_WITH of kind '{k.name}' come together")
        if k.options.get("GOES_WITH", "context") not in ("context", "session"):
            fail(k, f"GOES_WITH({k.options['GOES_WITH']}): it is context or session")
        if k.destroy and api.symbols and k.destroy not in {s.name for s in api.symbols}:
            fail(k, f"OBJECT({k.destroy}) is no symbol of the driver (symbols.h)")


def types_are_whole(api):
    once(api.types, "type")
    for t in api.types:
        if t.name in kinds or t.name in SCALARS or t.name in KEYWORDS:
            fail(t, f"type '{t.name}' has a form already")
        if t.word == "OPAQUE" and len(t.fields) != 1:
            fail(t, f"GP_OPAQUE({t.name}) needs its size, 1 to 4096 bytes")
        if t.word != "ENUM" and len(t.fields) < 1 + (t.word == "NARROW"):
            fail(t, f"GP_{t.word}({t.name}) describes nothing")
        listed = [f[1] if t.word in ("ATTRIBUTES", "OPTIONS") else f for f in t.fields] if t.word != "STRUCT" else []
        twice = next((f for f in listed if listed.count(f) > 1), None)
        if twice:
            fail(t, f"GP_{t.word}({t.name}) has {twice} twice")
        if t.word == "STRUCT":
            struct_is_whole(t)
        if t.word == "ATTRIBUTES":
            for how, name in t.fields:
                if not is_number(how) and not (cells(how) and not struct_of(how) and not is_handle(how) and how not in SCALARS):
                    fail(t, f"type '{how}' of {name} is neither a number nor bytes")


def contains_itself(name, inside=()):
    struct = struct_of(name)
    return name in inside or bool(struct) and any(contains_itself(f.ctype, (*inside, name)) for f in struct.fields)


def struct_is_whole(t):
    if contains_itself(t.name):
        fail(t, f"GP_STRUCT({t.name}) contains itself")
    before = {}
    numbers = {f.name for f in t.fields if f.ctype in COUNTS and not f.count}
    for f in t.fields:
        if f.name in before:
            fail(t, f"{t.name} has two members '{f.name}'", f.line)
        if not cells(f.ctype) or f.ctype.startswith("gp_"):
            fail(t, f"type '{f.ctype}' of '{f.name}' has no form on the wire", f.line)
        if is_handle(f.ctype) and not has_lookup(f.ctype):
            fail(t, f"'{f.name}' of {t.name} is a handle that generated code cannot look up", f.line)
        for word in {"ONE_OF", "UP_TO"} & set(f.checks):
            if f.count or not is_number(f.ctype):
                fail(t, f"'{word}' on '{f.name}' of {t.name}, which is no number", f.line)
        for word, values in f.checks.items():
            of = before.get(values[0], f) if word == "WHEN" else f
            if word != "SPAN" and of.ctype not in ("int", "float") and any(v.startswith("-") for v in values):
                fail(t, f"{word}({', '.join(values)}) of '{f.name}': '{of.name}' is never below 0", f.line)
        if "SPAN" in f.checks and not is_address(f.ctype):
            fail(t, f"'SPAN' on '{f.name}' of {t.name}, which is no device pointer", f.line)
        for size in f.checks.get("SPAN", []):
            if not size.isdigit() and size not in numbers:
                fail(t, f"SPAN({', '.join(f.checks['SPAN'])}) of '{f.name}': {t.name} has no number '{size}'", f.line)
        when = f.checks.get("WHEN")
        if when and not (when[0] in before and is_number(before[when[0]].ctype) and not before[when[0]].count):
            fail(t, f"WHEN({', '.join(when)}) of '{f.name}' needs a number before it, and its values", f.line)
        before[f.name] = f


def held_is_whole(api):
    once(api.held, "GP_HELD")
    once(api.held, "a held type", lambda h: h.types)
    for h in api.held:
        if bool(h.enter) == bool(h.kind):
            fail(h, f"GP_HELD({h.name}) needs ENTER or KIND")
        if h.kind and (not any(k.name == h.kind for k in api.kinds) or not h.types):
            fail(h, f"KIND({h.kind}) of GP_HELD({h.name}) needs a GP_KIND of this name, and TYPES")
        if "HEADER" not in h.options:
            fail(h, f"GP_HELD({h.name}) has no HEADER")
        if h.types and not h.struct:
            fail(h, f"GP_HELD({h.name}) has TYPES, but no STRUCT that is found by them")


def symbols_are_there(api):
    """Each is listed once, and what is said of one is said of one that is listed."""
    for things, what in ((api.symbols, "symbol"), (api.driver, "the driver's function"), (api.lacks, "the lack of")):
        once(things, what)
    symbols = {s.name for s in api.symbols}
    described = {name for c in api.calls for name in [c.name] + c.names("ALIAS")}
    for thing in api.driver + api.lacks:
        if symbols and thing.name not in symbols:
            fail(thing, f"{thing.name} is no symbol of the driver (symbols.h)")
    for lack in api.lacks:
        if lack.name in described:
            fail(lack, f"{lack.name} is described, so it is supported")


def check_types(api):
    for rule in (symbols_are_there, kinds_are_whole, types_are_whole, held_is_whole):
        rule(api)
