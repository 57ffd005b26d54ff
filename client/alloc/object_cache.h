/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Object cache: stores objects that the program has destroyed, such as arrays and mappings, so that
 * the next one of the same shape can be reused instead of created. Each kind of object has a
 * budget, beyond which its oldest objects are dropped.
 *
 * Ownership: the cache owns an object from gpc_object_cache_put() until it is acquired or dropped.
 * A cache has no function that destroys it: before its owner frees it, the owner drops all objects.
 * Threads: any thread may call; the cache has its own lock. matches() and filters are called with
 * this lock held, and must not call the cache. drop() and count_bytes() are called without it, on
 * the thread that calls the cache.
 * Units: sizes are bytes.
 */
#ifndef GPC_OBJECT_CACHE_H
#define GPC_OBJECT_CACHE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_cached;
struct gpc_context;

/* A kind of objects and its budget; static. */
struct gpc_cached_kind {
	/* Returns whether the object has the wanted properties. wanted: as passed to
	 * gpc_object_cache_acquire(). NULL: compares `bytes` with *wanted, a uint64_t. */
	bool (*matches)(const struct gpc_cached *cached, const void *wanted);
	/* Destroys an object that the cache no longer stores. May block. */
	void (*drop)(const struct gpc_cached *cached);
	/* budget: maximum number of the kind's objects, at least 1, and of their total bytes */
	unsigned int count_max;
	uint64_t bytes_max;
};

/* A cached object. */
struct gpc_cached {
	const struct gpc_cached_kind *kind;
	void *object;
	struct gpc_context *context; /* only gpc_object_cache_acquire() with the same value finds
					it; NULL: it belongs to no context */
	uint64_t bytes;
	uint64_t tag; /* number of the last work that may use the object, in the caller's count of
			 work */
};

/* Capacity of a cache. The kinds that a cache stores must have a sum of count_max of at most this;
 * the cache does not check it. */
#define GPC_OBJECT_CACHE_MAX 160

/* A cache, initialized by gpc_object_cache_init(); its members are internal. */
struct gpc_object_cache {
	/* Called for each object that enters or leaves the cache. more: its bytes, or, modulo 2^64,
	 * minus its bytes. NULL: not called. */
	void (*count_bytes)(const struct gpc_cached *cached, uint64_t more);
	pthread_mutex_t lock;
	unsigned int count;
	struct gpc_cached
		list[GPC_OBJECT_CACHE_MAX]; /* oldest first; guarded by lock, as is count */
};

/* Initializes an empty cache. count_bytes: as in the struct, or NULL. */
void gpc_object_cache_init(struct gpc_object_cache *cache,
			   void (*count_bytes)(const struct gpc_cached *cached, uint64_t more));
/* Adds an object; *cached is copied. First drops the oldest objects of its kind until the kind,
 * with the new object, is within its budget. An object that alone exceeds bytes_max is also
 * stored. */
void gpc_object_cache_put(struct gpc_object_cache *cache, const struct gpc_cached *cached);

/*
 * Acquires the newest object that matches `wanted` and that no work uses. On entry, kind and
 * context of *cached select the objects, and tag is the number up to which work is done; the other
 * members are not read. On success returns true, fills *cached and sets *busy_p to false; the
 * caller then owns the object. Otherwise returns false, with *cached unchanged, and sets *busy_p to
 * whether a matching object exists that work may still use.
 */
bool gpc_object_cache_acquire(struct gpc_object_cache *cache, struct gpc_cached *cached,
			      const void *wanted, bool *busy_p);

/* Returns whether the object is selected. arg: as passed with the filter. Called with the cache's
 * lock held. */
typedef bool gpc_cached_filter(const struct gpc_cached *cached, const void *arg);
/* Drops the selected objects, one after the other. filter: NULL: all objects. Returns whether any
 * were dropped. */
bool gpc_object_cache_drop(struct gpc_object_cache *cache, gpc_cached_filter *filter,
			   const void *arg);
/* Returns the total bytes of the selected objects. The filter must not be NULL. */
uint64_t gpc_object_cache_bytes(struct gpc_object_cache *cache, gpc_cached_filter *filter,
				const void *arg);

#endif /* GPC_OBJECT_CACHE_H */
