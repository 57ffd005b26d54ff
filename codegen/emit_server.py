# SPDX-License-Identifier: Apache-2.0
"""The daemon's half: prototypes of the hooks and the dispatcher."""
from cells import given, server_given, take_options, takes_options, told
from model import args_of, generated, predicate, reply_of, silent, streams_named, travels_as_it_is
from types_table import kind_of, types_named

SOURCE = "codegen/api"


def hook(call):
    reply = f", struct gp_reply_{call.name} *reply" if reply_of(call) else ""
    return f"CUresult gpd_{call.name}(struct gpd_session *session, const struct gp_args_{call.name} *args{reply});"


def named(call):
    """Fields that name what comes behind host functions in the order of its kind, with that kind."""
    fields = [(f.name, kind_of(f.param.ctype)) for f in args_of(call) if f.kind == "u32"]
    return [(name, f"GPD_KIND_{kind.constant}") for name, kind in fields if kind and kind.ordered]


def manages_memory(call):
    """Whether it makes, maps or gives back memory, rather than have a stream use it."""
    types = {p.ctype for p in call.params}
    return ("ALLOCATES" in call.options or "FREES" in call.options
            or bool(types & {"gp_address", "gp_new_address", "gp_memory", "gp_array"}) and "CUstream" not in types)


def calls_h(api):
    return (generated(SOURCE) + "#ifndef GPD_CALLS_H\n#define GPD_CALLS_H\n\n#include <cuda.h>\n#include <stdbool.h>\n\n"
            "#include \"gp_calls.h\"\n#include \"server/worker/session/handle.h\"\n\nstruct gpd_session;\n\n/* Written by hand: session.h says how they are called. */\n"
            + "".join(hook(c) + "\n" for c in api.wire_calls if "SERVER_HOOK" in c.options)
            + "\n/* Carries out one record. 0, or -EPROTO: it is malformed, and the session must end. */\n"
            "int gpd_dispatch(struct gpd_session *session, const struct gp_header *header, const void *fields, size_t size);\n"
            "\n/* What a call does to the streams that it names. */\n"
            "enum gpd_stream_use { GPD_STREAM_WORKS, GPD_STREAM_AWAITED, GPD_STREAM_MADE_OR_DROPPED };\n"
            "\n/* What a record names, and its place among the others. false: it is unknown or malformed. */\n"
            f"#define GPD_NAMES_MAX {max([len(named(c)) for c in api.wire_calls] + [1])}\n\n"
            "struct gpd_names {\n\tbool memory;        /* it is about memory as such */\n"
            "\tbool after_all;    /* comes when all before it is done */\n\tbool before_all;    /* all that comes later waits for it */\n"
            "\tbool is_unordered;    /* it waits for no record that is kept */\n"
            "\tbool is_query;          /* whether something is done */\n\tbool no_dtoh_wait; /* need not wait for copies to the client */\n"
            "\tuint32_t listed;    /* the number of a listed copy; 0: none */\n"
            "\tenum gpd_stream_use use;\n\tunsigned int count;\n\tstruct gpd_handle names[GPD_NAMES_MAX];\n};\n\n"
            "bool gpd_call_get_names(uint16_t call, const void *fields, size_t size, struct gpd_names *names);\n"
            + predicate(api, "gpd_call_is_async_launch", "Whether its hook may leave the driver's call to another thread", "SPREADS")
            + ("\n/* Options of the wire.  CUDA_ERROR_INVALID_VALUE: malformed, or more than there is room for; CUDA_ERROR_NOT_SUPPORTED: one that\n"
               " * the description does not list. */\n" if types_named("OPTIONS") else "")
            + "".join(takes_options(c).replace("\n", " ") + ";\n" for c in types_named("OPTIONS")) +
            "\n#endif /* GPD_CALLS_H */\n")


CHECK = "\tif (result != CUDA_SUCCESS)\n\t\treturn result;\n"
MALFORMED = "\t\treturn gpd_arg_decode_malformed(session);\n"


def local(call, p):
    """The declaration of what the driver is given for a parameter; None: the argument itself."""
    if p.name in silent(call) and p.direction != "BY_HOOK" and not any(q.direction == "IN_OPTIONS" and p.name in q.size for q in call.params):
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
    if p.direction == "OUT":
        return f"\t{p.ctype} {p.name} = 0;\n"
    if p.direction is None and server_given(p.ctype, "", ""):
        return f"\t{p.ctype} {p.name} = 0;\n"
    return None


def count_of(p):
    return p.size if p.size.isdigit() else f"args->{p.size}"


def make_list(p, count):
    return (f"\t{p.name} = gp_scratch_alloc(scratch, {count}, sizeof(*{p.name}));\n"
            f"\tif (!{p.name})\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n")


def find(call, p):
    """Statements that make of an argument what the driver is given, checked."""
    works = bool({"LAUNCHES", "COPIES"} & set(call.options))
    if p.direction is None and server_given(p.ctype, "", ""):
        return f"\tresult = {server_given(p.ctype, f'args->{p.name}', f'&{p.name}', works)};\n" + CHECK
    if p.direction in ("IN", "IN_N"):
        count = "1" if p.direction == "IN" else count_of(p)
        body = (f"\tif (args->{p.name}.size != (uint64_t){count} * 8)\n" + MALFORMED if p.direction == "IN_N" else "") + make_list(p, count)
        body += (f"\tfor (size_t i = 0; result == CUDA_SUCCESS && i < (size_t){count}; i++) {{\n"
                 f"\t\tconst uint64_t *cells = args->{p.name}.data;\n\n" + given(p.ctype, "cells[i]", f"{p.name}[i]", 2) + "\t}\n" + CHECK)
        if "OPT" not in p.quals:
            return body
        return f"\tif (args->{p.name}.size) {{\n" + "".join("\t" + line + "\n" for line in body.splitlines()) + "\t}\n"
    if p.direction == "IN_OPTIONS":
        count, values = p.size.split(", ")
        return (f"\tif (args->{p.name}.size % 16)\n" + MALFORMED
                + make_list(p, f"args->{p.name}.size / 16") + f"\t{values} = gp_scratch_alloc(scratch, args->{p.name}.size / 16, sizeof(void *));\n"
                f"\tif (!{values})\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n"
                f"\tresult = gpd_options_decode_{p.ctype}(args->{p.name}, {p.name}, {values}, (unsigned int)(args->{p.name}.size / 16), &{count});\n" + CHECK)
    if p.direction == "IN_STRING":
        copy = (f"\t{p.name} = gp_scratch_alloc(scratch, args->{p.name}.size + 1, 1);\n"
                f"\tif (!{p.name})\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n\tif (args->{p.name}.size)\n"
                f"\t\tmemcpy({p.name}, args->{p.name}.data, args->{p.name}.size);\n")
        return copy
    if p.direction == "OUT_N":
        return make_list(p, count_of(p))
    if p.direction == "OUT_BYTES":
        return f"\t{p.name} = gp_scratch_alloc(scratch, {count_of(p)}, 1);\n\tif (!{p.name})\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n"
    return ""


def driver_call(call):
    """The driver's function with what it is given."""
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
        elif local(call, p) or p.depth:
            words.append(p.name)
        else:
            words.append(f"({p.ctype})args->{p.name}")
    return f"gpd_driver.{call.name}({', '.join(words)})"


def tell(f):
    """Statements that make a field of the reply of what the driver gave."""
    p = f.param
    if p.direction == "OUT_BYTES":
        return f"\treply->{p.name} = (struct gp_bytes){{ {p.name}, {count_of(p)} }};\n"
    if p.direction == "OUT_N":
        return (f"\t{{\n\t\tsize_t listed = (size_t){count_of(p)};\n\t\tuint64_t *cells = gp_scratch_alloc_cells(scratch, listed, 1);\n\n"
                "\t\tif (!cells)\n\t\t\treturn CUDA_ERROR_INVALID_VALUE;\n"
                "\t\tfor (size_t i = 0; i < listed; i++) {\n" + told(p.ctype, f"{p.name}[i]", "cells[i]", 3)
                + f"\t\t}}\n\t\treply->{p.name} = (struct gp_bytes){{ cells, listed * 8 }};\n\t}}\n")
    if p.ctype == "CUdevice":
        return f"\treply->{p.name} = gpd_device_to_wire({p.name});\n"
    return f"\treply->{p.name} = ({f.ctype}){p.name};\n"


def server_scratch(call):
    return any(p.direction not in (None, "BY_HOOK", "IN_BYTES", "INOUT", "OUT") for p in call.params)


def carrier(call):
    """A call that travels as it is: what a hook would do."""
    reply = f", struct gp_reply_{call.name} *reply" if reply_of(call) else ""
    scratch = ", struct gp_scratch *scratch" if server_scratch(call) else ""
    new = next((p for p in call.params if "NEW" in p.quals), None)
    drop = next((p for p in call.params if "DROP" in p.quals), None)
    out = [f"\n/* {call.where} */\nstatic CUresult\ncall_driver_{call.name}(struct gpd_session *session, const struct gp_args_{call.name} *args"
           f"{reply}{scratch})\n{{\n"]
    out += [local(call, p) or "" for p in call.params]
    out.append("\tCUresult result = gpd_context_enter(session, session->current.context);\n\n" + CHECK)
    out += [find(call, p) for p in call.params if "NEW" not in p.quals]
    if not (new or drop or reply):
        return "".join(out) + f"\treturn {driver_call(call)};\n}}\n"
    out.append(f"\tresult = {driver_call(call)};\n")
    if new:
        out.append(CHECK + f"\tresult = gpd_object_add(session, GPD_KIND_{kind_of(new.ctype).constant}, args->{new.name}, {new.name});\n")
    if drop:
        out.append(f"\tif (result == CUDA_SUCCESS)\n\t\tgpd_object_drop(session, GPD_KIND_{kind_of(drop.ctype).constant}, args->{drop.name});\n")
    if reply:
        out.append(CHECK)
        out += [tell(f) for f in reply_of(call)]
    return "".join(out) + "\treturn result;\n}\n"


def traced_stream(call):
    """The stream whose time the call takes, or None: work, and waiting for an event."""
    streams = [p for p in call.params if p.ctype == "CUstream" and not p.depth]
    waits = bool(streams) and streams[0] is call.params[0] and any(p.ctype == "CUevent" for p in call.params)
    return streams[0].name if streams and (waits or {"LAUNCHES", "COPIES"} & set(call.options)) else None


def work(call):
    """Statements that carry the call out and leave its result in result."""
    name = f"call_driver_{call.name}" if travels_as_it_is(call) else f"gpd_{call.name}"
    scratch = ", &scratch" if travels_as_it_is(call) and server_scratch(call) else ""
    text = f"\tresult = {name}(session, &args{', &reply' if reply_of(call) else ''}{scratch});\n"
    stream = traced_stream(call)
    if not stream:
        return text
    kernel = next((f".kernel = args.{p.name}, " for p in call.params if p.ctype == "gp_kernel"), "")
    return ("\tbegun = gpd_trace_begin(session);\n" + text + "\tif (result == CUDA_SUCCESS)\n"
            f"\t\tgpd_trace_work(session, &(struct gpd_trace_work){{ .begun_ns = begun, {kernel}.stream = args.{stream}, "
            ".call = header->call });\n")


def account(call, body):
    """The account words around the work."""
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
        before += f"\tgpd_account_launch(&session->account);\n\tgpd_stream_launch(session, args.{streams_named(call)[0]});\n"
    size = call.options.get("COPIES")
    if size and size != "BY_HOOK":
        before += f"\tgpd_account_copy(&session->account, args.{size}, 0);\n"
    return before + body + after


def meter(call):
    """The statement that lets the link's limit hold for what the record brought besides a bulk tail."""
    sizes = " + ".join(f"args.{f.name}.size" for f in args_of(call) if f.kind == "bytes")
    return f"\tgpd_account_throttle_fields(&session->account, {sizes}, {'0' if 'METERED' in call.options else 'GPD_ACCOUNT_FREE_BYTES'});\n" if sizes else ""


def dispatcher(call):
    reply = reply_of(call)
    out = [f"\n/* {call.where} */\nstatic int\ndispatch_{call.name}(struct gpd_session *session, const struct gp_header *header, "
           f"struct gp_dec *dec)\n{{\n\tstruct gp_args_{call.name} args;\n"]
    if reply:
        out.append(f"\tstruct gp_reply_{call.name} reply = {{ 0 }};\n")
    scratch = travels_as_it_is(call) and server_scratch(call)
    if travels_as_it_is(call):
        out.insert(0, carrier(call))
    if scratch:
        out.append("\tstruct gp_scratch scratch = { 0 };\n")
    if traced_stream(call):
        out.append("\tuint64_t begun;\n")
    out.append(f"\tCUresult result;\n\n\tgp_args_{call.name}_decode(dec, &args);\n"
               f"\tif (!gp_dec_done(dec) || !header_fits(header, {'true' if call.completion == 'WAIT' else 'false'}, "
               f"{'true' if 'BULK_IN' in call.options else 'false'}))\n\t\treturn -EPROTO;\n")
    out.append(meter(call) + account(call, work(call)))
    done = "\tgp_scratch_free(&scratch);\n" if scratch else ""
    if call.completion == "POST":
        out.append(done + "\treturn posted(session, header, result);\n}\n")
    elif reply:
        bytes_fields = [f.name for f in reply if f.kind == "bytes" and not travels_as_it_is(call)]
        out.append(f"\tif (result != GPD_LATER)\n\t\tanswer(session, header, result, gp_reply_{call.name}_size(&reply), "
                   f"encode_{call.name}, &reply);\n")
        out += [f"\tfree((void *)reply.{name}.data);\n" for name in bytes_fields]
        out.append(done + "\treturn 0;\n}\n")
        out.insert(0, f"\nstatic void\nencode_{call.name}(struct gp_enc *enc, const void *reply)\n{{\n"
                      f"\tgp_reply_{call.name}_encode(enc, reply);\n}}\n")
    else:
        out.append("\tif (result != GPD_LATER)\n\t\tanswer(session, header, result, 0, NULL, NULL);\n" + done + "\treturn 0;\n}\n")
    return "".join(out)


HEAD = """#include "gpd_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/scratch.h"
#include "server/worker/device/driver.h"
#include "server/worker/given.h"
#include "server/worker/image/image.h"
#include "server/worker/session/object.h"
#include "server/worker/session/context.h"
#include "server/worker/session/session.h"
#include "server/worker/session/stream.h"
#include "server/worker/trace/trace.h"

static bool
header_fits(const struct gp_header *header, bool waits, bool bulk)
{
	return (header->request != 0) == waits && (bulk || !(header->flags & GP_FRAME_BULK)) &&
	       !(header->flags & ~GP_FRAME_BULK);
}

static int
posted(struct gpd_session *session, const struct gp_header *header, CUresult result)
{
	if (gpd_driver_is_sticky(result))
		gpd_session_poison(session, result);
	else if (result != CUDA_SUCCESS)
		gpd_session_defer(session, result, header->call);
	return 0;
}

/* The lost connection of a failed reply is noticed by the next receive. */
static void
answer(struct gpd_session *session, const struct gp_header *header, CUresult result, size_t size,
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


def names_of(call):
    out = [f"\tcase GP_CALL_{call.name}: {{\n\t\tstruct gp_args_{call.name} args;\n\n"
           f"\t\tgp_args_{call.name}_decode(&dec, &args);\n"]
    out += [f"\t\tadd_name(names, {kind}, args.{name});\n" for name, kind in named(call)]
    flags = [("memory", manages_memory(call) or "ABOUT_MEMORY" in call.options), ("after_all", "BEHIND_ALL" in call.options),
             ("before_all", "BEFORE_ALL" in call.options),
             ("is_unordered", "PASSES_ALL" in call.options), ("is_query", "ASKS" in call.options),
             ("no_dtoh_wait", "PASSES_COPIES" in call.options)]
    out += [f"\t\tnames->{name} = true;\n" for name, is_so in flags if is_so]
    if "BARRIER" in call.options:
        flags = f"args.{call.options['BARRIER']}"
        out.append(f"\t\tnames->before_all = {flags} & GP_COPY_BARRIER;\n\t\tnames->is_unordered = {flags} & GP_COPY_LATE;\n"
                   f"\t\tnames->listed = {flags} & GP_COPY_LISTED ? {flags} >> GP_COPY_NUMBER_SHIFT : 0;\n")
    if "AWAITS_STREAM" in call.options:
        out.append("\t\tnames->use = GPD_STREAM_AWAITED;\n")
    elif any(p.ctype == "CUstream" and {"NEW", "DROP"} & p.quals for p in call.params):
        out.append("\t\tnames->use = GPD_STREAM_MADE_OR_DROPPED;\n")
    return "".join(out) + "\t\tbreak;\n\t}\n"


def call_names(api):
    """What a record that must wait for others waits for, of every call alike."""
    return ("\nstatic void\nadd_name(struct gpd_names *names, enum gpd_kind kind, uint32_t id)\n{\n"
            "\tnames->names[names->count++] = (struct gpd_handle){ kind, id };\n}\n"
            "\nbool\ngpd_call_get_names(uint16_t call, const void *fields, size_t size, struct gpd_names *names)\n"
            "{\n\tstruct gp_dec dec;\n\n\tgp_dec_init(&dec, fields, size);\n\t*names = (struct gpd_names){ 0 };\n\tswitch (call) {\n"
            + "".join(names_of(c) for c in api.wire_calls)
            + "\tdefault:\n\t\treturn false;\n\t}\n\treturn gp_dec_done(&dec);\n}\n")


def object_kinds(api):
    """How the driver ends the objects of each kind that is nothing but the driver's."""
    out, rows = [], []
    for k in api.kinds:
        if not k.destroy:
            continue
        out.append(f"\nstatic CUresult\nend_{k.name}(void *driver)\n{{\n\treturn gpd_driver.{k.destroy}(driver);\n}}\n")
        rows.append(f"\t[GPD_KIND_{k.constant}] = {{ end_{k.name}, {'true' if k.options['GOES_WITH'] == 'context' else 'false'} }},\n")
    return ("".join(out) + "\nconst struct gpd_object_kind gpd_object_kinds[GPD_KIND_COUNT] = {\n"
            + ("".join(rows) or "\t{ NULL, false },\n") + "};\n")


def dispatch_c(api):
    out = [generated(SOURCE), HEAD]
    out += [dispatcher(c) for c in api.wire_calls]
    cases = "".join(f"\tcase GP_CALL_{c.name}:\n\t\treturn dispatch_{c.name}(session, header, &dec);\n" for c in api.wire_calls)
    out.append("\nint\ngpd_dispatch(struct gpd_session *session, const struct gp_header *header, const void *fields, size_t size)\n"
               "{\n\tstruct gp_dec dec;\n\n\tgp_dec_init(&dec, fields, size);\n\tswitch (header->call) {\n" + cases
               + "\tdefault:\n\t\treturn -EPROTO;\n\t}\n}\n")
    return "".join(out)


def names_c(api):
    """What a record names, for those who order records; and how the driver ends objects."""
    return (generated(SOURCE) + "#include \"gpd_calls.h\"\n#include \"server/worker/device/driver.h\"\n"
            "#include \"server/worker/session/object.h\"\n\n#include <string.h>\n" + object_kinds(api) + call_names(api))


def options_c(api):
    """Chains of options, out of their bytes."""
    return (generated(SOURCE) + "#include \"gpd_calls.h\"\n\n#include <string.h>\n"
            + "".join(take_options(c) for c in types_named("OPTIONS")))
