/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Query cache: replies of the daemon, so that a query with the same bytes is sent once.  A query is
 * a struct of the call, what the reply depends on, and gpc_session_revision() from before the query
 * was sent, if the reply depends on that: with a newer revision it is not found.  Beyond a number
 * of replies the oldest are dropped.
 *
 * Threads: any, but for fini.
 */
#ifndef GPC_QUERY_CACHE_H
#define GPC_QUERY_CACHE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct gpc_query_reply;

struct gpc_query_cache {
	pthread_mutex_t lock;
	unsigned int max;
	struct gpc_query_reply *replies; /* uthash, the oldest first */
};

#define GPC_QUERY_CACHE(most)                                                                      \
	{                                                                                          \
		.lock = PTHREAD_MUTEX_INITIALIZER, .max = (most)                                   \
	}

void gpc_query_cache_fini(struct gpc_query_cache *cache);

/* Padding and unused members of a query are zero; its reply always has the same size. */
bool gpc_query_cache_find(struct gpc_query_cache *cache, const void *query, size_t size,
			  void *reply, size_t reply_size);
/* Replaces the reply to the same query.  Out of memory nothing is stored. */
void gpc_query_cache_put(struct gpc_query_cache *cache, const void *query, size_t size,
			 const void *reply, size_t reply_size);

#endif /* GPC_QUERY_CACHE_H */
