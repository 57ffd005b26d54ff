/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Query cache: stores replies of the daemon to idempotent queries, so that each query is sent once.
 *
 * The key is the bytes of a query struct, which contains the call and everything that the reply
 * depends on. If the reply depends on state that can change, the key also contains the value of
 * gpc_session_revision() (client/session/session.h) from before the query was sent. A change of the
 * state changes it, so an outdated reply is not found. When the cache is full, the oldest reply is
 * dropped.
 *
 * Ownership: the cache owns copies of queries and replies until gpc_query_cache_fini().
 * Threads: any thread may call; the cache has its own lock. gpc_query_cache_fini() requires that no
 * other thread uses the cache.
 * Units: sizes are bytes.
 */
#ifndef GPC_QUERY_CACHE_H
#define GPC_QUERY_CACHE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct gpc_query_reply;

/* A cache; its members are internal. */
struct gpc_query_cache {
	pthread_mutex_t lock;
	/* maximum number of replies, at least 1; constant */
	unsigned int max;
	struct gpc_query_reply *replies; /* uthash table, oldest reply first; guarded by lock */
};

/* Initializer of an empty cache of at most `most` replies. */
#define GPC_QUERY_CACHE(most)                                                                      \
	{                                                                                          \
		.lock = PTHREAD_MUTEX_INITIALIZER, .max = (most)                                   \
	}

/* Frees all replies and destroys the lock. The cache must not be used afterwards. */
void gpc_query_cache_fini(struct gpc_query_cache *cache);

/* Copies the stored reply to `reply` and returns true. Returns false, with `reply` unchanged, if
 * the query is not in the cache. size: of the query. Padding and unused members of the query must
 * be zero. Equal queries must have the same reply_size. */
bool gpc_query_cache_find(struct gpc_query_cache *cache, const void *query, size_t size,
			  void *reply, size_t reply_size);
/* Stores a copy of a reply, replacing an earlier one to the same query. If out of memory, has no
 * effect. */
void gpc_query_cache_put(struct gpc_query_cache *cache, const void *query, size_t size,
			 const void *reply, size_t reply_size);

#endif /* GPC_QUERY_CACHE_H */
