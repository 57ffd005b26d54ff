# SPDX-License-Identifier: Apache-2.0
"""The rules of what is not a call: kinds, types, what is held, symbols. Each has a negative test."""
from parse import SpecError
from types_table import LOOKUPS, SCALARS, kinds

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
            fail(k, f"LOOKUP of kind '{k.name}': it is for {', '.join(LOOKUPS)}; others have OBJECT or hooks")
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
        if t.word != "ENUM" and not t.fields:
            fail(t, f"GP_{t.word}({t.name}) describes nothing")
        listed = [f[1] if t.word == "OPTIONS" else f for f in t.fields]
        twice = next((f for f in listed if listed.count(f) > 1), None)
        if twice:
            fail(t, f"GP_{t.word}({t.name}) has {twice} twice")


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
