/* SPDX-License-Identifier: Apache-2.0 */
/* Slots whose value is determined by the launch, the block or the warp. */
#include "softgpu/engine/run/run.h"

#include <string.h>

static uint64_t
param_value(const struct gs_job *job, const struct gs_fixed *fixed)
{
	const uint8_t *from = job->params + fixed->value;
	uint64_t value = 0;

	memcpy(&value, from, gs_type_size((enum gs_type)fixed->id));
	switch (fixed->id) {
	case GS_TYPE_S8:
		return (uint64_t)(int64_t)(int8_t)value;
	case GS_TYPE_S16:
		return (uint64_t)(int64_t)(int16_t)value;
	case GS_TYPE_S32:
		return (uint64_t)(int64_t)(int32_t)value;
	default:
		return value;
	}
}

static uint64_t
special_value(const struct gs_block *block, const struct gs_warp *warp,
	      const struct gs_fixed *fixed)
{
	const struct gs_job *job = block->job;
	const struct gs_launch *launch = job->launch;
	unsigned int dim = fixed->dim < 3 ? fixed->dim : 2;
	bool is_component = fixed->dim < 3;

	switch (fixed->id) {
	case GS_SPECIAL_NTID:
		return is_component ? launch->block[dim] : 0;
	case GS_SPECIAL_CTAID:
	case GS_SPECIAL_CLUSTERID:
		return is_component ? block->index[dim] : 0;
	case GS_SPECIAL_NCTAID:
	case GS_SPECIAL_NCLUSTERID:
		return is_component ? launch->grid[dim] : 0;
	case GS_SPECIAL_WARPID:
		return warp->index;
	case GS_SPECIAL_NWARPID:
		return block->warp_count;
	case GS_SPECIAL_SMID:
		return block->multiprocessor;
	case GS_SPECIAL_NSMID:
		return job->multiprocessors;
	case GS_SPECIAL_GRIDID:
	case GS_SPECIAL_CLUSTER_NCTAID:
	case GS_SPECIAL_CLUSTER_NCTARANK:
		return 1;
	case GS_SPECIAL_DYNAMIC_SMEM_SIZE:
		return launch->dynamic_shared;
	case GS_SPECIAL_TOTAL_SMEM_SIZE:
		return job->shared_bytes;
	case GS_SPECIAL_ENVREG:
		if (fixed->dim == 1)
			return job->grid_workspace >> 32;
		return fixed->dim == 2 ? (uint32_t)job->grid_workspace : 0;
	case GS_SPECIAL_CURRENT_GRAPH_EXEC:
		return launch->graphs ? launch->graphs->current : 0;
	case GS_SPECIAL_SHARED_BASE:
		return (uint64_t)(uintptr_t)block->shared;
	default:
		return 0;
	}
}

static uint64_t
number_at(int64_t address)
{
	uint64_t number;

	memcpy(&number, (const void *)(uintptr_t)address, sizeof(number)); /* NOLINT */
	return number;
}

static bool
is_lane_special(int id)
{
	return id == GS_SPECIAL_TID || id == GS_SPECIAL_LANEID ||
	       (id >= GS_SPECIAL_LANEMASK_EQ && id <= GS_SPECIAL_LANEMASK_GT);
}

static uint32_t
thread_index(const struct gs_launch *launch, uint32_t thread, unsigned int dim)
{
	switch (dim) {
	case 0:
		return thread % launch->block[0];
	case 1:
		return thread / launch->block[0] % launch->block[1];
	case 2:
		return thread / launch->block[0] / launch->block[1];
	default:
		return 0;
	}
}

/* Divides once per warp; the other lanes count from there. */
static void
fill_threads(const struct gs_launch *launch, const struct gs_warp *warp,
	     const struct gs_fixed *fixed, uint8_t *slot)
{
	uint32_t index[4];

	for (unsigned int dim = 0; dim < 4; dim++)
		index[dim] = thread_index(launch, warp->index * GS_WARP, dim);
	for (uint32_t lane = 0; lane < GS_WARP; lane++) {
		uint32_t value = index[fixed->dim & 3];

		if (fixed->width == 8)
			((uint64_t *)(void *)slot)[lane] = value;
		else
			((uint32_t *)(void *)slot)[lane] = value;
		if (++index[0] < launch->block[0])
			continue;
		index[0] = 0;
		if (++index[1] < launch->block[1])
			continue;
		index[1] = 0;
		index[2]++;
	}
}

static uint64_t
lane_value(const struct gs_fixed *fixed, uint32_t lane)
{
	switch (fixed->id) {
	case GS_SPECIAL_LANEID:
		return lane;
	case GS_SPECIAL_LANEMASK_EQ:
		return 1u << lane;
	case GS_SPECIAL_LANEMASK_LE:
		return (uint32_t)((2ull << lane) - 1);
	case GS_SPECIAL_LANEMASK_LT:
		return (1u << lane) - 1;
	case GS_SPECIAL_LANEMASK_GE:
		return ~((1u << lane) - 1);
	default:
		return ~(uint32_t)((2ull << lane) - 1);
	}
}

static void
fill_lanes(const struct gs_block *block, const struct gs_warp *warp, const struct gs_frame *frame,
	   const struct gs_fixed *fixed)
{
	uint8_t *slot = frame->regs + fixed->slot;

	if (fixed->kind == GS_FIXED_SPECIAL && fixed->id == GS_SPECIAL_TID) {
		fill_threads(block->job->launch, warp, fixed, slot);
		return;
	}
	for (uint32_t lane = 0; lane < GS_WARP; lane++) {
		uint64_t value;

		if (fixed->kind == GS_FIXED_LOCAL_ADDRESS)
			value = warp->local + lane * block->job->local_stride + frame->local_base +
				(uint64_t)fixed->value;
		else
			value = lane_value(fixed, lane);
		if (fixed->width == 8)
			((uint64_t *)(void *)slot)[lane] = value;
		else
			((uint32_t *)(void *)slot)[lane] = (uint32_t)value;
	}
}

static uint64_t
fixed_value(const struct gs_block *block, const struct gs_warp *warp, const struct gs_fixed *fixed)
{
	switch ((enum gs_fixed_kind)fixed->kind) {
	case GS_FIXED_PARAM:
		return param_value(block->job, fixed);
	case GS_FIXED_REFERENCE:
		return number_at(fixed->value);
	case GS_FIXED_PARAM_ADDRESS:
		return (uint64_t)(uintptr_t)block->job->params + (uint64_t)fixed->value;
	case GS_FIXED_DYNAMIC_SHARED:
		return gs_dynamic_shared_at(block->job->function) + (uint64_t)fixed->value;
	case GS_FIXED_SPECIAL:
		return special_value(block, warp, fixed);
	default:
		return (uint64_t)fixed->value;
	}
}

void
gs_fill_fixed(const struct gs_block *block, const struct gs_warp *warp,
	      const struct gs_frame *frame, enum gs_fill fill)
{
	const struct gs_function *function = frame->function;
	uint32_t first = 0;

	if (fill != GS_FILL_ALL)
		first = function->fixed_count - function->block_fixed_count;
	if (fill == GS_FILL_WARP)
		first -= function->warp_fixed_count;

	for (uint32_t i = first; i < function->fixed_count; i++) {
		const struct gs_fixed *fixed = &function->fixed[i];

		if (fixed->kind == GS_FIXED_LOCAL_ADDRESS ||
		    (fixed->kind == GS_FIXED_SPECIAL && is_lane_special(fixed->id)))
			fill_lanes(block, warp, frame, fixed);
		else if (fixed->width == 8)
			gs_lanes()->splat8(frame->regs + fixed->slot,
					   fixed_value(block, warp, fixed));
		else
			gs_lanes()->splat4(frame->regs + fixed->slot,
					   (uint32_t)fixed_value(block, warp, fixed));
	}
}
