/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Object cache: released objects, for reuse.  Each kind of object has a budget; beyond it the
 * oldest of the kind are dropped.
 *
 * Ownership: the cache owns an object from gpc_object_cache_put() until it is acquired or dropped.
 * Threads: any; matches() and filters are called under the lock of the cache, drop() and
 * count_bytes() without it.
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
	/* Whether the object can be acquired as the wanted one; NULL: if it has *wanted bytes, a
	 * uint64_t. */
	bool (*matches)(const struct gpc_cached *cached, const void *wanted);
	void (*drop)(const struct gpc_cached *cached);
	unsigned int count_max;
	uint64_t bytes_max;
};

struct gpc_cached {
	const struct gpc_cached_kind *kind;
	void *object;
	struct gpc_context *context; /* the only one that may acquire it; NULL: none is needed */
	uint64_t bytes;
	uint64_t tag; /* the work up to this count may still use the object */
};

/* The sum of count_max of the kinds in a cache is at most this. */
#define GPC_OBJECT_CACHE_MAX 160

struct gpc_object_cache {
	/* NULL, or called when bytes of an object are added or, modulo 2^64, removed. */
	void (*count_bytes)(const struct gpc_cached *cached, uint64_t more);
	pthread_mutex_t lock;
	unsigned int count;
	struct gpc_cached list[GPC_OBJECT_CACHE_MAX]; /* the oldest first */
};

void gpc_object_cache_init(struct gpc_object_cache *cache,
			   void (*count_bytes)(const struct gpc_cached *cached, uint64_t more));
/* The object alone is within the budget. */
void gpc_object_cache_put(struct gpc_object_cache *cache, const struct gpc_cached *cached);

/*
 * Acquires the newest object of cached->kind and ->context that matches and that no work uses, as
 * work up to cached->tag is done.  false: there is none; *busy_p is whether one matches that work
 * may still use.
 */
bool gpc_object_cache_acquire(struct gpc_object_cache *cache, struct gpc_cached *cached,
			      const void *wanted, bool *busy_p);

/* Drops the objects that pass the filter, or all without one; returns whether there were any. */
typedef bool gpc_cached_filter(const struct gpc_cached *cached, const void *arg);
bool gpc_object_cache_drop(struct gpc_object_cache *cache, gpc_cached_filter *filter,
			   const void *arg);
/* Bytes of the objects that pass the filter. */
uint64_t gpc_object_cache_bytes(struct gpc_object_cache *cache, gpc_cached_filter *filter,
				const void *arg);

#endif /* GPC_OBJECT_CACHE_H */
