/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/engine/decode/decode.h"

#include <stdio.h>
#include <string.h>

#define MAX_FRAME_BYTES (4u << 20)

static void
fail(struct gs_decoder *decoder, int code, const char *why)
{
	const struct gs_insn *insn = decoder->insn;

	if (decoder->failed)
		return;
	decoder->failed = true;
	decoder->error->code = code;
	if (code == GS_NOT_SUPPORTED && insn && insn->spelling)
		snprintf(decoder->error->text, sizeof(decoder->error->text),
			 "line %d: instruction '%.*s': %s", (int)insn->line,
			 (int)(insn->spelling_len > 100 ? 100 : insn->spelling_len), insn->spelling,
			 why);
	else if (insn && insn->spelling)
		snprintf(decoder->error->text, sizeof(decoder->error->text),
			 "line %d: function %.200s: instruction '%.*s': %s", (int)insn->line,
			 decoder->ptx_function->name,
			 (int)(insn->spelling_len > 100 ? 100 : insn->spelling_len), insn->spelling,
			 why);
	else
		snprintf(decoder->error->text, sizeof(decoder->error->text),
			 "line %d: function %.200s: %s", (int)decoder->ptx_function->line,
			 decoder->ptx_function->name, why);
}

void
gs_decode_fail(struct gs_decoder *decoder, const char *why)
{
	fail(decoder, GS_INVALID_PTX, why);
}

void
gs_decode_unsupported(struct gs_decoder *decoder, const char *why)
{
	fail(decoder, GS_NOT_SUPPORTED, why);
}

void *
gs_decode_alloc(struct gs_decoder *decoder, size_t size)
{
	void *memory = gs_pool_alloc(decoder->pool, size);

	if (!memory) {
		gs_decode_fail(decoder, "out of memory");
		decoder->error->code = GS_OUT_OF_MEMORY;
	}
	return memory;
}

/* Receives code decoded after a failure, which is discarded. */
static struct gs_code *
discarded_code(void)
{
	static _Thread_local struct gs_code code;

	return &code;
}

struct gs_code *
gs_decode_emit(struct gs_decoder *decoder, enum gs_kind kind)
{
	struct gs_function *function = decoder->function;
	struct gs_code *grown =
		decoder->failed ? NULL
				: gs_pool_grow(decoder->pool, function->code, sizeof(*grown),
					       function->code_count, &decoder->code_capacity);
	struct gs_code *code;

	if (!grown) {
		gs_decode_fail(decoder, "out of memory");
		return discarded_code();
	}
	function->code = grown;
	code = &function->code[function->code_count++];
	*code = (struct gs_code){
		.kind = (uint8_t)kind, .pred = -1, .insn = decoder->insn, .dst_width = 4, .width = 4
	};
	if (decoder->insn->pred >= 0) {
		code->pred = (int32_t)decoder->reg_slots[decoder->insn->pred];
		code->pred_negated = decoder->insn->pred_negated;
	}
	return code;
}

struct gs_code *
gs_decode_emit_lane(struct gs_decoder *decoder, gs_lane_func *func, uint32_t dst,
		    unsigned int dst_width)
{
	struct gs_code *code;

	if (!func)
		gs_decode_unsupported(decoder, "not supported for this type");
	code = gs_decode_emit(decoder, GS_KIND_LANE);
	code->func = func;
	code->dst = dst;
	code->dst_width = dst_width > 4 ? 8 : 4;
	return code;
}

uint32_t
gs_decode_new_slot(struct gs_decoder *decoder, unsigned int width)
{
	struct gs_function *function = decoder->function;
	uint32_t slot = function->frame_bytes;

	if (function->frame_bytes > MAX_FRAME_BYTES) {
		gs_decode_unsupported(decoder, "too many registers");
		return 0;
	}
	function->frame_bytes += GS_WARP * (width > 4 ? 8u : 4u);
	return slot;
}

uint32_t
gs_decode_fixed(struct gs_decoder *decoder, enum gs_fixed_kind kind, unsigned int width, int id,
		unsigned int dim, int64_t value)
{
	struct gs_function *function = decoder->function;
	struct gs_fixed fixed;
	struct gs_fixed *grown;
	struct gs_fixed *key;
	int32_t found;

	memset(&fixed, 0, sizeof(fixed));
	fixed.kind = (uint8_t)kind;
	fixed.width = width > 4 ? 8 : 4;
	fixed.dim = (uint8_t)dim;
	fixed.id = id;
	fixed.value = value;
	found = gs_names_find(&decoder->fixed_names, (const char *)&fixed, sizeof(fixed));
	if (found >= 0)
		return function->fixed[found].slot;
	key = gs_decode_alloc(decoder, sizeof(*key));
	grown = gs_pool_grow(decoder->pool, function->fixed, sizeof(*grown), function->fixed_count,
			     &decoder->fixed_capacity);
	if (decoder->failed || !key || !grown)
		return 0;
	memcpy(key, &fixed, sizeof(fixed));
	function->fixed = grown;
	fixed.slot = gs_decode_new_slot(decoder, width);
	function->fixed[function->fixed_count] = fixed;
	if (gs_names_set(&decoder->fixed_names, decoder->pool, (const char *)key, sizeof(*key),
			 (int32_t)function->fixed_count) != 0)
		gs_decode_fail(decoder, "out of memory");
	function->fixed_count++;
	return fixed.slot;
}

unsigned int
gs_lane_width(enum gs_type type)
{
	return gs_type_size(type) > 4 ? 8 : 4;
}

unsigned int
gs_decode_reg_width(const struct gs_decoder *decoder, int32_t reg)
{
	return gs_lane_width((enum gs_type)decoder->ptx_function->reg_types[reg]);
}

enum gs_type
gs_type_unsigned(enum gs_type type)
{
	switch (type) {
	case GS_TYPE_B8:
	case GS_TYPE_S8:
		return GS_TYPE_U8;
	case GS_TYPE_B16:
	case GS_TYPE_S16:
		return GS_TYPE_U16;
	case GS_TYPE_B32:
	case GS_TYPE_S32:
	case GS_TYPE_PRED:
		return GS_TYPE_U32;
	case GS_TYPE_B64:
	case GS_TYPE_S64:
		return GS_TYPE_U64;
	default:
		return type;
	}
}

const struct gs_operand *
gs_decode_operand(struct gs_decoder *decoder, unsigned int k)
{
	static const struct gs_operand none = { .kind = GS_OPERAND_NONE, .reg = -1, .symbol = -1 };

	if (k < decoder->insn->operand_count)
		return &decoder->insn->operands[k];
	gs_decode_fail(decoder, "too few operands");
	return &none;
}

static int64_t
immediate_bits(const struct gs_operand *operand, enum gs_type type)
{
	int64_t bits = operand->imm;

	if (type == GS_TYPE_F32 && operand->float_size == 8) {
		double wide;
		float narrow;
		uint32_t narrow_bits;

		memcpy(&wide, &bits, sizeof(wide));
		narrow = (float)wide;
		memcpy(&narrow_bits, &narrow, sizeof(narrow_bits));
		return narrow_bits;
	}
	if (type == GS_TYPE_F64 && operand->float_size == 4) {
		uint32_t narrow_bits = (uint32_t)bits;
		float narrow;
		double wide;

		memcpy(&narrow, &narrow_bits, sizeof(narrow));
		wide = narrow;
		memcpy(&bits, &wide, sizeof(bits));
		return bits;
	}
	if (type == GS_TYPE_PRED)
		return bits ? -1 : 0;
	return bits;
}

static uint32_t
symbol_slot(struct gs_decoder *decoder, const struct gs_operand *operand, unsigned int width)
{
	const struct gs_symbol *symbol = &decoder->ptx->symbols[operand->symbol];
	int64_t address = (int64_t)decoder->module->symbol_addresses[operand->symbol];

	switch ((enum gs_space)symbol->space) {
	case GS_SPACE_SHARED:
		if (symbol->is_dynamic || symbol->is_extern)
			return gs_decode_fixed(decoder, GS_FIXED_DYNAMIC_SHARED, width, 0, 0,
					       operand->imm);
		return gs_decode_fixed(decoder, GS_FIXED_IMM, width, 0, 0, address + operand->imm);
	case GS_SPACE_PARAM:
	case GS_SPACE_LOCAL:
		if (width != 8)
			gs_decode_fail(decoder, "an address needs 64 bits");
		return gs_decode_fixed(decoder,
				       symbol->is_launch_param ? GS_FIXED_PARAM_ADDRESS
							       : GS_FIXED_LOCAL_ADDRESS,
				       8, 0, 0, (int64_t)symbol->offset + operand->imm);
	default:
		if (!address)
			gs_decode_fail(decoder, "the variable is not defined in this module");
		if (width != 8)
			gs_decode_fail(decoder, "an address needs 64 bits");
		return gs_decode_fixed(decoder, GS_FIXED_IMM, 8, 0, 0, address + operand->imm);
	}
}

static uint32_t
special_slot(struct gs_decoder *decoder, const struct gs_operand *operand, unsigned int width)
{
	struct gs_code *code;
	uint32_t slot;

	if (operand->reg < GS_SPECIAL_CLOCK || operand->reg > GS_SPECIAL_GLOBALTIMER_HI) {
		if (operand->reg == GS_SPECIAL_ENVREG && operand->dim >= 1 && operand->dim <= 2)
			decoder->function->uses_grid_sync = true;
		return gs_decode_fixed(decoder, GS_FIXED_SPECIAL, width, operand->reg, operand->dim,
				       0);
	}
	slot = gs_decode_new_slot(decoder, 8);
	code = gs_decode_emit(decoder, GS_KIND_CLOCK);
	code->dst = slot;
	code->dst_width = (uint8_t)width;
	code->sub = (uint8_t)operand->reg;
	return slot;
}

uint32_t
gs_decode_source(struct gs_decoder *decoder, const struct gs_operand *operand, enum gs_type type)
{
	unsigned int width = gs_lane_width(type);
	int64_t bits;

	switch ((enum gs_operand_kind)operand->kind) {
	case GS_OPERAND_REG:
		if (gs_decode_reg_width(decoder, operand->reg) != width)
			gs_decode_fail(decoder, "a register has the wrong size");
		return decoder->reg_slots[operand->reg];
	case GS_OPERAND_IMM:
		bits = immediate_bits(operand, type);
		return gs_decode_fixed(decoder, GS_FIXED_IMM, width, 0, 0,
				       width == 4 ? (int64_t)(uint32_t)bits : bits);
	case GS_OPERAND_SYMBOL:
		return symbol_slot(decoder, operand, width);
	case GS_OPERAND_FUNCTION:
		if (width != 8)
			gs_decode_fail(decoder, "an address needs 64 bits");
		return gs_decode_fixed(decoder, GS_FIXED_IMM, 8, 0, 0,
				       (int64_t)(GS_FUNCTION_ADDRESS | (uint32_t)operand->symbol));
	case GS_OPERAND_SPECIAL:
		return special_slot(decoder, operand, width);
	default:
		gs_decode_fail(decoder, "an operand of the wrong kind");
		return decoder->scratch;
	}
}

uint32_t
gs_decode_result(struct gs_decoder *decoder, const struct gs_operand *operand, enum gs_type type)
{
	if (operand->kind == GS_OPERAND_SINK)
		return decoder->scratch;
	if (operand->kind != GS_OPERAND_REG) {
		gs_decode_fail(decoder, "the result is no register");
		return decoder->scratch;
	}
	if (gs_decode_reg_width(decoder, operand->reg) != gs_lane_width(type))
		gs_decode_fail(decoder, "a register has the wrong size");
	return decoder->reg_slots[operand->reg];
}

static void
decode_insn(struct gs_decoder *decoder)
{
	if (gs_decode_arithmetic(decoder) || gs_decode_memory(decoder) ||
	    gs_decode_logic(decoder) || gs_decode_compare(decoder) || gs_decode_convert(decoder) ||
	    gs_decode_control(decoder) || gs_decode_warp(decoder) || gs_decode_mbarrier(decoder) ||
	    gs_decode_texture(decoder))
		return;
	gs_decode_unsupported(decoder, "not supported");
}

/* Replaces labels by code indices as the targets of branches. */
static void
resolve_branches(struct gs_decoder *decoder, const uint32_t *code_at)
{
	const struct gs_ptx_function *ptx = decoder->ptx_function;
	struct gs_function *function = decoder->function;

	for (uint32_t i = 0; i < function->code_count && !decoder->failed; i++) {
		struct gs_code *code = &function->code[i];
		uint32_t *targets;

		decoder->insn = code->insn;
		if (code->kind == GS_KIND_BRANCH) {
			if (ptx->label_at[code->target] < 0)
				gs_decode_fail(decoder, "the label is not defined");
			else
				code->target = (int32_t)code_at[ptx->label_at[code->target]];
		} else if (code->kind == GS_KIND_BRANCH_TABLE) {
			targets = (uint32_t *)(uintptr_t)code->slots;
			for (int32_t k = 0; k < code->target && !decoder->failed; k++) {
				if (ptx->label_at[targets[k]] < 0)
					gs_decode_fail(decoder, "a label is not defined");
				else
					targets[k] = code_at[ptx->label_at[targets[k]]];
			}
		}
	}
}

enum fixed_scope {
	SCOPE_LAUNCH,
	SCOPE_WARP,
	SCOPE_BLOCK,
	SCOPE_COUNT
};

static enum fixed_scope
get_scope(const struct gs_fixed *fixed)
{
	if (fixed->kind == GS_FIXED_LOCAL_ADDRESS)
		return SCOPE_WARP;
	if (fixed->kind != GS_FIXED_SPECIAL)
		return SCOPE_LAUNCH;
	if (fixed->id == GS_SPECIAL_CTAID || fixed->id == GS_SPECIAL_CLUSTERID ||
	    fixed->id == GS_SPECIAL_SMID)
		return SCOPE_BLOCK;
	return fixed->id == GS_SPECIAL_TID || fixed->id == GS_SPECIAL_WARPID ? SCOPE_WARP
									     : SCOPE_LAUNCH;
}

static void
sort_fixed(struct gs_decoder *decoder)
{
	struct gs_function *function = decoder->function;
	struct gs_fixed *sorted =
		gs_decode_alloc(decoder, sizeof(*sorted) * (function->fixed_count + 1));
	uint32_t counts[SCOPE_COUNT] = { 0 };
	uint32_t n = 0;

	for (int scope = SCOPE_LAUNCH; scope < SCOPE_COUNT && sorted; scope++) {
		for (uint32_t i = 0; i < function->fixed_count; i++) {
			if (get_scope(&function->fixed[i]) != (enum fixed_scope)scope)
				continue;
			sorted[n++] = function->fixed[i];
			counts[scope]++;
		}
	}
	function->fixed = sorted;
	function->warp_fixed_count = counts[SCOPE_WARP];
	function->block_fixed_count = counts[SCOPE_BLOCK];
}

static void
decode_body(struct gs_decoder *decoder)
{
	const struct gs_ptx_function *ptx = decoder->ptx_function;
	uint32_t *code_at = gs_decode_alloc(decoder, sizeof(uint32_t) * (ptx->insn_count + 2));
	uint8_t *is_label = gs_decode_alloc(decoder, ptx->insn_count + 2);
	struct gs_insn *end = gs_decode_alloc(decoder, sizeof(*end));

	if (decoder->failed)
		return;
	for (uint32_t i = 0; i < ptx->label_count; i++) {
		if (ptx->label_at[i] >= 0)
			is_label[ptx->label_at[i]] = 1;
	}
	*end = (struct gs_insn){
		.op = GS_OP_ret, .pred = -1, .spelling = "ret", .spelling_len = 3
	};
	end->line = ptx->insn_count ? ptx->insns[ptx->insn_count - 1].line : ptx->line;
	for (uint32_t i = 0; i <= ptx->insn_count && !decoder->failed; i++) {
		decoder->insn = i < ptx->insn_count ? &ptx->insns[i] : end;
		code_at[i] = decoder->function->code_count;
		if (is_label[i] || i == ptx->insn_count)
			gs_decode_emit(decoder, GS_KIND_JOIN)->pred = -1;
		decode_insn(decoder);
	}
	resolve_branches(decoder, code_at);
	sort_fixed(decoder);
}

int
gs_decode_function(struct gs_module *module, struct gs_function *function, struct gs_error *error)
{
	struct gs_decoder decoder = {
		.module = module,
		.ptx = module->ptx,
		.ptx_function = function->ptx,
		.function = function,
		.pool = &module->pool,
		.error = error,
		.lanes = gs_lanes(),
	};

	decoder.scratch = gs_decode_new_slot(&decoder, 8);
	decoder.carry = gs_decode_new_slot(&decoder, 8);
	gs_decode_assign_slots(&decoder);
	if (!decoder.failed)
		decode_body(&decoder);
	function->local_bytes = (function->ptx->local_bytes + 15) & ~15ull;
	return decoder.failed ? error->code : GS_OK;
}
