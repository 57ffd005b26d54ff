# SPDX-License-Identifier: Apache-2.0
"""The daemon's half: prototypes of the hooks and the dispatcher."""
from model import args_of, generated, has_kernel, reply_of
from types_table import HANDLES, is_kernel

SOURCE = "codegen/api"


def hook(call):
    reply = f", struct gp_reply_{call.name} *reply" if reply_of(call) else ""
    return f"CUresult gpd_{call.name}(struct gpd_session *session, const struct gp_args_{call.name} *args{reply});"


def named(call):
    """Fields that name a stream, an event or an image, with the kind of each."""
    kinds = {"stream": "GPD_KIND_STREAM", "event": "GPD_KIND_EVENT", "image": "GPD_KIND_IMAGE"}
    fields = [(f, kinds.get(HANDLES.get(f.param.ctype))) for f in args_of(call)]
    return [(f.name, kind) for f, kind in fields if kind]


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
            "\n/* Streams, events and images that a record names, and whether it is about memory as such.\n"
            " * false: it is unknown or malformed. */\n"
            f"#define GPD_NAMES_MAX {max([len(named(c)) for c in api.wire_calls] + [1])}\n\n"
            "struct gpd_names {\n\tbool memory;\n\tunsigned int count;\n\tstruct gpd_handle names[GPD_NAMES_MAX];\n};\n\n"
            "bool gpd_call_names(uint16_t call, const void *fields, size_t size, struct gpd_names *names);\n"
            "\n#endif /* GPD_CALLS_H */\n")


def driver_call(call):
    """A call that travels as it is: the driver's function with the session's handles."""
    given = []
    for p in call.params:
        if p.direction == "OUT":
            given.append(f"&{p.name}")
        elif is_kernel(p.ctype):
            given.append("function")
        else:
            given.append(f"({p.ctype})args.{p.name}")
    return f"gpd_driver.{call.name}({', '.join(given)})"


def work(call):
    """Statements that carry the call out and leave its result in result."""
    if "SERVER_HOOK" in call.options:
        return f"\tresult = gpd_{call.name}(session, &args{', &reply' if reply_of(call) else ''});\n"
    out = ["\tresult = gpd_session_enter(session, header->context);\n"]
    if has_kernel(call):
        kernel = next(p.name for p in call.params if is_kernel(p.ctype))
        out.append(f"\tif (result == CUDA_SUCCESS)\n\t\tresult = gpd_function_get(session, args.{kernel}, &function);\n")
    out.append(f"\tif (result == CUDA_SUCCESS)\n\t\tresult = {driver_call(call)};\n")
    out += [f"\treply.{f.name} = ({f.ctype}){f.name};\n" for f in reply_of(call)]
    return "".join(out)


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
        stream = next(p.name for p in call.params if p.ctype == "CUstream")
        before += f"\tgpd_account_launch(&session->account);\n\tgpd_schedule_launch(session, args.{stream});\n"
    size = call.options.get("COPIES")
    if size and size != "BY_HOOK":
        before += f"\tgpd_account_copy(&session->account, args.{size}, 0);\n"
    return before + body + after


def dispatcher(call):
    reply = reply_of(call)
    out = [f"\n/* {call.where} */\nstatic int\ndispatch_{call.name}(struct gpd_session *session, const struct gp_header *header, "
           f"struct gp_dec *dec)\n{{\n\tstruct gp_args_{call.name} args;\n"]
    if reply:
        out.append(f"\tstruct gp_reply_{call.name} reply = {{ 0 }};\n")
    if "SERVER_HOOK" not in call.options:
        out += [f"\t{f.param.ctype} {f.name} = 0;\n" for f in reply]
        if has_kernel(call):
            out.append("\tCUfunction function = NULL;\n")
    out.append(f"\tCUresult result;\n\n\tgp_args_{call.name}_decode(dec, &args);\n"
               f"\tif (!gp_dec_done(dec) || !header_fits(header, {'true' if call.completion == 'WAIT' else 'false'}, "
               f"{'true' if 'BULK_IN' in call.options else 'false'}))\n\t\treturn -EPROTO;\n")
    out.append(account(call, work(call)))
    if call.completion == "POST":
        out.append("\treturn posted(session, header, result);\n}\n")
    elif reply:
        bytes_fields = [f.name for f in reply if f.kind == "bytes"]
        out.append(f"\tif (result != GPD_LATER)\n\t\tanswer(session, header, result, gp_reply_{call.name}_size(&reply), "
                   f"encode_{call.name}, &reply);\n")
        out += [f"\tfree((void *)reply.{name}.data);\n" for name in bytes_fields]
        out.append("\treturn 0;\n}\n")
        out.insert(0, f"\nstatic void\nencode_{call.name}(struct gp_enc *enc, const void *reply)\n{{\n"
                      f"\tgp_reply_{call.name}_encode(enc, reply);\n}}\n")
    else:
        out.append("\tif (result != GPD_LATER)\n\t\tanswer(session, header, result, 0, NULL, NULL);\n\treturn 0;\n}\n")
    return "".join(out)


HEAD = """#include "gpd_calls.h"

#include <errno.h>
#include <stdlib.h>

#include "server/worker/session/account.h"
#include "server/worker/device/driver.h"
#include "server/worker/image/image.h"
#include "server/worker/schedule/schedule.h"
#include "server/worker/session/session.h"

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
    if manages_memory(call):
        out.append("\t\tnames->memory = true;\n")
    return "".join(out) + "\t\tbreak;\n\t}\n"


def call_names(api):
    """What a record that must wait for others waits for, of every call alike."""
    return ("\nstatic void\nadd_name(struct gpd_names *names, enum gpd_kind kind, uint32_t id)\n{\n"
            "\tnames->names[names->count++] = (struct gpd_handle){ kind, id };\n}\n"
            "\nbool\ngpd_call_names(uint16_t call, const void *fields, size_t size, struct gpd_names *names)\n"
            "{\n\tstruct gp_dec dec;\n\n\tgp_dec_init(&dec, fields, size);\n\t*names = (struct gpd_names){ 0 };\n\tswitch (call) {\n"
            + "".join(names_of(c) for c in api.wire_calls)
            + "\tdefault:\n\t\treturn false;\n\t}\n\treturn gp_dec_done(&dec);\n}\n")


def dispatch_c(api):
    out = [generated(SOURCE), HEAD]
    out += [dispatcher(c) for c in api.wire_calls]
    cases = "".join(f"\tcase GP_CALL_{c.name}:\n\t\treturn dispatch_{c.name}(session, header, &dec);\n" for c in api.wire_calls)
    out.append("\nint\ngpd_dispatch(struct gpd_session *session, const struct gp_header *header, const void *fields, size_t size)\n"
               "{\n\tstruct gp_dec dec;\n\n\tgp_dec_init(&dec, fields, size);\n\tswitch (header->call) {\n" + cases
               + "\tdefault:\n\t\treturn -EPROTO;\n\t}\n}\n")
    out.append(call_names(api))
    return "".join(out)
