# SPDX-License-Identifier: Apache-2.0
"""Emits codec_gen.c: the property tests of the codec of every call."""
from emit_protocol import get_sides
from model import emit_banner

SOURCE = "codegen/api"


def emit_fill(f, i):
    if f.kind == "bytes":
        size = str(f.exact) if f.exact else "rng_size(rng)"
        return f"\tvalue->{f.name} = rng_bytes(rng, {size}, {'true' if f.string else 'false'});\n"
    return f"\tvalue->{f.name} = ({f.ctype})rng_next(rng);\n"


def emit_equal(f):
    if f.kind == "bytes":
        return f"same_bytes(a->{f.name}, b->{f.name})"
    if f.kind == "f32":
        return f"memcmp(&a->{f.name}, &b->{f.name}, sizeof(a->{f.name})) == 0"
    return f"a->{f.name} == b->{f.name}"


def emit_side(call, side, fields):
    name = f"gp_{side}_{call.name}"
    fills = "".join(emit_fill(f, i) for i, f in enumerate(fields)) or "\tvalue->unused = 0;\n"
    equals = " &&\n\t       ".join(emit_equal(f) for f in fields) or "true"
    used = "" if fields else "\t(void)a;\n\t(void)b;\n"
    rng_used = "" if fields else "\t(void)rng;\n"
    return f"""
/* {call.where} */
static void
fill_{name}(struct rng *rng, void *memory)
{{
	struct {name} *value = memory;

{rng_used}{fills}}}

static bool
equal_{name}(const void *first, const void *second)
{{
	const struct {name} *a = first, *b = second;

{used}	return {equals};
}}

static size_t
size_{name}(const void *value)
{{
	return {name}_size(value);
}}

static void
encode_{name}(struct gp_enc *enc, const void *value)
{{
	{name}_encode(enc, value);
}}

static void
decode_{name}(struct gp_dec *dec, void *value)
{{
	{name}_decode(dec, value);
}}
"""


def codec_c(api):
    out, rows = [emit_banner(SOURCE), "#include \"tests/codegen/codec.h\"\n\n#include <string.h>\n\n#include \"gp_calls.h\"\n"], []
    for call in api.wire_calls:
        for side, fields in get_sides(call):
            name = f"gp_{side}_{call.name}"
            out.append(emit_side(call, side, fields))
            rows.append(f"\t{{ \"{name}\", sizeof(struct {name}), {len(fields)}, fill_{name}, equal_{name}, size_{name}, "
                        f"encode_{name}, decode_{name} }},\n")
    out.append("\nconst struct codec codecs[] = {\n" + "".join(rows) + "};\n\nconst size_t codec_count = sizeof(codecs) / sizeof(codecs[0]);\n")
    return "".join(out)
