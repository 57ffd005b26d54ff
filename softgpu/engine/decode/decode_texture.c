/* SPDX-License-Identifier: Apache-2.0 */
/* Textures and surfaces: tex, tld4, suld.b and sust.b, with 64-bit numbers or references to
 * variables that contain them. */
#include "softgpu/engine/decode/decode.h"
#include "softgpu/engine/lanes/sample.h"

#define COORDINATES_MAX 4

struct shape {
	const char *word;
	enum gs_geometry geometry;
	uint8_t coordinates; /* without a layer */
};

static const struct shape shapes[] = {
	{ "1d", GS_GEOMETRY_1D, 1 },
	{ "2d", GS_GEOMETRY_2D, 2 },
	{ "3d", GS_GEOMETRY_3D, 3 },
	{ "a1d", GS_GEOMETRY_1D_LAYERED, 1 },
	{ "a2d", GS_GEOMETRY_2D_LAYERED, 2 },
	{ "cube", GS_GEOMETRY_CUBE, 3 },
	{ "acube", GS_GEOMETRY_CUBE_LAYERED, 3 },
};

static const struct shape *
find_shape(const struct gs_insn *insn)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (gs_insn_has(insn, shapes[i].word))
			return &shapes[i];
	}
	return NULL;
}

static bool
has_layer(enum gs_geometry geometry)
{
	return geometry == GS_GEOMETRY_1D_LAYERED || geometry == GS_GEOMETRY_2D_LAYERED ||
	       geometry == GS_GEOMETRY_CUBE_LAYERED;
}

/* Returns the number of values in braces, or 1. */
static unsigned int
get_count(const struct gs_operand *operand)
{
	return operand->kind == GS_OPERAND_VECTOR ? operand->count : 1;
}

static const struct gs_operand *
get_element(const struct gs_operand *operand, unsigned int k)
{
	return operand->kind == GS_OPERAND_VECTOR ? &operand->elements[k] : operand;
}

/* Two gradients, which follow the values. */
static void
decode_gradients(struct gs_decoder *decoder, const struct shape *shape, uint32_t *slots)
{
	for (unsigned int i = 0; i < 2; i++) {
		const struct gs_operand *gradient = gs_decode_operand(decoder, 2 + i);

		if (get_count(gradient) < shape->coordinates) {
			gs_decode_fail(decoder, "too few coordinates");
			return;
		}
		for (unsigned int k = 0; k < shape->coordinates; k++)
			*slots++ = gs_decode_source(decoder, get_element(gradient, k), GS_TYPE_F32);
	}
}

/* Returns the slot with the number of the texture or surface. */
static uint32_t
number_slot(struct gs_decoder *decoder, const struct gs_operand *where, bool is_surface)
{
	enum gs_reference wanted = is_surface ? GS_REFERENCE_SURFACE : GS_REFERENCE_TEXTURE;
	const struct gs_symbol *symbol = NULL;

	if (where->kind == GS_OPERAND_ADDRESS && !where->imm && where->reg >= 0 &&
	    gs_decode_reg_width(decoder, where->reg) == 8)
		return decoder->reg_slots[where->reg];
	if (where->kind == GS_OPERAND_ADDRESS && !where->imm && where->reg < 0 &&
	    where->symbol >= 0)
		symbol = &decoder->ptx->symbols[where->symbol];
	if (symbol && symbol->reference == wanted &&
	    decoder->module->symbol_addresses[where->symbol])
		return gs_decode_fixed(decoder, GS_FIXED_REFERENCE, 8, 0, 0,
				       (int64_t)decoder->module->symbol_addresses[where->symbol]);
	gs_decode_fail(decoder, "textures and surfaces are 64-bit registers, or references");
	return 0;
}

/* Slots: the layer, if there is one, the coordinates, then the values. */
static void
decode_slots(struct gs_decoder *decoder, const struct shape *shape, const struct gs_operand *where,
	     const struct gs_operand *values, enum gs_type coordinate, enum gs_type type,
	     bool is_store, struct gs_code *filled)
{
	unsigned int layer = has_layer(shape->geometry), count = get_count(values);
	unsigned int coordinates = layer + shape->coordinates;
	bool has_gradients = filled->kind == GS_KIND_TEXTURE && filled->is_signed;
	uint32_t *slots = gs_decode_alloc(
		decoder, sizeof(*slots) * (coordinates + count + 2 * COORDINATES_MAX));

	filled->a = number_slot(decoder, where, filled->kind != GS_KIND_TEXTURE);
	if (decoder->failed)
		return;
	if (where->count < coordinates || !slots) {
		gs_decode_fail(decoder, "too few coordinates");
		return;
	}
	for (unsigned int k = 0; k < coordinates; k++)
		slots[k] = gs_decode_source(decoder, &where->elements[k],
					    layer && k == 0 ? GS_TYPE_U32 : coordinate);
	for (unsigned int k = 0; k < count && !decoder->failed; k++)
		slots[coordinates + k] =
			is_store ? gs_decode_source(decoder, get_element(values, k), type)
				 : gs_decode_result(decoder, get_element(values, k), type);
	if (has_gradients)
		decode_gradients(decoder, shape, slots + coordinates + count);
	filled->slots = slots;
	filled->sub = (uint8_t)shape->geometry;
	filled->target = (int32_t)coordinates;
	filled->count = (uint8_t)count;
	filled->width = (uint8_t)gs_type_size(type);
	filled->dst_width = (uint8_t)gs_lane_width(type);
}

static void
emit(struct gs_decoder *decoder, enum gs_kind kind, const struct gs_code *filled)
{
	struct gs_code *code = gs_decode_emit(decoder, kind);

	code->a = filled->a;
	code->c = filled->c;
	code->imm = filled->imm;
	code->slots = filled->slots;
	code->sub = filled->sub;
	code->target = filled->target;
	code->count = filled->count;
	code->width = filled->width;
	code->dst_width = filled->dst_width;
	code->type = filled->type;
	code->flag = filled->flag;
	code->is_signed = filled->is_signed;
	code->negated = filled->negated;
}

static bool
is_word(enum gs_type type)
{
	return type == GS_TYPE_F32 || type == GS_TYPE_U32 || type == GS_TYPE_S32 ||
	       type == GS_TYPE_B32;
}

/* flag: integer texel coordinates; negated: explicit level; is_signed: gradients; imm: the channel
 * to gather, or -1. */
static void
decode_texture(struct gs_decoder *decoder)
{
	const struct gs_insn *insn = decoder->insn;
	const struct shape *shape = find_shape(insn);
	enum gs_type type = (enum gs_type)insn->type[0], coordinate = (enum gs_type)insn->type[1];
	bool gathers = insn->op == GS_OP_tld4, has_level = gs_insn_has(insn, "level");
	bool has_gradients = gs_insn_has(insn, "grad");
	unsigned int operands = has_gradients ? 4 : has_level ? 3 : 2;
	struct gs_code filled = { .kind = GS_KIND_TEXTURE, .imm = -1, .is_signed = has_gradients };

	if (!shape || insn->type_count != 2 || insn->pair || !is_word(type) ||
	    (coordinate != GS_TYPE_F32 && coordinate != GS_TYPE_S32) ||
	    insn->operand_count != operands || get_count(gs_decode_operand(decoder, 0)) > 4 ||
	    (gathers && (coordinate != GS_TYPE_F32 || shape->coordinates != 2)) ||
	    (has_gradients &&
	     (gathers || coordinate != GS_TYPE_F32 || shape->geometry >= GS_GEOMETRY_CUBE))) {
		gs_decode_unsupported(decoder, "not supported");
		return;
	}
	filled.flag = coordinate == GS_TYPE_S32;
	filled.negated = has_level;
	if (has_level)
		filled.c = gs_decode_source(decoder, gs_decode_operand(decoder, 2), coordinate);
	if (gathers)
		filled.imm = gs_insn_has(insn, "g")   ? 1
			     : gs_insn_has(insn, "b") ? 2
			     : gs_insn_has(insn, "a") ? 3
						      : 0;
	decode_slots(decoder, shape, gs_decode_operand(decoder, 1), gs_decode_operand(decoder, 0),
		     coordinate, type, false, &filled);
	emit(decoder, GS_KIND_TEXTURE, &filled);
}

/* flag: store; is_signed: clamps outside coordinates to the edge; negated: ignores outside
 * accesses. */
static void
decode_surface(struct gs_decoder *decoder)
{
	const struct gs_insn *insn = decoder->insn;
	const struct shape *shape = find_shape(insn);
	bool is_store = insn->op == GS_OP_sust;
	unsigned int size = gs_type_size((enum gs_type)insn->type[0]);
	const struct gs_operand *values = gs_decode_operand(decoder, is_store ? 1 : 0);
	struct gs_code filled = { .flag = is_store,
				  .is_signed = gs_insn_has(insn, "clamp"),
				  .negated = gs_insn_has(insn, "zero") };

	if (!shape || shape->geometry >= GS_GEOMETRY_CUBE || insn->type_count != 1 ||
	    !gs_insn_has(insn, "b") || insn->operand_count != 2 || size == 0 || size > 8 ||
	    get_count(values) > 4 || get_count(values) * size > 16) {
		gs_decode_unsupported(decoder, "not supported");
		return;
	}
	decode_slots(decoder, shape, gs_decode_operand(decoder, is_store ? 0 : 1), values,
		     GS_TYPE_S32, (enum gs_type)insn->type[0], is_store, &filled);
	emit(decoder, GS_KIND_SURFACE, &filled);
}

bool
gs_decode_texture(struct gs_decoder *decoder)
{
	switch (decoder->insn->op) {
	case GS_OP_tex:
	case GS_OP_tld4:
		decode_texture(decoder);
		return true;
	case GS_OP_suld:
	case GS_OP_sust:
		decode_surface(decoder);
		return true;
	default:
		return false;
	}
}
