/* SPDX-License-Identifier: Apache-2.0 */
/* Selection of the lanes of a warp that run next, and reconvergence. */
#include "softgpu/engine/run/run.h"

void
gs_split_add(struct gs_warp *warp, struct gs_frame *frame, uint32_t mask, int32_t at)
{
	warp->splits[warp->split_count++] =
		(struct gs_split){ .frame = frame, .mask = mask, .at = at };
}

static void
merge_splits(struct gs_warp *warp)
{
	for (int i = 0; i < warp->split_count; i++) {
		struct gs_split *one = &warp->splits[i];

		if (one->wait == GS_WAIT_BARRIER)
			continue;
		for (int k = i + 1; k < warp->split_count; k++) {
			struct gs_split *other = &warp->splits[k];

			if (other->at != one->at || other->frame != one->frame ||
			    other->wait == GS_WAIT_BARRIER)
				continue;
			one->mask |= other->mask;
			one->wait = GS_WAIT_NONE;
			one->goes_alone = false;
			*other = warp->splits[--warp->split_count];
			k--;
		}
	}
}

static bool
runs_before(const struct gs_split *a, const struct gs_split *b)
{
	if (a->frame->depth != b->frame->depth)
		return a->frame->depth > b->frame->depth;
	return a->at < b->at;
}

static struct gs_split *
best_split(struct gs_warp *warp, enum gs_wait wait, uint32_t lanes)
{
	struct gs_split *best = NULL;

	for (int i = 0; i < warp->split_count; i++) {
		struct gs_split *split = &warp->splits[i];

		if (split->wait == wait && (split->mask & lanes) &&
		    (!best || runs_before(split, best)))
			best = split;
	}
	return best;
}

static const struct gs_code *
code_at(const struct gs_split *split)
{
	return &split->frame->function->code[split->at];
}

/* The live lanes that the split's instruction needs in addition to its own. */
uint32_t
gs_split_missing_members(const struct gs_warp *warp, const struct gs_split *split)
{
	const struct gs_code *code = code_at(split);
	const uint8_t *regs = split->frame->regs;
	const uint32_t *members = (const uint32_t *)(const void *)(regs + code->d);
	uint32_t wanted = 0;

	for (uint32_t rest = gs_guard_mask(code, regs, split->mask); rest; rest &= rest - 1)
		wanted |= members[__builtin_ctz(rest)];
	return wanted & warp->live & ~split->mask;
}

/*
 * Lanes may be at different instructions of the same kind and still belong together: in both arms
 * of a branch, or in different calls of a function. If all are present, the operation is performed
 * and they continue.
 */
static bool
try_meeting(struct gs_warp *warp, const struct gs_split *first)
{
	struct gs_split *group[GS_WARP + 1];
	const struct gs_code *code = code_at(first);
	uint32_t present = 0;
	uint32_t missing = 0;
	int count = 0;

	for (int i = 0; i < warp->split_count; i++) {
		struct gs_split *split = &warp->splits[i];

		if (split->wait != GS_WAIT_MEMBERS || code_at(split)->kind != code->kind ||
		    code_at(split)->sub != code->sub)
			continue;
		group[count++] = split;
		present |= split->mask;
		missing |= gs_split_missing_members(warp, split);
	}
	if (missing & ~present)
		return false;
	gs_warp_operate(group, count);
	for (int i = 0; i < count; i++) {
		group[i]->at++;
		group[i]->wait = GS_WAIT_NONE;
	}
	return true;
}

/* If all splits wait: completes warp operations first, then selects the split that no other lane
 * can join. */
static struct gs_split *
resolve_waiting(struct gs_warp *warp)
{
	struct gs_split *best;

	for (int i = 0; i < warp->split_count; i++) {
		if (warp->splits[i].wait == GS_WAIT_MEMBERS &&
		    try_meeting(warp, &warp->splits[i])) {
			merge_splits(warp);
			return best_split(warp, GS_WAIT_NONE, GS_FULL_MASK);
		}
	}
	best = best_split(warp, GS_WAIT_MEMBERS, GS_FULL_MASK);
	if (best) {
		best->wait = GS_WAIT_NONE;
		best->goes_alone = true;
	}
	return best;
}

/* Selects the lanes of the next runnable split in order of lane numbers. */
void
gs_split_favour_next(struct gs_warp *warp, uint32_t running)
{
	uint32_t behind = ~((running & -running) * 2 - 1);
	uint32_t waiting = 0;
	uint32_t lane;

	for (int i = 0; i < warp->split_count; i++) {
		if (warp->splits[i].wait == GS_WAIT_NONE && !(warp->splits[i].mask & running))
			waiting |= warp->splits[i].mask;
	}
	lane = waiting & behind ? waiting & behind : waiting;
	lane &= -lane;
	warp->favoured = 0;
	for (int i = 0; i < warp->split_count; i++) {
		if (warp->splits[i].mask & lane)
			warp->favoured = warp->splits[i].mask;
	}
	warp->turn = GS_TURN;
}

struct gs_split *
gs_split_pick(struct gs_warp *warp)
{
	struct gs_split *split = NULL;

	if (warp->split_count > 1)
		merge_splits(warp);
	if (warp->favoured) {
		if (--warp->turn < 0)
			warp->favoured = 0;
		split = best_split(warp, GS_WAIT_NONE, warp->favoured);
	}
	if (!split) {
		warp->favoured = 0;
		split = best_split(warp, GS_WAIT_NONE, GS_FULL_MASK);
	}
	return split ? split : resolve_waiting(warp);
}
