/* SPDX-License-Identifier: Apache-2.0 */
/* Loads, stores, atomics and asynchronous copies. */
#include "softgpu/engine/decode/decode.h"

static enum gs_type
get_type(const struct gs_decoder *decoder)
{
	return (enum gs_type)decoder->insn->type[0];
}

/* Source of an address: the members a, imm, space and has_short_address of the code. */
struct address {
	uint32_t slot;
	int64_t offset;
	bool is_short;
	bool is_shared;
};

static struct address
decode_address(struct gs_decoder *decoder, const struct gs_operand *operand)
{
	struct address address = { .offset = operand->imm,
				   .is_shared = decoder->insn->space == GS_SPACE_SHARED };
	struct gs_operand name = { .kind = GS_OPERAND_SYMBOL, .reg = -1 };

	if (operand->kind != GS_OPERAND_ADDRESS) {
		gs_decode_fail(decoder, "the operand is no address");
		return address;
	}
	if (operand->reg >= 0) {
		address.slot = decoder->reg_slots[operand->reg];
		address.is_short = gs_decode_reg_width(decoder, operand->reg) == 4;
		return address;
	}
	if (operand->symbol < 0) {
		address.slot = gs_decode_fixed(decoder, GS_FIXED_IMM, 8, 0, 0, 0);
		return address;
	}
	name.symbol = operand->symbol;
	if (decoder->ptx->symbols[operand->symbol].space == GS_SPACE_SHARED) {
		address.is_shared = true;
		address.is_short = true;
		address.slot = gs_decode_source(decoder, &name, GS_TYPE_U32);
	} else {
		address.is_shared = false;
		address.slot = gs_decode_source(decoder, &name, GS_TYPE_U64);
	}
	return address;
}

static void
set_address(struct gs_code *code, const struct address *address)
{
	code->a = address->slot;
	code->imm = address->offset;
	code->has_short_address = address->is_short;
	code->space = address->is_shared ? GS_SPACE_SHARED : GS_SPACE_GENERIC;
}

void
gs_decode_address(struct gs_decoder *decoder, const struct gs_operand *operand,
		  struct gs_code *code)
{
	struct address address = decode_address(decoder, operand);

	set_address(code, &address);
}

/* Returns the elements of a vector operand, or the operand itself. */
static const struct gs_operand *
get_elements(const struct gs_operand *operand, unsigned int *count_p)
{
	if (operand->kind != GS_OPERAND_VECTOR) {
		*count_p = 1;
		return operand;
	}
	*count_p = operand->count;
	return operand->elements;
}

static bool
check_vector(struct gs_decoder *decoder, unsigned int count)
{
	unsigned int wanted = decoder->insn->vector ? decoder->insn->vector : 1;
	unsigned int size = gs_type_size(get_type(decoder));

	if (count == wanted && size && size <= 8 && count * size <= 32 &&
	    get_type(decoder) != GS_TYPE_PRED)
		return true;
	gs_decode_fail(decoder, "the vector and the type do not fit");
	return false;
}

/* A launch parameter is equal for all threads and already in a slot. */
static void
decode_load_param(struct gs_decoder *decoder, const struct gs_operand *address)
{
	const struct gs_symbol *symbol = &decoder->ptx->symbols[address->symbol];
	enum gs_type type = get_type(decoder);
	unsigned int size = gs_type_size(type);
	unsigned int count;
	const struct gs_operand *elements = get_elements(gs_decode_operand(decoder, 0), &count);

	if (!check_vector(decoder, count))
		return;
	for (unsigned int k = 0; k < count; k++) {
		int64_t at = (int64_t)symbol->offset + address->imm + (int64_t)k * size;
		unsigned int width;
		struct gs_code *code;
		uint32_t slot;

		if (elements[k].kind == GS_OPERAND_SINK)
			continue;
		if (elements[k].kind != GS_OPERAND_REG || at < 0 ||
		    at + size > (int64_t)decoder->ptx_function->param_bytes) {
			gs_decode_fail(decoder, "outside the parameters");
			return;
		}
		width = gs_decode_reg_width(decoder, elements[k].reg);
		if (width < gs_lane_width(type)) {
			gs_decode_fail(decoder, "a register has the wrong size");
			return;
		}
		slot = gs_decode_fixed(decoder, GS_FIXED_PARAM, width, type, 0, at);
		code = gs_decode_emit_lane(
			decoder,
			decoder->lanes->op[GS_LANE_mov][width == 8 ? GS_TYPE_U64 : GS_TYPE_U32],
			decoder->reg_slots[elements[k].reg], width);
		code->a = slot;
	}
}

static uint32_t
element_slot(struct gs_decoder *decoder, const struct gs_operand *element, bool is_store,
	     unsigned int *width_p)
{
	if (element->kind == GS_OPERAND_REG) {
		unsigned int width = gs_decode_reg_width(decoder, element->reg);

		if (width < gs_lane_width(get_type(decoder)) || (*width_p && *width_p != width))
			gs_decode_fail(decoder, "a register has the wrong size");
		*width_p = width;
		return decoder->reg_slots[element->reg];
	}
	if (!is_store && element->kind == GS_OPERAND_SINK)
		return decoder->scratch;
	if (!is_store)
		gs_decode_fail(decoder, "the result is no register");
	return 0;
}

/* Elements that are not registers come second: they get the registers' lane width. */
static uint32_t *
element_slots(struct gs_decoder *decoder, const struct gs_operand *elements, unsigned int count,
	      bool is_store, unsigned int *width_p)
{
	uint32_t *slots = gs_decode_alloc(decoder, sizeof(*slots) * count);
	enum gs_type type = get_type(decoder);

	*width_p = 0;
	for (unsigned int k = 0; k < count && !decoder->failed; k++)
		slots[k] = element_slot(decoder, &elements[k], is_store, width_p);
	if (!*width_p)
		*width_p = gs_lane_width(type);
	for (unsigned int k = 0; k < count && is_store && !decoder->failed; k++) {
		if (elements[k].kind == GS_OPERAND_REG)
			continue;
		if (*width_p != gs_lane_width(type))
			type = GS_TYPE_U64;
		slots[k] = gs_decode_source(decoder, &elements[k], type);
	}
	return slots;
}

static bool
is_launch_param(const struct gs_decoder *decoder, const struct gs_operand *address)
{
	return address->kind == GS_OPERAND_ADDRESS && address->symbol >= 0 &&
	       decoder->ptx->symbols[address->symbol].is_launch_param;
}

static void
decode_access(struct gs_decoder *decoder, bool is_store)
{
	const struct gs_operand *where = gs_decode_operand(decoder, is_store ? 0 : 1);
	const struct gs_operand *values = gs_decode_operand(decoder, is_store ? 1 : 0);
	enum gs_type type = get_type(decoder);
	struct address address;
	struct gs_code *code;
	unsigned int width;
	unsigned int count;
	uint32_t *slots;

	if (decoder->insn->operand_count != 2) {
		gs_decode_unsupported(decoder, "not supported");
		return;
	}
	if (!is_store && is_launch_param(decoder, where)) {
		decode_load_param(decoder, where);
		return;
	}
	values = get_elements(values, &count);
	if (!check_vector(decoder, count))
		return;
	slots = element_slots(decoder, values, count, is_store, &width);
	address = decode_address(decoder, where);
	code = gs_decode_emit(decoder, is_store ? GS_KIND_STORE : GS_KIND_LOAD);
	set_address(code, &address);
	code->slots = slots;
	code->count = (uint8_t)count;
	code->width = (uint8_t)gs_type_size(type);
	code->dst_width = (uint8_t)width;
	code->is_signed = gs_type_is_signed(type);
}

static bool
is_atomic_type(enum gs_type type, enum gs_sub sub)
{
	switch (type) {
	case GS_TYPE_B32:
	case GS_TYPE_U32:
	case GS_TYPE_S32:
	case GS_TYPE_B64:
	case GS_TYPE_U64:
	case GS_TYPE_S64:
		return true;
	case GS_TYPE_F32:
	case GS_TYPE_F64:
	case GS_TYPE_F16:
	case GS_TYPE_F16X2:
	case GS_TYPE_BF16:
	case GS_TYPE_BF16X2:
		return sub == GS_SUB_ADD;
	case GS_TYPE_B16:
	case GS_TYPE_U16:
		return sub == GS_SUB_CAS;
	default:
		return false;
	}
}

static void
decode_atomic(struct gs_decoder *decoder)
{
	const struct gs_insn *insn = decoder->insn;
	bool has_result = insn->op == GS_OP_atom;
	unsigned int first = has_result ? 1 : 0;
	enum gs_type type = get_type(decoder);
	struct address address;
	struct gs_code *code;
	uint32_t value;
	uint32_t other = 0;
	uint32_t dst;

	if (insn->vector || insn->type_count != 1 || insn->sub < GS_SUB_ADD ||
	    insn->sub > GS_SUB_XOR || !is_atomic_type(type, (enum gs_sub)insn->sub)) {
		gs_decode_unsupported(decoder, "not supported");
		return;
	}
	value = gs_decode_source(decoder, gs_decode_operand(decoder, first + 1), type);
	if (insn->sub == GS_SUB_CAS)
		other = gs_decode_source(decoder, gs_decode_operand(decoder, first + 2), type);
	address = decode_address(decoder, gs_decode_operand(decoder, first));
	dst = has_result ? gs_decode_result(decoder, gs_decode_operand(decoder, 0), type)
			 : decoder->scratch;
	code = gs_decode_emit(decoder, GS_KIND_ATOMIC);
	set_address(code, &address);
	code->b = value;
	code->c = other;
	code->dst = dst;
	code->count = 1;
	code->width = (uint8_t)gs_type_size(type);
	code->dst_width = (uint8_t)gs_lane_width(type);
	code->type = (uint8_t)type;
	code->sub = insn->sub;
}

/* The copy is executed at once, so waiting for it is never necessary. */
static void
decode_copy_async(struct gs_decoder *decoder)
{
	const struct gs_insn *insn = decoder->insn;
	struct address to;
	struct address from;
	struct gs_code *code;
	const struct gs_operand *size;

	if (gs_insn_has(insn, "commit_group") || gs_insn_has(insn, "wait_group") ||
	    gs_insn_has(insn, "wait_all"))
		return;
	/* It counts an arrival and cancels it; see decode_mbarrier.c for the form that only
	 * arrives. */
	if (gs_insn_has(insn, "mbarrier"))
		return;
	size = gs_decode_operand(decoder, 2);
	if (!gs_insn_has(insn, "async") || insn->operand_count > 4 ||
	    size->kind != GS_OPERAND_IMM || (size->imm != 4 && size->imm != 8 && size->imm != 16)) {
		gs_decode_unsupported(decoder, "not supported");
		return;
	}
	to = decode_address(decoder, gs_decode_operand(decoder, 0));
	from = decode_address(decoder, gs_decode_operand(decoder, 1));
	if (from.is_short) {
		gs_decode_fail(decoder, "a register has the wrong size");
		return;
	}
	code = gs_decode_emit(decoder, GS_KIND_COPY_ASYNC);
	set_address(code, &to);
	code->space = GS_SPACE_SHARED;
	code->b = from.slot;
	code->target = (int32_t)from.offset;
	code->count = (uint8_t)size->imm;
	code->c = insn->operand_count > 3
			  ? gs_decode_source(decoder, gs_decode_operand(decoder, 3), GS_TYPE_U32)
			  : gs_decode_fixed(decoder, GS_FIXED_IMM, 4, 0, 0, size->imm);
}

bool
gs_decode_memory(struct gs_decoder *decoder)
{
	switch (decoder->insn->op) {
	case GS_OP_ld:
	case GS_OP_ldu:
		decode_access(decoder, false);
		return true;
	case GS_OP_st:
		decode_access(decoder, true);
		return true;
	case GS_OP_atom:
	case GS_OP_red:
		decode_atomic(decoder);
		return true;
	case GS_OP_cp:
		if (gs_insn_has(decoder->insn, "noinc"))
			return false;
		decode_copy_async(decoder);
		return true;
	case GS_OP_prefetch:
	case GS_OP_prefetchu:
	case GS_OP_discard:
		return true;
	default:
		return false;
	}
}
