# SPDX-License-Identifier: Apache-2.0
"""The rules for kinds, types, client objects and symbols. Each rule has a negative test in tests/codegen/errors."""
from parse import SpecError
from types_table import LOOKUPS, SCALARS, kinds

KEYWORDS = set("auto break case char const continue default do double else enum extern float for goto if inline int long "
               "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while "
               "asm bool true false typeof NULL errno".split())


def fail(of, message, line=None):
    raise SpecError(f"{of.file}:{line or of.line}: {message}")


def check_once(things, what, of=lambda thing: [thing.name]):
    """No two entries have a name in common; of() returns the names of an entry."""
    seen = {}
    for thing in things:
        for name in of(thing):
            if name in seen:
                fail(thing, f"{what} '{name}' is already described at {seen[name].file}:{seen[name].line}")
            seen[name] = thing


def check_kinds(api):
    check_once(api.kinds, "kind", lambda k: [k.constant.lower()])
    check_once(api.kinds, "kind type", lambda k: k.types)
    for k in api.kinds:
        if k.constant == "COUNT":
            fail(k, f"kind '{k.name}' has a reserved name")
        if set(k.types) & (set(SCALARS) | KEYWORDS):
            fail(k, f"kind '{k.name}' has a type that is not a handle")
        if "COST" not in k.options and len(k.options) > 1:
            fail(k, f"kind '{k.name}' has no COST, so it cannot have {min(set(k.options) - {'TYPES'})}")
        if "LOOKUP" in k.options and k.name not in LOOKUPS:
            fail(k, f"LOOKUP of kind '{k.name}': only for {', '.join(LOOKUPS)}; use DESTROY or hooks")
        if ("DESTROY" in k.options) != ("LIFETIME" in k.options):
            fail(k, f"kind '{k.name}' needs both DESTROY and LIFETIME")
        if k.options.get("LIFETIME", "context") not in ("context", "session"):
            fail(k, f"LIFETIME({k.options['LIFETIME']}): expected context or session")
        if k.destroy and api.symbols and k.destroy not in {s.name for s in api.symbols}:
            fail(k, f"DESTROY({k.destroy}): {k.destroy} is not in symbols.h")


def check_type_words(api):
    check_once(api.types, "type")
    for t in api.types:
        if t.name in kinds or t.name in SCALARS or t.name in KEYWORDS:
            fail(t, f"type '{t.name}' already has a wire format")
        if t.word != "ENUM" and not t.fields:
            fail(t, f"GP_{t.word}({t.name}) is empty")
        listed = [f[1] if t.word == "OPTIONS" else f for f in t.fields]
        twice = next((f for f in listed if listed.count(f) > 1), None)
        if twice:
            fail(t, f"GP_{t.word}({t.name}): duplicate {twice}")


def check_client_objects(api):
    check_once(api.client_objects, "GP_CLIENT_OBJECT")
    check_once(api.client_objects, "client object type", lambda o: o.types)
    for o in api.client_objects:
        if bool(o.enter) == bool(o.kind):
            fail(o, f"GP_CLIENT_OBJECT({o.name}) needs either ENTER or KIND")
        if o.kind and (not any(k.name == o.kind for k in api.kinds) or not o.types):
            fail(o, f"KIND({o.kind}) of GP_CLIENT_OBJECT({o.name}) needs a GP_KIND of this name, and TYPES")
        if "HEADER" not in o.options:
            fail(o, f"GP_CLIENT_OBJECT({o.name}) has no HEADER")
        if o.types and not o.struct:
            fail(o, f"GP_CLIENT_OBJECT({o.name}) has TYPES, but no STRUCT")


def check_symbols(api):
    """Symbols are listed once; driver functions and unsupported symbols are among them."""
    for things, what in ((api.symbols, "symbol"), (api.driver, "driver function"), (api.unsupported_symbols, "unsupported symbol")):
        check_once(things, what)
    symbols = {s.name for s in api.symbols}
    described = {name for c in api.calls for name in [c.name] + c.names("ALIAS")}
    for thing in api.driver + api.unsupported_symbols:
        if symbols and thing.name not in symbols:
            fail(thing, f"{thing.name} is not in symbols.h")
    for symbol in api.unsupported_symbols:
        if symbol.name in described:
            fail(symbol, f"{symbol.name} is described, so it cannot be unsupported")


def check_types(api):
    for rule in (check_symbols, check_kinds, check_type_words, check_client_objects):
        rule(api)
