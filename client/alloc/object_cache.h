/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Object cache: stores released objects for reuse. Each kind of object has a budget, beyond which
 * its oldest objects are dropped.
 *
 * Ownership: the cache owns an object from gpc_object_cache_put() until it is acquired or dropped.
 * Threads: any thread may call. matches() and filters are called with the cache's lock held, drop()
 * and count_bytes() without it.
 * Units: sizes are bytes.
 */
#ifndef GPC_OBJECT_CACHE_H
#define GPC_OBJECT_CACHE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_cached;
struct gpc_context;

struct gpc_cached_kind {
	/* Returns whether the object can serve as the wanted one. NULL: it can if its size is
	 * *wanted, a uint64_t. */
	bool (*matches)(const struct gpc_cached *cached, const void *wanted);
	void (*drop)(const struct gpc_cached *cached);
	unsigned int count_max;
	uint64_t bytes_max;
};

struct gpc_cached {
	const struct gpc_cached_kind *kind;
	void *object;
	struct gpc_context
		*context; /* the only context that may acquire it; NULL: no context is needed */
	uint64_t bytes;
	uint64_t tag; /* work up to this count may still use the object */
};

/* Upper bound for the sum of count_max over all kinds in one cache. */
#define GPC_OBJECT_CACHE_MAX 160

struct gpc_object_cache {
	/* NULL, or called with the bytes added for an object or, modulo 2^64, removed. */
	void (*count_bytes)(const struct gpc_cached *cached, uint64_t more);
	pthread_mutex_t lock;
	unsigned int count;
	struct gpc_cached list[GPC_OBJECT_CACHE_MAX]; /* oldest first */
};

/* Initializes an empty cache. count_bytes: as in the struct; may be NULL. */
void gpc_object_cache_init(struct gpc_object_cache *cache,
			   void (*count_bytes)(const struct gpc_cached *cached, uint64_t more));
/* Adds an object, and drops the oldest of its kind while the kind exceeds its budget. The object
 * alone must be within the budget. */
void gpc_object_cache_put(struct gpc_object_cache *cache, const struct gpc_cached *cached);

/*
 * Acquires the newest object of cached->kind and cached->context that matches `wanted` and is
 * unused by work, given that work up to cached->tag is done. On success returns true and fills
 * *cached. Otherwise returns false; *busy_p reports whether a matching object exists that work may
 * still use.
 */
bool gpc_object_cache_acquire(struct gpc_object_cache *cache, struct gpc_cached *cached,
			      const void *wanted, bool *busy_p);

/* Drops the objects that pass the filter (NULL: all). Returns whether any were dropped. */
typedef bool gpc_cached_filter(const struct gpc_cached *cached, const void *arg);
bool gpc_object_cache_drop(struct gpc_object_cache *cache, gpc_cached_filter *filter,
			   const void *arg);
/* Returns the total bytes of the objects that pass the filter, which must not be NULL. */
uint64_t gpc_object_cache_bytes(struct gpc_object_cache *cache, gpc_cached_filter *filter,
				const void *arg);

#endif /* GPC_OBJECT_CACHE_H */
