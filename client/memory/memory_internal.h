/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of a session's device memory allocator, for memory.c and memory_cache.c only.
 *
 * Ownership: exists, like the session, as long as the process.
 * Threads: any.
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

/* Allocator of a session. */
struct gpc_memory {
	struct gpc_session *session;
	struct gpc_memory *next;
	struct gpc_heap *heap;
	struct gpc_fence fence;
	pthread_mutex_t grow_lock; /* one thread maps a chunk, while the others wait for it */
	/* Number of unmappings posted, and number of those that a completed fence covers. */
	atomic_uint_fast64_t unmaps, unmaps_done;
	struct gpc_object_cache cache;
	/* Mappings that are not to be cached when released, by base, with one byte each. */
	struct gpc_ranges refused;
	atomic_bool any_refused; /* refused was ever non-empty */
	pthread_mutex_t refused_lock;
	/* Whether a recall request is outstanding, to which the daemon replies when it recalls the
	 * cache. */
	atomic_bool recallable;
	struct gpc_request recall;
	struct gpc_context *primary; /* context of that request; set before it */
};

/* Returns NULL if memory is exhausted. */
struct gpc_memory *gpc_memory_from_context(struct gpc_context *context);
/* Waits for everything posted, including unmappings. */
CUresult gpc_memory_settle_all(struct gpc_memory *memory, struct gpc_context *context);
/* Posts the unmapping, and defers the reuse of the addresses until it is done. */
void gpc_memory_unmap_now(struct gpc_memory *memory, struct gpc_context *context,
			  const struct gpc_heap_range *range);
/* Returns unused memory to the daemon, except that of pools. */
void gpc_memory_return_unused(struct gpc_memory *memory, struct gpc_context *context);

/* Caches or unmaps the mapping. */
void gpc_mapping_release(struct gpc_memory *memory, struct gpc_context *context,
			 const struct gpc_heap_range *range);
/* Takes a cached mapping of this size, rounded up. Returns false if there is none. */
bool gpc_mapping_acquire(struct gpc_memory *memory, struct gpc_context *context, uint64_t size,
			 struct gpc_heap_range *range_p);
/* Callback for gpc_object_cache_init(). */
void gpc_memory_cache_count(const struct gpc_cached *cached, uint64_t more);

#endif /* GPC_MEMORY_INTERNAL_H */
