/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers count threads, not warps: the arms of a divergent branch may arrive one after the other.
 * Threads that have exited are not waited for.
 */
#include "softgpu/engine/run/run.h"

static void
write_value(const struct gs_split *split, uint32_t value)
{
	const struct gs_code *code = &split->frame->function->code[split->at - 1];
	uint32_t *dst = (uint32_t *)(void *)(split->frame->regs + code->dst);

	if (code->kind != GS_KIND_BARRIER || !code->sub)
		return;
	if (code->sub != GS_BOOL_POPC)
		value = value ? GS_FULL_MASK : 0;
	for (uint32_t rest = split->mask; rest; rest &= rest - 1)
		dst[__builtin_ctz(rest)] = value;
}

static void
release(struct gs_block *block, unsigned int id)
{
	struct gs_barrier *barrier = &block->barriers[id];

	for (uint32_t i = 0; i < block->warp_count; i++) {
		struct gs_warp *warp = &block->warps[i];

		for (int k = 0; k < warp->split_count; k++) {
			struct gs_split *split = &warp->splits[k];

			if (split->wait != GS_WAIT_BARRIER || split->barrier != id)
				continue;
			write_value(split, barrier->value);
			split->wait = GS_WAIT_NONE;
		}
	}
	*barrier = (struct gs_barrier){ 0 };
	block->barriers_in_use &= ~(1u << id);
}

/* bar.red returns a predicate for and/or, a number for popc; 0 and -1 serve for both. */
static void
add_value(struct gs_barrier *barrier, const struct gs_code *code, const struct gs_split *split)
{
	uint32_t votes = gs_lanes()->pred_mask(split->frame->regs + code->c);
	uint32_t value;

	if (code->negated)
		votes = ~votes;
	votes &= split->mask;
	switch (code->sub) {
	case GS_BOOL_AND:
		value = votes == split->mask;
		barrier->value = barrier->has_value ? barrier->value & value : value;
		break;
	case GS_BOOL_OR:
		barrier->value |= votes != 0;
		break;
	default:
		barrier->value += (uint32_t)__builtin_popcount(votes);
		break;
	}
	barrier->has_value = true;
}

void
gs_barrier_check(struct gs_block *block)
{
	for (uint32_t rest = block->barriers_in_use; rest; rest &= rest - 1) {
		unsigned int id = (unsigned int)__builtin_ctz(rest);
		const struct gs_barrier *barrier = &block->barriers[id];
		uint32_t expected = barrier->expected ? barrier->expected : block->live_threads;

		if (barrier->arrived && barrier->arrived >= expected)
			release(block, id);
	}
}

/*
 * With an explicit thread count, a warp counts as 32 threads regardless of its size: the last of
 * its live lanes to arrive adds the lanes that the block does not have or that have exited.
 */
static uint32_t
arrival(const struct gs_warp *warp, const struct gs_split *split, unsigned int id)
{
	uint32_t waiting = split->mask;
	uint32_t count = (uint32_t)__builtin_popcount(split->mask);

	for (int k = 0; k < warp->split_count; k++) {
		const struct gs_split *other = &warp->splits[k];

		if (other != split && other->wait == GS_WAIT_BARRIER && other->barrier == id)
			waiting |= other->mask;
	}
	if ((waiting & warp->live) == warp->live)
		count += GS_WARP - (uint32_t)__builtin_popcount(warp->live);
	return count;
}

void
gs_barrier_arrive(struct gs_block *block, const struct gs_warp *warp, const struct gs_code *code,
		  struct gs_split *split)
{
	const uint8_t *regs = split->frame->regs;
	int first = __builtin_ctz(split->mask);
	unsigned int id = ((const uint32_t *)(const void *)(regs + code->a))[first] % GS_BARRIERS;
	struct gs_barrier *barrier = &block->barriers[id];

	block->barriers_in_use |= 1u << id;
	if (code->count) {
		barrier->expected = ((const uint32_t *)(const void *)(regs + code->b))[first];
		barrier->arrived += arrival(warp, split, id);
	} else {
		barrier->arrived += (uint32_t)__builtin_popcount(split->mask);
	}
	if (code->sub)
		add_value(barrier, code, split);
	if (!code->flag) {
		split->wait = GS_WAIT_BARRIER;
		split->barrier = (uint8_t)id;
	}
	gs_barrier_check(block);
}
