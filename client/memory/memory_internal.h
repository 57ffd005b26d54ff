/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of a session's device memory allocator (memory.h), for memory.c and memory_cache.c only.
 *
 * Ownership: created when the session first uses it, and never freed.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note); the list of sessions' allocators is only
 * appended to.
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
	struct gpc_session *session; /* borrowed */
	struct gpc_memory *next;     /* in the list of all sessions' allocators */
	struct gpc_heap *heap;       /* owned */
	struct gpc_fence fence;
	/* serializes the mapping of chunks: one thread maps, and the others wait and then use its
	 * chunk */
	pthread_mutex_t grow_lock;
	/* unmaps: number of unmappings posted. unmaps_done: number of those that are known to be
	 * done, because a fence after them has completed. */
	atomic_uint_fast64_t unmaps, unmaps_done;
	struct gpc_object_cache cache; /* memory_cache.h */
	/* mappings that are unmapped, not cached, when they are released next, because they were
	 * exported (gpc_memory_set_uncacheable()): one byte at the base of each; guarded by
	 * refused_lock */
	struct gpc_ranges refused;
	atomic_bool any_refused; /* refused was ever non-empty */
	pthread_mutex_t refused_lock;
	/* a recall request (gpMemoryKeep) is outstanding, to which the daemon replies when it
	 * recalls the cache */
	atomic_bool recallable;
	struct gpc_request recall; /* that request; no thread waits for it */
	/* primary context that `recall` was sent on; set before it is sent */
	struct gpc_context *primary;
};

/* Returns the allocator of the context's session, which is created if necessary; borrowed. Returns
 * NULL if memory is exhausted. */
struct gpc_memory *gpc_memory_from_context(struct gpc_context *context);
/* Blocks, without limit, until everything posted is done, including unmappings. Freed memory is
 * then reusable. Returns CUDA_SUCCESS or an error of gpc_fence_wait() (client/context/fence.h). */
CUresult gpc_memory_settle_all(struct gpc_memory *memory, struct gpc_context *context);
/* Posts the unmapping of a mapping, and defers the reuse of its addresses until it is done. Does
 * not wait. A post that fails is ignored: the daemon frees the memory of an ended session. */
void gpc_memory_unmap_now(struct gpc_memory *memory, struct gpc_context *context,
			  const struct gpc_heap_range *range);
/* Returns unused memory of the heap, the cache and the allowance to the daemon, but not that of
 * pools. Waits for the daemon while it returns the allowance. */
void gpc_memory_return_unused(struct gpc_memory *memory, struct gpc_context *context);

/* Caches the mapping. Unmaps it instead if it is too large, is not to be cached, or the session has
 * failed. Does not wait. */
void gpc_mapping_release(struct gpc_memory *memory, struct gpc_context *context,
			 const struct gpc_heap_range *range);
/* Removes a mapping of this size, rounded up to the granularity of mappings, from the cache and
 * stores it in *range_p; the caller owns it. If such a mapping only waits for posted work, blocks,
 * without limit, until that is done, unless host functions are outstanding. Returns true, or false
 * if there is none; *range_p is then undefined. */
bool gpc_mapping_acquire(struct gpc_memory *memory, struct gpc_context *context, uint64_t size,
			 struct gpc_heap_range *range_p);
/* Callback for gpc_object_cache_init(): calls gpc_memory_count_cached() for the object's device.
 * more: bytes that were added to the cache (modulo 2^64, so it may be negative). */
void gpc_memory_cache_count(const struct gpc_cached *cached, uint64_t more);

#endif /* GPC_MEMORY_INTERNAL_H */
