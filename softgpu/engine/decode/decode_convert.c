/* SPDX-License-Identifier: Apache-2.0 */
/* Moves, comparisons, selections and conversions. */
#include "softgpu/engine/decode/decode.h"

#include <string.h>

static enum gs_type
get_type(const struct gs_decoder *decoder)
{
	return (enum gs_type)decoder->insn->type[0];
}

static struct gs_code *
emit_two(struct gs_decoder *decoder, enum gs_lane_op op, enum gs_type key, uint32_t dst, uint32_t a,
	 uint32_t b)
{
	struct gs_code *code = gs_decode_emit_lane(decoder, decoder->lanes->op[op][key], dst, 4);

	code->a = a;
	code->b = b;
	return code;
}

/* eq and ne ignore the sign; the other comparisons use the type, with B types as unsigned. */
static enum gs_type
compare_key(enum gs_type type, enum gs_compare compare)
{
	if (gs_type_is_signed(type) && compare > GS_CMP_NE)
		return type;
	return gs_type_unsigned(type);
}

/* p|q = (a op b) bool c; q is the same with the comparison negated. */
static void
decode_setp(struct gs_decoder *decoder, enum gs_type type, uint32_t dst, unsigned int first)
{
	static const uint8_t plain[] = { 0, GS_LANE_and, GS_LANE_or, GS_LANE_xor };
	static const uint8_t with_not[] = { 0, GS_LANE_and_not, GS_LANE_or_not, GS_LANE_xor_not };
	const struct gs_insn *insn = decoder->insn;
	uint32_t a = gs_decode_source(decoder, gs_decode_operand(decoder, first), type);
	uint32_t b = gs_decode_source(decoder, gs_decode_operand(decoder, first + 1), type);
	const struct gs_operand *third =
		insn->bool_op ? gs_decode_operand(decoder, first + 2) : NULL;
	enum gs_lane_op bool_op = GS_LANE_mov;
	uint32_t raw = dst;
	uint32_t c = 0;

	if (third) {
		c = gs_decode_source(decoder, third, GS_TYPE_PRED);
		bool_op = (enum gs_lane_op)(third->negated ? with_not : plain)[insn->bool_op & 3];
	}
	if (third || insn->pair)
		raw = gs_decode_new_slot(decoder, 4);
	emit_two(decoder, (enum gs_lane_op)(GS_LANE_set_eq + insn->compare),
		 compare_key(type, (enum gs_compare)insn->compare), raw, a, b);
	if (insn->pair) {
		uint32_t other =
			gs_decode_result(decoder, gs_decode_operand(decoder, 1), GS_TYPE_PRED);
		uint32_t negated = gs_decode_new_slot(decoder, 4);

		emit_two(decoder, GS_LANE_not, GS_TYPE_U32, negated, raw, 0);
		if (third)
			emit_two(decoder, bool_op, GS_TYPE_U32, negated, negated, c);
		if (third)
			emit_two(decoder, bool_op, GS_TYPE_U32, raw, raw, c);
		emit_two(decoder, GS_LANE_mov, GS_TYPE_U32, other, negated, 0);
		emit_two(decoder, GS_LANE_mov, GS_TYPE_U32, dst, raw, 0);
	} else if (third) {
		emit_two(decoder, bool_op, GS_TYPE_U32, dst, raw, c);
	}
}

/* Compares two halves separately; each result has all bits set or none. */
static void
compare_halves(struct gs_decoder *decoder, enum gs_type type, unsigned int first,
	       uint32_t results[2])
{
	gs_lane_func *unpack = decoder->lanes->op[GS_LANE_unpack][GS_TYPE_NONE];
	enum gs_type half = type == GS_TYPE_F16X2 ? GS_TYPE_F16 : GS_TYPE_BF16;
	uint32_t sources[2];
	uint32_t parts[2];

	for (unsigned int k = 0; k < 2; k++) {
		sources[k] = gs_decode_source(decoder, gs_decode_operand(decoder, k + first),
					      GS_TYPE_B32);
		parts[k] = gs_decode_new_slot(decoder, 4);
		results[k] = gs_decode_new_slot(decoder, 4);
	}
	for (unsigned int i = 0; i < 2; i++) {
		for (unsigned int k = 0; k < 2; k++) {
			struct gs_code *code = gs_decode_emit_lane(decoder, unpack, parts[k], 4);

			code->a = sources[k];
			code->imm = 16 * i;
			code->count = 2;
		}
		emit_two(decoder, (enum gs_lane_op)(GS_LANE_set_eq + decoder->insn->compare), half,
			 results[i], parts[0], parts[1]);
	}
}

/* Each half has a predicate of its own. */
static void
decode_setp_half2(struct gs_decoder *decoder)
{
	uint32_t results[2];

	if (!decoder->insn->pair || decoder->insn->bool_op) {
		gs_decode_unsupported(decoder, "not supported");
		return;
	}
	compare_halves(decoder, get_type(decoder), 2, results);
	for (unsigned int i = 0; i < 2; i++)
		emit_two(decoder, GS_LANE_mov, GS_TYPE_U32,
			 gs_decode_result(decoder, gs_decode_operand(decoder, i), GS_TYPE_PRED),
			 results[i], 0);
}

/* Each half of the result has all bits set, or is 1 in its type. */
static void
decode_set_half2(struct gs_decoder *decoder, enum gs_type type, uint32_t dst)
{
	enum gs_type to = get_type(decoder);
	bool is_half = to == GS_TYPE_F16X2 || to == GS_TYPE_BF16X2;
	int64_t one = to == GS_TYPE_F16X2 ? 0x3c00 : is_half ? 0x3f80 : 0xffff;
	uint32_t results[2];

	if (decoder->insn->bool_op || (is_half && to != type) || to == GS_TYPE_F32) {
		gs_decode_unsupported(decoder, "not supported");
		return;
	}
	compare_halves(decoder, type, 1, results);
	for (unsigned int i = 0; i < 2; i++)
		emit_two(decoder, GS_LANE_and, GS_TYPE_U32, results[i], results[i],
			 gs_decode_fixed(decoder, GS_FIXED_IMM, 4, 0, 0, one << (16 * i)));
	emit_two(decoder, GS_LANE_or, GS_TYPE_U32, dst, results[0], results[1]);
}

static void
decode_set(struct gs_decoder *decoder)
{
	const struct gs_insn *insn = decoder->insn;
	enum gs_type type = (enum gs_type)insn->type[1];
	uint32_t dst = gs_decode_result(decoder, gs_decode_operand(decoder, 0), get_type(decoder));
	bool halves = type == GS_TYPE_F16X2 || type == GS_TYPE_BF16X2;

	if (insn->type_count != 2 || insn->pair || gs_type_size(get_type(decoder)) != 4 ||
	    (!halves &&
	     (get_type(decoder) == GS_TYPE_F16X2 || get_type(decoder) == GS_TYPE_BF16X2))) {
		gs_decode_unsupported(decoder, "not supported");
		return;
	}
	if (halves) {
		decode_set_half2(decoder, type, dst);
		return;
	}
	decode_setp(decoder, type, dst, 1);
	if (get_type(decoder) == GS_TYPE_F32)
		emit_two(decoder, GS_LANE_set_float, GS_TYPE_F32, dst, dst, 0);
}

static void
decode_selp(struct gs_decoder *decoder)
{
	enum gs_type type = get_type(decoder);
	enum gs_type key = gs_lane_width(type) == 8 ? GS_TYPE_U64 : GS_TYPE_U32;
	const enum gs_type types[3] = { type, type, GS_TYPE_PRED };
	bool negated = gs_decode_operand(decoder, 3)->negated;

	gs_decode_plain(decoder, negated ? GS_LANE_selp_not : GS_LANE_selp, key, type, 3, types);
}

static void
decode_slct(struct gs_decoder *decoder)
{
	enum gs_type type = get_type(decoder);
	enum gs_type by = (enum gs_type)decoder->insn->type[1];
	enum gs_type key = gs_lane_width(type) == 8 ? GS_TYPE_U64 : GS_TYPE_U32;
	const enum gs_type types[3] = { type, type, by };

	gs_decode_plain(decoder, by == GS_TYPE_F32 ? GS_LANE_slct_float : GS_LANE_slct, key, type,
			3, types);
}

static void
decode_testp(struct gs_decoder *decoder)
{
	static const char *const words[] = { "finite",     "infinite", "number",
					     "notanumber", "normal",   "subnormal" };
	const enum gs_type types[1] = { get_type(decoder) };

	gs_decode_plain(decoder, GS_LANE_testp, types[0], GS_TYPE_PRED, 1, types);
	for (int i = 0; i < 6 && !decoder->failed; i++) {
		if (gs_insn_has(decoder->insn, words[i]))
			decoder->function->code[decoder->function->code_count - 1].imm = i;
	}
}

bool
gs_decode_compare(struct gs_decoder *decoder)
{
	enum gs_type type = get_type(decoder);

	switch (decoder->insn->op) {
	case GS_OP_setp:
		if (type == GS_TYPE_F16X2 || type == GS_TYPE_BF16X2)
			decode_setp_half2(decoder);
		else
			decode_setp(decoder, type,
				    gs_decode_result(decoder, gs_decode_operand(decoder, 0),
						     GS_TYPE_PRED),
				    decoder->insn->pair ? 2 : 1);
		return true;
	case GS_OP_set:
		decode_set(decoder);
		return true;
	case GS_OP_selp:
		decode_selp(decoder);
		return true;
	case GS_OP_slct:
		decode_slct(decoder);
		return true;
	case GS_OP_testp:
		decode_testp(decoder);
		return true;
	default:
		return false;
	}
}

static void
decode_unpack(struct gs_decoder *decoder, const struct gs_operand *parts)
{
	gs_lane_func *unpack = decoder->lanes->op[GS_LANE_unpack][GS_TYPE_NONE];
	enum gs_type type = get_type(decoder);
	unsigned int size = gs_type_size(type);
	uint32_t source = gs_decode_source(decoder, gs_decode_operand(decoder, 1), type);

	if (!parts->count || size % parts->count || size > 8) {
		gs_decode_unsupported(decoder, "not supported");
		return;
	}
	for (unsigned int k = 0; k < parts->count; k++) {
		const struct gs_operand *part = &parts->elements[k];
		struct gs_code *code;
		unsigned int width;

		if (part->kind == GS_OPERAND_SINK)
			continue;
		if (part->kind != GS_OPERAND_REG) {
			gs_decode_fail(decoder, "a part is no register");
			return;
		}
		width = gs_decode_reg_width(decoder, part->reg);
		code = gs_decode_emit_lane(decoder, unpack, decoder->reg_slots[part->reg], width);
		code->a = source;
		code->width = (uint8_t)gs_lane_width(type);
		code->imm = k * (size / parts->count) * 8;
		code->count = (uint8_t)(size / parts->count);
	}
}

static void
decode_pack(struct gs_decoder *decoder, const struct gs_operand *parts)
{
	gs_lane_func *pack = decoder->lanes->op[GS_LANE_pack][GS_TYPE_NONE];
	enum gs_type type = get_type(decoder);
	unsigned int size = gs_type_size(type);
	enum gs_type part_type;
	struct gs_code *code;
	uint32_t *slots;

	if (!parts->count || size % parts->count || size > 8 || size / parts->count > 4) {
		gs_decode_unsupported(decoder, "not supported");
		return;
	}
	part_type = size / parts->count == 4 ? GS_TYPE_U32 : GS_TYPE_U16;
	slots = gs_decode_alloc(decoder, sizeof(*slots) * parts->count);
	for (unsigned int k = 0; k < parts->count && !decoder->failed; k++)
		slots[k] = gs_decode_source(decoder, &parts->elements[k], part_type);
	code = gs_decode_emit_lane(decoder, pack,
				   gs_decode_result(decoder, gs_decode_operand(decoder, 0), type),
				   gs_lane_width(type));
	code->slots = slots;
	code->count = parts->count;
	code->width = (uint8_t)(size / parts->count);
}

static void
decode_mov(struct gs_decoder *decoder)
{
	const struct gs_operand *result = gs_decode_operand(decoder, 0);
	const struct gs_operand *source = gs_decode_operand(decoder, 1);
	enum gs_type type = get_type(decoder);
	enum gs_type key = gs_lane_width(type) == 8 ? GS_TYPE_U64 : GS_TYPE_U32;
	const enum gs_type types[1] = { type };

	if (type == GS_TYPE_B128)
		gs_decode_unsupported(decoder, "not supported");
	else if (result->kind == GS_OPERAND_VECTOR)
		decode_unpack(decoder, result);
	else if (source->kind == GS_OPERAND_VECTOR)
		decode_pack(decoder, source);
	else
		gs_decode_plain(decoder, GS_LANE_mov, key, type, 1, types);
}

/* Only shared addresses differ from generic ones: they are offsets in the block's window. */
static void
decode_cvta(struct gs_decoder *decoder)
{
	const struct gs_insn *insn = decoder->insn;
	enum gs_type type = get_type(decoder);
	struct gs_code *code;
	uint32_t source;
	uint32_t base;
	uint32_t dst;

	if (insn->space != GS_SPACE_SHARED) {
		decode_mov(decoder);
		return;
	}
	if (gs_lane_width(type) != 8) {
		gs_decode_fail(decoder, "an address needs 64 bits");
		return;
	}
	source = gs_decode_source(decoder, gs_decode_operand(decoder, 1), type);
	base = gs_decode_fixed(decoder, GS_FIXED_SPECIAL, 8, GS_SPECIAL_SHARED_BASE, 0, 0);
	dst = gs_decode_result(decoder, gs_decode_operand(decoder, 0), type);
	code = gs_decode_emit_lane(
		decoder,
		decoder->lanes->op[insn->sub == GS_SUB_TO ? GS_LANE_sub : GS_LANE_add][GS_TYPE_U64],
		dst, 8);
	code->a = source;
	code->b = base;
}

static enum gs_type
convert_key(enum gs_type type)
{
	return gs_type_is_signed(type) ? type : gs_type_unsigned(type);
}

/* Returns the simple conversion loop, if it implements everything that is required. */
static gs_lane_func *
plain_conversion(const struct gs_decoder *decoder, enum gs_type to, enum gs_type from)
{
	const struct gs_insn *insn = decoder->insn;
	const struct gs_lanes *lanes = decoder->lanes;
	bool to_integral = insn->rounding >= GS_ROUND_NEAREST_INT;

	if (insn->saturate)
		return NULL;
	if (gs_type_is_float(from) && !gs_type_is_float(to))
		return !to_integral || insn->rounding == GS_ROUND_ZERO_INT
			       ? lanes->convert[to][from]
			       : NULL;
	if (gs_type_is_float(from) && to_integral)
		return to == from ? lanes->op[GS_LANE_round_nearest + insn->rounding -
					      GS_ROUND_NEAREST_INT][to]
				  : NULL;
	if (gs_type_is_float(to) && to == from)
		return lanes->op[GS_LANE_mov][gs_lane_width(to) == 8 ? GS_TYPE_U64 : GS_TYPE_U32];
	if (lanes->convert[to][from])
		return lanes->convert[to][from];
	if (gs_type_is_float(to) || gs_type_is_float(from))
		return NULL;
	/* Integers: only the narrower type's width and the source's sign matter. */
	if (gs_type_size(to) >= 4 && gs_type_size(from) == 8)
		return gs_type_size(to) == 4 ? lanes->convert[GS_TYPE_U32][GS_TYPE_U64]
					     : lanes->op[GS_LANE_mov][GS_TYPE_U64];
	if (gs_type_size(to) == 4 && gs_type_size(from) == 4)
		return lanes->op[GS_LANE_mov][GS_TYPE_U32];
	return NULL;
}

static bool
is_convertible(enum gs_type type)
{
	return type != GS_TYPE_NONE && type != GS_TYPE_PRED && type != GS_TYPE_F16X2 &&
	       type != GS_TYPE_BF16X2 && type != GS_TYPE_B128;
}

/* cvt.rn.f16x2.f32 d, hi, lo */
static void
decode_convert_pair(struct gs_decoder *decoder)
{
	const struct gs_insn *insn = decoder->insn;
	enum gs_type half = insn->type[0] == GS_TYPE_F16X2 ? GS_TYPE_F16 : GS_TYPE_BF16;
	gs_lane_func *convert = decoder->lanes->convert[half][GS_TYPE_F32];
	uint32_t *slots = gs_decode_alloc(decoder, sizeof(*slots) * 2);
	struct gs_code *code;

	if (insn->type_count != 2 || insn->type[1] != GS_TYPE_F32 || insn->saturate ||
	    insn->rounding != GS_ROUND_NEAREST || decoder->failed) {
		gs_decode_unsupported(decoder, "not supported");
		return;
	}
	for (unsigned int k = 0; k < 2; k++) {
		uint32_t source =
			gs_decode_source(decoder, gs_decode_operand(decoder, 2 - k), GS_TYPE_F32);

		slots[k] = gs_decode_new_slot(decoder, 4);
		gs_decode_emit_lane(decoder, convert, slots[k], 4)->a = source;
	}
	code = gs_decode_emit_lane(
		decoder, decoder->lanes->op[GS_LANE_pack][GS_TYPE_NONE],
		gs_decode_result(decoder, gs_decode_operand(decoder, 0), GS_TYPE_B32), 4);
	code->slots = slots;
	code->count = 2;
	code->width = 2;
}

/* Operands may be wider than the type: the source is truncated first. */
static uint32_t
convert_source(struct gs_decoder *decoder, enum gs_type from)
{
	const struct gs_operand *operand = gs_decode_operand(decoder, 1);
	uint32_t narrow;
	uint32_t slot;

	if (operand->kind != GS_OPERAND_REG || gs_decode_reg_width(decoder, operand->reg) == 4 ||
	    gs_lane_width(from) == 8)
		return gs_decode_source(decoder, operand, from);
	slot = decoder->reg_slots[operand->reg];
	narrow = gs_decode_new_slot(decoder, 4);
	gs_decode_emit_lane(decoder, decoder->lanes->convert[GS_TYPE_U32][GS_TYPE_U64], narrow, 4)
		->a = slot;
	return narrow;
}

static void
decode_cvt(struct gs_decoder *decoder)
{
	const struct gs_insn *insn = decoder->insn;
	enum gs_type to = convert_key(get_type(decoder));
	enum gs_type from = convert_key((enum gs_type)insn->type[1]);
	const struct gs_operand *result = gs_decode_operand(decoder, 0);
	gs_lane_func *plain;
	unsigned int width;
	uint32_t source;
	struct gs_code *code;

	if (to == GS_TYPE_F16X2 || to == GS_TYPE_BF16X2) {
		decode_convert_pair(decoder);
		return;
	}
	if (insn->type_count != 2 || insn->operand_count != 2 || !is_convertible(to) ||
	    !is_convertible(from) || result->kind != GS_OPERAND_REG) {
		gs_decode_unsupported(decoder, "not supported");
		return;
	}
	/* The loops for halves implement a single rounding mode. */
	if ((to == GS_TYPE_F16 || to == GS_TYPE_BF16) && insn->rounding != GS_ROUND_NEAREST &&
	    insn->rounding < GS_ROUND_NEAREST_INT && to != from) {
		gs_decode_unsupported(decoder, "this rounding is not supported");
		return;
	}
	source = convert_source(decoder, from);
	width = gs_decode_reg_width(decoder, result->reg);
	if (gs_lane_width(to) > width) {
		gs_decode_fail(decoder, "a register has the wrong size");
		return;
	}
	plain = width == gs_lane_width(to) ? plain_conversion(decoder, to, from) : NULL;
	gs_decode_rounding(decoder, false);
	code = gs_decode_emit_lane(
		decoder, plain ? plain : decoder->lanes->op[GS_LANE_convert][GS_TYPE_NONE],
		decoder->reg_slots[result->reg], width);
	code->a = source;
	code->type = (uint8_t)to;
	code->sub = (uint8_t)from;
	code->width = (uint8_t)gs_lane_width(from);
	code->count = (uint8_t)(gs_type_size(to) * 8);
	code->flag = insn->saturate;
	code->imm = insn->rounding;
	/* Without a rounding mode a float is truncated to an integer. */
	if (gs_type_is_float(from) && !gs_type_is_float(to) && !insn->rounding)
		code->imm = GS_ROUND_ZERO_INT;
	gs_decode_rounding(decoder, true);
}

bool
gs_decode_convert(struct gs_decoder *decoder)
{
	switch (decoder->insn->op) {
	case GS_OP_mov:
		decode_mov(decoder);
		return true;
	case GS_OP_cvta:
		decode_cvta(decoder);
		return true;
	case GS_OP_cvt:
		decode_cvt(decoder);
		return true;
	default:
		return false;
	}
}
