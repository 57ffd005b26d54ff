# SPDX-License-Identifier: Apache-2.0
"""What functions check before all else (GP_FIRST): in front of the client's function, for an exported name."""
from model import prototype

REFUSED = {"VALUE": "CUDA_ERROR_INVALID_VALUE", "HANDLE": "CUDA_ERROR_INVALID_HANDLE", "CONTEXT": "CUDA_ERROR_INVALID_CONTEXT"}
ENTERED = {"INITIALIZED": "gpc_enter_local()", "CURRENT": "gpc_context_require()"}


def missing(call, name):
    """Whether it is NULL, or 0."""
    param = next(p for p in call.params if p.name == name)
    return f"!{name} && !gpc_per_thread_default" if param.ctype == "CUstream" and not param.depth else f"!{name}"


def refusal(condition, answer):
    return f"\tif ({condition})\n\t\treturn {answer};\n"


def lent(call, target, stream):
    """The last check, and the call."""
    given = f"{target}({', '.join(p.name for p in call.params)})"
    return (f"\tif (__builtin_expect(!gpc_current_context, 0)) {{\n\t\tresult = gpc_stream_push_context({stream});\n"
            f"\t\tif (result != CUDA_SUCCESS)\n\t\t\treturn result;\n\t\tresult = {given};\n"
            f"\t\t(void)gpc_context_pop();\n\t\treturn result;\n\t}}\n\treturn {given};\n")


def one_check(call, word, arguments):
    if word in REFUSED:
        conditions = [missing(call, name) for name in arguments]
        return refusal(" || ".join(f"({c})" if "&&" in c and len(conditions) > 1 else c for c in conditions), REFUSED[word])
    if word == "DEVICE":
        return refusal(f"!gpc_device_get({arguments[0]})", "CUDA_ERROR_INVALID_VALUE")
    if word == "WITHIN":
        name, least, most = arguments
        return refusal(f"(int){name} < {least} || (int){name} > {most}", "CUDA_ERROR_INVALID_VALUE")
    entered = f"gpc_context_require_v1({arguments[0]})" if word == "OLD" else ENTERED[word]
    return f"\tresult = {entered};\n" + refusal("result != CUDA_SUCCESS", "result")


def checked(first, call, target):
    """The function that an exported name stands for, of the one behind it."""
    *before, last = first.checks
    lends = last[0] == "CURRENT" and last[1]
    body = "".join(one_check(call, *check) for check in (before if lends else first.checks))
    body += lent(call, target, *last[1]) if lends else f"\treturn {target}({', '.join(p.name for p in call.params)});\n"
    local = "\tCUresult result;\n\n" if "result = " in body else ""
    text = prototype(call, "first_").replace(f"first_{call.name}(", f"first_{first.name}(")
    return f"\n/* {first.file}:{first.line} */\nstatic {text}\n{{\n{local}{body}}}\n"
