/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a session's device memory, for memory*.c only: memory.c has what the program has,
 * memory_kept.c what nothing uses any more.  Kept like the session itself; any thread.
 */
#ifndef GPC_MEMORY_STATE_H
#define GPC_MEMORY_STATE_H

#include "client/alloc/heap.h"
#include "client/alloc/kept.h"
#include "client/context/fence.h"
#include "client/memory/memory.h"
#include "client/wire/call.h"

#include <pthread.h>
#include <stdatomic.h>

/* The device memory of one session; kept like the session itself. */
struct gpc_memory {
	struct gpc_session *session;
	struct gpc_memory *next;
	struct gpc_heap *heap;
	struct gpc_fence fence;
	pthread_mutex_t grow_lock; /* one thread maps a chunk, the others find it */
	/* How many unmappings were posted, and how many of them a fence is known to be behind. */
	atomic_uint_fast64_t unmaps, unmaps_done;
	struct gpc_kept kept;
	/* The daemon was told that something may be kept, and answers when it wants that back. */
	atomic_bool keeps;
	struct gpc_request recall;
	struct gpc_context *primary; /* in whose name it is told; set before */
};

/* memory.c: waits for all that was posted, unmappings included. */
CUresult gpc_memory_settle_all(struct gpc_memory *memory, struct gpc_context *context);

/* memory_kept.c: the daemon is told to unmap it. */
void gpc_memory_unmap_now(struct gpc_memory *memory, struct gpc_context *context,
			  const struct gpc_heap_range *range);
/* Keeps it, if there is room. */
void gpc_memory_keep(struct gpc_memory *memory, struct gpc_context *context,
		     const struct gpc_heap_range *range);
/* Whether there is one of that size that was kept. */
bool gpc_memory_have_again(struct gpc_memory *memory, struct gpc_context *context, uint64_t size,
			   struct gpc_heap_range *range_p);
/* From now on something may be kept: the daemon answers when it wants that back. */
void gpc_memory_tell_kept(struct gpc_memory *memory, struct gpc_context *context);
void gpc_memory_give_all_back(struct gpc_memory *memory);

#endif /* GPC_MEMORY_STATE_H */
