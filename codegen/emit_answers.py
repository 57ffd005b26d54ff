# SPDX-License-Identifier: Apache-2.0
"""Functions of the client that are answered out of what it holds: look up, check, write."""
from model import entered, generated, prototype
from types_table import held_named

SOURCE = "codegen/api"


def enter(p, held, name):
    if held.kind:
        return f"gpc_enter_kind(GPC_KIND_{held.kind.upper()}, {p.name}, &{name})"
    arguments = ([p.name] if p else []) + ([f"&{name}"] if held.struct else [])
    return f"{held.enter}({', '.join(arguments)})"


def entries(call):
    """Statements that look up what the call names, and leave result."""
    out, first = [], True
    for (p, held), name in zip(entered(call), ("found", "other")):
        out.append(f"\tCUresult result = {enter(p, held, name)};\n\n" if first else
                   f"\tif (result == CUDA_SUCCESS)\n\t\tresult = {enter(p, held, name)};\n")
        first = False
    return "".join(out)


def refusals(call):
    """When the answer is CUDA_ERROR_INVALID_VALUE."""
    out = []
    for p in call.params:
        if p.depth and "OPT" not in p.quals and (p.source or p.direction in ("IN", "IN_STRING")):
            out.append(f"!{p.name}")
        if p.direction == "OUT_BYTES" and p.source and not p.size.isdigit():
            out.append(f"{p.size} <= 0")
        if "WITHIN" in p.words:
            least, most = p.words["WITHIN"].split(", ")
            out += [f"(int){p.name} < {least}", f"(int){p.name} > {most}"]
    if "WHEN" in call.options:
        path, *values = call.options["WHEN"].split(", ")
        other = " && ".join(f"found->{path} != {value}" for value in values)
        out.append(f"({other})" if len(values) > 1 else other)
    return " || ".join(out)


def value(call, p):
    word, argument = p.source
    if word == "ALWAYS":
        return argument
    if word == "FROM":
        return f"found->{argument}"
    function, *arguments = argument.split(", ")
    found = ["found"] if entered(call)[0][1].struct else []
    return f"{function}({', '.join(found + arguments)})"


def write(call, p):
    if p.direction == "OUT_BYTES":
        text = f"(void)snprintf({p.name}, (size_t){p.size}, \"%s\", {value(call, p)});\n"
    else:
        text = f"*{p.name} = {value(call, p)};\n"
    return f"\t\tif ({p.name})\n\t\t\t{text}" if "OPT" in p.quals else f"\t\t{text}"


def answer(call):
    first = entered(call)[0][1]
    objects = [f"\tstruct {held.struct} *{name};\n" for (_, held), name in zip(entered(call), ("found", "other")) if held.struct]
    out = [f"\n/* {call.where} */\n{prototype(call, 'gpc_')}\n{{\n", *objects, entries(call)]
    refused = refusals(call)
    if refused:
        refused = f"({refused})" if " || " in refused else refused
        out.append(f"\tif (result == CUDA_SUCCESS && {refused})\n\t\tresult = CUDA_ERROR_INVALID_VALUE;\n")
    done = [write(call, p) for p in call.params if p.source]
    done += [f"\t\tfound->{p.words['TO']} = {p.name};\n" for p in call.params if "TO" in p.words]
    if done:
        out.append("\tif (result == CUDA_SUCCESS) {\n" + "".join(done) + "\t}\n")
    result = "result"
    if call.options.get("ANSWERS", "CUDA_SUCCESS") != "CUDA_SUCCESS":
        result = f"result == CUDA_SUCCESS ? {call.options['ANSWERS']} : result"
    return "".join(out) + (f"\treturn {first.end}({result});\n}}\n" if first.end else f"\treturn {result};\n}}\n")


def same(call):
    name, *arguments = call.names("AS")
    return f"\n/* {call.where} */\n{prototype(call, 'gpc_')}\n{{\n\treturn gpc_{name}({', '.join(arguments)});\n}}\n"


def answers_c(api):
    calls = [c for c in api.cuda_calls if c.is_answer]
    used = {held.name for c in calls for _, held in entered(c)}
    headers = sorted({header for name in used for header in held_named[name].options["HEADER"].split(", ")}
                     | ({'"client/context/object.h"'} if any(held_named[name].kind for name in used) else set()))
    return (generated(SOURCE) + "#include \"gpc_calls.h\"\n\n" + "".join(f"#include {header}\n" for header in headers)
            + "\n#include <stdbool.h>\n#include <stdio.h>\n" + "".join(answer(c) for c in calls)
            + "".join(same(c) for c in api.cuda_calls if c.is_same))
