# SPDX-License-Identifier: Apache-2.0
"""Emits gpc_local.c: GP_LOCAL functions that look up client objects, check the arguments and read or write members."""
from model import emit_banner, format_prototype, get_entered_objects
from types_table import client_objects_by_name

SOURCE = "codegen/api"


def emit_enter(p, client_object, name):
    if client_object.kind:
        return f"gpc_enter_kind(GPC_KIND_{client_object.kind.upper()}, {p.name}, &{name})"
    arguments = ([p.name] if p else []) + ([f"&{name}"] if client_object.struct else [])
    return f"{client_object.enter}({', '.join(arguments)})"


def emit_lookups(call):
    """Returns the statements that look up the client objects and set result."""
    out, first = [], True
    for (p, client_object), name in zip(get_entered_objects(call), ("found", "other")):
        out.append(f"\tCUresult result = {emit_enter(p, client_object, name)};\n\n" if first else
                   f"\tif (result == CUDA_SUCCESS)\n\t\tresult = {emit_enter(p, client_object, name)};\n")
        first = False
    return "".join(out)


def emit_refusals(call):
    """Returns the condition for CUDA_ERROR_INVALID_VALUE, or an empty string."""
    out = []
    for p in call.params:
        if p.depth and "OPT" not in p.quals and (p.source or p.direction in ("IN", "IN_STRING")):
            out.append(f"!{p.name}")
        if p.direction == "OUT_BYTES" and p.source and not p.size.isdigit():
            out.append(f"{p.size} <= 0")
        if "WITHIN" in p.words:
            least, most = p.words["WITHIN"].split(", ")
            out += [f"(int){p.name} < {least}", f"(int){p.name} > {most}"]
    if "REQUIRE" in call.options:
        path, *values = call.options["REQUIRE"].split(", ")
        other = " && ".join(f"found->{path} != {value}" for value in values)
        out.append(f"({other})" if len(values) > 1 else other)
    return " || ".join(out)


def emit_value(call, p):
    word, argument = p.source
    if word == "FIXED":
        return argument
    if word == "FIELD":
        return f"found->{argument}"
    function, *arguments = argument.split(", ")
    found = ["found"] if get_entered_objects(call)[0][1].struct else []
    return f"{function}({', '.join(found + arguments)})"


def emit_write(call, p):
    if p.direction == "OUT_BYTES":
        text = f"(void)snprintf({p.name}, (size_t){p.size}, \"%s\", {emit_value(call, p)});\n"
    else:
        text = f"*{p.name} = {emit_value(call, p)};\n"
    return f"\t\tif ({p.name})\n\t\t\t{text}" if "OPT" in p.quals else f"\t\t{text}"


def emit_local_function(call):
    first = get_entered_objects(call)[0][1]
    objects = [f"\tstruct {client_object.struct} *{name};\n" for (_, client_object), name in zip(get_entered_objects(call), ("found", "other")) if client_object.struct]
    out = [f"\n/* {call.where} */\n{format_prototype(call, 'gpc_')}\n{{\n", *objects, emit_lookups(call)]
    refused = emit_refusals(call)
    if refused:
        refused = f"({refused})" if " || " in refused else refused
        out.append(f"\tif (result == CUDA_SUCCESS && {refused})\n\t\tresult = CUDA_ERROR_INVALID_VALUE;\n")
    done = [emit_write(call, p) for p in call.params if p.source]
    done += [f"\t\tfound->{p.words['STORE']} = {p.name};\n" for p in call.params if "STORE" in p.words]
    if done:
        out.append("\tif (result == CUDA_SUCCESS) {\n" + "".join(done) + "\t}\n")
    result = "result"
    if call.options.get("RETURNS", "CUDA_SUCCESS") != "CUDA_SUCCESS":
        result = f"result == CUDA_SUCCESS ? {call.options['RETURNS']} : result"
    return "".join(out) + (f"\treturn {first.end}({result});\n}}\n" if first.end else f"\treturn {result};\n}}\n")


def emit_forward(call, called):
    name, *arguments = call.names("FORWARD")
    local = ""
    for p in (p for p in call.params if "CONVERT" in p.words):
        at = arguments.index(p.name)
        function, *more = p.words["CONVERT"].split(", ")
        arguments[at] = f"{function}({', '.join(['&converted', p.name] + more)})"
        local = f"\t{called.params[at].ctype} converted;\n\n"
    return f"\n/* {call.where} */\n{format_prototype(call, 'gpc_')}\n{{\n{local}\treturn gpc_{name}({', '.join(arguments)});\n}}\n"


def local_c(api):
    calls = [c for c in api.cuda_calls if c.is_local_answer]
    by_name = {c.name: c for c in api.cuda_calls}
    used = {client_object.name for c in calls for _, client_object in get_entered_objects(c)}
    headers = sorted({header for name in used for header in client_objects_by_name[name].options["HEADER"].split(", ")}
                     | ({'"client/context/object.h"'} if any(client_objects_by_name[name].kind for name in used) else set()))
    return (emit_banner(SOURCE) + "#include \"gpc_calls.h\"\n\n" + "".join(f"#include {header}\n" for header in headers)
            + "\n#include <stdbool.h>\n#include <stdio.h>\n" + "".join(emit_local_function(c) for c in calls)
            + "".join(emit_forward(c, by_name[c.names("FORWARD")[0]]) for c in api.cuda_calls if c.is_forward))
