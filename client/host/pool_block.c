/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/pool_block.h"

#include "base/lock.h"
#include "client/alloc/pool_space.h"
#include "client/context/context.h"
#include "client/host/coherence.h"
#include "client/host/host_block.h"
#include "client/session/session.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <utlist.h>

/* A block that was freed but not yet destroyed. */
struct freed_block {
	struct freed_block *prev, *next;
	struct gpc_host_block *block;
	struct gpc_range range;
	const void *session;
	struct gpc_space_free_order end;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct freed_block *freed_blocks GP_GUARDED_BY(lock);
static atomic_size_t count; /* length of the list */

int
gpc_host_pooled_create(struct gpc_context *context, uint64_t address, uint64_t size, uint64_t id,
		       void *pool, bool exchanged)
{
	const bool shared = !exchanged && gpc_session_shares_memory(context->scope.session);
	const struct gpc_host_block block = {
		.context = context,
		.origin = GPC_HOST_POOLED,
		.state = shared ? GPC_HOST_SHARED : GPC_HOST_COPY_ONLY,
		.id = id,
		.device = address,
		.pool = pool,
		.exchanged = exchanged,
	};

	gpc_host_pooled_reap(&(struct gpc_host_pooled_query){ .base = address, .size = size });
	return gpc_host_block_add((void *)(uintptr_t)address, size, &block);
}

/* Another process may read the memory after this one has freed it, so the kernels' writes are
 * fetched first. */
static void
pooled_destroy(struct gpc_host_block *block, const struct gpc_range *range)
{
	if (block->exchanged && block->state == GPC_HOST_REPLICATED)
		(void)gpc_coherence_fetch(block->context->scope.session);
	(void)gpc_host_block_destroy(block, range);
}

void
gpc_host_pooled_free(uint64_t address, const struct gpc_space_free_order *end)
{
	struct freed_block *freed_block = calloc(1, sizeof(*freed_block));
	struct gpc_host_block *block;
	struct gpc_range range;
	bool known;

	block = gpc_host_block_remove(address, GPC_HOST_POOLED, &range, &known);
	if (!block || !freed_block || end->tag <= end->done) {
		free(freed_block);
		if (block)
			pooled_destroy(block, &range);
		return;
	}
	freed_block->block = block;
	freed_block->range = range;
	freed_block->session = block->context->scope.session;
	freed_block->end = *end;
	(void)pthread_mutex_lock(&lock);
	DL_APPEND(freed_blocks, freed_block);
	(void)pthread_mutex_unlock(&lock);
	atomic_fetch_add(&count, 1);
}

static bool
freed_block_is_done(const struct freed_block *freed_block,
		    const struct gpc_host_pooled_query *query)
{
	const struct gpc_space_free_order *end = &freed_block->end;

	if (query->session)
		return freed_block->session == query->session && end->tag <= query->done;
	if (query->size)
		return freed_block->range.base < query->base + query->size &&
		       query->base < freed_block->range.base + freed_block->range.size;
	if (end->number > query->number)
		return false;
	return query->context ? end->context == query->context || end->stream == 0
			      : end->stream == query->stream;
}

void
gpc_host_pooled_reap(const struct gpc_host_pooled_query *query)
{
	struct freed_block *over = NULL, *freed_block, *next;

	if (atomic_load(&count) == 0)
		return;
	(void)pthread_mutex_lock(&lock);
	DL_FOREACH_SAFE(freed_blocks, freed_block, next)
	{
		if (!freed_block_is_done(freed_block, query))
			continue;
		DL_DELETE(freed_blocks, freed_block);
		DL_APPEND(over, freed_block);
	}
	(void)pthread_mutex_unlock(&lock);
	DL_FOREACH_SAFE(over, freed_block, next)
	{
		pooled_destroy(freed_block->block, &freed_block->range);
		free(freed_block);
		atomic_fetch_sub(&count, 1);
	}
}
