# SPDX-License-Identifier: Apache-2.0
"""Emits the daemon's end: prototypes of the hooks, and the dispatcher."""
from cells import emit_arg_decode, emit_cell_decode, emit_options_decode, emit_reply_cell_encode, format_options_decode
from model import emit_banner, emit_predicate, get_args, get_implied_params, get_reply, get_stream_params, is_forwarded
from types_table import get_kind, get_types_by_word

SOURCE = "codegen/api"


def format_hook(call):
    reply = f", struct gp_reply_{call.name} *reply" if get_reply(call) else ""
    return f"CUresult gpd_{call.name}(struct gpd_session *session, const struct gp_args_{call.name} *args{reply});"


def get_ordered_fields(call):
    """Returns (field, kind) of each handle of an ORDERED kind in the record."""
    fields = [(f.name, get_kind(f.param.ctype)) for f in get_args(call) if f.kind == "u32"]
    return [(name, f"GPD_KIND_{kind.constant}") for name, kind in fields if kind and kind.ordered]


def manages_memory(call):
    """True if the call allocates, maps or frees memory, in contrast to work of a stream on memory."""
    types = {p.ctype for p in call.params}
    return ("ALLOCATES" in call.options or "FREES" in call.options
            or bool(types & {"gp_address", "gp_new_address", "gp_memory", "gp_array"}) and "CUstream" not in types)


def calls_h(api):
    return (emit_banner(SOURCE) + "#ifndef GPD_CALLS_H\n#define GPD_CALLS_H\n\n#include <cuda.h>\n#include <stdbool.h>\n\n"
            "#include \"gp_calls.h\"\n#include \"server/worker/session/handle.h\"\n\nstruct gpd_session;\n\n/* Hooks, which are written by hand; session.h defines how they are called. */\n"
            + "".join(format_hook(c) + "\n" for c in api.wire_calls if "SERVER_HOOK" in c.options)
            + "\n/* Executes one record. Errors: -EPROTO for a malformed record, after which the session must end. */\n"
            "int gpd_dispatch(struct gpd_session *session, const struct gp_header *header, const void *fields, size_t size);\n"
            "\n/* The effect of a call on its streams. */\n"
            "enum gpd_stream_use { GPD_STREAM_WORKS, GPD_STREAM_AWAITED, GPD_STREAM_MADE_OR_DROPPED };\n"
            "\n/* The handles of a record, and its order among the others. Returns false for an unknown call or a malformed record. */\n"
            f"#define GPD_CALL_HANDLES_MAX {max([len(get_ordered_fields(c)) for c in api.wire_calls] + [1])}\n\n"
            "struct gpd_call_handles {\n\tbool memory; /* allocates, maps or frees memory */\n"
            "\tbool after_all; /* waits until all earlier work is complete */\n\tbool before_all; /* all later records wait for it */\n"
            "\tbool is_unordered; /* waits for no deferred record */\n"
            "\tbool is_query; /* queries completion */\n\tbool no_dtoh_wait; /* need not wait for copies to the client in flight */\n"
            "\tuint32_t listed; /* number of a listed copy; 0: none */\n"
            "\tenum gpd_stream_use use;\n\tunsigned int count;\n\tstruct gpd_handle handles[GPD_CALL_HANDLES_MAX];\n};\n\n"
            "bool gpd_call_get_handles(uint16_t call, const void *fields, size_t size, struct gpd_call_handles *handles);\n"
            + emit_predicate(api, "gpd_call_is_async_launch", "True if its hook may issue the driver call from another thread", "ASYNC_LAUNCH")
            + ("\n/*\n * Decodes options.\n * Errors: CUDA_ERROR_INVALID_VALUE for a malformed field or more options than `capacity`; CUDA_ERROR_NOT_SUPPORTED for\n"
               " * an option that is not in GP_OPTIONS.\n */\n" if get_types_by_word("OPTIONS") else "")
            + "".join(format_options_decode(c).replace("\n", " ") + ";\n" for c in get_types_by_word("OPTIONS")) +
            "\n#endif /* GPD_CALLS_H */\n")


CHECK = "\tif (result != CUDA_SUCCESS)\n\t\treturn result;\n"
MALFORMED = "\t\treturn gpd_arg_decode_malformed(session);\n"


def emit_local(call, p):
    """Returns the declaration of a local variable for an argument of the driver; None if args has the value itself."""
    if p.name in get_implied_params(call) and p.direction != "BY_HOOK" and not any(q.direction == "IN_OPTIONS" and p.name in q.size for q in call.params):
        return None
    if p.direction == "IN_OPTIONS":
        count, values = p.size.split(", ")
        return f"\tunsigned int {count} = 0;\n\t{p.ctype} *{p.name} = NULL;\n\tvoid **{values} = NULL;\n"
    if any(q.direction == "IN_OPTIONS" and p.name in q.size.split(", ") for q in call.params):
        return None
    if p.direction in ("IN", "IN_N", "OUT_N"):
        return f"\t{p.ctype} *{p.name} = NULL;\n"
    if p.direction == "IN_STRING":
        return f"\tchar *{p.name} = NULL;\n"
    if p.direction == "OUT_BYTES":
        return f"\tvoid *{p.name};\n"
    if p.direction == "INOUT":
        return f"\t{p.ctype} {p.name} = ({p.ctype})args->{p.name};\n"
    if p.direction == "OUT" or p.direction is None and emit_arg_decode(p.ctype, "", ""):
        return f"\t{p.ctype} {p.name} = 0;\n"
    return None


def get_count(p):
    return p.size if p.size.isdigit() else f"args->{p.size}"


def emit_alloc(name, count, size):
    """Returns the statements that allocate count elements of this size in the scratch."""
    return f"\t{name} = gp_scratch_alloc(scratch, {count}, {size});\n\tif (!{name})\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n"


def emit_list_alloc(p, count):
    return emit_alloc(p.name, count, f"sizeof(*{p.name})")


def emit_arg(call, p):
    """Returns the statements that check and decode one argument for the driver."""
    works = bool({"LAUNCHES", "COPIES"} & set(call.options))
    if p.direction is None and emit_arg_decode(p.ctype, "", ""):
        return f"\tresult = {emit_arg_decode(p.ctype, f'args->{p.name}', f'&{p.name}', works)};\n" + CHECK
    if p.direction in ("IN", "IN_N"):
        count = "1" if p.direction == "IN" else get_count(p)
        body = (f"\tif (args->{p.name}.size != (uint64_t){count} * 8)\n" + MALFORMED if p.direction == "IN_N" else "") + emit_list_alloc(p, count)
        body += (f"\tfor (size_t i = 0; result == CUDA_SUCCESS && i < (size_t){count}; i++) {{\n"
                 f"\t\tconst uint64_t *cells = args->{p.name}.data;\n\n" + emit_cell_decode(p.ctype, "cells[i]", f"{p.name}[i]", 2) + "\t}\n" + CHECK)
        if "OPT" not in p.quals:
            return body
        return f"\tif (args->{p.name}.size) {{\n" + "".join("\t" + line + "\n" for line in body.splitlines()) + "\t}\n"
    if p.direction == "IN_OPTIONS":
        count, values = p.size.split(", ")
        return (f"\tif (args->{p.name}.size % 16)\n" + MALFORMED
                + emit_list_alloc(p, f"args->{p.name}.size / 16") + emit_alloc(values, f"args->{p.name}.size / 16", "sizeof(void *)")
                + f"\tresult = gpd_options_decode_{p.ctype}(args->{p.name}, {p.name}, {values}, (unsigned int)(args->{p.name}.size / 16), &{count});\n" + CHECK)
    if p.direction == "IN_STRING":
        return (emit_alloc(p.name, f"args->{p.name}.size + 1", "1")
                + f"\tif (args->{p.name}.size)\n\t\tmemcpy({p.name}, args->{p.name}.data, args->{p.name}.size);\n")
    if p.direction == "OUT_N":
        return emit_list_alloc(p, get_count(p))
    if p.direction == "OUT_BYTES":
        return emit_alloc(p.name, get_count(p), "1")
    return ""


def emit_driver_call(call):
    """Returns the call of the driver function."""
    chains = {q.size.split(", ")[0] for q in call.params if q.direction == "IN_OPTIONS"}
    lengths = {q.size: q for q in call.params if q.direction == "IN_BYTES"}
    words = []
    for p in call.params:
        if p.name in chains:
            words.append(p.name)
        elif p.name in lengths:
            words.append(f"({p.ctype})args->{lengths[p.name].name}.size")
        elif p.direction == "IN_BYTES":
            data = f"(args->{p.name}.size ? args->{p.name}.data : NULL)" if "OPT" in p.quals else f"args->{p.name}.data"
            words.append(f"({p.ctype} *)(uintptr_t){data}")
        elif p.direction in ("OUT", "INOUT"):
            words.append(f"&{p.name}")
        elif emit_local(call, p) or p.depth:
            words.append(p.name)
        else:
            words.append(f"({p.ctype})args->{p.name}")
    return f"gpd_driver.{call.name}({', '.join(words)})"


def emit_reply_field(f):
    """Returns the statements that encode one output of the driver into the reply."""
    p = f.param
    if p.direction == "OUT_BYTES":
        return f"\treply->{p.name} = (struct gp_bytes){{ {p.name}, {get_count(p)} }};\n"
    if p.direction == "OUT_N":
        return (f"\t{{\n\t\tsize_t listed = (size_t){get_count(p)};\n\t\tuint64_t *cells = gp_scratch_alloc_cells(scratch, listed, 1);\n\n"
                "\t\tif (!cells)\n\t\t\treturn CUDA_ERROR_INVALID_VALUE;\n"
                "\t\tfor (size_t i = 0; i < listed; i++) {\n" + emit_reply_cell_encode(p.ctype, f"{p.name}[i]", "cells[i]", 3)
                + f"\t\t}}\n\t\treply->{p.name} = (struct gp_bytes){{ cells, listed * 8 }};\n\t}}\n")
    if p.ctype == "CUdevice":
        return f"\treply->{p.name} = gpd_device_to_wire({p.name});\n"
    return f"\treply->{p.name} = ({f.ctype}){p.name};\n"


def needs_scratch(call):
    return any(p.direction not in (None, "BY_HOOK", "IN_BYTES", "INOUT", "OUT") for p in call.params)


def emit_call_driver(call):
    """Returns call_driver_X, which does the work of a hook for a forwarded call."""
    reply = f", struct gp_reply_{call.name} *reply" if get_reply(call) else ""
    scratch = ", struct gp_scratch *scratch" if needs_scratch(call) else ""
    new = next((p for p in call.params if "NEW" in p.quals), None)
    drop = next((p for p in call.params if "DROP" in p.quals), None)
    out = [f"\n/* {call.where} */\nstatic CUresult\ncall_driver_{call.name}(struct gpd_session *session, const struct gp_args_{call.name} *args"
           f"{reply}{scratch})\n{{\n"]
    out += [emit_local(call, p) or "" for p in call.params]
    out.append("\tCUresult result = gpd_context_enter(session, session->current.context);\n\n" + CHECK)
    out += [emit_arg(call, p) for p in call.params if "NEW" not in p.quals]
    if not (new or drop or reply):
        return "".join(out) + f"\treturn {emit_driver_call(call)};\n}}\n"
    out.append(f"\tresult = {emit_driver_call(call)};\n")
    if new:
        out.append(CHECK + f"\tresult = gpd_object_add(session, GPD_KIND_{get_kind(new.ctype).constant}, args->{new.name}, {new.name});\n")
    if drop:
        out.append(f"\tif (result == CUDA_SUCCESS)\n\t\tgpd_object_drop(session, GPD_KIND_{get_kind(drop.ctype).constant}, args->{drop.name});\n")
    if reply:
        out.append(CHECK)
        out += [emit_reply_field(f) for f in get_reply(call)]
    return "".join(out) + "\treturn result;\n}\n"


def get_traced_stream(call):
    """Returns the stream on which the call does work or waits for an event, for the trace; None if there is none."""
    streams = [p for p in call.params if p.ctype == "CUstream" and not p.depth]
    waits = bool(streams) and streams[0] is call.params[0] and any(p.ctype == "CUevent" for p in call.params)
    return streams[0].name if streams and (waits or {"LAUNCHES", "COPIES"} & set(call.options)) else None


def emit_work(call):
    """Returns the statements that execute the call and set result."""
    name = f"call_driver_{call.name}" if is_forwarded(call) else f"gpd_{call.name}"
    scratch = ", &scratch" if is_forwarded(call) and needs_scratch(call) else ""
    text = f"\tresult = {name}(session, &args{', &reply' if get_reply(call) else ''}{scratch});\n"
    stream = get_traced_stream(call)
    if not stream:
        return text
    kernel = next((f".kernel = args.{p.name}, " for p in call.params if p.ctype == "gp_kernel"), "")
    return ("\tbegun = gpd_trace_begin(session);\n" + text + "\tif (result == CUDA_SUCCESS)\n"
            f"\t\tgpd_trace_record(session, &(struct gpd_trace_operation){{ .begun_ns = begun, {kernel}.stream = args.{stream}, "
            ".call = header->call });\n")


def emit_account(call, body):
    """Returns the work with the statements of the account words before and after it."""
    before, after = "", ""
    size = call.options.get("ALLOCATES")
    if size and size != "BY_HOOK":
        body = (f"\tresult = gpd_account_allocate(&session->account, args.device, args.{size});\n\tif (result == CUDA_SUCCESS) {{\n"
                + "".join("\t" + line + "\n" for line in body.splitlines())
                + f"\t\tif (result != CUDA_SUCCESS && result != GPD_LATER)\n\t\t\tgpd_account_free(&session->account, args.device, args.{size});\n\t}}\n")
    size = call.options.get("FREES")
    if size and size != "BY_HOOK":
        after = f"\tif (result == CUDA_SUCCESS)\n\t\tgpd_account_free(&session->account, args.device, args.{size});\n"
    if "LAUNCHES" in call.options:
        before += f"\tgpd_account_launch(&session->account);\n\tgpd_stream_launch(session, args.{get_stream_params(call)[0]});\n"
    size = call.options.get("COPIES")
    if size and size != "BY_HOOK":
        before += f"\tgpd_account_copy(&session->account, args.{size}, 0);\n"
    return before + body + after


def emit_rate_limit(call):
    """Returns the statement that applies the bandwidth limit to the fields of the record; a bulk tail is counted elsewhere."""
    sizes = " + ".join(f"args.{f.name}.size" for f in get_args(call) if f.kind == "bytes")
    return f"\tgpd_account_throttle_fields(&session->account, {sizes}, {'0' if 'RATE_LIMITED' in call.options else 'GPD_ACCOUNT_FREE_BYTES'});\n" if sizes else ""


def emit_dispatcher(call):
    reply = get_reply(call)
    out = [f"\n/* {call.where} */\nstatic int\ndispatch_{call.name}(struct gpd_session *session, const struct gp_header *header, "
           f"struct gp_dec *dec)\n{{\n\tstruct gp_args_{call.name} args;\n"]
    if reply:
        out.append(f"\tstruct gp_reply_{call.name} reply = {{ 0 }};\n")
    scratch = is_forwarded(call) and needs_scratch(call)
    if is_forwarded(call):
        out.insert(0, emit_call_driver(call))
    if scratch:
        out.append("\tstruct gp_scratch scratch = { 0 };\n")
    if get_traced_stream(call):
        out.append("\tuint64_t begun;\n")
    out.append(f"\tCUresult result;\n\n\tgp_args_{call.name}_decode(dec, &args);\n"
               f"\tif (!gp_dec_done(dec) || !header_is_valid(header, {'true' if call.completion == 'WAIT' else 'false'}, "
               f"{'true' if 'BULK_IN' in call.options else 'false'}))\n\t\treturn -EPROTO;\n")
    out.append(emit_rate_limit(call) + emit_account(call, emit_work(call)))
    done = "\tgp_scratch_free(&scratch);\n" if scratch else ""
    if call.completion == "POST":
        out.append(done + "\treturn post_finish(session, header, result);\n}\n")
    elif reply:
        bytes_fields = [f.name for f in reply if f.kind == "bytes" and not is_forwarded(call)]
        out.append(f"\tif (result != GPD_LATER)\n\t\treply_send(session, header, result, gp_reply_{call.name}_size(&reply), "
                   f"encode_{call.name}, &reply);\n")
        out += [f"\tfree((void *)reply.{name}.data);\n" for name in bytes_fields]
        out.append(done + "\treturn 0;\n}\n")
        out.insert(0, f"\nstatic void\nencode_{call.name}(struct gp_enc *enc, const void *reply)\n{{\n"
                      f"\tgp_reply_{call.name}_encode(enc, reply);\n}}\n")
    else:
        out.append("\tif (result != GPD_LATER)\n\t\treply_send(session, header, result, 0, NULL, NULL);\n" + done + "\treturn 0;\n}\n")
    return "".join(out)


HEAD = """#include "gpd_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/scratch.h"
#include "server/worker/device/driver.h"
#include "server/worker/executor/arg_decode.h"
#include "server/worker/module/image.h"
#include "server/worker/context/object.h"
#include "server/worker/context/context.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"
#include "server/worker/trace/gpu_trace.h"

static bool
header_is_valid(const struct gp_header *header, bool waits, bool bulk)
{
	return (header->request != 0) == waits && (bulk || !(header->flags & GP_FRAME_BULK)) &&
	       !(header->flags & ~GP_FRAME_BULK);
}

static int
post_finish(struct gpd_session *session, const struct gp_header *header, CUresult result)
{
	if (gpd_driver_is_sticky(result))
		gpd_session_poison(session, result);
	else if (result != CUDA_SUCCESS)
		gpd_session_defer(session, result, header->call);
	return 0;
}

/* If the reply fails to send, the next receive detects the lost connection. */
static void
reply_send(struct gpd_session *session, const struct gp_header *header, CUresult result, size_t size,
       void (*encode)(struct gp_enc *enc, const void *reply), const void *reply)
{
	uint64_t small[64];
	void *fields = size <= sizeof(small) ? small : malloc(size);
	struct gp_enc enc;

	if (gpd_driver_is_sticky(result))
		gpd_session_poison(session, result);
	if (!fields) {
		(void)gpd_session_reply(session, header->call, header->request, CUDA_ERROR_OUT_OF_MEMORY, NULL, 0);
		return;
	}
	gp_enc_init(&enc, fields, size <= sizeof(small) ? sizeof(small) : size);
	if (encode)
		encode(&enc, reply);
	(void)gpd_session_reply(session, header->call, header->request, result, fields, gp_enc_size(&enc));
	if (fields != small)
		free(fields);
}
"""


def emit_handles_case(call):
    out = [f"\tcase GP_CALL_{call.name}: {{\n\t\tstruct gp_args_{call.name} args;\n\n"
           f"\t\tgp_args_{call.name}_decode(&dec, &args);\n"]
    out += [f"\t\thandles_add(handles, {kind}, args.{name});\n" for name, kind in get_ordered_fields(call)]
    flags = [("memory", manages_memory(call) or "AFTER_MEMORY" in call.options), ("after_all", "AFTER_ALL" in call.options),
             ("before_all", "BEFORE_ALL" in call.options),
             ("is_unordered", "UNORDERED" in call.options), ("is_query", "QUERY" in call.options),
             ("no_dtoh_wait", "NO_DTOH_WAIT" in call.options)]
    out += [f"\t\thandles->{name} = true;\n" for name, is_so in flags if is_so]
    if "BARRIER" in call.options:
        flags = f"args.{call.options['BARRIER']}"
        out.append(f"\t\thandles->before_all = {flags} & GP_COPY_BARRIER;\n\t\thandles->is_unordered = {flags} & GP_COPY_LATE;\n"
                   f"\t\thandles->listed = {flags} & GP_COPY_LISTED ? {flags} >> GP_COPY_NUMBER_SHIFT : 0;\n")
    if "AWAITS_STREAM" in call.options:
        out.append("\t\thandles->use = GPD_STREAM_AWAITED;\n")
    elif any(p.ctype == "CUstream" and {"NEW", "DROP"} & p.quals for p in call.params):
        out.append("\t\thandles->use = GPD_STREAM_MADE_OR_DROPPED;\n")
    return "".join(out) + "\t\tbreak;\n\t}\n"


def emit_call_handles(api):
    """Returns gpd_call_get_handles(), by which the daemon orders records."""
    return ("\nstatic void\nhandles_add(struct gpd_call_handles *handles, enum gpd_kind kind, uint32_t id)\n{\n"
            "\thandles->handles[handles->count++] = (struct gpd_handle){ kind, id };\n}\n"
            "\nbool\ngpd_call_get_handles(uint16_t call, const void *fields, size_t size, struct gpd_call_handles *handles)\n"
            "{\n\tstruct gp_dec dec;\n\n\tgp_dec_init(&dec, fields, size);\n\t*handles = (struct gpd_call_handles){ 0 };\n\tswitch (call) {\n"
            + "".join(emit_handles_case(c) for c in api.wire_calls)
            + "\tdefault:\n\t\treturn false;\n\t}\n\treturn gp_dec_done(&dec);\n}\n")


def emit_object_kinds(api):
    """Returns the functions that destroy the objects of each kind with DESTROY, and their table."""
    out, rows = [], []
    for k in api.kinds:
        if not k.destroy:
            continue
        out.append(f"\nstatic CUresult\nobject_destroy_{k.name}(void *driver)\n{{\n\treturn gpd_driver.{k.destroy}(driver);\n}}\n")
        rows.append(f"\t[GPD_KIND_{k.constant}] = {{ object_destroy_{k.name}, {'true' if k.options['LIFETIME'] == 'context' else 'false'} }},\n")
    return ("".join(out) + "\nconst struct gpd_object_kind gpd_object_kinds[GPD_KIND_COUNT] = {\n"
            + ("".join(rows) or "\t{ NULL, false },\n") + "};\n")


def dispatch_c(api):
    out = [emit_banner(SOURCE), HEAD]
    out += [emit_dispatcher(c) for c in api.wire_calls]
    cases = "".join(f"\tcase GP_CALL_{c.name}:\n\t\treturn dispatch_{c.name}(session, header, &dec);\n" for c in api.wire_calls)
    out.append("\nint\ngpd_dispatch(struct gpd_session *session, const struct gp_header *header, const void *fields, size_t size)\n"
               "{\n\tstruct gp_dec dec;\n\n\tgp_dec_init(&dec, fields, size);\n\tswitch (header->call) {\n" + cases
               + "\tdefault:\n\t\treturn -EPROTO;\n\t}\n}\n")
    return "".join(out)


def call_handles_c(api):
    """Returns gpd_call_handles.c: the handles of each record, and the destruction of objects."""
    return (emit_banner(SOURCE) + "#include \"gpd_calls.h\"\n#include \"server/worker/device/driver.h\"\n"
            "#include \"server/worker/context/object.h\"\n\n#include <string.h>\n" + emit_object_kinds(api) + emit_call_handles(api))


def options_c(api):
    """Returns gpd_options.c: the decoders of options."""
    return (emit_banner(SOURCE) + "#include \"gpd_calls.h\"\n\n#include <string.h>\n"
            + "".join(emit_options_decode(c) for c in get_types_by_word("OPTIONS")))
