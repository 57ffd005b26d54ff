/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools: mapping and unmapping of their memory, and its release when work is done or memory
 * is exhausted. */
#include "client/alloc/heap.h"
#include "client/host/host_space.h"
#include "client/host/pool_block.h"
#include "client/memory/ipc_pool.h"
#include "client/memory/memory.h"
#include "client/memory/pool_internal.h"
#include "client/pages/pages.h"
#include "transport/shm/sealed_memory.h"

/* Maps a part of the file of an exportable pool, whose pages are allocated at once. */
static CUresult
pool_map_file(const struct gpc_pool *pool, const struct gpc_heap_range *range, uint64_t *address_p)
{
	struct gpc_context *context = pool->device->primary;
	CUresult result = gpc_host_space_map_file(context, range->size, pool->file,
						  GPC_HOST_SPACE_OWN, address_p);

	if (result != CUDA_SUCCESS ||
	    gp_sealed_alloc_pages(pool->file, gpc_host_space_offset(*address_p), range->size) == 0)
		return result;
	gpc_host_space_free(context, *address_p, false);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
pool_map_host(struct gpc_pool *pool, uint64_t size, struct gpc_heap_range *range)
{
	CUresult result;
	bool shared;

	range->size = size;
	if (pool->file >= 0)
		result = pool_map_file(pool, range, &range->base);
	else
		result = gpc_host_space_alloc(pool->device->primary, size, &range->base, &shared);
	return result == CUDA_ERROR_NOT_SUPPORTED ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

CUresult
gpc_pool_map(struct gpc_pool *pool, uint64_t size, struct gpc_heap_range *range)
{
	CUresult result = pool->host ? pool_map_host(pool, size, range)
				     : gpc_memory_map(pool->device->primary, size, range);

	if (result != CUDA_SUCCESS || !pool->managed)
		return result;
	if (gpc_pages_create(range->base, range->size, false, pool->pages, pool->managed,
			     pool->device->session) == 0)
		return CUDA_SUCCESS;
	gpc_memory_unmap(pool->device->primary, range);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

void
gpc_pool_unmap(const struct gpc_pool *pool, const struct gpc_heap_range *range)
{
	if (pool->host) {
		gpc_host_pooled_reap(&(struct gpc_host_pooled_query){ .base = range->base,
								      .size = range->size });
		if (pool->file >= 0)
			gp_sealed_free_pages(pool->file, gpc_host_space_offset(range->base),
					     range->size);
		gpc_host_space_free(pool->device->primary, range->base, true);
		return;
	}
	if (pool->managed)
		gpc_pages_destroy(range->base);
	gpc_memory_unmap(pool->device->primary, range);
}

void
gpc_pool_sizes(struct gpc_pool *pool, uint64_t size, uint64_t *wanted_p, uint64_t *needed_p)
{
	uint64_t left;

	gpc_pools_lock();
	*wanted_p = gpc_space_preferred_size(&pool->space, size);
	*needed_p = gpc_space_required_size(&pool->space, size);
	left = pool->max_size > pool->space.reserved ? pool->max_size - pool->space.reserved : 0;
	if (pool->max_size > 0 && *wanted_p > left)
		*wanted_p = *needed_p;
	if (pool->max_size > 0 && *needed_p > left)
		*needed_p = 0;
	gpc_pools_unlock();
}

void
gpc_pool_count_spare(struct gpc_pool *pool)
{
	const uint64_t keep = pool->destroyed ? 0 : pool->threshold;
	const uint64_t spare = pool->host ? 0 : gpc_space_releasable_bytes(&pool->space, keep);

	if (spare == pool->counted_cached)
		return;
	gpc_memory_count_cached(pool->device, spare - pool->counted_cached);
	pool->counted_cached = spare;
}

/* Beyond its threshold a pool retains at most one mapping. */
static void
pools_release_excess(const struct gpc_device *device)
{
	gpc_pools_drop_unused();
	for (struct gpc_pool *pool = gpc_pools_first(); pool; pool = pool->next) {
		while (pool->device == device &&
		       gpc_pool_release_mapping(pool, pool->threshold, true))
			;
		gpc_pool_count_spare(pool);
	}
}

void
gpc_pool_stream_done(const struct gpc_context *context, uint64_t stream, uint64_t count)
{
	if (!gpc_pools_any())
		return;
	gpc_pool_close_unused();
	gpc_pools_lock();
	gpc_host_pooled_reap(&(struct gpc_host_pooled_query){ .stream = stream, .number = count });
	for (struct gpc_pool *pool = gpc_pools_first(); pool; pool = pool->next)
		gpc_space_reap_stream(&pool->space, stream, count);
	pools_release_excess(context->device);
	gpc_pools_unlock();
}

void
gpc_pool_context_done(struct gpc_context *context, uint64_t count)
{
	if (!gpc_pools_any())
		return;
	gpc_pool_close_unused();
	gpc_pools_lock();
	gpc_host_pooled_reap(
		&(struct gpc_host_pooled_query){ .context = context, .number = count });
	for (struct gpc_pool *pool = gpc_pools_first(); pool; pool = pool->next)
		gpc_space_reap_context(&pool->space, context, count);
	pools_release_excess(context->device);
	gpc_pools_unlock();
}

/* It is unknown here which work precedes an event; only the overall progress is known. */
void
gpc_pool_event_done(struct gpc_context *context)
{
	bool waits = false;

	if (!gpc_pools_any())
		return;
	gpc_pool_close_unused();
	gpc_pools_lock();
	pools_release_excess(context->device);
	for (const struct gpc_pool *pool = gpc_pools_first(); pool; pool = pool->next)
		waits |= pool->device == context->device && pool->space.waiting > 0;
	gpc_pools_unlock();
	if (waits)
		gpc_memory_poll(context);
}

void
gpc_pool_reclaim(struct gpc_device *device)
{
	gpc_pools_lock();
	for (struct gpc_pool *pool = gpc_pools_first(); pool; pool = pool->next) {
		while (pool->device == device && gpc_pool_release_mapping(pool, 0, false))
			;
	}
	gpc_pools_unlock();
}

/* The daemon orders the unmapping after all work, so it need not be waited for here. */
static void
pool_release_all(struct gpc_pool *pool, uint64_t keep)
{
	do {
		while (gpc_pool_release_mapping(pool, keep, false))
			;
	} while (!pool->host && gpc_space_release(&pool->space, keep));
}

void
gpc_pool_trim(struct gpc_pool *pool, uint64_t keep)
{
	gpc_pools_lock();
	pool_release_all(pool, keep);
	gpc_pools_unlock();
}

void
gpc_pool_release_spare(const struct gpc_session *session)
{
	gpc_pools_lock();
	for (struct gpc_pool *pool = gpc_pools_first(); pool; pool = pool->next) {
		if (pool->counted_cached > 0 && pool->device->session == session)
			pool_release_all(pool, pool->threshold);
	}
	gpc_pools_unlock();
}

uint64_t
gpc_pool_spare(const struct gpc_device *device)
{
	uint64_t sum = 0;

	if (!gpc_pools_any())
		return 0;
	gpc_pools_lock();
	for (struct gpc_pool *pool = gpc_pools_first(); pool; pool = pool->next) {
		if (pool->device != device || pool->host)
			continue;
		gpc_pool_reap(pool);
		gpc_pool_count_spare(pool);
		sum += pool->counted_cached;
	}
	gpc_pools_unlock();
	return sum;
}
