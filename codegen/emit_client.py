# SPDX-License-Identifier: Apache-2.0
"""The client's half: exported entries, cuGetProcAddress table, stubs, and the functions that send calls."""
from model import args_of, declaration, generated, prototype, reply_of
from types_table import is_kernel

SOURCE = "codegen/api"


def senders(call):
    """Prototypes of gpc_post_X, gpc_start_X, gpc_wait_X: (name, text)."""
    name = call.name
    bulk = ", const struct iovec *bulk, int bulk_count" if "BULK_IN" in call.options else ""
    common = f"struct gpc_context *context, const struct gp_args_{name} *args"
    if call.completion == "POST":
        return [("post", f"CUresult\ngpc_post_{name}({common}{bulk})")]
    reply = reply_of(call)
    wait = common + (f", struct gp_reply_{name} *reply" if reply else "") + bulk
    if any(f.kind == "bytes" for f in reply):
        wait += ", void **raw_p"
    return [("start", f"CUresult\ngpc_start_{name}({common}, struct gpc_request *request{bulk})"),
            ("wait", f"CUresult\ngpc_wait_{name}({wait})")]


def calls_h(api):
    out = [generated(SOURCE), "#ifndef GPC_CALLS_H\n#define GPC_CALLS_H\n\n#include <cuda.h>\n\n"
           "#include \"client/wire/call.h\"\n#include \"client/context/context.h\"\n#include \"gp_calls.h\"\n\n"
           "/* The CUDA functions of this library; those of GP_LOCAL and CLIENT_HOOK are written by hand. */\n"]
    out += [declaration(c, "gpc_") + "\n" for c in api.cuda_calls]
    out.append("\n/* Sending a call: client/wire/call.h. */\n")
    for call in api.wire_calls:
        out += [text.replace("\n", " ") + ";\n" for _, text in senders(call)]
    out.append("\n#endif /* GPC_CALLS_H */\n")
    return "".join(out)


def begin(call):
    return (f"\tstruct gpc_call call;\n\tCUresult result;\n\n"
            f"\tresult = gpc_call_begin(&call, gpc_scope_of(context), GP_CALL_{call.name}, gp_args_{call.name}_size(args));\n"
            f"\tif (result != CUDA_SUCCESS)\n\t\treturn result;\n\tgp_args_{call.name}_encode(&call.enc, args);\n")


def wait_body(call):
    bulk = ", bulk, bulk_count" if "BULK_IN" in call.options else ""
    reply = reply_of(call)
    keep = any(f.kind == "bytes" for f in reply)
    out = ["\tstruct gpc_request request = { 0 };\n\tCUresult result;\n\n"
           + ("\t*raw_p = NULL;\n" if keep else "")
           + f"\tresult = gpc_start_{call.name}(context, args, &request{bulk});\n"
           "\tif (result != CUDA_SUCCESS)\n\t\treturn result;\n\tresult = gpc_request_wait(&request);\n"]
    if reply:
        out.append(f"\tresult = gpc_reply_decode(&request, result, gp_call_find(GP_CALL_{call.name}), reply);\n")
    out.append("\t*raw_p = request.reply;\n" if keep else "\tfree(request.reply);\n")
    return "".join(out) + "\treturn result;\n"


def calls_c(api):
    out = [generated(SOURCE), "#include \"gpc_calls.h\"\n\n#include <stdlib.h>\n#include <string.h>\n\n#include \"client/wire/session.h\"\n",
           """
/* A reply that is none ends the session: the two ends no longer agree on the stream. */
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
	gpc_session_fail(request->session, CUDA_ERROR_SYSTEM_NOT_READY, "malformed reply");
	return CUDA_ERROR_SYSTEM_NOT_READY;
}
"""]
    for call in api.wire_calls:
        bulk = "bulk, bulk_count" if "BULK_IN" in call.options else "NULL, 0"
        for kind, text in senders(call):
            body = {"post": begin(call) + f"\treturn gpc_call_post(&call, {bulk});\n",
                    "start": begin(call) + f"\treturn gpc_call_start(&call, request, {bulk});\n"}.get(kind) or wait_body(call)
            out.append(f"\n/* {call.where} */\n{text}\n{{\n{body}}}\n")
    return "".join(out)


def stub_argument(call, p):
    """(statements, initialiser) of one input of a generated stub."""
    if p.ctype == "CUstream":
        return (f"\tresult = gpc_stream_id(&context, {p.name}, &args.{p.name});\n\tif (result != CUDA_SUCCESS)\n\t\treturn result;\n")
    if p.ctype == "CUevent":
        return (f"\tresult = gpc_event_id({p.name}, &args.{p.name});\n\tif (result != CUDA_SUCCESS)\n\t\treturn result;\n")
    if is_kernel(p.ctype):
        return (f"\tresult = gpc_function_kernel(context, {p.name}, &args.{p.name});\n\tif (result != CUDA_SUCCESS)\n\t\treturn result;\n")
    return f"\targs.{p.name} = {'(int32_t)' if 'CU' in p.ctype else ''}{p.name};\n"


def stub(call):
    reply = reply_of(call)
    out = [f"\n/* {call.where} */\n{prototype(call, 'gpc_')}\n{{\n\tstruct gp_args_{call.name} args = {{ 0 }};\n"]
    if reply:
        out.append(f"\tstruct gp_reply_{call.name} reply;\n")
    out.append("\tstruct gpc_context *context;\n\tCUresult result;\n\n\tresult = gpc_enter(&context);\n"
               "\tif (result != CUDA_SUCCESS)\n\t\treturn result;\n")
    for f in reply:
        if "OPT" not in f.param.quals:
            out.append(f"\tif (!{f.name})\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n")
    out += [stub_argument(call, f.param) for f in args_of(call)]
    if call.completion == "POST":
        return "".join(out) + f"\treturn gpc_post_{call.name}(context, &args);\n}}\n"
    if not reply:
        return "".join(out) + f"\treturn gpc_wait_{call.name}(context, &args);\n}}\n"
    out.append(f"\tresult = gpc_wait_{call.name}(context, &args, &reply);\n\tif (result != CUDA_SUCCESS)\n\t\treturn result;\n")
    for f in reply:
        guard = f"\tif ({f.name})\n\t" if "OPT" in f.param.quals else ""
        out.append(f"{guard}\t*{f.name} = ({f.param.ctype})reply.{f.name};\n")
    return "".join(out) + "\treturn CUDA_SUCCESS;\n}\n"


def implementations(api):
    """Exported name -> the described call behind it."""
    out = {}
    for call in api.cuda_calls:
        for name in [call.name] + call.names("ALIAS"):
            out[name] = call
    return out


def twin(symbol, impl):
    """The described call behind a _ptds or _ptsz symbol, or None."""
    return impl.get(symbol.name.removesuffix("_" + symbol.variant)) if symbol.variant else None


def wrapper(symbol, call):
    names = ", ".join(p.name for p in call.params)
    text = prototype(call, "gpc_").replace(f"gpc_{call.name}(", f"gpc_twin_{symbol.name}(")
    return (f"\n/* {call.where} */\nstatic {text}\n{{\n\tbool before = gpc_per_thread_default;\n\tCUresult result;\n\n"
            f"\tgpc_per_thread_default = true;\n\tresult = gpc_{call.name}({names});\n"
            f"\tgpc_per_thread_default = before;\n\treturn result;\n}}\n")


def stubs_c(api):
    out = [generated(SOURCE), "#include \"gpc_calls.h\"\n\n#include \"client/entry/entry.h\"\n#include \"client/stream/event.h\"\n"
           "#include \"client/code/function.h\"\n#include \"client/stream/stream.h\"\n"]
    out += [stub(c) for c in api.wire_calls if c.kind == "CALL" and "CLIENT_HOOK" not in c.options]
    impl, rows = implementations(api), []
    for s in api.symbols:
        call = impl.get(s.name)
        other = twin(s, impl)
        if call:
            target = f"gpc_{call.name}"
        elif other:
            out.append(wrapper(s, other))
            target = f"gpc_twin_{s.name}"
        else:
            target = "gpc_unsupported"
        rows.append(f"\t{{ \"{s.name}\", (void *){target}, {'false' if target == 'gpc_unsupported' else 'true'} }},\n")
    out.append("\n/* What CUDA functions do that this version does not remote. */\nCUresult\ngpc_unsupported(void)\n{\n"
               "\treturn CUDA_ERROR_NOT_SUPPORTED;\n}\n")
    out.append("\nconst struct gpc_entry_info gpc_entries[] = {\n" + "".join(rows) + "};\n\n"
               "const size_t gpc_entry_count = sizeof(gpc_entries) / sizeof(gpc_entries[0]);\n")
    return "".join(out)


def entry_c(api):
    """Exported symbols: each jumps through its place in gpc_entry[], which pass-through rewrites."""
    out = [generated(SOURCE + "/symbols.h"), "extern void *gpc_entry[];\n\n"
           f"void *gpc_entry[{len(api.symbols)}];\n\n"
           "#if defined(__x86_64__)\n"
           "#define GPC_THUNK(name, offset)                                                    \\\n"
           "\t__asm__(\".text\\n.globl \" #name \"\\n.type \" #name \",@function\\n.balign 16\\n\" #name \\\n"
           "\t\t\":\\n\\tendbr64\\n\\tjmp *gpc_entry+\" #offset \"(%rip)\\n\"                      \\\n"
           "\t\t\".size \" #name \",.-\" #name \"\\n\")\n"
           "#else\n#error \"the exported entries are written for x86-64\"\n#endif\n\n"]
    out += [f"GPC_THUNK({s.name}, {i * 8});\n" for i, s in enumerate(api.symbols)]
    out += ["\n"] + [f"extern const char {s.name}[];\n" for s in api.symbols]
    out.append("\nconst void *const gpc_entry_address[] = {\n" + "".join(f"\t{s.name},\n" for s in api.symbols) + "};\n")
    return "".join(out)


def proc_c(api):
    """What cuGetProcAddress looks up."""
    rows = sorted(((s.base, 1 if s.variant else 0, s.since, i) for i, s in enumerate(api.symbols)),
                  key=lambda row: (row[0].encode(), row[1], row[2]))
    return (generated(SOURCE + "/symbols.h") + "#include \"client/entry/proc_address.h\"\n\nconst struct gpc_proc_entry gpc_proc_table[] = {\n"
            + "".join(f"\t{{ \"{b}\", {p}, {v}, {i} }},\n" for b, p, v, i in rows)
            + "};\n\nconst size_t gpc_proc_count = sizeof(gpc_proc_table) / sizeof(gpc_proc_table[0]);\n")


def libcuda_map(api):
    return "{\nglobal:\n" + "".join(f"\t{s.name};\n" for s in api.symbols) + "local:\n\t*;\n};\n"

