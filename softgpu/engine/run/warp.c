/* SPDX-License-Identifier: Apache-2.0 */
/* The main loop of the interpreter. */
#include "base/clock.h"
#include "softgpu/engine/run/run.h"

#include <fenv.h>

/* State of a running split; save() writes changed members back. */
struct cursor {
	struct gs_split *split;
	struct gs_frame *frame;
	uint8_t *regs;
	const struct gs_code *code;
	const struct gs_code *at;
	uint32_t mask;
	bool has_others; /* other splits of the warp */
	bool is_full;    /* all live lanes run: inactive lanes need not be preserved */
};

enum step {
	STEP_ON,   /* continue at cursor->at */
	STEP_PICK, /* saved; select the next split */
	STEP_BUDGET,
	STEP_FAILED,
};

static void
save(struct cursor *cursor, const struct gs_code *at)
{
	cursor->split->at = (int32_t)(at - cursor->code);
	cursor->split->mask = cursor->mask;
}

static bool
pick(struct gs_warp *warp, struct cursor *cursor)
{
	struct gs_split *split = gs_split_pick(warp);

	if (!split)
		return false;
	cursor->split = split;
	cursor->frame = split->frame;
	cursor->regs = split->frame->regs;
	cursor->code = split->frame->function->code;
	cursor->at = cursor->code + split->at;
	cursor->mask = split->mask;
	cursor->has_others = warp->split_count > 1;
	cursor->is_full = split->mask == warp->live;
	return true;
}

/* Runs lane loops up to the first instruction of another kind. */
static void
run_lanes(struct cursor *cursor)
{
	uint8_t result[GS_WARP * 8] __attribute__((aligned(64)));
	const struct gs_code *at = cursor->at;
	uint8_t *regs = cursor->regs;
	bool is_full = cursor->is_full;

	do {
		uint32_t mask;

		if (is_full && at->pred < 0) {
			at->func(at, regs, regs + at->dst);
			continue;
		}
		mask = gs_guard_mask(at, regs, cursor->mask);
		if (mask == GS_FULL_MASK) {
			at->func(at, regs, regs + at->dst);
		} else if (mask) {
			at->func(at, regs, result);
			gs_lanes()->blend(regs + at->dst, result, mask, at->dst_width);
		}
	} while ((++at)->kind == GS_KIND_LANE);
	cursor->at = at;
}

/* Returns false if other lanes are at this label: they have joined, and the state was saved for
 * selecting the next split. */
static bool
join(struct gs_warp *warp, struct cursor *cursor)
{
	int32_t here = (int32_t)(cursor->at - cursor->code);
	bool met = false;

	cursor->at++;
	if (!cursor->has_others)
		return true;
	for (int i = 0; i < warp->split_count; i++) {
		struct gs_split *other = &warp->splits[i];

		if (other == cursor->split || other->frame != cursor->frame ||
		    (other->at != here && other->at != here + 1) || other->wait != GS_WAIT_NONE)
			continue;
		other->at = here + 1;
		met = true;
	}
	if (met)
		save(cursor, cursor->at);
	return !met;
}

/* Counts a backward branch or a call. */
static enum step
spend(struct gs_block *block, struct gs_warp *warp, struct cursor *cursor, long *budget)
{
	const volatile int *cancel = block->job->launch->cancel;

	--*budget;
	if ((*budget & 63) == 0 && cancel && *cancel) {
		gs_job_fail(block->job, GS_CANCELLED, "cancelled");
		return STEP_FAILED;
	}
	if (*budget < 0) {
		save(cursor, cursor->at);
		return STEP_BUDGET;
	}
	if (cursor->has_others && --warp->turn < 0) {
		save(cursor, cursor->at);
		gs_split_favour_next(warp, cursor->mask);
		if (warp->favoured)
			return STEP_PICK;
	}
	return STEP_ON;
}

static enum step
go_to(struct cursor *cursor, const struct gs_code *target)
{
	if (!cursor->has_others) {
		cursor->at = target;
		return STEP_ON;
	}
	save(cursor, target);
	return STEP_PICK;
}

static enum step
branch(struct gs_block *block, struct gs_warp *warp, struct cursor *cursor, long *budget)
{
	const struct gs_code *at = cursor->at;
	const struct gs_code *target = cursor->code + at->target;
	uint32_t taken;

	if (target <= at) {
		enum step step = spend(block, warp, cursor, budget);

		if (step != STEP_ON)
			return step;
	}
	taken = gs_guard_mask(at, cursor->regs, cursor->mask);
	if (taken == cursor->mask)
		return go_to(cursor, target);
	if (!taken)
		return go_to(cursor, at + 1);
	cursor->mask &= ~taken;
	save(cursor, at + 1);
	gs_split_add(warp, cursor->frame, taken, at->target);
	return STEP_PICK;
}

/* Each distinct target becomes a split; an index beyond the table is undefined and falls
 * through. */
static enum step
branch_table(struct gs_block *block, struct gs_warp *warp, struct cursor *cursor, long *budget)
{
	const struct gs_code *at = cursor->at;
	const uint32_t *index = (const uint32_t *)(const void *)(cursor->regs + at->a);
	enum step step = spend(block, warp, cursor, budget);
	uint32_t todo;
	uint32_t stay;

	if (step != STEP_ON)
		return step;
	todo = gs_guard_mask(at, cursor->regs, cursor->mask);
	stay = cursor->mask & ~todo;
	while (todo) {
		uint32_t pick_index = index[__builtin_ctz(todo)];
		uint32_t same = 0;

		for (uint32_t rest = todo; rest; rest &= rest - 1) {
			if (index[__builtin_ctz(rest)] == pick_index)
				same |= rest & -rest;
		}
		todo &= ~same;
		if (pick_index >= (uint32_t)at->target) {
			stay |= same;
			continue;
		}
		if (!todo && !stay) {
			cursor->mask = same;
			return go_to(cursor, cursor->code + at->slots[pick_index]);
		}
		gs_split_add(warp, cursor->frame, same, (int32_t)at->slots[pick_index]);
	}
	cursor->mask = stay;
	save(cursor, at + 1);
	if (!stay)
		*cursor->split = warp->splits[--warp->split_count];
	return STEP_PICK;
}

static enum step
leave_kernel(struct gs_block *block, struct gs_warp *warp, struct cursor *cursor)
{
	uint32_t mask = gs_guard_mask(cursor->at, cursor->regs, cursor->mask);
	struct gs_frame *frame = cursor->frame;

	if (!mask) {
		cursor->at++;
		return STEP_ON;
	}
	warp->live &= ~mask;
	block->live_threads -= (uint32_t)__builtin_popcount(mask);
	cursor->mask &= ~mask;
	if (cursor->mask)
		save(cursor, cursor->at + 1);
	else
		*cursor->split = warp->splits[--warp->split_count];
	while (frame) {
		struct gs_frame *caller = frame->caller;

		gs_frame_leave(block, frame, mask);
		frame = caller;
	}
	gs_barrier_check(block);
	return STEP_PICK;
}

static enum step
return_from(struct gs_block *block, struct gs_warp *warp, struct cursor *cursor)
{
	uint32_t mask = gs_guard_mask(cursor->at, cursor->regs, cursor->mask);
	struct gs_frame *frame = cursor->frame;
	struct gs_frame *caller = frame->caller;
	int32_t return_at = frame->return_at;

	if (!mask) {
		cursor->at++;
		return STEP_ON;
	}
	gs_frame_return(block, warp, frame, mask);
	cursor->mask &= ~mask;
	if (cursor->mask) {
		save(cursor, cursor->at + 1);
		gs_split_add(warp, caller, mask, return_at);
	} else {
		cursor->split->frame = caller;
		cursor->split->at = return_at;
		cursor->split->mask = mask;
	}
	gs_frame_leave(block, frame, mask);
	return STEP_PICK;
}

/* Returns the lanes of the mask that call the same function as its first lane; *target: the
 * function's index. */
static uint32_t
same_target(const struct gs_code *code, const uint8_t *regs, uint32_t mask, uint64_t *target)
{
	const uint64_t *targets = (const uint64_t *)(const void *)(regs + code->a);
	uint32_t same = 0;

	if (code->target >= 0) {
		*target = (uint64_t)code->target;
		return mask;
	}
	*target = targets[__builtin_ctz(mask)];
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		if (targets[__builtin_ctz(rest)] == *target)
			same |= rest & -rest;
	}
	*target ^= GS_FUNCTION_ADDRESS;
	return same;
}

static enum step
call(struct gs_block *block, struct gs_warp *warp, struct cursor *cursor, long *budget)
{
	const struct gs_code *at = cursor->at;
	const struct gs_module *module = cursor->frame->function->module;
	uint32_t mask = gs_guard_mask(at, cursor->regs, cursor->mask);
	enum step step = spend(block, warp, cursor, budget);
	struct gs_frame *frame;
	uint64_t target;
	uint32_t same;

	if (step != STEP_ON)
		return step;
	if (!mask)
		return go_to(cursor, at + 1);
	same = same_target(at, cursor->regs, mask, &target);
	if (target >= module->ptx->function_count) {
		gs_job_fail(block->job, GS_INVALID_PC,
			    "kernel %.160s: call of no function at PTX line %d",
			    block->job->function->ptx->name, (int)at->insn->line);
		return STEP_FAILED;
	}
	if (!module->ptx->functions[target].has_body) {
		if (!gs_call_builtin(block, warp, cursor->frame, at, target, same))
			return STEP_FAILED;
		if (same == mask)
			return go_to(cursor, at + 1);
		frame = cursor->frame;
	} else {
		frame = gs_frame_enter(block, warp, cursor->frame, at, &module->functions[target],
				       same);
		if (!frame)
			return STEP_FAILED;
	}
	/* Lanes that call another function repeat this instruction; lanes that do not call
	 * continue. */
	if (mask != same)
		gs_split_add(warp, cursor->frame, mask & ~same, (int32_t)(at - cursor->code));
	if (cursor->mask != mask)
		gs_split_add(warp, cursor->frame, cursor->mask & ~mask,
			     (int32_t)(at + 1 - cursor->code));
	cursor->split->frame = frame;
	cursor->split->mask = same;
	cursor->split->at = frame == cursor->frame ? (int32_t)(at + 1 - cursor->code) : 0;
	return STEP_PICK;
}

static enum step
warp_operation(struct gs_warp *warp, struct cursor *cursor)
{
	struct gs_split *split = cursor->split;

	save(cursor, cursor->at);
	if (cursor->has_others && !split->goes_alone && gs_split_missing_members(warp, split)) {
		split->wait = GS_WAIT_MEMBERS;
		return STEP_PICK;
	}
	split->goes_alone = false;
	gs_warp_operate(&split, 1);
	cursor->at++;
	return STEP_ON;
}

static enum step
access_memory(struct gs_block *block, struct cursor *cursor)
{
	const struct gs_code *at = cursor->at;
	uint32_t mask = gs_guard_mask(at, cursor->regs, cursor->mask);
	bool done = true;

	cursor->at++;
	if (!mask)
		return STEP_ON;
	if (at->kind == GS_KIND_LOAD)
		done = gs_load(block, at, cursor->regs, mask);
	else if (at->kind == GS_KIND_STORE)
		done = gs_store(block, at, cursor->regs, mask);
	else if (at->kind == GS_KIND_ATOMIC)
		done = gs_atomic(block, at, cursor->regs, mask);
	else if (at->kind == GS_KIND_TEXTURE)
		done = gs_texture_load(block, at, cursor->regs, mask);
	else if (at->kind == GS_KIND_SURFACE)
		done = gs_surface_access(block, at, cursor->regs, mask);
	else
		done = gs_copy_async(block, at, cursor->regs, mask);
	return done ? STEP_ON : STEP_FAILED;
}

static void
read_clock(const struct cursor *cursor)
{
	const struct gs_code *at = cursor->at;
	uint64_t value = gp_now_ns();

	if (at->sub == GS_SPECIAL_CLOCK_HI || at->sub == GS_SPECIAL_GLOBALTIMER_HI)
		value >>= 32;
	if (at->dst_width == 8)
		gs_lanes()->splat8(cursor->regs + at->dst, value);
	else
		gs_lanes()->splat4(cursor->regs + at->dst, (uint32_t)value);
}

static bool
is_in_space(const struct gs_block *block, const struct gs_warp *warp, uint64_t address, int space)
{
	bool shared = address - (uint64_t)(uintptr_t)block->shared < block->job->shared_bytes;
	bool local = address - warp->local < GS_WARP * block->job->local_stride;

	if (space == GS_SPACE_SHARED)
		return shared;
	if (space == GS_SPACE_LOCAL)
		return local;
	return address >= GS_VA_BASE && address < GS_VA_END && !shared && !local;
}

static void
write_lane_value(const struct gs_block *block, const struct gs_warp *warp,
		 const struct cursor *cursor)
{
	const struct gs_code *at = cursor->at;
	const uint64_t *addresses = (const uint64_t *)(const void *)(cursor->regs + at->a);
	uint32_t *dst = (uint32_t *)(void *)(cursor->regs + at->dst);
	uint32_t mask = gs_guard_mask(at, cursor->regs, cursor->mask);

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		int lane = __builtin_ctz(rest);

		if (at->kind == GS_KIND_ACTIVE_MASK)
			dst[lane] = mask;
		else
			dst[lane] = is_in_space(block, warp, addresses[lane], at->space)
					    ? GS_FULL_MASK
					    : 0;
	}
}

static enum step
trap(struct gs_block *block, struct cursor *cursor)
{
	if (!gs_guard_mask(cursor->at, cursor->regs, cursor->mask)) {
		cursor->at++;
		return STEP_ON;
	}
	gs_job_fail(block->job, GS_LAUNCH_FAILED, "kernel %.160s: trap at PTX line %d",
		    block->job->function->ptx->name, (int)cursor->at->insn->line);
	return STEP_FAILED;
}

/* A thread that sleeps, or whose test failed, waits for others, so these should run soon. */
static void
yield_turn(struct gs_warp *warp, long *budget)
{
	*budget = *budget > 256 ? *budget - 256 : 0;
	warp->turn -= 256;
}

/* If the whole warp sleeps its slice ends; if all other warps sleep as well, the engine's thread
 * sleeps (launch.c). */
static void
sleep_a_while(struct gs_warp *warp, struct cursor *cursor, long *budget)
{
	const uint32_t *ns = (const uint32_t *)(const void *)(cursor->regs + cursor->at->a);
	uint32_t mask = gs_guard_mask(cursor->at, cursor->regs, cursor->mask);

	if (!mask)
		return;
	yield_turn(warp, budget);
	if (!cursor->has_others && mask == cursor->mask) {
		*budget = 0;
		warp->rest_ns = ns[__builtin_ctz(mask)];
	}
}

static enum step
use_mbarrier(struct gs_block *block, struct gs_warp *warp, struct cursor *cursor, long *budget)
{
	const struct gs_code *at = cursor->at;
	uint32_t mask = gs_guard_mask(at, cursor->regs, cursor->mask);
	bool waits = false;

	cursor->at++;
	if (mask && !gs_mbarrier(block, at, cursor->regs, mask, &waits))
		return STEP_FAILED;
	if (waits)
		yield_turn(warp, budget);
	return STEP_ON;
}

static enum step
run_other(struct gs_block *block, struct gs_warp *warp, struct cursor *cursor, long *budget)
{
	const struct gs_code *at = cursor->at;

	switch ((enum gs_kind)at->kind) {
	case GS_KIND_BARRIER:
		save(cursor, at + 1);
		gs_barrier_arrive(block, warp, at, cursor->split);
		return STEP_PICK;
	case GS_KIND_EXIT:
		return leave_kernel(block, warp, cursor);
	case GS_KIND_RETURN:
		return return_from(block, warp, cursor);
	case GS_KIND_CALL:
		return call(block, warp, cursor, budget);
	case GS_KIND_BRANCH_TABLE:
		return branch_table(block, warp, cursor, budget);
	case GS_KIND_TRAP:
		return trap(block, cursor);
	case GS_KIND_MBARRIER:
		return use_mbarrier(block, warp, cursor, budget);
	case GS_KIND_FENCE:
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		break;
	case GS_KIND_SLEEP:
		sleep_a_while(warp, cursor, budget);
		break;
	case GS_KIND_ROUND:
		fesetround((int)at->imm);
		break;
	case GS_KIND_CLOCK:
		read_clock(cursor);
		break;
	case GS_KIND_ACTIVE_MASK:
	case GS_KIND_IS_SPACE:
		write_lane_value(block, warp, cursor);
		break;
	default:
		return warp_operation(warp, cursor);
	}
	cursor->at++;
	return STEP_ON;
}

static enum step
run_split(struct gs_block *block, struct gs_warp *warp, struct cursor *cursor, long *budget)
{
	enum step step = STEP_ON;

	while (step == STEP_ON) {
		switch ((enum gs_kind)cursor->at->kind) {
		case GS_KIND_LANE:
			run_lanes(cursor);
			break;
		case GS_KIND_JOIN:
			if (!join(warp, cursor))
				step = STEP_PICK;
			break;
		case GS_KIND_BRANCH:
			step = branch(block, warp, cursor, budget);
			break;
		case GS_KIND_LOAD:
		case GS_KIND_STORE:
		case GS_KIND_ATOMIC:
		case GS_KIND_COPY_ASYNC:
		case GS_KIND_TEXTURE:
		case GS_KIND_SURFACE:
			step = access_memory(block, cursor);
			break;
		default:
			step = run_other(block, warp, cursor, budget);
			break;
		}
	}
	return step;
}

enum gs_run
gs_warp_run(struct gs_block *block, struct gs_warp *warp, long *budget)
{
	struct cursor cursor;

	if (!warp->favoured)
		warp->turn = GS_TURN;
	while (pick(warp, &cursor)) {
		block->has_run = true;
		switch (run_split(block, warp, &cursor, budget)) {
		case STEP_BUDGET:
			return GS_RUN_BUDGET;
		case STEP_FAILED:
			return GS_RUN_FAILED;
		default:
			break;
		}
	}
	return warp->split_count ? GS_RUN_WAITING : GS_RUN_DONE;
}
