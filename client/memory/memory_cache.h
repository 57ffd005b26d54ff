/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object cache of a session's device memory: arrays, textures and physical memory that the
 * program has released; mappings are in it as well (memory_state.h).  Its bytes are reported to the
 * daemon, and the daemon may recall it (gpMemoryKeep): then all objects are dropped, and the unused
 * memory of pools and the credit are returned.
 *
 * Threads: any; drop() of a kind waits for nothing.
 */
#ifndef GPC_MEMORY_CACHE_H
#define GPC_MEMORY_CACHE_H

#include "client/alloc/object_cache.h"

/* The budget of each kind but mappings. */
#define GPC_MEMORY_CACHE_BUDGET .count_max = 32, .bytes_max = (uint64_t)256 << 20

/* false: the object is too large or the session has failed; the caller destroys the object. */
bool gpc_memory_cache_put(const struct gpc_cached_kind *kind, void *object,
			  struct gpc_context *context, uint64_t bytes);
/* An object of this context that no work uses; NULL: there is none. */
void *gpc_memory_cache_acquire(const struct gpc_cached_kind *kind, struct gpc_context *context,
			       const void *wanted);
/* Drops the objects of the context's session that pass the filter, or those of the context. */
void gpc_memory_cache_drop_if(struct gpc_context *context, gpc_cached_filter *filter,
			      const void *arg);
void gpc_memory_cache_drop_context(struct gpc_context *context);

#endif /* GPC_MEMORY_CACHE_H */
