/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Execution of a grid.
 *
 * A job is a launch. Each of its blocks is run by one worker at a time, in slices, and its warps in
 * rotation. When lanes of a warp diverge, the warp is split: each split has its own program
 * counter, mask and call frames, and the split with the deepest frame and then the lowest program
 * counter runs first.
 * Ownership: a job belongs to gs_launch(), which returns only after all workers have left it.
 * Blocks, warps and frames belong to the worker that runs the block. Nothing holds a lock or owns
 * heap memory across accesses to device memory, because a fault jumps out of them (fault.h).
 * Threads: a block's functions are called by the worker that runs it; a job is shared by workers.
 * Errors: a failed job has a result other than GS_OK (gs_job_fail()), and its blocks stop.
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

/* Number of backward branches after which a split lets other splits of its warp run. Spinning lanes
 * must let the lanes run that they wait for, but lanes of a loop with unequal trip counts should
 * reconverge after the loop. */
#define GS_TURN 1024

/* A call frame: the registers of a function for the lanes of a warp that have called it
 * together. */
struct gs_frame {
	struct gs_frame *caller;
	const struct gs_function *function;
	uint8_t *regs;       /* the function's slots */
	int depth;           /* number of callers */
	uint32_t lanes;      /* mask of lanes in this frame or in frames called from it */
	int32_t return_at;   /* index of the caller's next instruction */
	uint64_t local_base; /* offset of the function's variables in each lane's local window */
	const struct gs_code *call; /* the call instruction; NULL in a kernel's frame */
	struct gs_frame *next_free; /* list of the block's free frames */
	struct gs_frame *next;      /* list of all frames of the block, free or not */
};

/* Reason for which a split does not run. */
enum gs_wait {
	GS_WAIT_NONE,
	GS_WAIT_BARRIER,
	GS_WAIT_MEMBERS, /* at a warp operation: waits for the other lanes of its member mask */
};

/* Lanes of a warp that execute the same instruction. */
struct gs_split {
	struct gs_frame *frame;
	uint32_t mask;
	int32_t at;   /* index of the next instruction in the frame's function */
	uint8_t wait; /* enum gs_wait; `barrier` is the barrier's number for GS_WAIT_BARRIER */
	uint8_t barrier;
	bool goes_alone; /* no other lane can arrive, so missing members of the mask are ignored */
};

/* A warp: up to 32 lanes of a block. */
struct gs_warp {
	struct gs_frame base; /* the kernel's frame */
	struct gs_split splits[GS_WARP + 1];
	int split_count;
	uint32_t live; /* mask of lanes that have not exited */
	uint32_t all;  /* mask of lanes that the block has */
	uint32_t index;
	uint32_t favoured; /* mask of lanes that run out of order to prevent starvation; 0: none */
	int32_t turn;      /* backward branches that the favored lanes may still take */
	uint32_t rest_ns;  /* nanoseconds to sleep at the end of this slice (nanosleep); 0: none */
	uint64_t local; /* device address of lane 0's local window; those of the other lanes follow
			 */
};

/* A barrier of a block (bar.sync); counts are in threads. */
struct gs_barrier {
	uint32_t arrived;
	uint32_t expected; /* number of threads that it waits for; 0: all live threads */
	/* combined predicate of bar.red, or the number of threads for which it is true; valid if
	 * has_value */
	uint32_t value;
	bool has_value;
};

/* A launch that is being executed. */
struct gs_job {
	const struct gs_launch *launch;
	const struct gs_function *function;
	uint64_t block_count;
	atomic_uint_fast64_t next_block; /* number of the next block to start */
	uint32_t multiprocessors;        /* number of the device, for %nsmid */
	uint64_t live_max; /* maximum number of started blocks that have not ended; 0: no limit */
	atomic_uint_fast64_t live; /* number of started blocks that have not ended */
	atomic_int result;         /* enum gs_result; GS_OK while the job has not failed */
	pthread_mutex_t lock;      /* protects message, and serializes printing */
	char message[480];
	uint32_t shared_bytes; /* static and dynamic shared memory of a block */
	uint64_t local_stride; /* bytes from one lane's local window to the next */
	uint8_t *params;       /* the launch's copy of the parameters, in device memory */
	/* Device address of the workspace for grid-wide synchronization; 0: none. */
	uint64_t grid_workspace;
	/* Members for the list of jobs with blocks to start; protected by the workers' lock.
	 * `helpers` is the number of workers that are in the job besides the launching thread. */
	struct gs_job *next;
	int helpers;
	bool is_listed;
};

/* A block and its memory, which is cached for later blocks (gs_block_put()). */
struct gs_block {
	struct gs_job *job;
	struct gs_block *next;
	struct gs_warp *warps;
	uint32_t warp_count;
	uint32_t warp_capacity; /* number of warps for which `warps` has memory */
	uint32_t live_threads;
	uint32_t index[3]; /* %ctaid */
	uint32_t multiprocessor;
	struct gs_barrier barriers[GS_BARRIERS];
	uint32_t barriers_in_use; /* bit i: a thread has arrived at barrier i */
	uint8_t *shared;          /* shared window, in the block's device memory */
	uint64_t shared_capacity;
	uint8_t *local; /* local windows of all lanes, in the same memory */
	uint64_t local_capacity;
	uint8_t *regs; /* slots of the kernel's frames of all warps */
	uint64_t regs_capacity;
	struct gs_frame *frames; /* all frames of called functions, linked by `next` */
	struct gs_frame *free_frames;
	uint64_t frame_bytes;          /* bytes of registers of `frames` */
	const struct gs_code *code_at; /* the instruction that last accessed device memory, for the
					  message about a fault */
	bool has_run;                  /* whether a warp has run in this round */
	/* minimum of rest_ns of the warps that were not waiting, in nanoseconds */
	uint32_t rest_ns;
};

/* job.c: records the failure of a job with a message of at most 479 bytes. Later failures of the
 * job are ignored. Any worker may call it. */
void gs_job_fail(struct gs_job *job, int result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Fails the job because of an invalid access by block->code_at. `what` names the state space or the
 * kind of address. */
void gs_block_fault(struct gs_block *block, uint64_t address, const char *what);
/* Returns whether the job has failed. */
static inline bool
gs_job_is_over(struct gs_job *job)
{
	return atomic_load_explicit(&job->result, memory_order_relaxed) != GS_OK;
}

enum gs_run {
	GS_RUN_DONE,
	GS_RUN_WAITING, /* all splits wait */
	GS_RUN_BUDGET,  /* budget used up before the end */
	GS_RUN_FAILED,  /* the job has failed */
};

/* warp.c: runs a warp until it ends, waits or has taken *budget backward branches, which are
 * subtracted from *budget. */
enum gs_run gs_warp_run(struct gs_block *block, struct gs_warp *warp, long *budget);

/* splits.c: returns the split to run next; it is valid until splits are added or removed. NULL: all
 * wait for barriers, or none is left. */
struct gs_split *gs_split_pick(struct gs_warp *warp);
/* Adds a split of these lanes at instruction `at` of the frame's function. */
void gs_split_add(struct gs_warp *warp, struct gs_frame *frame, uint32_t mask, int32_t at);
/* Returns the mask of live lanes that the split's warp operation waits for. */
uint32_t gs_split_missing_members(const struct gs_warp *warp, const struct gs_split *split);
/* Lets lanes of another split run next, out of order, for GS_TURN backward branches. running: mask
 * of the lanes that have run until now. */
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
	GS_FILL_WARP,  /* only values that differ between warps or between blocks */
	GS_FILL_BLOCK, /* only values that differ between blocks */
};

/* fixed.c: writes the fixed values (struct gs_fixed) of the frame's function to their slots. */
void gs_fill_fixed(const struct gs_block *block, const struct gs_warp *warp,
		   const struct gs_frame *frame, enum gs_fill fill);

/* access.c: execute a memory instruction for the lanes of the mask. They return true, or false if
 * the job has failed. */
bool gs_load(struct gs_block *block, const struct gs_code *code, uint8_t *regs, uint32_t mask);
bool gs_store(struct gs_block *block, const struct gs_code *code, const uint8_t *regs,
	      uint32_t mask);
bool gs_copy_async(struct gs_block *block, const struct gs_code *code, const uint8_t *regs,
		   uint32_t mask);
/* Stores the address of each lane of the mask in `addresses`, which has 32 elements aligned to
 * 64 bytes, and checks it against the state space and the alignment. */
bool gs_addresses(struct gs_block *block, const struct gs_code *code, const uint8_t *regs,
		  uint32_t mask, uint64_t *addresses);
/* texture.c: execute a texture or surface instruction; return true, or false if the job has
 * failed. */
bool gs_texture_load(struct gs_block *block, const struct gs_code *code, uint8_t *regs,
		     uint32_t mask);
bool gs_surface_access(struct gs_block *block, const struct gs_code *code, uint8_t *regs,
		       uint32_t mask);
/* atomic.c: executes atom or red; returns true, or false if the job has failed. */
bool gs_atomic(struct gs_block *block, const struct gs_code *code, uint8_t *regs, uint32_t mask);

/* barrier.c: counts the lanes of the split as arrived at a barrier and, unless code->flag is set
 * (bar.arrive), makes the split wait. */
void gs_barrier_arrive(struct gs_block *block, const struct gs_warp *warp,
		       const struct gs_code *code, struct gs_split *split);
/* Releases the barriers at which all expected threads have arrived. Must be called after threads
 * have arrived or exited. */
void gs_barrier_check(struct gs_block *block);

/* mbarrier.c: executes an instruction on a barrier object in shared memory. Returns true, or false
 * if the job has failed. *waits_p: whether a test has found an incomplete phase, so that the
 * program probably polls. */
bool gs_mbarrier(struct gs_block *block, const struct gs_code *code, uint8_t *regs, uint32_t mask,
		 bool *waits_p);

/* warp_ops.c: performs a shuffle, vote or similar operation over `count` splits of a warp that have
 * reached the same instruction. */
void gs_warp_operate(struct gs_split **splits, int count);

/* call.c: creates the frame of a called function, with the arguments copied, for the lanes of the
 * mask. Returns NULL if the job has failed (stack overflow, out of memory). */
struct gs_frame *gs_frame_enter(struct gs_block *block, struct gs_warp *warp,
				struct gs_frame *caller, const struct gs_code *call,
				const struct gs_function *function, uint32_t mask);
/* Copies the results for the lanes of the mask to the caller's frame. */
void gs_frame_return(struct gs_block *block, struct gs_warp *warp, struct gs_frame *frame,
		     uint32_t mask);
/* Removes lanes from the frame. When none is left, the frame is put on the block's free list. */
void gs_frame_leave(struct gs_block *block, struct gs_frame *frame, uint32_t mask);
/* Returns the address of the function's local variables for a lane. */
uint8_t *gs_frame_local(const struct gs_block *block, const struct gs_warp *warp,
			const struct gs_frame *frame, int lane);
/* builtin.c: calls a function that CUDA itself provides, for example vprintf or malloc. target:
 * index of the function in the module. Returns true, or false if the job has failed. */
bool gs_call_builtin(struct gs_block *block, struct gs_warp *warp, struct gs_frame *frame,
		     const struct gs_code *call, uint64_t target, uint32_t mask);

/* block.c: returns a block with memory for the job's launch, from a cache if possible, which the
 * caller returns with gs_block_put(); NULL: out of memory. */
struct gs_block *gs_block_get(struct gs_job *job);
void gs_block_put(struct gs_block *block);
/* Prepares the block to run as block `number` of the grid. */
void gs_block_start(struct gs_block *block, uint64_t number);
/* Runs each warp of the block for at most `slice` backward branches and catches faults. Returns
 * GS_RUN_DONE, GS_RUN_BUDGET or GS_RUN_FAILED; a deadlock fails the job. */
enum gs_run gs_block_step(struct gs_block *block, long slice);

#endif
