/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Execution of a grid. A job is a launch; each of its blocks is run by one worker at a time, in
 * slices, and its warps in rotation. When lanes of a warp diverge the warp is split: each split has
 * its own program counter, mask and call frames, and the split with the deepest frame and then the
 * lowest program counter runs first. Nothing here holds a lock or owns heap memory across device
 * accesses, because a fault jumps out of them.
 */
#ifndef GS_RUN_H
#define GS_RUN_H

#include "softgpu/engine/decode/module.h"
#include "softgpu/engine/lanes/lane.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>

#define GS_BARRIERS 16
#define GS_FULL_MASK 0xffffffffu

/* Backward branches that a split may take while others of its warp wait: spinning lanes must let
 * the lanes run that they wait for, but lanes of a loop with unequal trip counts should reconverge
 * after it. */
#define GS_TURN 1024

struct gs_frame {
	struct gs_frame *caller;
	const struct gs_function *function;
	uint8_t *regs;
	int depth;
	uint32_t lanes; /* lanes in this frame or in frames called from it */
	int32_t return_at;
	uint64_t local_base; /* offset in each lane's local window */
	const struct gs_code *call;
	struct gs_frame *next_free;
	struct gs_frame *next; /* list of all frames of the block, free or not */
};

enum gs_wait {
	GS_WAIT_NONE,
	GS_WAIT_BARRIER,
	GS_WAIT_MEMBERS, /* waits for the lanes of a member mask */
};

struct gs_split {
	struct gs_frame *frame;
	uint32_t mask;
	int32_t at;
	uint8_t wait;
	uint8_t barrier;
	bool goes_alone; /* no other lane can arrive: missing members are ignored */
};

struct gs_warp {
	struct gs_frame base;
	struct gs_split splits[GS_WARP + 1];
	int split_count;
	uint32_t live;
	uint32_t all; /* lanes that the block has */
	uint32_t index;
	uint32_t favoured; /* lanes that run out of order to prevent starvation */
	int32_t turn;      /* backward branches until other lanes are favored */
	uint32_t rest_ns;  /* time to sleep at the end of this slice; 0: busy */
	uint64_t local;    /* window of lane 0 */
};

struct gs_barrier {
	uint32_t arrived;
	uint32_t expected; /* 0: all live threads */
	uint32_t value;
	bool has_value;
};

struct gs_job {
	const struct gs_launch *launch;
	const struct gs_function *function;
	uint64_t block_count;
	atomic_uint_fast64_t next_block;
	uint32_t multiprocessors; /* of the device */
	uint64_t live_max;        /* limit of started blocks that have not ended; 0: none */
	atomic_uint_fast64_t live;
	atomic_int result;
	pthread_mutex_t lock; /* protects message and printing */
	char message[480];
	uint32_t shared_bytes;
	uint64_t local_stride;
	uint8_t *params;
	uint64_t grid_workspace;
	/* List of jobs with blocks to start; protected by the workers' lock. */
	struct gs_job *next;
	int helpers;
	bool is_listed;
};

struct gs_block {
	struct gs_job *job;
	struct gs_block *next;
	struct gs_warp *warps;
	uint32_t warp_count;
	uint32_t warp_capacity;
	uint32_t live_threads;
	uint32_t index[3];
	uint32_t multiprocessor;
	struct gs_barrier barriers[GS_BARRIERS];
	uint32_t barriers_in_use; /* bit i: a thread has arrived at barrier i */
	uint8_t *shared;          /* shared window, in the block's device memory */
	uint64_t shared_capacity;
	uint8_t *local; /* local windows, likewise */
	uint64_t local_capacity;
	uint8_t *regs;
	uint64_t regs_capacity;
	struct gs_frame *frames;
	struct gs_frame *free_frames;
	uint64_t frame_bytes;          /* registers of all frames */
	const struct gs_code *code_at; /* the last access to device memory */
	bool has_run;                  /* some warp was not waiting */
	uint32_t rest_ns;              /* minimum of its warps that were not waiting */
};

/* job.c: records the failure of a job; only the first one counts. */
void gs_job_fail(struct gs_job *job, int result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Fails the job because of the access at block->code_at. */
void gs_block_fault(struct gs_block *block, uint64_t address, const char *what);
static inline bool
gs_job_is_over(struct gs_job *job)
{
	return atomic_load_explicit(&job->result, memory_order_relaxed) != GS_OK;
}

enum gs_run {
	GS_RUN_DONE,
	GS_RUN_WAITING, /* all splits wait */
	GS_RUN_BUDGET,  /* budget used up; there is more to do */
	GS_RUN_FAILED,  /* the job has failed */
};

/* warp.c: runs a warp; budget counts backward branches. */
enum gs_run gs_warp_run(struct gs_block *block, struct gs_warp *warp, long *budget);

/* splits.c: returns the split to run next; NULL if all wait for barriers or none is left. */
struct gs_split *gs_split_pick(struct gs_warp *warp);
void gs_split_add(struct gs_warp *warp, struct gs_frame *frame, uint32_t mask, int32_t at);
/* Returns the live lanes that the split's warp operation needs in addition to its own. */
uint32_t gs_split_missing_members(const struct gs_warp *warp, const struct gs_split *split);
/* Lets lanes of another split run next, out of order. */
void gs_split_favour_next(struct gs_warp *warp, uint32_t running);

/* Returns the lanes of the mask whose guard predicate is true. */
static inline uint32_t
gs_guard_mask(const struct gs_code *code, const uint8_t *regs, uint32_t mask)
{
	uint32_t guard;

	if (code->pred < 0)
		return mask;
	guard = gs_lanes()->pred_mask(regs + code->pred);
	return mask & (code->pred_negated ? ~guard : guard);
}

enum gs_fill {
	GS_FILL_ALL,
	GS_FILL_WARP,  /* values that differ between warps or between blocks */
	GS_FILL_BLOCK, /* values that differ between blocks */
};

/* fixed.c: fills the slots with fixed values. */
void gs_fill_fixed(const struct gs_block *block, const struct gs_warp *warp,
		   const struct gs_frame *frame, enum gs_fill fill);

/* access.c: these return false if the job has failed. */
bool gs_load(struct gs_block *block, const struct gs_code *code, uint8_t *regs, uint32_t mask);
bool gs_store(struct gs_block *block, const struct gs_code *code, const uint8_t *regs,
	      uint32_t mask);
bool gs_copy_async(struct gs_block *block, const struct gs_code *code, const uint8_t *regs,
		   uint32_t mask);
bool gs_addresses(struct gs_block *block, const struct gs_code *code, const uint8_t *regs,
		  uint32_t mask, uint64_t *addresses);
/* texture.c: likewise. */
bool gs_texture_load(struct gs_block *block, const struct gs_code *code, uint8_t *regs,
		     uint32_t mask);
bool gs_surface_access(struct gs_block *block, const struct gs_code *code, uint8_t *regs,
		       uint32_t mask);
/* atomic.c */
bool gs_atomic(struct gs_block *block, const struct gs_code *code, uint8_t *regs, uint32_t mask);

/* barrier.c: counts the lanes of the split as arrived; waits unless code->flag is set. */
void gs_barrier_arrive(struct gs_block *block, const struct gs_warp *warp,
		       const struct gs_code *code, struct gs_split *split);
/* Must be called after threads have arrived or exited. */
void gs_barrier_check(struct gs_block *block);

/* mbarrier.c: returns false if the job has failed; *waits_p: a test found an incomplete phase. */
bool gs_mbarrier(struct gs_block *block, const struct gs_code *code, uint8_t *regs, uint32_t mask,
		 bool *waits_p);

/* warp_ops.c: performs a shuffle, vote or similar operation over the splits that have reached
 * it. */
void gs_warp_operate(struct gs_split **splits, int count);

/* call.c */
struct gs_frame *gs_frame_enter(struct gs_block *block, struct gs_warp *warp,
				struct gs_frame *caller, const struct gs_code *call,
				const struct gs_function *function, uint32_t mask);
void gs_frame_return(struct gs_block *block, struct gs_warp *warp, struct gs_frame *frame,
		     uint32_t mask);
/* Removes lanes from the frame; the last one frees it. */
void gs_frame_leave(struct gs_block *block, struct gs_frame *frame, uint32_t mask);
uint8_t *gs_frame_local(const struct gs_block *block, const struct gs_warp *warp,
			const struct gs_frame *frame, int lane);
/* builtin.c: functions that CUDA itself provides. */
bool gs_call_builtin(struct gs_block *block, struct gs_warp *warp, struct gs_frame *frame,
		     const struct gs_code *call, uint64_t target, uint32_t mask);

/* block.c */
struct gs_block *gs_block_get(struct gs_job *job);
void gs_block_put(struct gs_block *block);
void gs_block_start(struct gs_block *block, uint64_t number);
/* Returns GS_RUN_DONE, GS_RUN_BUDGET or GS_RUN_FAILED. */
enum gs_run gs_block_step(struct gs_block *block, long slice);

#endif
