/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of a session's device memory allocator, for memory.c and memory_cache.c only.
 *
 * Ownership: created with the session's first allocation and never freed.
 * Threads: any; the list of sessions' allocators is only appended to.
 */
#ifndef GPC_MEMORY_INTERNAL_H
#define GPC_MEMORY_INTERNAL_H

#include "client/alloc/heap.h"
#include "client/alloc/object_cache.h"
#include "client/base/ranges.h"
#include "client/context/fence.h"
#include "client/memory/memory.h"
#include "client/session/call.h"

#include <pthread.h>
#include <stdatomic.h>

/* Allocator of a session. heap, cache and fence have locks of their own. */
struct gpc_memory {
	struct gpc_session *session;
	struct gpc_memory *next;
	struct gpc_heap *heap; /* owned */
	struct gpc_fence fence;
	pthread_mutex_t grow_lock; /* held by the thread that maps a chunk, while other threads wait
				      for the chunk */
	/* number of unmappings posted, and number of the unmappings that a completed fence
	 * covers */
	atomic_uint_fast64_t unmaps, unmaps_done;
	struct gpc_object_cache cache;
	/* mappings that are not to be cached when they are released: one byte at the base of each;
	 * guarded by refused_lock */
	struct gpc_ranges refused;
	atomic_bool any_refused; /* refused was ever non-empty */
	pthread_mutex_t refused_lock;
	/* whether a recall request is outstanding (gpMemoryKeep), to which the daemon replies when
	 * it recalls the cache */
	atomic_bool recallable;
	struct gpc_request recall;
	struct gpc_context *primary; /* primary context that the request was sent on; set before the
					request is sent */
};

/* Returns the allocator of the context's session, which is created if necessary; borrowed. Returns
 * NULL if memory is exhausted. */
struct gpc_memory *gpc_memory_from_context(struct gpc_context *context);
/* Blocks, without limit, until everything posted is done, including unmappings. Returns
 * CUDA_SUCCESS or an error of gpc_fence_wait(). */
CUresult gpc_memory_settle_all(struct gpc_memory *memory, struct gpc_context *context);
/* Posts the unmapping, and defers the reuse of the addresses until it is done. Does not wait. */
void gpc_memory_unmap_now(struct gpc_memory *memory, struct gpc_context *context,
			  const struct gpc_heap_range *range);
/* Returns unused memory of the heap, the cache and the allowance to the daemon, but not that of
 * pools. Waits for the daemon while it returns the allowance. */
void gpc_memory_return_unused(struct gpc_memory *memory, struct gpc_context *context);

/* Caches the mapping, or unmaps it if it is too large, is not to be cached, or the session has
 * failed. Does not wait. */
void gpc_mapping_release(struct gpc_memory *memory, struct gpc_context *context,
			 const struct gpc_heap_range *range);
/* Removes a mapping of this size, rounded up to whole pages, from the cache and stores it in
 * *range_p; the caller owns it. Waits for posted work if a mapping of the size only waits for that.
 * Returns true, or false if there is none; *range_p is then undefined. */
bool gpc_mapping_acquire(struct gpc_memory *memory, struct gpc_context *context, uint64_t size,
			 struct gpc_heap_range *range_p);
/* Callback for gpc_object_cache_init(): `more` bytes were added to the cache (modulo 2^64, so it
 * may be negative). */
void gpc_memory_cache_count(const struct gpc_cached *cached, uint64_t more);

#endif /* GPC_MEMORY_INTERNAL_H */
