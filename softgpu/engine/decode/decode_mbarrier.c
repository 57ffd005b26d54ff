/* SPDX-License-Identifier: Apache-2.0 */
/* Barrier objects (mbarrier) in shared memory, as used by cuda::barrier from sm_80 on. */
#include "softgpu/engine/decode/decode.h"

/* Transaction counts, used by bulk copies, are not known to the parser. */
static void
decode_operation(struct gs_decoder *decoder, enum gs_sub sub, unsigned int address,
		 const struct gs_operand *result)
{
	const struct gs_insn *insn = decoder->insn;
	bool tests = sub == GS_SUB_TEST_WAIT;
	bool by_parity = tests && gs_insn_has(insn, "parity");
	enum gs_type type = tests && !by_parity ? GS_TYPE_B64 : GS_TYPE_U32;
	struct gs_code place = { 0 };
	struct gs_code *code;
	uint32_t value;
	uint32_t dst = decoder->scratch;

	gs_decode_address(decoder, gs_decode_operand(decoder, address), &place);
	if (insn->operand_count > address + 1)
		value = gs_decode_source(decoder, gs_decode_operand(decoder, address + 1), type);
	else
		value = gs_decode_fixed(decoder, GS_FIXED_IMM, 4, 0, 0, 1);
	if (tests && insn->operand_count <= address + 1)
		gs_decode_fail(decoder, "too few operands");
	if (result)
		dst = gs_decode_result(decoder, result, tests ? GS_TYPE_PRED : GS_TYPE_B64);
	code = gs_decode_emit(decoder, GS_KIND_MBARRIER);
	code->a = place.a;
	code->imm = place.imm;
	code->has_short_address = place.has_short_address;
	code->space = GS_SPACE_SHARED;
	code->width = 8;
	code->count = 1;
	code->b = value;
	code->dst = dst;
	code->sub = (uint8_t)sub;
	code->flag = by_parity;
}

static void
decode_pending_count(struct gs_decoder *decoder)
{
	uint32_t source = gs_decode_source(decoder, gs_decode_operand(decoder, 1), GS_TYPE_B64);
	uint32_t dst = gs_decode_result(decoder, gs_decode_operand(decoder, 0), GS_TYPE_U32);
	struct gs_code *code = gs_decode_emit(decoder, GS_KIND_MBARRIER);

	code->b = source;
	code->dst = dst;
	code->sub = GS_SUB_PENDING_COUNT;
}

static void
decode_mbarrier(struct gs_decoder *decoder)
{
	const struct gs_insn *insn = decoder->insn;
	bool is_shared = insn->space == GS_SPACE_SHARED;

	switch ((enum gs_sub)insn->sub) {
	case GS_SUB_PENDING_COUNT:
		decode_pending_count(decoder);
		return;
	case GS_SUB_INIT:
	case GS_SUB_INVAL:
		if (is_shared) {
			decode_operation(decoder, (enum gs_sub)insn->sub, 0, NULL);
			return;
		}
		break;
	case GS_SUB_ARRIVE:
	case GS_SUB_ARRIVE_DROP:
	case GS_SUB_TEST_WAIT:
		if (is_shared) {
			decode_operation(decoder, (enum gs_sub)insn->sub, 1,
					 gs_decode_operand(decoder, 0));
			return;
		}
		break;
	default:
		break;
	}
	gs_decode_unsupported(decoder, "not supported");
}

bool
gs_decode_mbarrier(struct gs_decoder *decoder)
{
	if (decoder->insn->op == GS_OP_mbarrier) {
		decode_mbarrier(decoder);
		return true;
	}
	/* cp.async.mbarrier.arrive.noinc: the copies are complete, so it is an ordinary arrival. */
	if (decoder->insn->op == GS_OP_cp && gs_insn_has(decoder->insn, "arrive")) {
		decode_operation(decoder, GS_SUB_ARRIVE, 0, NULL);
		return true;
	}
	return false;
}
