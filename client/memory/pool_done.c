/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools: what comes back when work is done, and when memory runs out. */
#include "client/memory/memory.h"
#include "client/memory/pool.h"

/* Beyond its threshold a pool keeps one mapping at most. */
static void
release(const struct gpc_device *device)
{
	for (struct gpc_pool *pool = gpc_pools_first(); pool; pool = pool->next) {
		while (pool->device == device && gpc_pool_give_back(pool, pool->threshold, true))
			;
	}
}

void
gpc_pool_stream_done(const struct gpc_context *context, uint64_t stream, uint64_t count)
{
	if (!gpc_pools_any())
		return;
	gpc_pools_lock();
	for (struct gpc_pool *pool = gpc_pools_first(); pool; pool = pool->next)
		gpc_space_retire_stream(&pool->space, stream, count);
	release(context->device);
	gpc_pools_unlock();
}

void
gpc_pool_context_done(struct gpc_context *context, uint64_t count)
{
	if (!gpc_pools_any())
		return;
	gpc_pools_lock();
	for (struct gpc_pool *pool = gpc_pools_first(); pool; pool = pool->next)
		gpc_space_retire_context(&pool->space, context, count);
	release(context->device);
	gpc_pools_unlock();
}

/* What was done before an event is not known here, only how far the work is. */
void
gpc_pool_event_done(struct gpc_context *context)
{
	bool waits = false;

	if (!gpc_pools_any())
		return;
	gpc_pools_lock();
	release(context->device);
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
		while (pool->device == device && gpc_pool_give_back(pool, 0, false))
			;
	}
	gpc_pools_unlock();
}

uint64_t
gpc_pool_due(const struct gpc_device *device)
{
	uint64_t sum = 0;

	if (!gpc_pools_any())
		return 0;
	gpc_pools_lock();
	for (const struct gpc_pool *pool = gpc_pools_first(); pool; pool = pool->next)
		sum += pool->device == device ? gpc_space_due(&pool->space) : 0;
	gpc_pools_unlock();
	return sum;
}
