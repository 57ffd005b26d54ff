/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations between the lanes of a warp. Several splits may take part, each at its own
 * instruction: the operands of all lanes are gathered first, then each lane's result is computed
 * and written back.
 */
#include "softgpu/engine/run/run.h"

struct meeting {
	uint32_t mask; /* the participating lanes */
	uint64_t value[GS_WARP];
	uint32_t second[GS_WARP];
	uint32_t third[GS_WARP];
	uint32_t members[GS_WARP];
	uint64_t result[GS_WARP];
	bool flag[GS_WARP];
};

static uint32_t
get_lane(const uint8_t *regs, uint32_t slot, int lane)
{
	return ((const uint32_t *)(const void *)(regs + slot))[lane];
}

static const struct gs_code *
get_code(const struct gs_split *split)
{
	return &split->frame->function->code[split->at];
}

static uint32_t
active_mask(const struct gs_split *split)
{
	return gs_guard_mask(get_code(split), split->frame->regs, split->mask);
}

static void
gather_value(struct meeting *meeting, const struct gs_code *code, const uint8_t *regs, int lane)
{
	if (code->kind == GS_KIND_VOTE)
		meeting->value[lane] = (get_lane(regs, code->a, lane) != 0) != code->negated;
	else if (code->kind == GS_KIND_MATCH && code->width == 8)
		meeting->value[lane] = ((const uint64_t *)(const void *)(regs + code->a))[lane];
	else
		meeting->value[lane] = get_lane(regs, code->a, lane);
	if (code->kind == GS_KIND_SHUFFLE) {
		meeting->second[lane] = get_lane(regs, code->b, lane);
		meeting->third[lane] = get_lane(regs, code->c, lane);
	}
	meeting->members[lane] = get_lane(regs, code->d, lane);
}

static void
gather(struct meeting *meeting, struct gs_split **splits, int count)
{
	meeting->mask = 0;
	for (int i = 0; i < count; i++) {
		const struct gs_code *code = get_code(splits[i]);
		uint32_t mask = active_mask(splits[i]);

		meeting->mask |= mask;
		for (uint32_t rest = mask; rest; rest &= rest - 1)
			gather_value(meeting, code, splits[i]->frame->regs, __builtin_ctz(rest));
	}
}

/* A lane that does not participate yields 0, as on GPUs; programs rely on it. */
static void
shuffle_lane(struct meeting *meeting, const struct gs_code *code, int lane)
{
	uint32_t by = meeting->second[lane] & 31;
	uint32_t clamp = meeting->third[lane] & 31;
	uint32_t segment = meeting->third[lane] >> 8 & 31;
	uint32_t own = (uint32_t)lane;
	uint32_t last = (own & segment) | (clamp & ~segment);
	uint32_t from;
	bool in_range;

	switch (code->sub) {
	case GS_SUB_UP:
		from = own - by;
		in_range = (int32_t)from >= (int32_t)last;
		break;
	case GS_SUB_DOWN:
		from = own + by;
		in_range = from <= last;
		break;
	case GS_SUB_BFLY:
		from = own ^ by;
		in_range = from <= last;
		break;
	default:
		from = (own & segment) | (by & ~segment);
		in_range = from <= last;
		break;
	}
	if (!in_range)
		from = own;
	meeting->result[lane] = meeting->mask >> from & 1 ? meeting->value[from] : 0;
	meeting->flag[lane] = in_range;
}

static void
vote_lane(struct meeting *meeting, const struct gs_code *code, int lane)
{
	uint32_t group = meeting->members[lane] & meeting->mask;
	uint32_t ayes = 0;

	for (uint32_t rest = group; rest; rest &= rest - 1)
		ayes |= (uint32_t)meeting->value[__builtin_ctz(rest)] << __builtin_ctz(rest);
	switch (code->sub) {
	case GS_SUB_BALLOT:
		meeting->result[lane] = ayes;
		break;
	case GS_SUB_ALL:
		meeting->result[lane] = ayes == group ? GS_FULL_MASK : 0;
		break;
	case GS_SUB_ANY:
		meeting->result[lane] = ayes ? GS_FULL_MASK : 0;
		break;
	default:
		meeting->result[lane] = ayes == group || !ayes ? GS_FULL_MASK : 0;
		break;
	}
}

static void
match_lane(struct meeting *meeting, const struct gs_code *code, int lane)
{
	uint32_t group = meeting->members[lane] & meeting->mask;
	uint32_t equal = 0;

	for (uint32_t rest = group; rest; rest &= rest - 1) {
		int other = __builtin_ctz(rest);

		if (meeting->value[other] == meeting->value[lane])
			equal |= 1u << other;
	}
	meeting->flag[lane] = equal == group;
	meeting->result[lane] = code->sub == GS_SUB_ALL && equal != group ? 0 : equal;
}

static uint32_t
reduce(const struct gs_code *code, uint32_t a, uint32_t b)
{
	switch (code->sub) {
	case GS_SUB_ADD:
		return a + b;
	case GS_SUB_AND:
		return a & b;
	case GS_SUB_OR:
		return a | b;
	case GS_SUB_XOR:
		return a ^ b;
	case GS_SUB_MIN:
		if (code->is_signed)
			return (int32_t)a < (int32_t)b ? a : b;
		return a < b ? a : b;
	default:
		if (code->is_signed)
			return (int32_t)a > (int32_t)b ? a : b;
		return a > b ? a : b;
	}
}

static void
redux_lane(struct meeting *meeting, const struct gs_code *code, int lane)
{
	uint32_t group = meeting->members[lane] & meeting->mask & ~(1u << lane);
	uint32_t value = (uint32_t)meeting->value[lane];

	for (uint32_t rest = group; rest; rest &= rest - 1)
		value = reduce(code, value, (uint32_t)meeting->value[__builtin_ctz(rest)]);
	meeting->result[lane] = value;
}

static void
compute(struct meeting *meeting, const struct gs_code *code, uint32_t mask)
{
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		int lane = __builtin_ctz(rest);

		if (code->kind == GS_KIND_SHUFFLE)
			shuffle_lane(meeting, code, lane);
		else if (code->kind == GS_KIND_VOTE)
			vote_lane(meeting, code, lane);
		else if (code->kind == GS_KIND_MATCH)
			match_lane(meeting, code, lane);
		else
			redux_lane(meeting, code, lane);
	}
}

static void
scatter(const struct meeting *meeting, const struct gs_code *code, uint8_t *regs, uint32_t mask)
{
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		int lane = __builtin_ctz(rest);

		((uint32_t *)(void *)(regs + code->dst))[lane] = (uint32_t)meeting->result[lane];
		if (code->dst2)
			((uint32_t *)(void *)(regs + code->dst2))[lane] =
				meeting->flag[lane] ? GS_FULL_MASK : 0;
	}
}

void
gs_warp_operate(struct gs_split **splits, int count)
{
	struct meeting meeting;

	if (get_code(splits[0])->kind == GS_KIND_WARP_SYNC)
		return;
	gather(&meeting, splits, count);
	for (int i = 0; i < count; i++)
		compute(&meeting, get_code(splits[i]), active_mask(splits[i]));
	for (int i = 0; i < count; i++)
		scatter(&meeting, get_code(splits[i]), splits[i]->frame->regs,
			active_mask(splits[i]));
}
