/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/query_cache.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct gpc_query_reply {
	UT_hash_handle hh;
	char bytes[]; /* the query, then the reply */
};

/* The lock is held. Accepts NULL. */
static void
reply_drop(struct gpc_query_cache *cache, struct gpc_query_reply *reply)
{
	if (!reply)
		return;
	HASH_DEL(cache->replies, reply);
	free(reply);
}

void
gpc_query_cache_fini(struct gpc_query_cache *cache)
{
	while (cache->replies)
		reply_drop(cache, cache->replies);
	(void)pthread_mutex_destroy(&cache->lock);
}

/* The lock is held. */
static struct gpc_query_reply *
reply_find(const struct gpc_query_cache *cache, const void *query, size_t size)
{
	struct gpc_query_reply *found;

	HASH_FIND(hh, cache->replies, query, size, found);
	return found;
}

bool
gpc_query_cache_find(struct gpc_query_cache *cache, const void *query, size_t size, void *reply,
		     size_t reply_size)
{
	const struct gpc_query_reply *found;

	(void)pthread_mutex_lock(&cache->lock);
	found = reply_find(cache, query, size);
	if (found)
		memcpy(reply, found->bytes + size, reply_size);
	(void)pthread_mutex_unlock(&cache->lock);
	return found;
}

void
gpc_query_cache_put(struct gpc_query_cache *cache, const void *query, size_t size,
		    const void *reply, size_t reply_size)
{
	struct gpc_query_reply *added = malloc(sizeof(*added) + size + reply_size);

	if (!added)
		return;
	memcpy(added->bytes, query, size);
	memcpy(added->bytes + size, reply, reply_size);
	(void)pthread_mutex_lock(&cache->lock);
	reply_drop(cache, reply_find(cache, query, size));
	if (HASH_COUNT(cache->replies) >= cache->max)
		reply_drop(cache, cache->replies);
	HASH_ADD_KEYPTR(hh, cache->replies, added->bytes, size, added);
	(void)pthread_mutex_unlock(&cache->lock);
}
