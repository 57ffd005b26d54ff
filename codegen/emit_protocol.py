# SPDX-License-Identifier: Apache-2.0
"""Emits gp_calls.[ch]: call numbers, argument and reply structs, their codecs, and the table for logs and dumps.

Also gpc_kinds.h, gpd_kinds.h and abi.txt.
"""
from model import emit_banner, emit_predicate, get_args, get_reply, get_signature
from parse import SpecError

SOURCE = "codegen/api"


PREDICATES = (
    ("gp_call_is_unordered", "True if the daemon executes it at once, ahead of deferred records", "UNORDERED"),
    ("gp_call_awaits_host", "True if its stream waits for the host", "AWAITS_HOST"),
    ("gp_call_is_unbounded", "True if the program determines its duration", "UNBOUNDED", "AWAITS_HOST"),
    ("gp_call_compiles", "True if the daemon may compile code for it", "COMPILES"),
    ("gp_call_writes_device_only", "True if it writes device memory only", "WRITES_DEVICE_ONLY"),
    ("gp_call_invalidates_checks", "True if its failure, which is reported later, invalidates earlier checks of the client", "INVALIDATES_CHECKS"),
)


def emit_struct(name, fields):
    body = "".join(f"\t{f.ctype} {f.name};\n" for f in fields) or "\tuint32_t unused; /* no fields */\n"
    return f"struct {name} {{\n{body}}};\n"


def get_sides(call):
    """Returns (suffix, fields) of each struct of a call that has a codec."""
    out = [("args", get_args(call))]
    if get_reply(call):
        out.append(("reply", get_reply(call)))
    return out


def calls_h(api):
    if not api.wire_calls:
        raise SpecError(f"{api.chapters[-1]}:1: no call on the wire is described")
    out = [emit_banner(SOURCE), "#ifndef GP_CALLS_H\n#define GP_CALLS_H\n\n#include <stdio.h>\n\n"
           "#include \"protocol/dec.h\"\n#include \"protocol/enc.h\"\n#include \"protocol/frame.h\"\n\nenum gp_call {\n"]
    out += [f"\tGP_CALL_{c.name} = 0x{c.number:04x},\n" for c in api.wire_calls]
    highest = api.wire_calls[-1].number
    out.append("};\n\n/* One bit for each call number of this build. */\n"
               f"#define GP_CALL_BITMAP_SIZE {highest // 8 + 1}\nvoid gp_call_bitmap(uint8_t *bitmap);\n")
    out += [emit_predicate(api, *row) for row in PREDICATES]
    out.append("""
enum gp_field_kind { GP_FIELD_U32, GP_FIELD_I32, GP_FIELD_U64, GP_FIELD_F32, GP_FIELD_BYTES };

struct gp_field_info {
	const char *name;
	enum gp_field_kind kind;
	size_t offset; /* in the argument or reply struct */
};

struct gp_call_info {
	uint16_t number;
	const char *name;
	const char *where; /* file and line of the description */
	const char *shown; /* name of its work in a trace; NULL: name */
	bool waits;
	size_t args_size;
	void (*decode_args)(struct gp_dec *dec, void *args);
	const struct gp_field_info *args;
	size_t arg_count;
	size_t reply_size;
	void (*decode_reply)(struct gp_dec *dec, void *reply); /* NULL: the reply has no fields */
	const struct gp_field_info *reply;
	size_t reply_count;
};

extern const struct gp_call_info gp_call_table[]; /* ascending numbers */
extern const size_t gp_call_count;
/* Returns NULL for an unknown number. */
const struct gp_call_info *gp_call_find(uint16_t number);

/* Writes one record as a line of text, even if it is malformed. */
void gp_dump_record(FILE *file, const struct gp_header *header, const void *fields, size_t size);
""")
    for call in api.wire_calls:
        out.append(f"\n/* {call.where} */\n")
        for side, fields in get_sides(call):
            name = f"gp_{side}_{call.name}"
            out.append(emit_struct(name, fields))
            out.append(f"size_t {name}_size(const struct {name} *{side});\n"
                       f"void {name}_encode(struct gp_enc *enc, const struct {name} *{side});\n"
                       f"void {name}_decode(struct gp_dec *dec, struct {name} *{side});\n")
    out.append("\n#endif /* GP_CALLS_H */\n")
    return "".join(out)


WIDTH = {"u32": 4, "i32": 4, "f32": 4, "u64": 8}


def emit_encoder(side, fields):
    """Returns the statements that encode the fields.

    Fields before the first bytes field have constant offsets: one check of the room covers them. The encoder appends all others.
    """
    head, at = [], 0
    for f in fields:
        if f.kind == "bytes":
            break
        if at % WIDTH[f.kind]:
            head.append(f"\t\tgp_put_u32(at + {at}, 0);\n")
            at += 4
        value = f"(uint32_t){side}->{f.name}" if f.kind == "i32" else f"{side}->{f.name}"
        head.append(f"\t\tgp_put_{f.kind.replace('i', 'u')}(at + {at}, {value});\n")
        at += WIDTH[f.kind]
    count = next((i for i, f in enumerate(fields) if f.kind == "bytes"), len(fields))
    out = []
    if head and count == len(fields) and at % 8:
        head.append(f"\t\tgp_put_u32(at + {at}, 0);\n")
        at += 4
    if head:
        out.append(f"\tuint8_t *at = gp_enc_room(enc, {at});\n\n\tif (at) {{\n{''.join(head)}\t}}\n")
    for f in fields[count:]:
        cast = "(uint32_t)" if f.kind == "i32" else ""
        out.append(f"\tgp_enc_{f.kind.replace('i', 'u')}(enc, {cast}{side}->{f.name});\n")
    if count < len(fields):
        out.append("\tgp_enc_pad(enc);\n")
    return "".join(out)


def emit_codec(name, side, fields):
    size = " + ".join(["0"] + [f"GP_ENC_BYTES_SIZE({side}->{f.name}.size)" if f.kind == "bytes" else "8" for f in fields])
    dec = []
    for f in fields:
        value = f"{side}->{f.name}"
        if f.kind == "i32":
            dec.append(f"\t{value} = (int32_t)gp_dec_u32(dec);\n")
        else:
            dec.append(f"\t{value} = gp_dec_{f.kind}(dec);\n")
        if f.exact:
            dec.append(f"\tif ({f'{value}.size && ' if f.optional else ''}{value}.size != {f.exact})\n\t\tdec->bad = true;\n")
        if f.string:
            dec.append(f"\tif ({value}.size > 0 && memchr({value}.data, 0, {value}.size))\n\t\tdec->bad = true;\n")
    if not fields:
        dec.append(f"\t{side}->unused = 0;\n")
    return (f"\nsize_t\n{name}_size(const struct {name} *{side})\n{{\n\treturn {size};\n}}\n"
            f"\nvoid\n{name}_encode(struct gp_enc *enc, const struct {name} *{side})\n{{\n{emit_encoder(side, fields)}}}\n"
            f"\nvoid\n{name}_decode(struct gp_dec *dec, struct {name} *{side})\n{{\n{''.join(dec)}}}\n"
            f"\nstatic void\n{name}_decode_any(struct gp_dec *dec, void *{side})\n{{\n\t{name}_decode(dec, {side});\n}}\n")


def emit_field_table(name, fields):
    if not fields:
        return ""
    rows = "".join(f"\t{{ \"{f.name}\", GP_FIELD_{f.kind.upper()}, offsetof(struct {name}, {f.name}) }},\n" for f in fields)
    return f"\nstatic const struct gp_field_info {name}_fields[] = {{\n{rows}}};\n"


def calls_c(api):
    out = [emit_banner(SOURCE), "#include \"gp_calls.h\"\n\n#include <stddef.h>\n#include <string.h>\n"]
    rows = []
    for call in api.wire_calls:
        out.append(f"\n/* {call.where} */")
        row = [f"\t{{ .number = 0x{call.number:04x}, .name = \"{call.name}\", .where = \"{call.where}\", "
               + (f".shown = {call.options['TRACE_NAME']}, " if "TRACE_NAME" in call.options else "")
               + f".waits = {'true' if call.completion == 'WAIT' else 'false'}"]
        for side, fields in get_sides(call):
            name = f"gp_{side}_{call.name}"
            out += [emit_codec(name, side, fields), emit_field_table(name, fields)]
            count = "arg_count" if side == "args" else "reply_count"
            row.append(f",\n\t  .{side}_size = sizeof(struct {name}), .decode_{side} = {name}_decode_any")
            if fields:
                row.append(f", .{side} = {name}_fields, .{count} = {len(fields)}")
        rows.append("".join(row) + " },\n")
    out.append("\nconst struct gp_call_info gp_call_table[] = {\n" + "".join(rows) + "};\n\n"
               "const size_t gp_call_count = sizeof(gp_call_table) / sizeof(gp_call_table[0]);\n")
    return "".join(out)


def gpc_kinds_h(api):
    """The numbers are valid in one build only: they are not sent."""
    rows = "".join(f"\tGPC_KIND_{k.constant}{' = 1' if i == 0 else ''},\n" for i, k in enumerate(api.kinds))
    return (emit_banner(SOURCE) + f"#ifndef GPC_KINDS_H\n#define GPC_KINDS_H\n\nenum gpc_kind {{\n{rows}\tGPC_KIND_COUNT\n}};\n\n"
            "#endif /* GPC_KINDS_H */\n")


def gpd_kinds_h(api):
    kinds = [k for k in api.kinds if "COST" in k.options]
    rows = "".join(f"\tGPD_KIND_{k.constant}{' = 1' if i == 0 else ''},\n" for i, k in enumerate(kinds))
    costs = "".join(f" \\\n\t[GPD_KIND_{k.constant}] = {k.options['COST']}," for k in kinds)
    return (emit_banner(SOURCE) + f"#ifndef GPD_KINDS_H\n#define GPD_KINDS_H\n\nenum gpd_kind {{\n{rows}\tGPD_KIND_COUNT\n}};\n\n"
            "/* Approximate host memory per object, including the driver's. Units: bytes. */\n"
            f"#define GPD_KIND_COSTS{costs}\n\n#endif /* GPD_KINDS_H */\n")


def abi_txt(api):
    return "".join(get_signature(c) + "\n" for c in api.wire_calls)
