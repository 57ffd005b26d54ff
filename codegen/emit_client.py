# SPDX-License-Identifier: Apache-2.0
"""Emits the client's end: exported entries, the table of cuGetProcAddress(), stubs, and the functions that send calls."""
from cells import emit_cell_encode, emit_client_id, emit_options_encode, emit_reply_cell_decode, format_options_encode
from emit_precheck import emit_precheck
from model import emit_banner, emit_sets, format_declaration, format_prototype, get_args, get_implied_params, get_reply, get_stream_params
from types_table import get_kind, get_types_by_word, get_wire_type, is_handle, is_kernel

SOURCE = "codegen/api"


def get_senders(call):
    """Returns (name, prototype) of gpc_post_X, or of gpc_start_X and gpc_wait_X."""
    name = call.name
    bulk = ", const struct iovec *bulk, int bulk_count" if "BULK_IN" in call.options else ""
    common = f"struct gpc_context *context, const struct gp_args_{name} *args"
    if call.completion == "POST":
        return [("post", f"CUresult\ngpc_post_{name}({common}{bulk})")]
    reply = get_reply(call)
    wait = common + (f", struct gp_reply_{name} *reply" if reply else "") + bulk
    if any(f.kind == "bytes" for f in reply):
        wait += ", void **raw_p"
    return [("start", f"CUresult\ngpc_start_{name}({common}, struct gpc_request *request{bulk})"),
            ("wait", f"CUresult\ngpc_wait_{name}({wait})")]


def calls_h(api):
    out = [emit_banner(SOURCE), "#ifndef GPC_CALLS_H\n#define GPC_CALLS_H\n\n#include <cuda.h>\n\n"
           "#include \"client/session/call.h\"\n#include \"client/context/context.h\"\n#include \"gp_calls.h\"\n\n"
           "/* The CUDA functions of this library. Functions of GP_LOCAL and CLIENT_HOOK are written by hand. */\n"]
    out += [format_declaration(c, "gpc_") + "\n" for c in api.cuda_calls]
    nodes = [c for c in api.cuda_calls if c.options.get("CAPTURE") == "node"]
    if nodes:
        out.append("\n/* The same functions while a stream is captured (client/graph/capture.h). */\n")
    out += [format_declaration(c, "gpc_capture_") + "\n" for c in nodes]
    out.append("\n/* Functions that send a call (client/session/call.h). */\n")
    for call in api.wire_calls:
        out += [text.replace("\n", " ") + ";\n" for _, text in get_senders(call)]
    chains = get_types_by_word("OPTIONS")
    if chains:
        out.append("\n/* Encodes options into memory of the scratch.  Errors: CUDA_ERROR_NOT_SUPPORTED for an option that is not in GP_OPTIONS. */\n"
                   "struct gp_scratch;\n")
    out += [format_options_encode(c).replace("\n", " ") + ";\n" for c in chains]
    out.append(f"\n{emit_sets(api, 'gpc_')}#endif /* GPC_CALLS_H */\n")
    return "".join(out)


def get_work_stream(call):
    """Returns the stream on which a record starts work, for later waits; "0" if there is none."""
    if call.kind == "CALL" and "BEFORE_ALL" in call.options:
        return "GPC_ALL_STREAMS"
    if "AWAITS_STREAM" in call.options:
        return "0"
    return next((f"args->{p.name}" for p in call.params if p.name in get_stream_params(call) and "DROP" not in p.quals), "0")


def emit_call_begin(call):
    return (f"\tstruct gpc_call call;\n\tCUresult result;\n\n"
            f"\tresult = gpc_call_begin(&call, gpc_context_get_scope(context), GP_CALL_{call.name}, gp_args_{call.name}_size(args), {get_work_stream(call)});\n"
            f"\tif (result != CUDA_SUCCESS)\n\t\treturn result;\n\tgp_args_{call.name}_encode(&call.enc, args);\n")


def emit_wait_body(call):
    bulk = ", bulk, bulk_count" if "BULK_IN" in call.options else ""
    reply = get_reply(call)
    keep = any(f.kind == "bytes" for f in reply)
    out = ["\tstruct gpc_request request = { 0 };\n\tCUresult result;\n\n"
           + ("\t*raw_p = NULL;\n" if keep else "")
           + f"\tresult = gpc_start_{call.name}(context, args, &request{bulk});\n"
           "\tif (result != CUDA_SUCCESS)\n\t\treturn result;\n\tresult = " + ("gpc_request_wait_own" if must_wait_itself(call) else "gpc_request_wait") + "(&request);\n"]
    if reply:
        out.append(f"\tresult = gpc_reply_decode(&request, result, gp_call_find(GP_CALL_{call.name}), reply);\n")
    out.append("\t*raw_p = request.reply;\n" if keep else "\tfree(request.reply);\n")
    return "".join(out) + "\treturn result;\n"


def must_wait_itself(call):
    """True if the caller needs the result itself: OWN_RESULT, or the call creates or destroys an object.

    Without the result, the handle of the object could be assigned a second time.
    """
    if call.kind == "MESSAGE":
        return "OWN_RESULT" in call.options or any("NEW" in p.quals for p in call.params)
    return call.kind == "CALL" and "CLIENT_HOOK" not in call.options and any({"NEW", "DROP"} & p.quals for p in call.params)


def calls_c(api):
    out = [emit_banner(SOURCE), "#include \"gpc_calls.h\"\n\n#include <stdlib.h>\n#include <string.h>\n\n#include \"client/base/error.h\"\n#include \"client/session/session.h\"\n"
           + ("#include \"protocol/scratch.h\"\n" if get_types_by_word("OPTIONS") else ""),
           """
/* A malformed reply fails the session, as the two ends no longer agree on the byte stream. */
static CUresult
gpc_reply_decode(struct gpc_request *request, CUresult result, const struct gp_call_info *info, void *reply)
{
	struct gp_dec dec;

	memset(reply, 0, info->reply_size);
	if (request->reply_size == 0 && result != CUDA_SUCCESS)
		return result;
	gp_dec_init(&dec, request->reply, request->reply_size);
	info->decode_reply(&dec, reply);
	if (gp_dec_done(&dec))
		return result;
	memset(reply, 0, info->reply_size);
	gpc_session_fail(request->session, GPC_ERROR_LOST, "malformed reply");
	return GPC_ERROR_LOST;
}
"""]
    for call in api.wire_calls:
        bulk = "bulk, bulk_count" if "BULK_IN" in call.options else "NULL, 0"
        for kind, text in get_senders(call):
            body = {"post": emit_call_begin(call) + f"\treturn gpc_call_post(&call, {bulk});\n",
                    "start": emit_call_begin(call) + f"\treturn gpc_call_start(&call, request, {bulk});\n"}.get(kind) or emit_wait_body(call)
            out.append(f"\n/* {call.where} */\n{text}\n{{\n{body}}}\n")
    out += [emit_options_encode(c) for c in get_types_by_word("OPTIONS")]
    return "".join(out)


CHECK = "\tif (result != CUDA_SUCCESS)\n\t\treturn result;\n"
MALFORMED = "\t\treturn gpc_reply_fail_malformed(context);\n"


def get_params(call, *directions):
    return [p for p in call.params if p.direction in directions]


def get_new_param(call):
    return next((p for p in call.params if "NEW" in p.quals), None)


def get_drop_param(call):
    return next((p for p in call.params if "DROP" in p.quals), None)


def has_raw_reply(call):
    return any(f.kind == "bytes" for f in get_reply(call))


def needs_scratch(call):
    return bool(get_params(call, "IN", "IN_N", "IN_OPTIONS")) or has_raw_reply(call)


def emit_enter(call):
    """Returns the statements that set context: the current one, or the device's if the call has a device and no object."""
    device = next((p for p in call.params if not p.depth and p.ctype == "CUdevice"), None)
    if device and not any(is_handle(p.ctype) or is_kernel(p.ctype) for p in call.params):
        return f"\tresult = gpc_enter_device({device.name}, &context);\n" + CHECK
    return "\tresult = gpc_enter(&context);\n" + CHECK


def emit_null_checks(call):
    required = [p.name for p in call.params if p.depth and "OPT" not in p.quals and p.name not in get_implied_params(call)
                and p.direction not in ("IN_N", "IN_BYTES", "IN_OPTIONS")]
    required = [f"!{name}" for name in required]
    for p in get_params(call, "IN_N", "IN_BYTES", "IN_OPTIONS"):
        if "OPT" not in p.quals:
            count = p.size.split(", ")[0]
            required.append(f"!{p.name}" if count.isdigit() else f"({count} && !{p.name})")
    return f"\tif ({' || '.join(required)})\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n" if required else ""


def emit_list_encode(p):
    """Returns the statements that encode a list, or one element, into cells."""
    count = "1" if p.direction == "IN" else p.size
    return (f"\tif ({p.name}) {{\n\t\tuint64_t *cells = gp_scratch_alloc_cells(scratch, {count}, 1);\n\n"
            "\t\tif (!cells)\n\t\t\treturn CUDA_ERROR_INVALID_VALUE;\n"
            f"\t\tfor (size_t i = 0; result == CUDA_SUCCESS && i < (size_t){count}; i++) {{\n"
            + emit_cell_encode(p.ctype, f"{p.name}[i]", "cells[i]", 3)
            + f"\t\t}}\n\t\tif (result != CUDA_SUCCESS)\n\t\t\treturn result;\n"
            f"\t\targs.{p.name} = (struct gp_bytes){{ cells, (size_t){count} * 8 }};\n\t}}\n")


def emit_stub_argument(p):
    """Returns the statements that encode one parameter into args."""
    if p.direction in ("IN", "IN_N"):
        return emit_list_encode(p)
    if p.direction == "IN_OPTIONS":
        count, values = p.size.split(", ")
        return f"\tresult = gpc_options_encode_{p.ctype}({count}, {p.name}, {values}, scratch, &args.{p.name});\n" + CHECK
    if p.direction == "IN_STRING":
        return f"\tif ({p.name})\n\t\targs.{p.name} = (struct gp_bytes){{ {p.name}, strlen({p.name}) }};\n"
    if p.direction == "IN_BYTES":
        return f"\targs.{p.name} = (struct gp_bytes){{ {p.name}, {p.name} ? {p.size} : 0 }};\n"
    if p.direction == "INOUT":
        return f"\targs.{p.name} = {'(int32_t)' if 'CU' in p.ctype else ''}*{p.name};\n"
    named = emit_client_id(p.ctype, p.name, f"&args.{p.name}")
    if named:
        return f"\t{named}\n" + CHECK
    return f"\targs.{p.name} = {'(int32_t)' if 'CU' in p.ctype and get_wire_type(p.ctype)[1] == 'i32' else ''}{p.name};\n"


def emit_stub_result(f):
    """Returns the statements that decode one field of the reply."""
    p = f.param
    if p.direction == "OUT_N":
        return (f"\tif (reply.{p.name}.size != (size_t){p.size} * 8)\n" + MALFORMED
                + f"\tfor (size_t i = 0; {p.name} && i < (size_t){p.size}; i++) {{\n"
                f"\t\tconst uint64_t *cells = (const uint64_t *)reply.{p.name}.data;\n\n" + emit_reply_cell_decode(p.ctype, "cells[i]", f"{p.name}[i]", 2) + "\t}\n")
    if p.direction == "OUT_BYTES":
        return (f"\tif (reply.{p.name}.size != (size_t){p.size})\n" + MALFORMED
                + f"\tif ({p.name} && reply.{p.name}.size)\n\t\tmemcpy({p.name}, reply.{p.name}.data, reply.{p.name}.size);\n")
    value = f"reply.{p.name}"
    if p.ctype == "CUdevice":
        return f"\tif ({p.name})\n\t\t*{p.name} = gpc_device_from_wire(context, {value});\n"
    guard = f"\tif ({p.name})\n\t" if "OPT" in p.quals else ""
    return f"{guard}\t*{p.name} = ({p.ctype}){value};\n"


def emit_stub_body(call):
    reply, new, drop = get_reply(call), get_new_param(call), get_drop_param(call)
    raw = ", &raw" if has_raw_reply(call) else ""
    out = [f"\tstruct gp_args_{call.name} args = {{ 0 }};\n"]
    if reply:
        out.append(f"\tstruct gp_reply_{call.name} reply;\n")
    if new:
        out.append("\tstruct gpc_object *object;\n")
    if raw:
        out.append("\tvoid *raw;\n")
    out.append("\tstruct gpc_context *context;\n\tCUresult result;\n\n")
    out += [emit_enter(call), emit_null_checks(call)]
    out += [emit_stub_argument(f.param) for f in get_args(call) if "NEW" not in f.param.quals]
    if new:
        kind = get_kind(new.ctype).constant
        out.append(f"\tresult = gpc_object_create(GPC_KIND_{kind}, context, &object);\n" + CHECK
                   + f"\targs.{new.name} = object->handle.id;\n")
    sent = "post" if call.completion == "POST" else "wait"
    send = f"gpc_{sent}_{call.name}(context, &args{', &reply' if reply else ''}{raw});\n"
    if not (reply or new or drop):
        return "".join(out) + f"\treturn {send}"
    out.append(f"\tresult = {send}")
    if raw:
        out.append("\tif (!gp_scratch_adopt(scratch, raw) && result == CUDA_SUCCESS)\n"
                   "\t\tresult = CUDA_ERROR_OUT_OF_MEMORY;\n")
    if drop:
        out.append(f"\t{'' if sent == 'post' else 'if (result == CUDA_SUCCESS)' + chr(10) + chr(9) * 2}"
                   f"gpc_object_destroy_by_token(GPC_KIND_{get_kind(drop.ctype).constant}, {drop.name});\n")
    if new:
        out.append("\tif (result != CUDA_SUCCESS)\n\t\tgpc_object_destroy(object);\n\telse\n"
                   f"\t\t*{new.name} = object->handle.token;\n")
    if reply:
        out.append(CHECK + "".join(emit_stub_result(f) for f in reply) + "\treturn CUDA_SUCCESS;\n")
    else:
        out.append("\treturn result;\n")
    return "".join(out)


def emit_stub(call):
    if not needs_scratch(call):
        return f"\n/* {call.where} */\n{format_prototype(call, 'gpc_')}\n{{\n{emit_stub_body(call)}}}\n"
    inner = format_prototype(call, "stub_")[:-1] + ", struct gp_scratch *scratch)"
    names = ", ".join(p.name for p in call.params)
    return (f"\n/* {call.where} */\nstatic {inner}\n{{\n{emit_stub_body(call)}}}\n"
            f"\n{format_prototype(call, 'gpc_')}\n{{\n\tstruct gp_scratch scratch = {{ 0 }};\n"
            f"\tCUresult result = stub_{call.name}({names}, &scratch);\n\n\tgp_scratch_free(&scratch);\n\treturn result;\n}}\n")


def get_stubbed_calls(api):
    return [c for c in api.wire_calls if c.kind == "CALL" and "CLIENT_HOOK" not in c.options]


def map_implementations(api):
    """Returns {exported name: described call}."""
    out = {}
    for call in api.cuda_calls:
        for name in [call.name] + call.names("ALIAS"):
            out[name] = call
    return out


def get_variant_call(symbol, impl):
    """Returns the described call of a _ptds or _ptsz symbol, or None."""
    return impl.get(symbol.name.removesuffix("_" + symbol.variant)) if symbol.variant else None


CAPTURES = {"node": "gpc_capture_{name}({names})", "refused": "gpc_capture_refuse({stream})",
            "declined": "gpc_capture_decline({stream})", "unsafe": "gpc_capture_unsafe()",
            "default_stream": "gpc_capture_default_stream()"}


def is_hooked(call):
    """True if the call needs gpc_hooked_X: it acts on captures, or synchronizes implicitly."""
    return call.options.get("CAPTURE") in CAPTURES or "SYNCHRONIZES" in call.options


def get_target(call):
    return f"gpc_hooked_{call.name}" if is_hooked(call) else f"gpc_{call.name}"


def emit_capture_check(call, names):
    """Returns the statements that handle the call while a stream is captured."""
    stream = next(iter(get_stream_params(call)), "")
    how = CAPTURES.get(call.options.get("CAPTURE"))
    if not how:
        return ""
    other = how.format(name=call.name, names=names, stream=stream)
    return (f"\tif (__builtin_expect(__atomic_load_n(&gpc_captures, __ATOMIC_ACQUIRE) != 0, 0)) {{\n\t\tCUresult result = {other};\n\n"
            f"\t\tif (result != GPC_NOT_CAPTURED)\n\t\t\treturn result;\n\t}}\n")


def emit_sync(call):
    """Returns the statement that waits for the work that the call synchronizes with."""
    whose = call.options.get("SYNCHRONIZES")
    if not whose:
        return ""
    return "\tgpc_sync_implicitly_current();\n" if whose == "CURRENT" else f"\tgpc_sync_implicitly_owner((uint64_t)(uintptr_t){whose});\n"


def emit_hooked(call):
    names = ", ".join(p.name for p in call.params)
    return (f"\n/* {call.where} */\nstatic {format_prototype(call, 'gpc_hooked_')}\n{{\n"
            f"{emit_capture_check(call, names)}{emit_sync(call)}\treturn gpc_{call.name}({names});\n}}\n")


def emit_wrapper(prefix, symbol, call, before, after):
    """Returns the function <prefix>X of an exported symbol, in which the text before ends with the function that is called."""
    names = ", ".join(p.name for p in call.params)
    text = format_prototype(call, prefix).replace(f"{prefix}{call.name}(", f"{prefix}{symbol.name}(")
    return f"\n/* {call.where} */\nstatic {text}\n{{\n{before}({names});\n{after}\treturn result;\n}}\n"


def emit_variant(symbol, call, target):
    return emit_wrapper("gpc_per_thread_", symbol, call,
                        "\tbool before = gpc_per_thread_default;\n\tCUresult result;\n\n"
                        f"\tgpc_per_thread_default = true;\n\tresult = {target}", "\tgpc_per_thread_default = before;\n")


def emit_guarded(symbol, call, target):
    """Returns gpc_guarded_X, the function with the call guard: it fails in a signal handler that interrupted another call."""
    enter = "gpc_guard_enter_quick" if "QUICK" in call.options else "gpc_guard_enter"
    return emit_wrapper("gpc_guarded_", symbol, call,
                        f"\tCUresult result;\n\n\tif (!{enter}())\n\t\treturn CUDA_ERROR_NOT_PERMITTED;\n\tresult = {target}",
                        "\tgpc_guard_leave();\n")


def emit_traced(symbol, call, target):
    """Returns gpc_traced_X, the function that also writes a line to the timeline."""
    return emit_wrapper("gpc_traced_", symbol, call, f"\tuint64_t begun = gp_now_ns();\n\tCUresult result = {target}",
                        f"\n\tgpc_trace_call(\"{symbol.name}\", begun, result);\n")


def object_kinds(api):
    """Returns gpc_kinds.c: the kinds whose objects are destroyed with their context."""
    rows = [f"\t[GPC_KIND_{k.constant}] = true,\n" for k in api.kinds if k.options.get("LIFETIME") == "context"]
    return (emit_banner(SOURCE) + "#include \"client/context/object.h\"\n\nconst bool gpc_kind_has_context_lifetime[GPC_KIND_COUNT] = {\n"
            + ("".join(rows) or "\tfalse,\n") + "};\n")


def emit_entry_row(symbol, target, unsupported):
    instead = f'"{unsupported.instead}"' if unsupported and unsupported.instead else "NULL"
    is_reported = "false" if unsupported and not unsupported.instead else "true"
    if target:
        return f"\t{{ \"{symbol.name}\", (void *){target}, (void *)gpc_traced_{symbol.name}, true, false, NULL }},\n"
    function = f"(void *)unsupported_{symbol.name}"
    return f"\t{{ \"{symbol.name}\", {function}, {function}, false, {is_reported}, {instead} }},\n"


def stubs_c(api):
    out = [emit_banner(SOURCE), "#include \"gpc_calls.h\"\n\n#include \"base/clock.h\"\n#include \"client/guard/guard.h\"\n#include \"client/base/trace.h\"\n#include \"client/entry/entry.h\"\n#include \"client/stream/event.h\"\n"
           "#include \"client/module/function.h\"\n#include \"client/graph/capture.h\"\n#include \"client/stream/stream.h\"\n#include \"client/stream/sync.h\"\n#include \"client/context/object.h\"\n"
           "#include \"protocol/scratch.h\"\n\n#include <string.h>\n"]
    out += [emit_stub(c) for c in get_stubbed_calls(api)]
    out += [emit_hooked(c) for c in api.cuda_calls if is_hooked(c)]
    impl, rows, unsupported = map_implementations(api), [], {u.name: u for u in api.unsupported_symbols}
    prechecked = {p.name for p in api.prechecks}
    out += [emit_precheck(p, impl[p.name], get_target(impl[p.name])) for p in api.prechecks]
    for number, s in enumerate(api.symbols):
        call = impl.get(s.name)
        other = get_variant_call(s, impl)
        base = s.name.removesuffix("_" + s.variant) if other else s.name
        target = f"precheck_{base}" if base in prechecked else get_target(call or other) if call or other else None
        if other and not call:
            out.append(emit_variant(s, other, target))
            target = f"gpc_per_thread_{s.name}"
        elif not target:
            out.append(f"\nstatic CUresult\nunsupported_{s.name}(void)\n{{\n\treturn gpc_unsupported({number});\n}}\n")
        if target and "SIGNAL_SAFE" not in (call or other).options:
            out.append(emit_guarded(s, call or other, target))
            target = f"gpc_guarded_{s.name}"
        if target:
            out.append(emit_traced(s, call or other, target))
        rows.append(emit_entry_row(s, target, unsupported.get(s.name)))
    out.append("\nconst struct gpc_entry_info gpc_entries[] = {\n" + "".join(rows) + "};\n\n"
               "const size_t gpc_entry_count = sizeof(gpc_entries) / sizeof(gpc_entries[0]);\n")
    return "".join(out)


def emit_thunks(names, prefix):
    """Returns assembler code: each exported symbol jumps to the address in its element of <prefix>_entry[]."""
    entry, thunk = f"{prefix}_entry", f"{prefix.upper()}_THUNK"
    out = [f"extern void *{entry}[];\n\nvoid *{entry}[{len(names)}];\n\n"
           "#if defined(__x86_64__)\n"
           f"#define {thunk}(name, offset)                                                    \\\n"
           "\t__asm__(\".text\\n.globl \" #name \"\\n.type \" #name \",@function\\n.balign 16\\n\" #name \\\n"
           f"\t\t\":\\n\\tendbr64\\n\\tjmp *{entry}+\" #offset \"(%rip)\\n\"                      \\\n"
           "\t\t\".size \" #name \",.-\" #name \"\\n\")\n"
           "#elif defined(__aarch64__)\n"
           f"#define {thunk}(name, offset) \\\n"
           "\t__asm__(\".text\\n.globl \" #name \"\\n.type \" #name \",@function\\n.balign 16\\n\" #name \\\n"
           f"\t\t\":\\n\\thint 34\\n\\tadrp x16, {entry}+\" #offset \"\\n\\tldr x16, [x16, :lo12:{entry}+\" #offset \\\n"
           "\t\t\"]\\n\\tbr x16\\n.size \" #name \",.-\" #name \"\\n\")\n"
           "#else\n#error \"the exported entries are written for x86-64 and aarch64\"\n#endif\n\n"]
    return "".join(out + [f"{thunk}({name}, {i * 8});\n" for i, name in enumerate(names)])


def entry_c(api):
    """Returns gpc_entry.c: each exported symbol jumps through gpc_entry[], which pass-through rewrites."""
    out = [emit_banner(SOURCE + "/symbols.h"), emit_thunks([s.name for s in api.symbols], "gpc")]
    out += ["\n"] + [f"extern const char {s.name}[];\n" for s in api.symbols]
    out.append("\nconst void *const gpc_entry_address[] = {\n" + "".join(f"\t{s.name},\n" for s in api.symbols) + "};\n")
    return "".join(out)


def proc_c(api):
    """Returns gpc_proc.c: the sorted table of cuGetProcAddress()."""
    rows = sorted(((s.base, 1 if s.variant else 0, s.since, i) for i, s in enumerate(api.symbols)),
                  key=lambda row: (row[0].encode(), row[1], row[2]))
    return (emit_banner(SOURCE + "/symbols.h") + "#include \"client/entry/proc_address.h\"\n\nconst struct gpc_proc_entry gpc_proc_table[] = {\n"
            + "".join(f"\t{{ \"{b}\", {p}, {v}, {i} }},\n" for b, p, v, i in rows)
            + "};\n\nconst size_t gpc_proc_count = sizeof(gpc_proc_table) / sizeof(gpc_proc_table[0]);\n")


def libcuda_map(api):
    return "{\nglobal:\n" + "".join(f"\t{s.name};\n" for s in api.symbols) + "local:\n\t*;\n};\n"

