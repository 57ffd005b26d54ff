# SPDX-License-Identifier: Apache-2.0
"""The rules of the description language. Each has a negative test."""
import re

from check_types import KEYWORDS, check_once, check_types, fail
from model import get_args, get_entered_objects, get_implied_params, get_stream_params
from types_table import (COUNTS, SCALARS, client_objects, client_objects_by_name, described, get_kind, get_wire_type, get_word, has_lookup,
                         is_address, is_handle, is_kernel, is_number, is_object, kinds, load_types)
from words import ACCOUNT, CAPTURE, CLIENT_VALUE, CONSTANT, NUMBER, ORDER, SOURCES, WORK

OUTS = {"OUT", "OUT_N", "OUT_BYTES"}
BYTES = {"void", "char", "unsigned char"}
# What the generated code around the parameters of a call calls its own things.
RESERVED = {"before", "begun", "result"}
RESERVED_ON_WIRE = {"args", "bulk", "bulk_count", "call", "dec", "header", "raw_p", "reply", "request", "session", "unused"}
RESERVED_IN_LOCAL = {"found", "other"}
RESERVED_IN_STUBS = {"cells", "context", "i", "id", "listed", "object", "raw", "scratch", "memcpy", "strlen", "gpd_driver"}

IMPLEMENTATIONS = {"CALL": "travels", "MESSAGE": "is a message", "HAND": "is written by hand", "GENERATED": "is answered by the client alone",
        "FORWARD": "is FORWARD another call"}
# word -> the calls that may have it; a word that is not here, any.
WORDS_OF_CALLS = {
    **dict.fromkeys(SOURCES | {"STORE", "WITHIN", "CLIENT_OBJECT", "REQUIRE", "RETURNS"}, {"GENERATED"}),
    **dict.fromkeys(ORDER | WORK | {"DROP", "NEW", "BULK_IN", "BULK_OUT", "SERVER_HOOK"}, {"CALL", "MESSAGE"}),
    **dict.fromkeys(("ALIAS", "CAPTURE", "SYNCHRONIZES", "QUICK"), set(IMPLEMENTATIONS) - {"MESSAGE"}),
    "CLIENT_HOOK": {"CALL"}, "FORWARD": {"FORWARD"}, "VIA": {"HAND", "FORWARD"}, "SIGNAL_SAFE": {"HAND"},
    "STATIC": set(IMPLEMENTATIONS) - {"CALL", "MESSAGE"},
}
# word -> (whether a parameter may have it, what it is for)
WORDS_OF_PARAMETERS = {
    "IN_STRING": (lambda c, p: p.ctype == "char", "text"),
    **dict.fromkeys(("IN_BYTES", "OUT_BYTES"), (lambda c, p: p.ctype in BYTES or not c.on_wire, "void or char")),
    "INOUT": (lambda c, p: not p.const, "what is not const"),
    **dict.fromkeys(OUTS, (lambda c, p: p.depth > 1 or not p.const, "what is not const")),
    "OPT": (lambda c, p: p.depth and p.direction not in ("INOUT", "IN_OPTIONS") and "NEW" not in p.quals
            and not (c.on_wire and p.direction == "IN_STRING"), "pointers that may be NULL"),
    "STATIC": (lambda c, p: p.depth == 2 and p.direction == "OUT", "a pointer that is given out"),
    "NEW": (lambda c, p: is_handle(p.ctype) and (p.direction == "OUT" if c.kind == "CALL" else not p.depth), "a handle that is given OUT, or one of a message"),
    "DROP": (lambda c, p: is_handle(p.ctype) and not p.depth and "NEW" not in p.quals, "a handle"),
    **dict.fromkeys(("FIELD", "COMPUTE"), (lambda c, p: p.direction == "OUT" or p.direction == "OUT_BYTES" and p.size != "BY_HOOK" and p.ctype == "char",
                                     "OUT, or a text of a size")),
    "FIXED": (lambda c, p: p.direction == "OUT" and p.depth == 1 and (p.ctype not in kinds or p.words["FIXED"] == "NULL"), "OUT; of a handle, NULL"),
    "STORE": (lambda c, p: not p.depth and not is_handle(p.ctype) and p.ctype not in client_objects, "a number"),
    "WITHIN": (lambda c, p: not p.depth and not is_handle(p.ctype) and (get_wire_type(p.ctype) or ("", "i32"))[1] in ("i32", "u32"),
               "a number of 32 bits"),
}


def check_words(call):
    """Each word is of such a call, and before such a parameter."""
    found = [(word, f"{word} of {call.name}", None) for word in call.options]
    for p in call.params:
        given = ({p.direction} if p.direction else set()) | p.quals | set(p.words)
        found += [(word, f"'{word}' on '{p.name}' of {call.name}", p) for word in sorted(given)]
    for word, where, p in found:
        if call.implementation not in WORDS_OF_CALLS.get(word, IMPLEMENTATIONS):
            fail(call, f"{where}, which {IMPLEMENTATIONS[call.implementation]}", p and p.line)
        fits, what = WORDS_OF_PARAMETERS.get(word, (None, None))
        if p and fits and not fits(call, p):
            fail(call, f"{where}: it is for {what}", p.line)


def check_unique(api):
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


def check_directions(call):
    for p in call.params:
        if p.depth and not p.direction:
            fail(call, f"pointer '{p.name}' has no direction", p.line)
        if p.ctype == "void" and not p.depth:
            fail(call, f"'{p.name}' of {call.name} is void", p.line)
        if p.direction and not p.depth:
            fail(call, f"'{p.direction}' on '{p.name}', which is not a pointer", p.line)
        if call.completion == "POST" and p.direction in OUTS | {"INOUT"} and "NEW" not in p.quals:
            fail(call, f"{call.name} is POST, but '{p.name}' is written", p.line)
        if call.on_wire and p.direction == "BY_HOOK" and not is_value_of_options(call, p):
            fail(call, f"'{p.direction}' on '{p.name}' of {call.name}, which travels as it is", p.line)
        if call.on_wire and p.depth > 1 and not is_value_of_options(call, p):
            fail(call, f"'{p.name}' of {call.name} points to a pointer, which has no form on the wire", p.line)


def is_value_of_options(call, p):
    return any(q.direction == "IN_OPTIONS" and q.size and q.size.split(", ")[1:] == [p.name] for q in call.params)


def check_wire_size(call, p):
    """Sizes that the generated code can use."""
    by_name = {q.name: q for q in call.params}
    other = by_name.get(p.size)
    if p.direction in ("IN_N", "IN_BYTES") and "OPT" in p.quals and other:
        fail(call, f"'OPT' on '{p.name}' of {call.name}: without it {p.direction}({p.size}) may be NULL while {p.size} is 0", p.line)
    if p.direction in ("IN_N", "OUT_N") and p.size == "BY_HOOK":
        fail(call, f"'{p.direction}(BY_HOOK)' of '{p.name}', which travels as it is", p.line)
    if p.direction == "IN_OPTIONS":
        count, values = (by_name.get(name) for name in p.size.split(", "))
        if not count or count.depth or count.ctype not in COUNTS or not values or (values.direction, values.ctype, values.depth) != ("BY_HOOK", "void", 2):
            fail(call, f"IN_OPTIONS({p.size}) of '{p.name}' needs two parameters: how many, and their values (BY_HOOK void **)", p.line)
        if get_word(p.ctype) != "OPTIONS":
            fail(call, f"type '{p.ctype}' of '{p.name}' has no GP_OPTIONS", p.line)


def get_counted(call):
    """(the word and its argument, the parameter that it stands before or None, what it names) of all that counts something."""
    for p in call.params:
        if p.direction in ("IN_N", "OUT_N", "IN_BYTES", "OUT_BYTES"):
            yield f"{p.direction}({p.size}) of '{p.name}'", p, p.size
    for word in ("ALLOCATES", "FREES", "COPIES"):
        yield f"{word}({call.options.get(word)})", None, call.options.get(word)


def check_sizes(call):
    values = {p.name: p.ctype for p in call.params if not p.depth}
    for p in call.params:
        if call.on_wire:
            check_wire_size(call, p)
    for what, p, name in get_counted(call):
        if not name or name.isdigit() or name == "BY_HOOK":
            continue
        if values.get(name) not in COUNTS:
            fail(call, f"{what}: {call.name} has no such parameter that counts", p and p.line)
    check_implied_params(call)
    for word in {"ALLOCATES", "FREES", "COPIES"} & set(call.options):
        argument = call.options[word]
        if argument != "BY_HOOK" and word != "COPIES" and values.get("device") not in ("int", "CUdevice"):
            fail(call, f"{word}({argument}), but no parameter 'device' of {call.name} says of which device")
        if argument == "BY_HOOK" and "SERVER_HOOK" not in call.options:
            fail(call, f"{word}(BY_HOOK), but {call.name} has no SERVER_HOOK")


def check_implied_params(call):
    """The length of bytes and the count of options come with these, so nothing else may go by them."""
    used = [name for _, _, name in get_counted(call)] + [name for p in call.params if p.direction == "IN_OPTIONS" for name in p.size.split(", ")]
    used.append(call.options.get("BARRIER"))
    for name in get_implied_params(call) if call.on_wire else ():
        if used.count(name) > 1 and name != "BY_HOOK" and not name.isdigit():
            fail(call, f"'{name}' of {call.name} is the size of two things, but comes with one of them")


def check_names(call):
    """Each parameter has a name of its own, which C and the generated code leave to it."""
    seen = set()
    ours = RESERVED | (RESERVED_ON_WIRE if call.on_wire else set()) | (RESERVED_IN_STUBS if call.kind == "CALL" else set())
    ours |= RESERVED_IN_LOCAL if call.is_local_answer else set()
    for p in call.params:
        if p.name in seen:
            fail(call, f"{call.name} has two parameters '{p.name}'", p.line)
        seen.add(p.name)
        if p.name in KEYWORDS | ours or p.name in SCALARS or p.name in described or p.name in kinds or re.fullmatch(CONSTANT, p.name):
            fail(call, f"'{p.name}' of {call.name} is a reserved name", p.line)


def check_param_types(call):
    for p in call.params:
        if call.kind != "MESSAGE" and p.ctype.startswith("gp_"):
            fail(call, f"type '{p.ctype}' of '{p.name}' is for messages", p.line)
        if call.on_wire and p.direction not in ("IN_BYTES", "OUT_BYTES", "IN_STRING", "IN_OPTIONS", "BY_HOOK") and not get_wire_type(p.ctype):
            fail(call, f"type '{p.ctype}' of '{p.name}' has no form on the wire", p.line)


def check_generated_ends(call):
    """What an end that is generated whole can do with its parameters."""
    for word, ours in (("CLIENT_HOOK", call.kind == "CALL"), ("SERVER_HOOK", call.on_wire)):
        if not ours or word in call.options:
            continue
        bulk = {"BULK_IN", "BULK_OUT"} & set(call.options)
        if bulk:
            fail(call, f"{call.name} has {min(bulk)}, but no {word}")
        for p in call.params:
            check_generated_end(call, p, word)
        if sum(bool({"NEW", "DROP"} & p.quals) for p in call.params) > 1:
            fail(call, f"{call.name} makes or drops more than one object, which needs a {word}")


def check_generated_end(call, p, word):
    made = "NEW" in p.quals or "DROP" in p.quals
    if made and not is_object(p.ctype) or is_handle(p.ctype) and not has_lookup(p.ctype) or p.ctype == "gp_new_address":
        fail(call, f"'{p.name}' of {call.name} needs a {word}", p.line)
    if p.direction in OUTS and not made and (is_kernel(p.ctype) or is_handle(p.ctype) and not is_object(p.ctype)):
        fail(call, f"'{p.name}' of {call.name} brings back a '{p.ctype}', which needs a {word}", p.line)
    if p.ctype == "CUkernel" or p.direction == "INOUT" and not is_number(p.ctype):
        fail(call, f"'{p.name}' of {call.name} is a '{p.ctype}', which is not translated without a {word}", p.line)
    if p.direction == "OUT" and is_handle(p.ctype) and not made:
        fail(call, f"'{p.name}' of {call.name} is a handle that the call neither makes (NEW) nor lists (OUT_N)", p.line)
    if p.size == "BY_HOOK":
        fail(call, f"'{p.direction}(BY_HOOK)' of '{p.name}' needs a {word}", p.line)
    if word == "SERVER_HOOK" and p.direction in (None, "IN", "IN_N") and is_address(p.ctype):
        fail(call, f"'{p.name}' of {call.name} is a device pointer, which needs a {word}", p.line)


def get_streams(call):
    """Parameters that name streams: by value and in lists."""
    return [p for p in call.params if p.ctype == "CUstream"]


def check_account(call):
    """What takes a stream, makes an object or gives out memory must say what that costs, so that no quota has a gap."""
    given = [w for w in call.options if w in ACCOUNT]
    if "CHARGES_NOTHING" in given and len(given) > 1:
        fail(call, f"{call.name} both charges and CHARGES_NOTHING")
    if any(p.ctype == "gp_new_address" for p in call.params) and "ALLOCATES" not in given:
        fail(call, f"{call.name} makes memory, but does not say so (ALLOCATES)")
    if "ASYNC_LAUNCH" in call.options and not (call.completion == "POST" and {"LAUNCHES", "SERVER_HOOK"} <= set(call.options)):
        fail(call, f"{call.name} ASYNC_LAUNCH, but is not a POST call that LAUNCHES by a SERVER_HOOK")
    if "RATE_LIMITED" in call.options and not (call.on_wire and any(f.kind == "bytes" for f in get_args(call))):
        fail(call, f"{call.name} is RATE_LIMITED, but brings no lists, strings or bytes")
    if call.on_wire and "LAUNCHES" in given and len(get_stream_params(call)) != 1:
        fail(call, f"{call.name} LAUNCHES, but names {'several streams' if get_stream_params(call) else 'no stream'}")
    if given or "VIA" in call.options:
        return
    if get_streams(call):
        fail(call, f"{call.name} takes a stream, but does not say what it does to the account "
                   "(ALLOCATES, FREES, LAUNCHES, COPIES or CHARGES_NOTHING)")
    for p in call.params:
        if "NEW" in p.quals or p.ctype == "CUdeviceptr" and p.direction in OUTS and not call.is_local_answer:
            fail(call, f"{call.name} makes '{p.name}', but does not say what that does to the account "
                       "(ALLOCATES, LAUNCHES, COPIES or CHARGES_NOTHING)", p.line)


def check_order(call):
    """A call's place among the others: by words, and by the handles that it names one by one."""
    for p in call.params:
        if call.on_wire and p.direction not in OUTS | {None} and is_handle(p.ctype) and get_kind(p.ctype).ordered:
            fail(call, f"'{p.name}' of {call.name} has a '{p.ctype}' in a list, where nobody sees what the call must wait for", p.line)
    if "AWAITS_STREAM" in call.options and not get_stream_params(call):
        fail(call, f"{call.name} has AWAITS_STREAM, but names no stream")
    if "AWAITS_HOST" in call.options and len(get_stream_params(call)) != 1:
        fail(call, f"{call.name} has AWAITS_HOST, but names no stream, or several")
    if {"AWAITS_HOST", "UNBOUNDED"} <= set(call.options):
        fail(call, f"{call.name} is UNBOUNDED, which AWAITS_HOST implies")
    if "QUERY" in call.options and call.completion != "WAIT":
        fail(call, f"{call.name} QUERY, but nobody waits for the answer")
    if {"BARRIER", "BEFORE_ALL"} <= set(call.options):
        fail(call, f"{call.name} is both BEFORE_ALL and a BARRIER")
    barrier = call.options.get("BARRIER")
    if barrier and not any(p.name == barrier and p.ctype == "unsigned int" and not p.depth for p in call.params):
        fail(call, f"BARRIER({barrier}): no such flags of {call.name}")


def check_capture(call):
    """What takes a stream must say what it does while that is captured."""
    how = call.options.get("CAPTURE")
    if how is None:
        if call.kind != "MESSAGE" and any(p.direction not in OUTS for p in get_streams(call)):
            fail(call, f"{call.name} takes a stream, but does not say what it does while that is captured (CAPTURE)")
    elif how not in CAPTURE:
        fail(call, f"CAPTURE({how}) of {call.name}: it is {', '.join(sorted(CAPTURE))}")
    elif how in ("refused", "declined") and (len(get_stream_params(call)) != 1 or len(get_streams(call)) != 1):
        fail(call, f"CAPTURE({how}), but {call.name} names {'several streams' if get_streams(call) else 'no stream'}")


def check_synchronizes(call):
    """Whose work the call synchronizes with can be told from the parameter."""
    whose = call.options.get("SYNCHRONIZES")
    if whose in (None, "CURRENT"):
        return
    p = next((p for p in call.params if p.name == whose), None)
    if not p or p.direction in OUTS or not (p.ctype == "CUdeviceptr" and not p.depth or p.ctype == "void" and p.depth == 1):
        fail(call, f"SYNCHRONIZES({whose}) of {call.name}: it is CURRENT, or a parameter that is an address")


def check_arguments(call):
    """What words give to functions is there: parameters of the call, and constants."""
    given = [(f"COMPUTE({p.words['COMPUTE']}) of '{p.name}'", p.words["COMPUTE"], p.line) for p in call.params if "COMPUTE" in p.words]
    given += [(f"FORWARD({call.options['FORWARD']}) of {call.name}", call.options["FORWARD"], None)] if call.is_forward else []
    known = {p.name for p in call.params}
    for what, text, line in given:
        for a in text.split(", ")[1:]:
            if a not in known and not re.fullmatch(CLIENT_VALUE, a):
                fail(call, f"{what}: '{a}' is neither a parameter nor a constant", line)


def is_empty(least, most):
    return re.fullmatch(NUMBER, least) and re.fullmatch(NUMBER, most) and int(least, 0) > int(most, 0)


def check_local_answer(call):
    """A function that is generated out of what the client holds."""
    if not call.is_local_answer:
        return
    of = call.options.get("CLIENT_OBJECT")
    if of and (of not in client_objects_by_name or client_objects_by_name[of].types):
        fail(call, f"CLIENT_OBJECT({of}) of {call.name}: no GP_CLIENT_OBJECT without TYPES")
    objects = get_entered_objects(call)
    if not 1 <= len(objects) <= 2:
        fail(call, f"{call.name} is of {len(objects)} objects (GP_CLIENT_OBJECT, CLIENT_OBJECT): it is one or two")
    if len(objects) > 1 and any(o.end for _, o in objects):
        fail(call, f"{call.name} is of two objects, one of which has an LEAVE")
    given = {w for p in call.params for w in p.words} | set(call.options)
    needs = given & {"FIELD", "STORE", "REQUIRE"}
    if needs and not objects[0][1].struct:
        fail(call, f"{call.name} has {min(needs)}, but its GP_CLIENT_OBJECT({objects[0][1].name}) has no STRUCT")
    if "RETURNS" in call.options and given & (SOURCES | {"STORE"}):
        fail(call, f"{call.name} RETURNS, and so writes nothing")
    for p in call.params:
        if len(SOURCES & set(p.words)) > 1:
            fail(call, f"'{p.name}' has {' and '.join(sorted(SOURCES & set(p.words)))}: it is written once", p.line)
        least, most = (p.words.get("WITHIN") or "0, 0").split(", ")
        if is_empty(least, most):
            fail(call, f"WITHIN({least}, {most}) of '{p.name}': nothing is", p.line)
    if "RETURNS" not in call.options:
        check_params_used(call, objects)


def check_forwards(api):
    """FORWARD(function, argument, ...): parameters and constants, as many as the function has, and none is left."""
    by_name = {c.name: c for c in api.cuda_calls}
    for call in api.calls:
        if not call.is_forward:
            continue
        name, *arguments = call.names("FORWARD")
        other = by_name.get(name)
        if not other or other.is_forward:
            fail(call, f"FORWARD({name}) of {call.name}: no function that is described, and not FORWARD another itself")
        if len(arguments) != len(other.params):
            fail(call, f"FORWARD({name}) of {call.name} gives {len(arguments)} arguments of {len(other.params)}")
        for p in call.params:
            if p.name not in arguments:
                fail(call, f"'{p.name}' of {call.name} is not given to {name}", p.line)
        own = {p.name: p for p in call.params}
        for p, q in [(own[a], q) for a, q in zip(arguments, other.params) if a in own]:
            if p.depth != q.depth or p.ctype != q.ctype:
                fail(call, f"'{p.name}' of {call.name} is given to {name} as '{q.name}', of another type", p.line)


# check -> (how many names and constants it takes, whether a parameter may be the first of them, what it is of)
CHECK_FORMS = {
    **dict.fromkeys(("VALUE", "HANDLE", "CONTEXT"), (range(1, 16), lambda p: True, "parameters")),
    "DEVICE": (range(1, 2), lambda p: p.ctype == "CUdevice" and not p.depth, "a CUdevice"),
    "WITHIN": (range(3, 4), lambda p: not p.depth and not is_handle(p.ctype) and (get_wire_type(p.ctype) or ("", "i32"))[1] in ("i32", "u32"),
               "a number of 32 bits, the least and the most"),
    "INITIALIZED": (range(0, 1), None, "nothing"),
    "CURRENT": (range(0, 2), lambda p: p.ctype == "CUstream" and not p.depth, "nothing, or a CUstream"),
    "LEGACY": (range(1, 2), lambda p: p.ctype == "CUcontext" and not p.depth, "a CUcontext"),
}


def check_range(precheck, values, where, what):
    if not all(re.fullmatch(CLIENT_VALUE, value) for value in values):
        fail(precheck, f"{where}: it takes {what}")
    if is_empty(*values):
        fail(precheck, f"{where}: nothing is")


def check_prechecks(api):
    """GP_PRECHECK: of a function that is described, checks of its parameters, each of which can be reached."""
    check_once(api.prechecks, "GP_PRECHECK of")
    by_name = {name: c for c in api.cuda_calls for name in [c.name] + c.names("ALIAS")}
    for precheck in api.prechecks:
        call = by_name.get(precheck.name)
        if not call:
            fail(precheck, f"GP_PRECHECK({precheck.name}): no function that is described")
        if not precheck.checks:
            fail(precheck, f"GP_PRECHECK({precheck.name}) checks nothing")
        for number, (word, given) in enumerate(precheck.checks, 1):
            counts, fits, what = CHECK_FORMS[word]
            of = [p for p in call.params if p.name in given]
            if len(given) not in counts or len(of) != (len(given) if word != "WITHIN" else 1) or not all(fits(p) for p in of):
                fail(precheck, f"{word}({', '.join(given)}) of {precheck.name}: it takes {what}")
            if word == "WITHIN":
                check_range(precheck, given[1:], f"WITHIN({', '.join(given)}) of {precheck.name}", what)
            if word == "CURRENT" and given and number < len(precheck.checks):
                fail(precheck, f"CURRENT({given[0]}) of {precheck.name} is not the last check")


def check_params_used(call, objects):
    """Each parameter of an answer does something."""
    used = {p.name for p, _ in objects if p} | {p.size for p in call.params}
    used |= {a for p in call.params for a in p.words.get("COMPUTE", "").split(", ")}
    for p in call.params:
        if not p.words and p.name not in used:
            fail(call, f"'{p.name}' of {call.name} has neither FIELD, COMPUTE, FIXED nor STORE", p.line)


def check_hooks(call):
    if "BULK_OUT" in call.options and call.completion != "WAIT":
        fail(call, f"{call.name} has BULK_OUT, but nobody waits for it")
    if call.kind == "MESSAGE" and "SERVER_HOOK" not in call.options:
        fail(call, f"{call.name} is a message, which needs a SERVER_HOOK: the driver has no such function")
    if (call.result == "CUresult") != (call.kind != "MESSAGE"):
        fail(call, f"{call.name} must return {'void' if call.kind == 'MESSAGE' else 'CUresult'}")


def check_references(api):
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
