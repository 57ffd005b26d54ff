/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Register allocation: PTX names a new register for nearly every result. Slots are reused where
 * that is safe: for registers that are written before they are read and used in a single basic
 * block.
 */
#include "softgpu/engine/decode/decode.h"

#include <stdlib.h>
#include <string.h>

struct reg_use {
	int32_t block; /* -1: unused */
	int32_t first;
	int32_t last;
	bool is_wide_lived; /* used in several blocks, or read before it is written */
	bool has_slot;
};

struct free_slots {
	uint32_t *slots;
	uint32_t count;
};

struct walk {
	struct gs_decoder *decoder;
	struct reg_use *uses;
	struct free_slots free4;
	struct free_slots free8;
	int32_t *dying; /* registers last used by the current instruction */
	uint32_t dying_count;
	int32_t position;
	int32_t block;
	bool is_definition;
};

typedef void visit_func(struct walk *walk, int32_t reg);

bool
gs_insn_defines(const struct gs_insn *insn, unsigned int k)
{
	switch (insn->op) {
	case GS_OP_st:
	case GS_OP_sust:
	case GS_OP_bra:
	case GS_OP_brx:
	case GS_OP_red:
	case GS_OP_membar:
	case GS_OP_call:
	case GS_OP_ret:
	case GS_OP_exit:
	case GS_OP_cp:
		return false;
	case GS_OP_bar:
	case GS_OP_barrier:
		return k == 0 && gs_insn_has(insn, "red");
	default:
		return k == 0 || (k == 1 && insn->pair);
	}
}

static void
visit_operand(struct walk *walk, const struct gs_operand *operand, visit_func *visit)
{
	bool is_address = operand->kind == GS_OPERAND_ADDRESS && operand->reg >= 0;

	if (operand->kind == GS_OPERAND_REG || is_address)
		visit(walk, operand->reg);
	for (unsigned int i = 0; i < operand->count; i++) {
		const struct gs_operand *element = &operand->elements[i];

		if (element->kind == GS_OPERAND_REG)
			visit(walk, element->reg);
	}
}

/* Sources first, because an instruction reads its sources before it writes its result. */
static void
visit_insn(struct walk *walk, const struct gs_insn *insn, visit_func *visit)
{
	walk->is_definition = false;
	if (insn->pred >= 0)
		visit(walk, insn->pred);
	for (int pass = 0; pass < 2; pass++) {
		for (unsigned int k = 0; k < insn->operand_count; k++) {
			const struct gs_operand *operand = &insn->operands[k];
			bool defines =
				gs_insn_defines(insn, k) && operand->kind != GS_OPERAND_ADDRESS;

			if (defines != (pass == 1))
				continue;
			walk->is_definition = defines && insn->pred < 0;
			visit_operand(walk, operand, visit);
		}
	}
}

static void
note_use(struct walk *walk, int32_t reg)
{
	struct reg_use *use = &walk->uses[reg];

	if (use->block < 0) {
		use->block = walk->block;
		use->first = walk->position;
		use->is_wide_lived = !walk->is_definition;
	} else if (use->block != walk->block) {
		use->is_wide_lived = true;
	}
	use->last = walk->position;
}

static void
find_uses(struct walk *walk)
{
	const struct gs_ptx_function *ptx = walk->decoder->ptx_function;
	uint8_t *leads = gs_decode_alloc(walk->decoder, ptx->insn_count + 2);

	if (!leads)
		return;
	for (uint32_t i = 0; i < ptx->label_count; i++) {
		if (ptx->label_at[i] >= 0)
			leads[ptx->label_at[i]] = 1;
	}
	for (uint32_t i = 0; i < ptx->insn_count; i++) {
		if (ptx->insns[i].op == GS_OP_bra || ptx->insns[i].op == GS_OP_brx)
			leads[i + 1] = 1;
	}
	for (uint32_t i = 0; i < ptx->insn_count; i++) {
		walk->block += leads[i];
		walk->position = (int32_t)i;
		visit_insn(walk, &ptx->insns[i], note_use);
	}
}

static void
give_slot(struct walk *walk, int32_t reg)
{
	struct gs_decoder *decoder = walk->decoder;
	struct reg_use *use = &walk->uses[reg];
	unsigned int width = gs_decode_reg_width(decoder, reg);
	struct free_slots *free_slots = width == 8 ? &walk->free8 : &walk->free4;

	if (use->is_wide_lived)
		return;
	if (!use->has_slot) {
		use->has_slot = true;
		decoder->reg_slots[reg] = free_slots->count ? free_slots->slots[--free_slots->count]
							    : gs_decode_new_slot(decoder, width);
	}
	if (use->last == walk->position) {
		walk->dying[walk->dying_count++] = reg;
		use->last = -1; /* only once */
	}
}

static void
share_slots(struct walk *walk)
{
	const struct gs_ptx_function *ptx = walk->decoder->ptx_function;

	for (uint32_t i = 0; i < ptx->insn_count; i++) {
		walk->position = (int32_t)i;
		walk->dying_count = 0;
		visit_insn(walk, &ptx->insns[i], give_slot);
		for (uint32_t k = 0; k < walk->dying_count; k++) {
			int32_t reg = walk->dying[k];
			struct free_slots *free_slots = gs_decode_reg_width(walk->decoder, reg) == 8
								? &walk->free8
								: &walk->free4;

			free_slots->slots[free_slots->count++] = walk->decoder->reg_slots[reg];
		}
	}
}

/* Estimates the maximum number of 4-byte registers that are live between their first and last use;
 * ignores loops. */
static void
estimate_pressure(struct walk *walk)
{
	struct gs_decoder *decoder = walk->decoder;
	uint32_t count = decoder->ptx_function->insn_count;
	int32_t *change = gs_decode_alloc(decoder, sizeof(int32_t) * (count + 2));
	int32_t live = 0;
	int32_t most = 0;

	if (!change)
		return;
	for (uint32_t reg = 0; reg < decoder->ptx_function->reg_count; reg++) {
		const struct reg_use *use = &walk->uses[reg];
		int32_t weight = gs_decode_reg_width(decoder, (int32_t)reg) == 8 ? 2 : 1;

		if (use->block < 0 || decoder->ptx_function->reg_types[reg] == GS_TYPE_PRED)
			continue;
		change[use->first] += weight;
		change[use->last] -= weight;
	}
	for (uint32_t i = 0; i < count; i++) {
		live += change[i];
		most = live > most ? live : most;
	}
	decoder->function->live_regs = (uint32_t)most;
}

void
gs_decode_assign_slots(struct gs_decoder *decoder)
{
	uint32_t count = decoder->ptx_function->reg_count;
	struct walk walk = { .decoder = decoder };

	walk.uses = gs_decode_alloc(decoder, sizeof(*walk.uses) * (count + 1));
	walk.dying = gs_decode_alloc(decoder, sizeof(*walk.dying) * (count + 1));
	walk.free4.slots = gs_decode_alloc(decoder, sizeof(uint32_t) * (count + 1));
	walk.free8.slots = gs_decode_alloc(decoder, sizeof(uint32_t) * (count + 1));
	decoder->reg_slots = gs_decode_alloc(decoder, sizeof(uint32_t) * (count + 1));
	if (decoder->failed)
		return;
	for (uint32_t i = 0; i < count; i++)
		walk.uses[i].block = -1;
	find_uses(&walk);
	if (decoder->failed)
		return;
	estimate_pressure(&walk);
	for (uint32_t i = 0; i < count; i++) {
		decoder->reg_slots[i] = decoder->scratch;
		if (walk.uses[i].block >= 0 && walk.uses[i].is_wide_lived)
			decoder->reg_slots[i] = gs_decode_new_slot(
				decoder, gs_decode_reg_width(decoder, (int32_t)i));
	}
	share_slots(&walk);
}
