# SPDX-License-Identifier: Apache-2.0
"""The rules for calls and for GP_PRECHECK. Each rule has a negative test in tests/codegen/errors."""
import re

from check_types import KEYWORDS, check_once, check_types, fail
from model import get_args, get_entered_objects, get_implied_params, get_stream_params
from types_table import (COUNTS, SCALARS, client_objects, client_objects_by_name, described, get_kind, get_wire_type, get_word, has_lookup,
                         is_address, is_handle, is_kernel, is_number, is_object, kinds, load_types)
from words import ACCOUNT, CAPTURE, CLIENT_VALUE, CONSTANT, NUMBER, ORDER, SOURCES, WORK

OUTS = {"OUT", "OUT_N", "OUT_BYTES"}
BYTES = {"void", "char", "unsigned char"}
# Names that the generated code uses for its own variables and functions.
RESERVED = {"before", "begun", "result"}
RESERVED_ON_WIRE = {"args", "bulk", "bulk_count", "call", "dec", "header", "raw_p", "reply", "request", "session", "unused"}
RESERVED_IN_LOCAL = {"found", "other"}
RESERVED_IN_FORWARD = {"converted"}
RESERVED_IN_STUBS = {"cells", "context", "i", "id", "listed", "object", "raw", "scratch", "memcpy", "strlen", "gpd_driver"}

# Call.implementation -> its name in messages
IMPLEMENTATIONS = {"CALL": "a GP_CALL", "MESSAGE": "a GP_MESSAGE", "HAND": "a GP_LOCAL that is written by hand",
                   "GENERATED": "a GP_LOCAL that is generated from client objects", "FORWARD": "a call with FORWARD"}
# word -> the implementations that may have it; all other words are allowed in every call.
WORDS_OF_CALLS = {
    **dict.fromkeys(SOURCES | {"STORE", "WITHIN", "CLIENT_OBJECT", "REQUIRE", "RETURNS"}, {"GENERATED"}),
    **dict.fromkeys(ORDER | WORK | {"DROP", "NEW", "BULK_IN", "BULK_OUT", "SERVER_HOOK"}, {"CALL", "MESSAGE"}),
    **dict.fromkeys(("ALIAS", "CAPTURE", "SYNCHRONIZES", "QUICK"), set(IMPLEMENTATIONS) - {"MESSAGE"}),
    "CLIENT_HOOK": {"CALL"}, "FORWARD": {"FORWARD"}, "CONVERT": {"FORWARD"},
    "VIA": {"HAND", "FORWARD"}, "SIGNAL_SAFE": {"HAND"},
    "STATIC": set(IMPLEMENTATIONS) - {"CALL", "MESSAGE"},
}
# word -> (the condition that a call and its parameter must meet, its name in messages)
WORDS_OF_PARAMETERS = {
    "IN_STRING": (lambda c, p: p.ctype == "char", "char pointers"),
    **dict.fromkeys(("IN_BYTES", "OUT_BYTES"), (lambda c, p: p.ctype in BYTES or not c.on_wire, "void or char pointers")),
    "INOUT": (lambda c, p: not p.const, "pointers that are not const"),
    **dict.fromkeys(OUTS, (lambda c, p: p.depth > 1 or not p.const, "pointers that are not const")),
    "OPT": (lambda c, p: p.depth and p.direction not in ("INOUT", "IN_OPTIONS") and "NEW" not in p.quals
            and not (c.on_wire and p.direction == "IN_STRING"), "pointers that may be NULL"),
    "STATIC": (lambda c, p: p.depth == 2 and p.direction == "OUT", "an OUT pointer to a pointer"),
    "NEW": (lambda c, p: is_handle(p.ctype) and (p.direction == "OUT" if c.kind == "CALL" else not p.depth), "an OUT handle of a call, or a handle of a message"),
    "DROP": (lambda c, p: is_handle(p.ctype) and not p.depth and "NEW" not in p.quals, "a handle"),
    **dict.fromkeys(("FIELD", "COMPUTE"), (lambda c, p: p.direction == "OUT" or p.direction == "OUT_BYTES" and p.size != "BY_HOOK" and p.ctype == "char",
                                           "OUT, or OUT_BYTES(size) of char")),
    "FIXED": (lambda c, p: p.direction == "OUT" and p.depth == 1 and (p.ctype not in kinds or p.words["FIXED"] == "NULL"), "OUT; for a handle, NULL only"),
    "STORE": (lambda c, p: not p.depth and not is_handle(p.ctype) and p.ctype not in client_objects, "a number"),
    "CONVERT": (lambda c, p: p.direction in (None, "IN"), "an input"),
    "WITHIN": (lambda c, p: not p.depth and not is_handle(p.ctype) and (get_wire_type(p.ctype) or ("", "i32"))[1] in ("i32", "u32"),
               "a number of 32 bits"),
}


def check_words(call):
    """Each word is allowed in this call and on this parameter."""
    found = [(word, f"{word} of {call.name}", None) for word in call.options]
    for p in call.params:
        given = ({p.direction} if p.direction else set()) | p.quals | set(p.words)
        found += [(word, f"'{word}' on '{p.name}' of {call.name}", p) for word in sorted(given)]
    for word, where, p in found:
        if call.implementation not in WORDS_OF_CALLS.get(word, IMPLEMENTATIONS):
            fail(call, f"{where}: not allowed in {IMPLEMENTATIONS[call.implementation]}", p and p.line)
        fits, what = WORDS_OF_PARAMETERS.get(word, (None, None))
        if p and fits and not fits(call, p):
            fail(call, f"{where}: only for {what}", p.line)


def check_unique(api):
    """Numbers and names of calls are unique, and numbers are in range."""
    numbers, names = {}, {}
    for call in api.calls:
        if call.number is not None:
            if call.number in numbers:
                fail(call, f"number 0x{call.number:04x} is already used by {numbers[call.number].name} "
                           f"({numbers[call.number].where})")
            if not 0 < call.number < 0xFF00:
                fail(call, f"number 0x{call.number:04x} is out of range (0x0001 to 0xfeff)")
            numbers[call.number] = call
        for name in [call.name] + call.names("ALIAS"):
            if name in names:
                fail(call, f"{name} is already described at {names[name].where}")
            names[name] = call


def check_directions(call):
    """Each pointer has a direction that the call can implement."""
    for p in call.params:
        if p.depth and not p.direction:
            fail(call, f"pointer '{p.name}' has no direction; add IN, OUT, INOUT or one of their forms", p.line)
        if p.ctype == "void" and not p.depth:
            fail(call, f"'{p.name}' of {call.name} has type void", p.line)
        if p.direction and not p.depth:
            fail(call, f"'{p.direction}' on '{p.name}': not a pointer", p.line)
        if call.completion == "POST" and p.direction in OUTS | {"INOUT"} and "NEW" not in p.quals:
            fail(call, f"{call.name} is POST, but '{p.name}' is an output; use WAIT", p.line)
        if call.on_wire and p.direction == "BY_HOOK" and not is_value_of_options(call, p):
            fail(call, f"'{p.direction}' on '{p.name}' of {call.name}: not allowed in a call on the wire", p.line)
        if call.on_wire and p.depth > 1 and not is_value_of_options(call, p):
            fail(call, f"'{p.name}' of {call.name} points to a pointer, which has no wire format", p.line)


def is_value_of_options(call, p):
    return any(q.direction == "IN_OPTIONS" and q.size and q.size.split(", ")[1:] == [p.name] for q in call.params)


def check_wire_size(call, p):
    """The generated code can compute the size of this parameter."""
    by_name = {q.name: q for q in call.params}
    other = by_name.get(p.size)
    if p.direction in ("IN_N", "IN_BYTES") and "OPT" in p.quals and other:
        fail(call, f"'OPT' on '{p.name}' of {call.name}: redundant, as {p.direction}({p.size}) may be NULL while {p.size} is 0", p.line)
    if p.direction in ("IN_N", "OUT_N") and p.size == "BY_HOOK":
        fail(call, f"'{p.direction}(BY_HOOK)' of '{p.name}': not allowed in a call on the wire", p.line)
    if p.direction == "IN_OPTIONS":
        count, values = (by_name.get(name) for name in p.size.split(", "))
        if not count or count.depth or count.ctype not in COUNTS or not values or (values.direction, values.ctype, values.depth) != ("BY_HOOK", "void", 2):
            fail(call, f"IN_OPTIONS({p.size}) of '{p.name}' needs two parameters: the count, and the values (BY_HOOK void **)", p.line)
        if get_word(p.ctype) != "OPTIONS":
            fail(call, f"type '{p.ctype}' of '{p.name}' has no GP_OPTIONS", p.line)


def get_counted(call):
    """Yields (word with its argument, its parameter or None, the argument) for each word whose argument is a size or a count."""
    for p in call.params:
        if p.direction in ("IN_N", "OUT_N", "IN_BYTES", "OUT_BYTES"):
            yield f"{p.direction}({p.size}) of '{p.name}'", p, p.size
    for word in ("ALLOCATES", "FREES", "COPIES"):
        yield f"{word}({call.options.get(word)})", None, call.options.get(word)


def check_sizes(call):
    """Each size or count is a number, or an integer parameter of the call."""
    values = {p.name: p.ctype for p in call.params if not p.depth}
    for p in call.params:
        if call.on_wire:
            check_wire_size(call, p)
    for what, p, name in get_counted(call):
        if not name or name.isdigit() or name == "BY_HOOK":
            continue
        if values.get(name) not in COUNTS:
            fail(call, f"{what}: expected an integer parameter of {call.name}", p and p.line)
    check_implied_params(call)
    for word in {"ALLOCATES", "FREES", "COPIES"} & set(call.options):
        argument = call.options[word]
        if argument != "BY_HOOK" and word != "COPIES" and values.get("device") not in ("int", "CUdevice"):
            fail(call, f"{word}({argument}) of {call.name} needs a parameter 'device' of type int or CUdevice")
        if argument == "BY_HOOK" and "SERVER_HOOK" not in call.options:
            fail(call, f"{word}(BY_HOOK) of {call.name} needs a SERVER_HOOK")


def check_implied_params(call):
    """The length of bytes and the count of options are sent as part of these, so no other parameter may use them."""
    used = [name for _, _, name in get_counted(call)] + [name for p in call.params if p.direction == "IN_OPTIONS" for name in p.size.split(", ")]
    used.append(call.options.get("BARRIER"))
    for name in get_implied_params(call) if call.on_wire else ():
        if used.count(name) > 1 and name != "BY_HOOK" and not name.isdigit():
            fail(call, f"'{name}' of {call.name} is the size of two parameters, but is sent with one of them only")


def check_names(call):
    """Parameter names are unique, and are reserved neither by C nor by the generated code."""
    seen = set()
    ours = RESERVED | (RESERVED_ON_WIRE if call.on_wire else set()) | (RESERVED_IN_STUBS if call.kind == "CALL" else set())
    ours |= RESERVED_IN_LOCAL if call.is_local_answer else RESERVED_IN_FORWARD if call.is_forward else set()
    for p in call.params:
        if p.name in seen:
            fail(call, f"{call.name} has two parameters '{p.name}'", p.line)
        seen.add(p.name)
        if p.name in KEYWORDS | ours or p.name in SCALARS or p.name in described or p.name in kinds or re.fullmatch(CONSTANT, p.name):
            fail(call, f"'{p.name}' of {call.name} is a reserved name", p.line)


def check_param_types(call):
    """Each parameter on the wire has a wire format."""
    for p in call.params:
        if call.kind != "MESSAGE" and p.ctype.startswith("gp_"):
            fail(call, f"type '{p.ctype}' of '{p.name}' is for messages only", p.line)
        if call.on_wire and p.direction not in ("IN_BYTES", "OUT_BYTES", "IN_STRING", "IN_OPTIONS", "BY_HOOK") and not get_wire_type(p.ctype):
            fail(call, f"type '{p.ctype}' of '{p.name}' has no wire format", p.line)


def check_generated_ends(call):
    """An end without a hook can be generated for all parameters."""
    for word, ours in (("CLIENT_HOOK", call.kind == "CALL"), ("SERVER_HOOK", call.on_wire)):
        if not ours or word in call.options:
            continue
        bulk = {"BULK_IN", "BULK_OUT"} & set(call.options)
        if bulk:
            fail(call, f"{min(bulk)} of {call.name} needs a {word}")
        for p in call.params:
            check_generated_end(call, p, word)
        if sum(bool({"NEW", "DROP"} & p.quals) for p in call.params) > 1:
            fail(call, f"{call.name} creates or destroys more than one object, which needs a {word}")


def check_generated_end(call, p, word):
    made = "NEW" in p.quals or "DROP" in p.quals
    if made and not is_object(p.ctype) or is_handle(p.ctype) and not has_lookup(p.ctype) or p.ctype == "gp_new_address":
        fail(call, f"'{p.name}' of {call.name} needs a {word}", p.line)
    if p.direction in OUTS and not made and (is_kernel(p.ctype) or is_handle(p.ctype) and not is_object(p.ctype)):
        fail(call, f"'{p.name}' of {call.name} returns a '{p.ctype}', which needs a {word}", p.line)
    if p.ctype == "CUkernel" or p.direction == "INOUT" and not is_number(p.ctype):
        fail(call, f"'{p.name}' of {call.name} has type '{p.ctype}', which needs a {word}", p.line)
    if p.direction == "OUT" and is_handle(p.ctype) and not made:
        fail(call, f"'{p.name}' of {call.name} is an OUT handle; use NEW or OUT_N", p.line)
    if p.size == "BY_HOOK":
        fail(call, f"'{p.direction}(BY_HOOK)' of '{p.name}' needs a {word}", p.line)
    if word == "SERVER_HOOK" and p.direction in (None, "IN", "IN_N") and is_address(p.ctype):
        fail(call, f"'{p.name}' of {call.name} is a device pointer, which needs a {word}", p.line)


def get_streams(call):
    """Stream parameters, by value and as lists."""
    return [p for p in call.params if p.ctype == "CUstream"]


def check_account(call):
    """A call with a stream, a new object or new device memory has an account word, so that no call bypasses the quotas."""
    given = [w for w in call.options if w in ACCOUNT]
    if "CHARGES_NOTHING" in given and len(given) > 1:
        fail(call, f"{call.name} has CHARGES_NOTHING and {min(set(given) - {'CHARGES_NOTHING'})}")
    if any(p.ctype == "gp_new_address" for p in call.params) and "ALLOCATES" not in given:
        fail(call, f"{call.name} has a gp_new_address, but no ALLOCATES")
    if "ASYNC_LAUNCH" in call.options and not (call.completion == "POST" and {"LAUNCHES", "SERVER_HOOK"} <= set(call.options)):
        fail(call, f"{call.name} has ASYNC_LAUNCH, but is not a POST call with LAUNCHES and SERVER_HOOK")
    if "RATE_LIMITED" in call.options and not (call.on_wire and any(f.kind == "bytes" for f in get_args(call))):
        fail(call, f"{call.name} has RATE_LIMITED, but sends no lists, strings or bytes")
    if call.on_wire and "LAUNCHES" in given and len(get_stream_params(call)) != 1:
        fail(call, f"{call.name} has LAUNCHES, but {'several stream parameters' if get_stream_params(call) else 'no stream parameter'}")
    if given or "VIA" in call.options:
        return
    if get_streams(call):
        fail(call, f"{call.name} has a stream, but no account word; "
                   "add ALLOCATES, FREES, LAUNCHES, COPIES or CHARGES_NOTHING")
    for p in call.params:
        if "NEW" in p.quals or p.ctype == "CUdeviceptr" and p.direction in OUTS and not call.is_local_answer:
            fail(call, f"{call.name} returns '{p.name}', but has no account word; "
                       "add ALLOCATES, LAUNCHES, COPIES or CHARGES_NOTHING", p.line)


def check_order(call):
    """The words for the order among calls are consistent, and each handle of an ORDERED kind is a parameter of its own."""
    for p in call.params:
        if call.on_wire and p.direction not in OUTS | {None} and is_handle(p.ctype) and get_kind(p.ctype).ordered:
            fail(call, f"'{p.name}' of {call.name} is a list of '{p.ctype}', an ORDERED kind; use one parameter per handle", p.line)
    if "AWAITS_STREAM" in call.options and not get_stream_params(call):
        fail(call, f"{call.name} has AWAITS_STREAM, but no stream parameter")
    if "AWAITS_HOST" in call.options and len(get_stream_params(call)) != 1:
        fail(call, f"{call.name} has AWAITS_HOST, but not exactly one stream parameter")
    if {"AWAITS_HOST", "UNBOUNDED"} <= set(call.options):
        fail(call, f"{call.name} has UNBOUNDED, which AWAITS_HOST implies")
    if "QUERY" in call.options and call.completion != "WAIT":
        fail(call, f"{call.name} has QUERY, but is POST, which has no reply")
    if {"BARRIER", "BEFORE_ALL"} <= set(call.options):
        fail(call, f"{call.name} has both BEFORE_ALL and BARRIER")
    barrier = call.options.get("BARRIER")
    if barrier and not any(p.name == barrier and p.ctype == "unsigned int" and not p.depth for p in call.params):
        fail(call, f"BARRIER({barrier}) of {call.name}: expected a parameter of type unsigned int")


def check_capture(call):
    """A call with a stream has CAPTURE, with an effect that its parameters allow."""
    how = call.options.get("CAPTURE")
    if how is None:
        if call.kind != "MESSAGE" and any(p.direction not in OUTS for p in get_streams(call)):
            fail(call, f"{call.name} has a stream, but no CAPTURE")
    elif how not in CAPTURE:
        fail(call, f"CAPTURE({how}) of {call.name}: expected {', '.join(sorted(CAPTURE))}")
    elif how in ("refused", "declined") and (len(get_stream_params(call)) != 1 or len(get_streams(call)) != 1):
        fail(call, f"CAPTURE({how}), but {call.name} has {'several streams' if get_streams(call) else 'no stream'}")


def check_synchronizes(call):
    """SYNCHRONIZES names an address parameter, from which the context is known, or CURRENT."""
    whose = call.options.get("SYNCHRONIZES")
    if whose in (None, "CURRENT"):
        return
    p = next((p for p in call.params if p.name == whose), None)
    if not p or p.direction in OUTS or not (p.ctype == "CUdeviceptr" and not p.depth or p.ctype == "void" and p.depth == 1):
        fail(call, f"SYNCHRONIZES({whose}) of {call.name}: expected CURRENT or an address parameter")


def check_arguments(call):
    """The arguments that words pass to functions are parameters of the call, or constants."""
    given = [(f"{word}({p.words[word]}) of '{p.name}'", p.words[word], p.line) for p in call.params for word in ("COMPUTE", "CONVERT") if word in p.words]
    given += [(f"FORWARD({call.options['FORWARD']}) of {call.name}", call.options["FORWARD"], None)] if call.is_forward else []
    known = {p.name for p in call.params}
    for what, text, line in given:
        for a in text.split(", ")[1:]:
            if a not in known and not re.fullmatch(CLIENT_VALUE, a):
                fail(call, f"{what}: '{a}' is neither a parameter nor a constant", line)


def is_empty(least, most):
    return re.fullmatch(NUMBER, least) and re.fullmatch(NUMBER, most) and int(least, 0) > int(most, 0)


def check_local_answer(call):
    """A GP_LOCAL call that is generated from client objects."""
    if not call.is_local_answer:
        return
    of = call.options.get("CLIENT_OBJECT")
    if of and (of not in client_objects_by_name or client_objects_by_name[of].types):
        fail(call, f"CLIENT_OBJECT({of}) of {call.name}: expected a GP_CLIENT_OBJECT without TYPES")
    objects = get_entered_objects(call)
    if not 1 <= len(objects) <= 2:
        fail(call, f"{call.name} uses {len(objects)} client objects; expected 1 or 2")
    if len(objects) > 1 and any(o.end for _, o in objects):
        fail(call, f"{call.name} uses two client objects, of which neither may have LEAVE")
    given = {w for p in call.params for w in p.words} | set(call.options)
    needs = given & {"FIELD", "STORE", "REQUIRE"}
    if needs and not objects[0][1].struct:
        fail(call, f"{call.name} has {min(needs)}, but its GP_CLIENT_OBJECT({objects[0][1].name}) has no STRUCT")
    if "RETURNS" in call.options and given & (SOURCES | {"STORE"}):
        fail(call, f"{call.name} has RETURNS, so it cannot have {min(given & (SOURCES | {'STORE'}))}")
    for p in call.params:
        if len(SOURCES & set(p.words)) > 1:
            fail(call, f"'{p.name}' has {' and '.join(sorted(SOURCES & set(p.words)))}; use one of them", p.line)
        least, most = (p.words.get("WITHIN") or "0, 0").split(", ")
        if is_empty(least, most):
            fail(call, f"WITHIN({least}, {most}) of '{p.name}': empty range", p.line)
    if "RETURNS" not in call.options:
        check_params_used(call, objects)


def check_forwards(api):
    """FORWARD(function, argument, ...) passes an argument for each parameter of the function, and each own parameter."""
    by_name = {c.name: c for c in api.cuda_calls}
    for call in api.calls:
        if not call.is_forward:
            continue
        name, *arguments = call.names("FORWARD")
        other = by_name.get(name)
        if not other or other.is_forward:
            fail(call, f"FORWARD({name}) of {call.name}: expected a described function without FORWARD")
        if len(arguments) != len(other.params):
            fail(call, f"FORWARD({name}) of {call.name} has {len(arguments)} arguments; {name} takes {len(other.params)}")
        converted = [p for p in call.params if "CONVERT" in p.words]
        if len(converted) > 1:
            fail(call, f"CONVERT of '{converted[1].name}': {call.name} converts '{converted[0].name}' already", converted[1].line)
        passed = arguments + [a for p in converted if p.name in arguments for a in p.words["CONVERT"].split(", ")]
        for p in call.params:
            if p.name not in passed:
                fail(call, f"'{p.name}' of {call.name} is not passed to {name}", p.line)
        own = {p.name: p for p in call.params}
        for p, q in [(own[a], q) for a, q in zip(arguments, other.params) if a in own]:
            if p in converted and q.depth != 1:
                fail(call, f"CONVERT of '{p.name}': '{q.name}' of {name} is not a pointer to a struct", p.line)
            if p not in converted and (p.depth != q.depth or p.ctype != q.ctype):
                fail(call, f"'{p.name}' of {call.name} is passed to {name} as '{q.name}', which has another type", p.line)


# check -> (number of arguments, the condition that its parameters must meet, its name in messages)
CHECK_FORMS = {
    **dict.fromkeys(("VALUE", "HANDLE", "CONTEXT"), (range(1, 16), lambda p: True, "parameters")),
    "DEVICE": (range(1, 2), lambda p: p.ctype == "CUdevice" and not p.depth, "a CUdevice"),
    "WITHIN": (range(3, 4), lambda p: not p.depth and not is_handle(p.ctype) and (get_wire_type(p.ctype) or ("", "i32"))[1] in ("i32", "u32"),
               "a number of 32 bits, the minimum and the maximum"),
    "INITIALIZED": (range(0, 1), None, "nothing"),
    "CURRENT": (range(0, 2), lambda p: p.ctype == "CUstream" and not p.depth, "nothing, or a CUstream"),
    "LEGACY": (range(1, 2), lambda p: p.ctype == "CUcontext" and not p.depth, "a CUcontext"),
}


def check_range(precheck, values, where, what):
    if not all(re.fullmatch(CLIENT_VALUE, value) for value in values):
        fail(precheck, f"{where}: expected {what}")
    if is_empty(*values):
        fail(precheck, f"{where}: empty range")


def check_prechecks(api):
    """GP_PRECHECK names a described function and checks of its parameters, of which each can be reached."""
    check_once(api.prechecks, "GP_PRECHECK of")
    by_name = {name: c for c in api.cuda_calls for name in [c.name] + c.names("ALIAS")}
    for precheck in api.prechecks:
        call = by_name.get(precheck.name)
        if not call:
            fail(precheck, f"GP_PRECHECK({precheck.name}): {precheck.name} is not described")
        if not precheck.checks:
            fail(precheck, f"GP_PRECHECK({precheck.name}) has no checks")
        for number, (word, given) in enumerate(precheck.checks, 1):
            counts, fits, what = CHECK_FORMS[word]
            of = [p for p in call.params if p.name in given]
            if len(given) not in counts or len(of) != (len(given) if word != "WITHIN" else 1) or not all(fits(p) for p in of):
                fail(precheck, f"{word}({', '.join(given)}) of {precheck.name}: expected {what}")
            if word == "WITHIN":
                check_range(precheck, given[1:], f"WITHIN({', '.join(given)}) of {precheck.name}", what)
            if word == "CURRENT" and given and number < len(precheck.checks):
                fail(precheck, f"CURRENT({given[0]}) of {precheck.name} must be the last check")


def check_params_used(call, objects):
    """Each parameter of a generated GP_LOCAL call is used."""
    used = {p.name for p, _ in objects if p} | {p.size for p in call.params}
    used |= {a for p in call.params for a in p.words.get("COMPUTE", "").split(", ")}
    for p in call.params:
        if not p.words and p.name not in used:
            fail(call, f"'{p.name}' of {call.name} is unused; add FIELD, COMPUTE, FIXED or STORE", p.line)


def check_hooks(call):
    """Hooks and the result type are those of the kind of call."""
    if "BULK_OUT" in call.options and call.completion != "WAIT":
        fail(call, f"{call.name} has BULK_OUT, but is POST, which has no reply")
    if "OWN_RESULT" in call.options and call.completion != "WAIT":
        fail(call, f"{call.name} has OWN_RESULT, but is POST, which has no reply")
    if call.kind == "MESSAGE" and "SERVER_HOOK" not in call.options:
        fail(call, f"{call.name} is a message, which needs a SERVER_HOOK")
    if (call.result == "CUresult") != (call.kind != "MESSAGE"):
        fail(call, f"{call.name} must return {'void' if call.kind == 'MESSAGE' else 'CUresult'}")


def check_references(api):
    """VIA names calls on the wire, and each function is in symbols.h."""
    wire = {c.name for c in api.calls if c.on_wire}
    symbols = {s.name for s in api.symbols}
    for call in api.calls:
        for name in call.names("VIA"):
            if name not in wire:
                fail(call, f"VIA({name}): unknown message or call")
        if symbols and call.kind != "MESSAGE":
            for name in [call.name] + call.names("ALIAS"):
                if name not in symbols:
                    fail(call, f"{name} is not in symbols.h")


def check_call(call):
    for rule in (check_names, check_words, check_directions, check_param_types, check_sizes, check_account, check_hooks,
                 check_generated_ends, check_order, check_capture, check_synchronizes, check_arguments, check_local_answer):
        rule(call)


def check(api):
    load_types(api)
    check_types(api)
    for call in api.calls:
        check_call(call)
    check_unique(api)
    check_references(api)
    check_forwards(api)
    check_prechecks(api)
    return api
