/* SPDX-License-Identifier: Apache-2.0 */
/* Branches, calls, barriers and warp operations. */
#include "softgpu/engine/decode/decode.h"

#include <string.h>

static enum gs_type
get_type(const struct gs_decoder *decoder)
{
	return (enum gs_type)decoder->insn->type[0];
}

static void
decode_branch(struct gs_decoder *decoder)
{
	const struct gs_operand *label = gs_decode_operand(decoder, 0);

	if (label->kind != GS_OPERAND_LABEL) {
		gs_decode_fail(decoder, "the target is no label");
		return;
	}
	gs_decode_emit(decoder, GS_KIND_BRANCH)->target = label->reg;
}

static void
decode_branch_table(struct gs_decoder *decoder)
{
	const struct gs_operand *table = gs_decode_operand(decoder, 1);
	const int32_t *labels = table->kind == GS_OPERAND_LABEL
					? decoder->ptx_function->branch_targets[table->reg]
					: NULL;
	struct gs_code *code;
	uint32_t *targets;
	uint32_t index;
	int32_t count = 0;

	if (!labels || decoder->insn->sub != GS_SUB_IDX) {
		gs_decode_fail(decoder, "the target is no list of labels");
		return;
	}
	while (labels[count] >= 0)
		count++;
	targets = gs_decode_alloc(decoder, sizeof(*targets) * (size_t)count);
	if (!targets)
		return;
	for (int32_t i = 0; i < count; i++)
		targets[i] = (uint32_t)labels[i];
	index = gs_decode_source(decoder, gs_decode_operand(decoder, 0), GS_TYPE_U32);
	code = gs_decode_emit(decoder, GS_KIND_BRANCH_TABLE);
	code->slots = targets;
	code->target = count;
	code->a = index;
}

/* Device functions for graphs. */
static bool
is_graph_function(const char *name)
{
	static const char *const names[] = {
		"cudaGraphSetConditional",       "cudaGraphLaunch",
		"cudaGraphKernelNodeSetParam",   "cudaGraphKernelNodeSetEnabled",
		"cudaGraphKernelNodeSetGridDim", "cudaGraphKernelNodeUpdatesApply",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

/* Functions of the CUDA device runtime, which the device does not support. */
static bool
is_runtime_function(const char *name)
{
	return strncmp(name, "cuda", strlen("cuda")) == 0 ||
	       strncmp(name, "__cuda", strlen("__cuda")) == 0;
}

static bool
is_builtin(const char *name, struct gs_function *function)
{
	if (strcmp(name, "vprintf") == 0)
		function->uses_printf = true;
	else if (strcmp(name, "malloc") == 0 || strcmp(name, "free") == 0)
		function->uses_heap = true;
	else
		return strcmp(name, "__assertfail") == 0 || is_graph_function(name);
	return true;
}

static void
check_call_list(struct gs_decoder *decoder, const struct gs_operand *list)
{
	for (unsigned int k = 0; k < list->count; k++) {
		const struct gs_operand *element = &list->elements[k];

		if (element->kind != GS_OPERAND_SYMBOL ||
		    decoder->ptx->symbols[element->symbol].space != GS_SPACE_PARAM ||
		    decoder->ptx->symbols[element->symbol].is_launch_param)
			gs_decode_fail(decoder, "an argument is no .param variable");
	}
}

static void
decode_call(struct gs_decoder *decoder)
{
	const struct gs_operand *operands = decoder->insn->operands;
	const struct gs_operand *target = &operands[1];
	struct gs_code *code;

	check_call_list(decoder, &operands[0]);
	check_call_list(decoder, &operands[2]);
	if (target->kind == GS_OPERAND_REG) {
		uint32_t slot = gs_decode_source(decoder, target, GS_TYPE_U64);

		code = gs_decode_emit(decoder, GS_KIND_CALL);
		code->a = slot;
		code->target = -1;
		decoder->function->calls = true;
		return;
	}
	code = gs_decode_emit(decoder, GS_KIND_CALL);
	code->target = target->symbol;
	if (decoder->ptx->functions[target->symbol].has_body)
		decoder->function->calls = true;
	else if (is_runtime_function(decoder->ptx->functions[target->symbol].name) &&
		 !is_graph_function(decoder->ptx->functions[target->symbol].name))
		gs_decode_unsupported(decoder, "kernels do not call CUDA's runtime here");
	else if (!is_builtin(decoder->ptx->functions[target->symbol].name, decoder->function))
		gs_decode_fail(decoder, "the function is not defined in this module");
}

/* bar.sync a, b; bar.arrive a, b; bar.red.op d, a, b, p */
static void
decode_barrier(struct gs_decoder *decoder)
{
	const struct gs_insn *insn = decoder->insn;
	bool reduces = gs_insn_has(insn, "red");
	unsigned int first = reduces ? 1 : 0;
	unsigned int count = insn->operand_count;
	unsigned int plain = reduces ? (count >= 2 ? count - 2 : 0) : count;
	struct gs_code *code;
	uint32_t slots[3] = { 0 };

	if (gs_insn_has(insn, "cluster") || insn->pred >= 0 || plain < 1 || plain > 2) {
		gs_decode_unsupported(decoder, "not supported");
		return;
	}
	slots[0] = gs_decode_source(decoder, gs_decode_operand(decoder, first), GS_TYPE_U32);
	if (plain > 1)
		slots[1] = gs_decode_source(decoder, gs_decode_operand(decoder, first + 1),
					    GS_TYPE_U32);
	if (reduces)
		slots[2] = gs_decode_source(decoder, gs_decode_operand(decoder, count - 1),
					    GS_TYPE_PRED);
	code = gs_decode_emit(decoder, GS_KIND_BARRIER);
	code->a = slots[0];
	code->b = slots[1];
	code->c = slots[2];
	code->count = plain > 1;
	code->flag = gs_insn_has(insn, "arrive");
	if (reduces) {
		code->sub = insn->bool_op;
		code->negated = gs_decode_operand(decoder, count - 1)->negated;
		code->dst = gs_decode_result(decoder, gs_decode_operand(decoder, 0), GS_TYPE_U32);
		if (!insn->bool_op)
			gs_decode_unsupported(decoder, "not supported");
	}
}

static void
decode_bar(struct gs_decoder *decoder)
{
	struct gs_code *code;
	uint32_t members;

	if (!gs_insn_has(decoder->insn, "warp")) {
		decode_barrier(decoder);
		return;
	}
	members = gs_decode_source(decoder, gs_decode_operand(decoder, 0), GS_TYPE_U32);
	code = gs_decode_emit(decoder, GS_KIND_WARP_SYNC);
	code->d = members;
}

static void
decode_sleep(struct gs_decoder *decoder)
{
	uint32_t slot = gs_decode_source(decoder, gs_decode_operand(decoder, 0), GS_TYPE_U32);

	gs_decode_emit(decoder, GS_KIND_SLEEP)->a = slot;
}

bool
gs_decode_control(struct gs_decoder *decoder)
{
	switch (decoder->insn->op) {
	case GS_OP_bra:
		decode_branch(decoder);
		return true;
	case GS_OP_brx:
		decode_branch_table(decoder);
		return true;
	case GS_OP_call:
		decode_call(decoder);
		return true;
	case GS_OP_exit:
		gs_decode_emit(decoder, GS_KIND_EXIT);
		return true;
	case GS_OP_ret:
		gs_decode_emit(decoder,
			       decoder->ptx_function->is_entry ? GS_KIND_EXIT : GS_KIND_RETURN);
		return true;
	case GS_OP_trap:
	case GS_OP_brkpt:
		gs_decode_emit(decoder, GS_KIND_TRAP);
		return true;
	case GS_OP_bar:
	case GS_OP_barrier:
		decode_bar(decoder);
		return true;
	case GS_OP_membar:
	case GS_OP_fence:
		gs_decode_emit(decoder, GS_KIND_FENCE);
		return true;
	case GS_OP_nanosleep:
		decode_sleep(decoder);
		return true;
	case GS_OP_pmevent:
	case GS_OP_griddepcontrol:
		return true;
	default:
		return false;
	}
}

/* Before sm_70 there were no member masks: all lanes of the warp take part. */
static uint32_t
member_slot(struct gs_decoder *decoder, unsigned int k)
{
	if (k < decoder->insn->operand_count)
		return gs_decode_source(decoder, gs_decode_operand(decoder, k), GS_TYPE_U32);
	return gs_decode_fixed(decoder, GS_FIXED_IMM, 4, 0, 0, 0xffffffffll);
}

static uint32_t
second_result(struct gs_decoder *decoder)
{
	if (!decoder->insn->pair)
		return 0;
	return gs_decode_result(decoder, gs_decode_operand(decoder, 1), GS_TYPE_PRED);
}

static void
decode_shuffle(struct gs_decoder *decoder)
{
	unsigned int first = decoder->insn->pair ? 2 : 1;
	uint32_t slots[4];
	struct gs_code *code;
	uint8_t sub = decoder->insn->sub;

	if (sub != GS_SUB_IDX && sub != GS_SUB_UP && sub != GS_SUB_DOWN && sub != GS_SUB_BFLY) {
		gs_decode_unsupported(decoder, "not supported");
		return;
	}
	for (unsigned int k = 0; k < 3; k++)
		slots[k] = gs_decode_source(decoder, gs_decode_operand(decoder, first + k),
					    GS_TYPE_U32);
	slots[3] = member_slot(decoder, first + 3);
	code = gs_decode_emit(decoder, GS_KIND_SHUFFLE);
	code->a = slots[0];
	code->b = slots[1];
	code->c = slots[2];
	code->d = slots[3];
	code->sub = sub;
	code->dst = gs_decode_result(decoder, gs_decode_operand(decoder, 0), GS_TYPE_U32);
	code->dst2 = second_result(decoder);
}

static void
decode_vote(struct gs_decoder *decoder)
{
	const struct gs_operand *operand = gs_decode_operand(decoder, 1);
	uint32_t source = gs_decode_source(decoder, operand, GS_TYPE_PRED);
	uint32_t members = member_slot(decoder, 2);
	struct gs_code *code = gs_decode_emit(decoder, GS_KIND_VOTE);
	uint8_t sub = decoder->insn->sub;

	if (sub != GS_SUB_ALL && sub != GS_SUB_ANY && sub != GS_SUB_UNI && sub != GS_SUB_BALLOT)
		gs_decode_unsupported(decoder, "not supported");
	code->a = source;
	code->d = members;
	code->negated = operand->negated;
	code->sub = sub;
	code->dst = gs_decode_result(decoder, gs_decode_operand(decoder, 0), GS_TYPE_U32);
}

static void
decode_match(struct gs_decoder *decoder)
{
	unsigned int first = decoder->insn->pair ? 2 : 1;
	enum gs_type type = get_type(decoder);
	uint32_t source = gs_decode_source(decoder, gs_decode_operand(decoder, first), type);
	uint32_t members = member_slot(decoder, first + 1);
	struct gs_code *code = gs_decode_emit(decoder, GS_KIND_MATCH);

	if (decoder->insn->sub != GS_SUB_ALL && decoder->insn->sub != GS_SUB_ANY)
		gs_decode_unsupported(decoder, "not supported");
	code->a = source;
	code->d = members;
	code->width = (uint8_t)gs_lane_width(type);
	code->sub = decoder->insn->sub;
	code->dst = gs_decode_result(decoder, gs_decode_operand(decoder, 0), GS_TYPE_U32);
	code->dst2 = second_result(decoder);
}

static void
decode_redux(struct gs_decoder *decoder)
{
	enum gs_type type = get_type(decoder);
	uint32_t source = gs_decode_source(decoder, gs_decode_operand(decoder, 1), GS_TYPE_U32);
	uint32_t members = member_slot(decoder, 2);
	struct gs_code *code = gs_decode_emit(decoder, GS_KIND_REDUX);

	if (type != GS_TYPE_U32 && type != GS_TYPE_S32 && type != GS_TYPE_B32)
		gs_decode_unsupported(decoder, "not supported");
	code->a = source;
	code->d = members;
	code->sub = decoder->insn->sub;
	code->is_signed = type == GS_TYPE_S32;
	code->dst = gs_decode_result(decoder, gs_decode_operand(decoder, 0), GS_TYPE_U32);
}

static void
decode_is_space(struct gs_decoder *decoder)
{
	uint32_t source = gs_decode_source(decoder, gs_decode_operand(decoder, 1), GS_TYPE_U64);
	struct gs_code *code = gs_decode_emit(decoder, GS_KIND_IS_SPACE);

	code->a = source;
	code->space = decoder->insn->space;
	code->dst = gs_decode_result(decoder, gs_decode_operand(decoder, 0), GS_TYPE_PRED);
}

bool
gs_decode_warp(struct gs_decoder *decoder)
{
	switch (decoder->insn->op) {
	case GS_OP_shfl:
		decode_shuffle(decoder);
		return true;
	case GS_OP_vote:
		decode_vote(decoder);
		return true;
	case GS_OP_match:
		decode_match(decoder);
		return true;
	case GS_OP_redux:
		decode_redux(decoder);
		return true;
	case GS_OP_isspacep:
		decode_is_space(decoder);
		return true;
	case GS_OP_activemask: {
		uint32_t dst =
			gs_decode_result(decoder, gs_decode_operand(decoder, 0), GS_TYPE_U32);

		gs_decode_emit(decoder, GS_KIND_ACTIVE_MASK)->dst = dst;
		return true;
	}
	default:
		return false;
	}
}
