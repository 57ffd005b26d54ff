/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a session's device memory, for memory.c and memory_cache.c only.
 *
 * Ownership: lives as long as the process, as the session does.
 * Threads: any.
 */
#ifndef GPC_MEMORY_STATE_H
#define GPC_MEMORY_STATE_H

#include "client/alloc/heap.h"
#include "client/alloc/object_cache.h"
#include "client/base/ranges.h"
#include "client/context/fence.h"
#include "client/memory/memory.h"
#include "client/wire/call.h"

#include <pthread.h>
#include <stdatomic.h>

struct gpc_memory {
	struct gpc_session *session;
	struct gpc_memory *next;
	struct gpc_heap *heap;
	struct gpc_fence fence;
	pthread_mutex_t grow_lock; /* one thread maps a chunk, the others find it */
	/* How many unmappings were posted, and how many of them a fence is known to be behind. */
	atomic_uint_fast64_t unmaps, unmaps_done;
	struct gpc_object_cache cache;
	/* Mappings that are not cached the next time, by base, of one byte each. */
	struct gpc_ranges refused;
	atomic_bool any_refused; /* so far */
	pthread_mutex_t refused_lock;
	/* The daemon knows that something may be cached, and answers when it recalls that. */
	atomic_bool recallable;
	struct gpc_request recall;
	struct gpc_context *primary; /* the context of that request; set before it */
};

/* NULL: out of memory. */
struct gpc_memory *gpc_memory_from_context(struct gpc_context *context);
/* Waits for all that was posted, unmappings included. */
CUresult gpc_memory_settle_all(struct gpc_memory *memory, struct gpc_context *context);
void gpc_memory_unmap_now(struct gpc_memory *memory, struct gpc_context *context,
			  const struct gpc_heap_range *range);
/* Returns to the daemon what nothing uses, besides pools' memory. */
void gpc_memory_return_unused(struct gpc_memory *memory, struct gpc_context *context);

/* Caches the mapping, or unmaps it. */
void gpc_mapping_release(struct gpc_memory *memory, struct gpc_context *context,
			 const struct gpc_heap_range *range);
/* A cached mapping of this size, rounded up; false: there is none. */
bool gpc_mapping_acquire(struct gpc_memory *memory, struct gpc_context *context, uint64_t size,
			 struct gpc_heap_range *range_p);
/* For gpc_object_cache_init(). */
void gpc_memory_cache_count(const struct gpc_cached *cached, uint64_t more);

#endif /* GPC_MEMORY_STATE_H */
