/* SPDX-License-Identifier: Apache-2.0 */
#include "client/alloc/object_cache.h"

#include <string.h>

void
gpc_object_cache_init(struct gpc_object_cache *cache,
		      void (*count_bytes)(const struct gpc_cached *cached, uint64_t more))
{
	(void)pthread_mutex_init(&cache->lock, NULL);
	cache->count_bytes = count_bytes;
	cache->count = 0;
}

static void
cache_count_bytes(const struct gpc_object_cache *cache, const struct gpc_cached *cached,
		  uint64_t more)
{
	if (cache->count_bytes)
		cache->count_bytes(cached, more);
}

static void
cache_drop(const struct gpc_object_cache *cache, const struct gpc_cached *cached)
{
	cache_count_bytes(cache, cached, -cached->bytes);
	cached->kind->drop(cached);
}

/* The lock is held. */
static struct gpc_cached
cache_remove(struct gpc_object_cache *cache, unsigned int place)
{
	const struct gpc_cached cached = cache->list[place];

	cache->count--;
	memmove(&cache->list[place], &cache->list[place + 1],
		(cache->count - place) * sizeof(cached));
	return cached;
}

/* Adds the object and returns true, or removes the oldest of its kind to make room and returns
 * false. An object that is alone in its kind always fits. */
static bool
cache_put(struct gpc_object_cache *cache, const struct gpc_cached *cached,
	  struct gpc_cached *oldest)
{
	const struct gpc_cached_kind *kind = cached->kind;
	uint64_t bytes = cached->bytes;
	unsigned int count = 1, first;
	bool fits;

	(void)pthread_mutex_lock(&cache->lock);
	first = cache->count;
	for (unsigned int i = cache->count; i-- > 0;) {
		if (cache->list[i].kind != kind)
			continue;
		bytes += cache->list[i].bytes;
		count++;
		first = i;
	}
	fits = first == cache->count || (count <= kind->count_max && bytes <= kind->bytes_max);
	if (fits)
		cache->list[cache->count++] = *cached;
	else
		*oldest = cache_remove(cache, first);
	(void)pthread_mutex_unlock(&cache->lock);
	return fits;
}

void
gpc_object_cache_put(struct gpc_object_cache *cache, const struct gpc_cached *cached)
{
	struct gpc_cached oldest;

	cache_count_bytes(cache, cached, cached->bytes);
	while (!cache_put(cache, cached, &oldest))
		cache_drop(cache, &oldest);
}

static bool
cached_matches(const struct gpc_cached *cached, const struct gpc_cached *like, const void *wanted)
{
	if (cached->kind != like->kind || cached->context != like->context)
		return false;
	return cached->kind->matches ? cached->kind->matches(cached, wanted)
				     : cached->bytes == *(const uint64_t *)wanted;
}

bool
gpc_object_cache_acquire(struct gpc_object_cache *cache, struct gpc_cached *cached,
			 const void *wanted, bool *busy_p)
{
	bool found = false;

	*busy_p = false;
	(void)pthread_mutex_lock(&cache->lock);
	for (unsigned int i = cache->count; i-- > 0 && !found;) {
		if (!cached_matches(&cache->list[i], cached, wanted))
			continue;
		found = cache->list[i].tag <= cached->tag;
		*busy_p = !found;
		if (found)
			*cached = cache_remove(cache, i);
	}
	(void)pthread_mutex_unlock(&cache->lock);
	if (found)
		cache_count_bytes(cache, cached, -cached->bytes);
	return found;
}

static bool
cache_pop(struct gpc_object_cache *cache, gpc_cached_filter *filter, const void *arg,
	  struct gpc_cached *cached)
{
	unsigned int i = 0;
	bool found;

	(void)pthread_mutex_lock(&cache->lock);
	while (i < cache->count && filter && !filter(&cache->list[i], arg))
		i++;
	found = i < cache->count;
	if (found)
		*cached = cache_remove(cache, i);
	(void)pthread_mutex_unlock(&cache->lock);
	return found;
}

bool
gpc_object_cache_drop(struct gpc_object_cache *cache, gpc_cached_filter *filter, const void *arg)
{
	struct gpc_cached cached;
	bool any = false;

	while (cache_pop(cache, filter, arg, &cached)) {
		cache_drop(cache, &cached);
		any = true;
	}
	return any;
}

uint64_t
gpc_object_cache_bytes(struct gpc_object_cache *cache, gpc_cached_filter *filter, const void *arg)
{
	uint64_t bytes = 0;

	(void)pthread_mutex_lock(&cache->lock);
	for (unsigned int i = 0; i < cache->count; i++)
		bytes += filter(&cache->list[i], arg) ? cache->list[i].bytes : 0;
	(void)pthread_mutex_unlock(&cache->lock);
	return bytes;
}
