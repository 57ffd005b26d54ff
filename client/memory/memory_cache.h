/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cache of a session's device memory: released arrays, textures and physical memory, and mappings
 * (memory_internal.h), stored for reuse.
 *
 * The cached bytes are reported to the daemon, which may recall them (gpMemoryKeep). In that case
 * all objects are dropped, and the unused memory of pools and the allowance are returned.
 *
 * Ownership: the cache owns its objects; the drop() function of their kind
 * (client/alloc/object_cache.h) destroys them.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note). Unlike in other caches, drop() must not wait.
 */
#ifndef GPC_MEMORY_CACHE_H
#define GPC_MEMORY_CACHE_H

#include "client/alloc/object_cache.h"

/* Initializers for struct gpc_cached_kind: limits of each kind except mappings, in objects and
 * bytes. With mappings (63 objects) and three kinds with these limits the cache is full: raise
 * GPC_OBJECT_CACHE_MAX (object_cache.h) before adding a kind. */
#define GPC_MEMORY_CACHE_BUDGET .count_max = 32, .bytes_max = (uint64_t)256 << 20

/* Puts an object of `bytes` bytes of device memory into the cache, which may drop others. It can be
 * acquired again by the same context, after the work posted so far. Does not wait. Returns true,
 * and the cache owns the object. Returns false if the object is too large, memory is exhausted or
 * the session has failed; the caller must then destroy the object. *kind must be static. */
bool gpc_memory_cache_put(const struct gpc_cached_kind *kind, void *object,
			  struct gpc_context *context, uint64_t bytes);
/* Removes an object of this kind and context that no work uses and that matches *wanted, and
 * returns it; the caller owns it. Returns NULL if there is none. Does not wait. wanted: interpreted
 * by kind->matches(). */
void *gpc_memory_cache_acquire(const struct gpc_cached_kind *kind, struct gpc_context *context,
			       const void *wanted);
/* Destroys the objects, of the context's session and of all kinds, that pass the filter. arg:
 * passed to the filter. */
void gpc_memory_cache_drop_if(struct gpc_context *context, gpc_cached_filter *filter,
			      const void *arg);
/* Destroys the objects of the context. Called by the owners of the kinds when the context is
 * destroyed or reset. */
void gpc_memory_cache_drop_context(struct gpc_context *context);

#endif /* GPC_MEMORY_CACHE_H */
