/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks and their memory, which is cached for the next launch. */
#include "softgpu/engine/fault.h"
#include "softgpu/engine/memory/vmem.h"
#include "softgpu/engine/run/run.h"

#include <stdlib.h>
#include <string.h>

#define MAX_KEPT 64
/* Maximum memory of a cached block: a larger one would outlive the session that needed it. */
#define MAX_KEPT_BYTES (64ull << 20)

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gs_block *kept;
static int kept_count;

static void
free_frames(struct gs_block *block)
{
	while (block->frames) {
		struct gs_frame *frame = block->frames;

		block->frames = frame->next;
		free(frame->regs);
		free(frame);
	}
	block->free_frames = NULL;
	block->frame_bytes = 0;
}

static void
block_destroy(struct gs_block *block)
{
	if (!block)
		return;
	free_frames(block);
	gs_vmem_free(block->shared);
	gs_vmem_free(block->local);
	free(block->regs);
	free(block->warps);
	free(block);
}

static bool
reserve_device(uint8_t **memory, uint64_t *capacity, uint64_t size)
{
	if (size <= *capacity && *memory)
		return true;
	gs_vmem_free(*memory);
	*memory = gs_vmem_alloc(size);
	*capacity = *memory ? size : 0;
	return *memory != NULL;
}

static bool
reserve(struct gs_block *block, uint32_t warps)
{
	const struct gs_job *job = block->job;
	uint64_t frame_bytes = (job->function->frame_bytes + 127u) & ~127u;
	uint64_t regs = frame_bytes * warps;

	if (warps > block->warp_capacity) {
		free(block->warps);
		block->warps = calloc(warps, sizeof(*block->warps));
		block->warp_capacity = block->warps ? warps : 0;
	}
	if (regs > block->regs_capacity) {
		free(block->regs);
		block->regs = aligned_alloc(128, regs);
		block->regs_capacity = block->regs ? regs : 0;
	}
	return block->warps && block->regs &&
	       reserve_device(&block->shared, &block->shared_capacity, job->shared_bytes) &&
	       reserve_device(&block->local, &block->local_capacity,
			      job->local_stride * GS_WARP * warps);
}

static void
bind_warps(struct gs_block *block)
{
	const struct gs_job *job = block->job;
	const uint32_t *dim = job->launch->block;
	uint32_t threads = dim[0] * dim[1] * dim[2];
	uint64_t frame_bytes = (job->function->frame_bytes + 127u) & ~127u;

	memset(block->regs, 0, frame_bytes);
	for (uint32_t i = 0; i < block->warp_count; i++) {
		struct gs_warp *warp = &block->warps[i];
		uint32_t left = threads - i * GS_WARP;

		memset(warp, 0, sizeof(*warp));
		warp->index = i;
		warp->all = left >= GS_WARP ? GS_FULL_MASK : (1u << left) - 1;
		warp->local = (uint64_t)(uintptr_t)block->local + i * GS_WARP * job->local_stride;
		warp->base.function = job->function;
		warp->base.regs = block->regs + i * frame_bytes;
		/* Values shared by the warps are copied from the first warp. */
		if (i)
			memcpy(warp->base.regs, block->regs, frame_bytes);
		gs_fill_fixed(block, warp, &warp->base, i ? GS_FILL_WARP : GS_FILL_ALL);
	}
}

static struct gs_block *
pop_or_alloc(void)
{
	struct gs_block *block;

	pthread_mutex_lock(&kept_lock);
	block = kept;
	if (block) {
		kept = block->next;
		kept_count--;
	}
	pthread_mutex_unlock(&kept_lock);
	return block ? block : calloc(1, sizeof(*block));
}

struct gs_block *
gs_block_get(struct gs_job *job)
{
	const uint32_t *dim = job->launch->block;
	struct gs_block *block = pop_or_alloc();

	if (!block)
		return NULL;
	block->job = job;
	block->warp_count = (dim[0] * dim[1] * dim[2] + GS_WARP - 1) / GS_WARP;
	if (!reserve(block, block->warp_count)) {
		block_destroy(block);
		return NULL;
	}
	bind_warps(block);
	return block;
}

void
gs_block_put(struct gs_block *block)
{
	uint64_t bytes = block->regs_capacity + block->shared_capacity + block->local_capacity;
	bool keep;

	/* Frames refer to functions of this module, which may be unloaded. */
	free_frames(block);
	block->job = NULL;
	block->code_at = NULL;
	pthread_mutex_lock(&kept_lock);
	keep = kept_count < MAX_KEPT && bytes <= MAX_KEPT_BYTES;
	if (keep) {
		block->next = kept;
		kept = block;
		kept_count++;
	}
	pthread_mutex_unlock(&kept_lock);
	if (!keep)
		block_destroy(block);
}

void
gs_block_start(struct gs_block *block, uint64_t number)
{
	const struct gs_launch *launch = block->job->launch;
	const struct gs_partition *partition = launch->partition;
	const uint32_t *grid = launch->grid;

	block->multiprocessor = partition ? partition->multiprocessors[number % partition->count]
					  : (uint32_t)(number % block->job->multiprocessors);
	block->index[0] = (uint32_t)(number % grid[0]);
	block->index[1] = (uint32_t)(number / grid[0] % grid[1]);
	block->index[2] = (uint32_t)(number / grid[0] / grid[1]);
	block->live_threads = launch->block[0] * launch->block[1] * launch->block[2];
	memset(block->barriers, 0, sizeof(block->barriers));
	block->barriers_in_use = 0;
	memset(block->shared, 0, block->job->shared_bytes);
	for (uint32_t i = 0; i < block->warp_count; i++) {
		struct gs_warp *warp = &block->warps[i];

		warp->live = warp->all;
		warp->favoured = 0;
		warp->base.lanes = warp->all;
		warp->splits[0] = (struct gs_split){ .frame = &warp->base, .mask = warp->all };
		warp->split_count = 1;
		gs_fill_fixed(block, warp, &warp->base, GS_FILL_BLOCK);
	}
}

static enum gs_run
step_warps(struct gs_block *block, long slice)
{
	bool has_run = false;
	uint32_t left = 0;

	block->rest_ns = UINT32_MAX;
	for (uint32_t i = 0; i < block->warp_count; i++) {
		struct gs_warp *warp = &block->warps[i];
		long budget = slice;
		enum gs_run run;

		if (!warp->split_count)
			continue;
		block->has_run = false;
		warp->rest_ns = 0;
		run = gs_warp_run(block, warp, &budget);
		if (run == GS_RUN_FAILED || gs_job_is_over(block->job))
			return GS_RUN_FAILED;
		has_run |= block->has_run;
		if (block->has_run && warp->rest_ns < block->rest_ns)
			block->rest_ns = warp->rest_ns;
		left += run != GS_RUN_DONE;
	}
	if (!left)
		return GS_RUN_DONE;
	return has_run ? GS_RUN_BUDGET : GS_RUN_WAITING;
}

/* A separate function, so that no local variable is live across the jump. */
static enum gs_run
step_guarded(struct gs_block *block, long slice, struct gs_fault_scope *scope)
{
	if (sigsetjmp(scope->jump, 0) != 0) {
		gs_block_fault(block, scope->address, "global");
		return GS_RUN_FAILED;
	}
	return step_warps(block, slice);
}

enum gs_run
gs_block_step(struct gs_block *block, long slice)
{
	struct gs_fault_scope scope;
	enum gs_run run;

	gs_fault_set_scope(&scope);
	run = step_guarded(block, slice, &scope);
	gs_fault_set_scope(NULL);
	if (run == GS_RUN_WAITING)
		gs_job_fail(block->job, GS_LAUNCH_FAILED,
			    "kernel %.160s: deadlock at a barrier in block (%u,%u,%u)",
			    block->job->function->ptx->name, block->index[0], block->index[1],
			    block->index[2]);
	return run == GS_RUN_WAITING ? GS_RUN_FAILED : run;
}
