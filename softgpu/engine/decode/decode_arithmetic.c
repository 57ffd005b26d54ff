/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic, logic and bit operations: instructions that become a single lane loop. */
#include "softgpu/engine/decode/decode.h"

#include <fenv.h>

void
gs_decode_rounding(struct gs_decoder *decoder, bool restore)
{
	struct gs_code *code;
	int mode;

	switch (decoder->insn->rounding) {
	case GS_ROUND_ZERO:
		mode = FE_TOWARDZERO;
		break;
	case GS_ROUND_DOWN:
		mode = FE_DOWNWARD;
		break;
	case GS_ROUND_UP:
		mode = FE_UPWARD;
		break;
	default:
		return;
	}
	code = gs_decode_emit(decoder, GS_KIND_ROUND);
	code->pred = -1;
	code->imm = restore ? FE_TONEAREST : mode;
}

void
gs_decode_plain(struct gs_decoder *decoder, enum gs_lane_op op, enum gs_type key,
		enum gs_type result, unsigned int count, const enum gs_type *types)
{
	const struct gs_lanes *lanes = decoder->lanes;
	bool is_float = gs_type_is_float(result);
	uint32_t slots[4] = { 0 };
	struct gs_code *code;
	uint32_t dst;

	for (unsigned int k = 0; k < count; k++)
		slots[k] = gs_decode_source(decoder, gs_decode_operand(decoder, k + 1), types[k]);
	if (decoder->insn->operand_count > count + 1)
		gs_decode_fail(decoder, "too many operands");
	dst = gs_decode_result(decoder, gs_decode_operand(decoder, 0), result);
	if (is_float)
		gs_decode_rounding(decoder, false);
	code = gs_decode_emit_lane(decoder, lanes->op[op][key], dst, gs_type_size(result));
	code->a = slots[0];
	code->b = slots[1];
	code->c = slots[2];
	code->d = slots[3];
	if (is_float)
		gs_decode_rounding(decoder, true);
	if (decoder->insn->saturate && is_float) {
		code = gs_decode_emit_lane(decoder, lanes->op[GS_LANE_saturate][result], dst,
					   gs_type_size(result));
		code->a = dst;
	}
}

static enum gs_type
get_type(const struct gs_decoder *decoder)
{
	return (enum gs_type)decoder->insn->type[0];
}

/* All operands and the result have the instruction's type. */
static void
decode_uniform(struct gs_decoder *decoder, enum gs_lane_op op, enum gs_type key, unsigned int count)
{
	enum gs_type type = get_type(decoder);
	const enum gs_type types[4] = { type, type, type, type };

	gs_decode_plain(decoder, op, key, type, count, types);
}

static enum gs_type
wider_type(enum gs_type type)
{
	switch (type) {
	case GS_TYPE_U16:
		return GS_TYPE_U32;
	case GS_TYPE_S16:
		return GS_TYPE_S32;
	case GS_TYPE_U32:
		return GS_TYPE_U64;
	default:
		return GS_TYPE_S64;
	}
}

/* The sign is part of the key for div, min, shr and the like; B types count as unsigned. */
static enum gs_type
signed_key(enum gs_type type)
{
	return gs_type_is_signed(type) ? type : gs_type_unsigned(type);
}

enum carry_flags {
	CARRY_IN = 1,
	CARRY_OUT = 2,
	CARRY_SUBTRACT = 4,
	CARRY_HIGH = 8
};

static void
decode_carry(struct gs_decoder *decoder, enum gs_lane_op op, unsigned int count, int flags)
{
	const struct gs_insn *insn = decoder->insn;
	uint32_t at = decoder->function->code_count;

	decode_uniform(decoder, op, gs_type_unsigned(get_type(decoder)), count);
	if (decoder->failed)
		return;
	if (insn->carry_out)
		flags |= CARRY_OUT;
	/* Only if exactly one instruction was emitted, which uses the carry's slot. */
	if (decoder->function->code_count == at + 1) {
		decoder->function->code[at].imm = flags;
		decoder->function->code[at].d = decoder->carry;
	}
}

static void
decode_add(struct gs_decoder *decoder)
{
	const struct gs_insn *insn = decoder->insn;
	enum gs_type type = get_type(decoder);
	bool subtract = insn->op == GS_OP_sub || insn->op == GS_OP_subc;
	bool carry_in = insn->op == GS_OP_addc || insn->op == GS_OP_subc;
	int flags = (carry_in ? CARRY_IN : 0) | (subtract ? CARRY_SUBTRACT : 0);

	if (carry_in || insn->carry_out)
		decode_carry(decoder, GS_LANE_carry, 2, flags);
	else if (insn->saturate && !gs_type_is_float(type))
		decode_uniform(decoder, subtract ? GS_LANE_sub_sat : GS_LANE_add_sat, type, 2);
	else
		decode_uniform(decoder, subtract ? GS_LANE_sub : GS_LANE_add,
			       gs_type_unsigned(type), 2);
}

static void
decode_wide(struct gs_decoder *decoder, bool adds)
{
	enum gs_type type = get_type(decoder);
	enum gs_type wide = wider_type(type);
	const enum gs_type types[3] = { type, type, wide };

	gs_decode_plain(decoder, adds ? GS_LANE_mad_wide : GS_LANE_mul_wide, type, wide,
			adds ? 3 : 2, types);
}

static void
decode_mul(struct gs_decoder *decoder)
{
	const struct gs_insn *insn = decoder->insn;
	enum gs_type type = get_type(decoder);
	bool adds = insn->op != GS_OP_mul;
	unsigned int count = adds ? 3 : 2;
	bool high = insn->mul_mode == GS_MUL_HI;

	if (insn->op == GS_OP_madc || insn->carry_out)
		decode_carry(decoder, GS_LANE_mad_carry, 3,
			     (insn->op == GS_OP_madc ? CARRY_IN : 0) | (high ? CARRY_HIGH : 0));
	else if (gs_type_is_float(type))
		decode_uniform(decoder, adds ? GS_LANE_fma : GS_LANE_mul, type, count);
	else if (insn->saturate && !(adds && high))
		gs_decode_unsupported(decoder, "saturation is not supported here");
	else if (insn->mul_mode == GS_MUL_WIDE)
		decode_wide(decoder, adds);
	else if (insn->saturate)
		decode_uniform(decoder, GS_LANE_mad_hi_sat, type, 3);
	else if (high)
		decode_uniform(decoder, adds ? GS_LANE_mad_hi : GS_LANE_mul_hi, signed_key(type),
			       count);
	else
		decode_uniform(decoder, adds ? GS_LANE_mad : GS_LANE_mul, gs_type_unsigned(type),
			       count);
}

static void
decode_mul24(struct gs_decoder *decoder)
{
	const struct gs_insn *insn = decoder->insn;
	bool high = insn->mul_mode == GS_MUL_HI;

	if (insn->saturate)
		gs_decode_unsupported(decoder, "saturation is not supported here");
	else if (insn->op == GS_OP_mul24)
		decode_uniform(decoder, high ? GS_LANE_mul24_hi : GS_LANE_mul24, get_type(decoder),
			       2);
	else
		decode_uniform(decoder, high ? GS_LANE_mad24_hi : GS_LANE_mad24, get_type(decoder),
			       3);
}

static void
decode_dot(struct gs_decoder *decoder)
{
	const enum gs_type types[3] = { GS_TYPE_U32, GS_TYPE_U32, GS_TYPE_U32 };
	const struct gs_insn *insn = decoder->insn;
	bool high = insn->mul_mode == GS_MUL_HI;
	enum gs_lane_op op = insn->op == GS_OP_dp4a ? GS_LANE_dp4a
			     : high                 ? GS_LANE_dp2a_hi
						    : GS_LANE_dp2a_lo;

	gs_decode_plain(decoder, op, GS_TYPE_U32, GS_TYPE_U32, 3, types);
	if (decoder->failed)
		return;
	decoder->function->code[decoder->function->code_count - 1].imm =
		(gs_type_is_signed(get_type(decoder)) ? 1 : 0) |
		(gs_type_is_signed((enum gs_type)insn->type[1]) ? 2 : 0);
}

static void
decode_vabsdiff4(struct gs_decoder *decoder)
{
	const enum gs_type types[3] = { GS_TYPE_U32, GS_TYPE_U32, GS_TYPE_U32 };
	const struct gs_insn *insn = decoder->insn;
	bool is_signed = gs_type_is_signed((enum gs_type)insn->type[1]);

	if (insn->type_count != 3 || insn->saturate || insn->type[1] != insn->type[2]) {
		gs_decode_unsupported(decoder, "not supported");
		return;
	}
	gs_decode_plain(decoder, GS_LANE_vabsdiff4, is_signed ? GS_TYPE_S32 : GS_TYPE_U32,
			GS_TYPE_U32, 3, types);
	if (!decoder->failed)
		decoder->function->code[decoder->function->code_count - 1].flag =
			insn->sub == GS_SUB_ADD;
}

/* vshl and vshr of whole words, as libraries use them: vshr.u32.u32.u32.clamp.add. Without a second
 * operation they are shl and shr. */
static void
decode_video_shift(struct gs_decoder *decoder)
{
	const struct gs_insn *insn = decoder->insn;
	enum gs_type type = (enum gs_type)insn->type[1], key = GS_TYPE_U32;
	const enum gs_type types[3] = { type, GS_TYPE_U32, GS_TYPE_U32 };
	bool left = insn->op == GS_OP_vshl, adds = insn->sub == GS_SUB_ADD;

	if (insn->type_count != 3 || insn->saturate || !insn->clamp ||
	    insn->type[2] != GS_TYPE_U32 || (insn->sub && !adds)) {
		gs_decode_unsupported(decoder, "not supported");
		return;
	}
	if (!left && gs_type_is_signed(type))
		key = GS_TYPE_S32;
	if (adds)
		gs_decode_plain(decoder, left ? GS_LANE_shl_add : GS_LANE_shr_add, key, GS_TYPE_U32,
				3, types);
	else
		gs_decode_plain(decoder, left ? GS_LANE_shl : GS_LANE_shr, key, GS_TYPE_U32, 2,
				types);
}

bool
gs_decode_arithmetic(struct gs_decoder *decoder)
{
	static const uint8_t unary_float[GS_OP_COUNT] = {
		[GS_OP_rcp] = GS_LANE_rcp,     [GS_OP_sqrt] = GS_LANE_sqrt,
		[GS_OP_rsqrt] = GS_LANE_rsqrt, [GS_OP_sin] = GS_LANE_sin,
		[GS_OP_cos] = GS_LANE_cos,     [GS_OP_lg2] = GS_LANE_lg2,
		[GS_OP_ex2] = GS_LANE_ex2,     [GS_OP_tanh] = GS_LANE_tanh,
	};
	enum gs_type type = get_type(decoder);

	switch (decoder->insn->op) {
	case GS_OP_add:
	case GS_OP_sub:
	case GS_OP_addc:
	case GS_OP_subc:
		decode_add(decoder);
		return true;
	case GS_OP_mul:
	case GS_OP_mad:
	case GS_OP_madc:
	case GS_OP_fma:
		decode_mul(decoder);
		return true;
	case GS_OP_mul24:
	case GS_OP_mad24:
		decode_mul24(decoder);
		return true;
	case GS_OP_div:
		decode_uniform(decoder, GS_LANE_div, signed_key(type), 2);
		return true;
	case GS_OP_rem:
		decode_uniform(decoder, GS_LANE_rem, signed_key(type), 2);
		return true;
	case GS_OP_min:
		decode_uniform(decoder, GS_LANE_min, signed_key(type), 2);
		return true;
	case GS_OP_max:
		decode_uniform(decoder, GS_LANE_max, signed_key(type), 2);
		return true;
	case GS_OP_neg:
		decode_uniform(decoder, GS_LANE_neg, gs_type_unsigned(type), 1);
		return true;
	case GS_OP_abs:
		decode_uniform(decoder, GS_LANE_abs, type, 1);
		return true;
	case GS_OP_sad:
		decode_uniform(decoder, GS_LANE_sad, signed_key(type), 3);
		return true;
	case GS_OP_rcp:
	case GS_OP_sqrt:
	case GS_OP_rsqrt:
	case GS_OP_sin:
	case GS_OP_cos:
	case GS_OP_lg2:
	case GS_OP_ex2:
	case GS_OP_tanh:
		decode_uniform(decoder, (enum gs_lane_op)unary_float[decoder->insn->op], type, 1);
		return true;
	case GS_OP_copysign:
		decode_uniform(decoder, GS_LANE_copysign, type, 2);
		return true;
	case GS_OP_dp4a:
	case GS_OP_dp2a:
		decode_dot(decoder);
		return true;
	case GS_OP_vabsdiff4:
		decode_vabsdiff4(decoder);
		return true;
	case GS_OP_vshl:
	case GS_OP_vshr:
		decode_video_shift(decoder);
		return true;
	default:
		return false;
	}
}

/* 16-bit operations may use the 32-bit loops, because the upper half is never read. */
static enum gs_type
bit_key(enum gs_type type)
{
	enum gs_type key = gs_type_unsigned(type);

	return key == GS_TYPE_U16 ? GS_TYPE_U32 : key;
}

static void
decode_bitwise(struct gs_decoder *decoder, enum gs_lane_op op, enum gs_lane_op with_not)
{
	enum gs_type type = get_type(decoder);
	const enum gs_type types[2] = { type, type };

	if (gs_decode_operand(decoder, 1)->negated)
		gs_decode_unsupported(decoder, "'!' is not supported here");
	gs_decode_plain(decoder, gs_decode_operand(decoder, 2)->negated ? with_not : op,
			bit_key(type), type, 2, types);
}

static void
decode_shift(struct gs_decoder *decoder)
{
	enum gs_type type = get_type(decoder);
	const enum gs_type types[2] = { type, GS_TYPE_U32 };

	if (decoder->insn->op == GS_OP_shl)
		gs_decode_plain(decoder, GS_LANE_shl, gs_type_unsigned(type), type, 2, types);
	else
		gs_decode_plain(decoder, GS_LANE_shr, signed_key(type), type, 2, types);
}

static void
decode_funnel(struct gs_decoder *decoder)
{
	const enum gs_type types[3] = { GS_TYPE_U32, GS_TYPE_U32, GS_TYPE_U32 };
	bool left = decoder->insn->sub == GS_SUB_LEFT;
	bool clamp = decoder->insn->clamp;
	enum gs_lane_op op = left    ? clamp ? GS_LANE_shf_left_clamp : GS_LANE_shf_left_wrap
			     : clamp ? GS_LANE_shf_right_clamp
				     : GS_LANE_shf_right_wrap;

	gs_decode_plain(decoder, op, GS_TYPE_U32, GS_TYPE_U32, 3, types);
}

/* The result has 32 bits regardless of the operand's width. */
static void
decode_count(struct gs_decoder *decoder, enum gs_lane_op op, enum gs_type key)
{
	const enum gs_type types[1] = { get_type(decoder) };

	gs_decode_plain(decoder, op, key, GS_TYPE_U32, 1, types);
}

static void
decode_field(struct gs_decoder *decoder)
{
	enum gs_type type = get_type(decoder);
	const enum gs_type extract[3] = { type, GS_TYPE_U32, GS_TYPE_U32 };
	const enum gs_type insert[4] = { type, type, GS_TYPE_U32, GS_TYPE_U32 };

	if (decoder->insn->op == GS_OP_bfe)
		gs_decode_plain(decoder, GS_LANE_bfe, signed_key(type), type, 3, extract);
	else
		gs_decode_plain(decoder, GS_LANE_bfi, gs_type_unsigned(type), type, 4, insert);
}

static void
decode_lop3(struct gs_decoder *decoder)
{
	const struct gs_operand *table = gs_decode_operand(decoder, 4);
	struct gs_code *code;
	uint32_t slots[3];

	if (decoder->insn->bool_op || decoder->insn->sub || table->kind != GS_OPERAND_IMM) {
		gs_decode_unsupported(decoder, "not supported");
		return;
	}
	for (unsigned int k = 0; k < 3; k++)
		slots[k] =
			gs_decode_source(decoder, gs_decode_operand(decoder, k + 1), GS_TYPE_U32);
	code = gs_decode_emit_lane(
		decoder, decoder->lanes->op[GS_LANE_lop3][GS_TYPE_U32],
		gs_decode_result(decoder, gs_decode_operand(decoder, 0), GS_TYPE_U32), 4);
	code->a = slots[0];
	code->b = slots[1];
	code->c = slots[2];
	code->imm = table->imm;
}

static void
decode_fns(struct gs_decoder *decoder)
{
	const enum gs_type types[3] = { GS_TYPE_U32, GS_TYPE_U32, GS_TYPE_S32 };

	gs_decode_plain(decoder, GS_LANE_fns, GS_TYPE_U32, GS_TYPE_U32, 3, types);
}

static void
decode_prmt(struct gs_decoder *decoder)
{
	if (decoder->insn->spelling_len > 8) /* prmt.b32 without a mode */
		gs_decode_unsupported(decoder, "not supported");
	decode_uniform(decoder, GS_LANE_prmt, GS_TYPE_U32, 3);
}

bool
gs_decode_logic(struct gs_decoder *decoder)
{
	const struct gs_insn *insn = decoder->insn;
	enum gs_type type = get_type(decoder);

	switch (insn->op) {
	case GS_OP_and:
		decode_bitwise(decoder, GS_LANE_and, GS_LANE_and_not);
		return true;
	case GS_OP_or:
		decode_bitwise(decoder, GS_LANE_or, GS_LANE_or_not);
		return true;
	case GS_OP_xor:
		decode_bitwise(decoder, GS_LANE_xor, GS_LANE_xor_not);
		return true;
	case GS_OP_not:
		decode_uniform(decoder, GS_LANE_not, gs_type_unsigned(type), 1);
		return true;
	case GS_OP_cnot:
		decode_uniform(decoder, GS_LANE_cnot, gs_type_unsigned(type), 1);
		return true;
	case GS_OP_shl:
	case GS_OP_shr:
		decode_shift(decoder);
		return true;
	case GS_OP_shf:
		decode_funnel(decoder);
		return true;
	case GS_OP_popc:
		decode_count(decoder, GS_LANE_popc, gs_type_unsigned(type));
		return true;
	case GS_OP_clz:
		decode_count(decoder, GS_LANE_clz, gs_type_unsigned(type));
		return true;
	case GS_OP_bfind:
		decode_count(decoder,
			     insn->sub == GS_SUB_SHIFTAMT ? GS_LANE_bfind_shift : GS_LANE_bfind,
			     signed_key(type));
		return true;
	case GS_OP_brev:
		decode_uniform(decoder, GS_LANE_brev, gs_type_unsigned(type), 1);
		return true;
	case GS_OP_bfe:
	case GS_OP_bfi:
		decode_field(decoder);
		return true;
	case GS_OP_bmsk:
		decode_uniform(decoder, insn->clamp ? GS_LANE_bmsk_clamp : GS_LANE_bmsk_wrap,
			       GS_TYPE_U32, 2);
		return true;
	case GS_OP_szext:
		decode_uniform(decoder, insn->clamp ? GS_LANE_szext_clamp : GS_LANE_szext_wrap,
			       signed_key(type), 2);
		return true;
	case GS_OP_fns:
		decode_fns(decoder);
		return true;
	case GS_OP_prmt:
		decode_prmt(decoder);
		return true;
	case GS_OP_lop3:
		decode_lop3(decoder);
		return true;
	default:
		return false;
	}
}
