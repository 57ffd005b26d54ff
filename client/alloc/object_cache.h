/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Object cache: stores released objects for reuse. Each kind of object has a budget, beyond which
 * its oldest objects are dropped.
 *
 * Ownership: the cache owns an object from gpc_object_cache_put() until it is acquired or dropped.
 * There is no function to destroy a cache: it lives as long as its owner, which drops all objects
 * first.
 * Threads: any thread may call. matches() and filters are called with the cache's lock held, and
 * must not call the cache; drop() and count_bytes() are called without it.
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
	/* Returns whether the object can be used for the wanted one. NULL: it can if its bytes are
	 * equal to *wanted, a uint64_t. */
	bool (*matches)(const struct gpc_cached *cached, const void *wanted);
	/* Destroys an object that leaves the cache unused. May wait. */
	void (*drop)(const struct gpc_cached *cached);
	/* budget: maximum number and total bytes of the kind's objects */
	unsigned int count_max;
	uint64_t bytes_max;
};

/* A cached object. */
struct gpc_cached {
	const struct gpc_cached_kind *kind;
	void *object;
	struct gpc_context *context; /* the only context that may acquire it; NULL: any caller that
					passes no context */
	uint64_t bytes;
	uint64_t tag; /* count of the work that may still use the object: work up to this count */
};

/* Upper bound for the sum of count_max over all kinds in one cache. */
#define GPC_OBJECT_CACHE_MAX 160

/* A cache, initialized by gpc_object_cache_init(); its members are internal. */
struct gpc_object_cache {
	/* Called with the bytes that the cache has gained or, modulo 2^64, lost with an object.
	 * NULL: not called. */
	void (*count_bytes)(const struct gpc_cached *cached, uint64_t more);
	pthread_mutex_t lock;
	unsigned int count;
	struct gpc_cached
		list[GPC_OBJECT_CACHE_MAX]; /* oldest first; guarded by lock, as is count */
};

/* Initializes an empty cache. count_bytes: as in the struct, or NULL. */
void gpc_object_cache_init(struct gpc_object_cache *cache,
			   void (*count_bytes)(const struct gpc_cached *cached, uint64_t more));
/* Adds an object, of which *cached is copied, and drops the oldest of its kind while the kind
 * exceeds its budget. An object that exceeds the budget alone is stored, too. Cannot fail. */
void gpc_object_cache_put(struct gpc_object_cache *cache, const struct gpc_cached *cached);

/*
 * Acquires the newest object of cached->kind and cached->context that matches `wanted` and is
 * unused by work, given that work up to cached->tag is done. On success returns true and fills
 * *cached; the caller owns the object. Otherwise returns false, with *cached unchanged; *busy_p
 * reports whether a matching object exists that work may still use.
 */
bool gpc_object_cache_acquire(struct gpc_object_cache *cache, struct gpc_cached *cached,
			      const void *wanted, bool *busy_p);

/* Selects objects: returns whether the object passes. Called with the lock held. */
typedef bool gpc_cached_filter(const struct gpc_cached *cached, const void *arg);
/* Drops the objects that pass the filter. filter: NULL: all. Returns whether any were dropped. */
bool gpc_object_cache_drop(struct gpc_object_cache *cache, gpc_cached_filter *filter,
			   const void *arg);
/* Returns the total bytes of the objects that pass the filter, which must not be NULL. */
uint64_t gpc_object_cache_bytes(struct gpc_object_cache *cache, gpc_cached_filter *filter,
				const void *arg);

#endif /* GPC_OBJECT_CACHE_H */
