# SPDX-License-Identifier: Apache-2.0
"""Emits the functions for GP_PRECHECK: each makes the checks of an exported name, then calls the client's function."""
from model import format_prototype

REFUSALS = {"VALUE": "CUDA_ERROR_INVALID_VALUE", "HANDLE": "CUDA_ERROR_INVALID_HANDLE", "CONTEXT": "CUDA_ERROR_INVALID_CONTEXT"}
ENTRIES = {"INITIALIZED": "gpc_enter_local()", "CURRENT": "gpc_context_require()"}


def emit_null_condition(call, name):
    """Returns the condition that the parameter is NULL or 0."""
    param = next(p for p in call.params if p.name == name)
    return f"!{name} && !gpc_per_thread_default" if param.ctype == "CUstream" and not param.depth else f"!{name}"


def emit_refusal(condition, answer):
    return f"\tif ({condition})\n\t\treturn {answer};\n"


def emit_stream_context_call(call, target, stream):
    """Returns the check CURRENT(stream), which is the last one, and the call."""
    given = f"{target}({', '.join(p.name for p in call.params)})"
    return (f"\tif (__builtin_expect(!gpc_current_context, 0)) {{\n\t\tresult = gpc_stream_push_context({stream});\n"
            f"\t\tif (result != CUDA_SUCCESS)\n\t\t\treturn result;\n\t\tresult = {given};\n"
            f"\t\t(void)gpc_context_pop();\n\t\treturn result;\n\t}}\n\treturn {given};\n")


def emit_check(call, word, arguments):
    if word in REFUSALS:
        conditions = [emit_null_condition(call, name) for name in arguments]
        return emit_refusal(" || ".join(f"({c})" if "&&" in c and len(conditions) > 1 else c for c in conditions), REFUSALS[word])
    if word == "DEVICE":
        return emit_refusal(f"!gpc_device_get({arguments[0]})", "CUDA_ERROR_INVALID_VALUE")
    if word == "WITHIN":
        name, least, most = arguments
        return emit_refusal(f"(int){name} < {least} || (int){name} > {most}", "CUDA_ERROR_INVALID_VALUE")
    entered = f"gpc_context_require_v1({arguments[0]})" if word == "LEGACY" else ENTRIES[word]
    return f"\tresult = {entered};\n" + emit_refusal("result != CUDA_SUCCESS", "result")


def emit_precheck(precheck, call, target):
    """Returns the function precheck_X, which makes the checks and calls target."""
    *before, last = precheck.checks
    lends = last[0] == "CURRENT" and last[1]
    body = "".join(emit_check(call, *check) for check in (before if lends else precheck.checks))
    body += emit_stream_context_call(call, target, *last[1]) if lends else f"\treturn {target}({', '.join(p.name for p in call.params)});\n"
    local = "\tCUresult result;\n\n" if "result = " in body else ""
    text = format_prototype(call, "precheck_").replace(f"precheck_{call.name}(", f"precheck_{precheck.name}(")
    return f"\n/* {precheck.file}:{precheck.line} */\nstatic {text}\n{{\n{local}{body}}}\n"
