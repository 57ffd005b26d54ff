/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/host_pooled.h"

#include "base/lock.h"
#include "client/alloc/pool_space.h"
#include "client/context/context.h"
#include "client/host/host_block.h"
#include "client/host/mirror.h"
#include "client/wire/session.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <utlist.h>

/* A block that was freed. */
struct leaving {
	struct leaving *prev, *next;
	struct gpc_host_block *block;
	struct gpc_range range;
	const void *session;
	struct gpc_space_end end;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct leaving *leaving_blocks GP_GUARDED_BY(lock);
static atomic_size_t count; /* of them */

int
gpc_host_pooled_begin(struct gpc_context *context, uint64_t address, uint64_t size, uint64_t id,
		      void *pool, bool exchanged)
{
	const bool shared = !exchanged && gpc_session_shares_memory(context->scope.session);
	const struct gpc_host_block block = {
		.context = context,
		.origin = GPC_HOST_POOLED,
		.state = shared ? GPC_HOST_SHARED : GPC_HOST_COLD,
		.id = id,
		.device = address,
		.pool = pool,
		.exchanged = exchanged,
	};

	gpc_host_pooled_retire_range(address, size);
	return gpc_host_block_add((void *)(uintptr_t)address, size, &block);
}

/* Another process may read the memory after this one has freed it: what kernels wrote comes first.
 */
static void
destroy(struct gpc_host_block *block, const struct gpc_range *range)
{
	if (block->exchanged && block->state == GPC_HOST_MIRRORED)
		(void)gpc_mirror_fetch(block->context->scope.session);
	(void)gpc_host_block_destroy(block, range);
}

void
gpc_host_pooled_end(uint64_t address, const struct gpc_space_end *end)
{
	struct leaving *leaving = calloc(1, sizeof(*leaving));
	struct gpc_host_block *block;
	struct gpc_range range;
	bool known;

	block = gpc_host_block_take(address, GPC_HOST_POOLED, &range, &known);
	if (!block || !leaving || end->tag <= end->done) {
		free(leaving);
		if (block)
			destroy(block, &range);
		return;
	}
	leaving->block = block;
	leaving->range = range;
	leaving->session = block->context->scope.session;
	leaving->end = *end;
	(void)pthread_mutex_lock(&lock);
	DL_APPEND(leaving_blocks, leaving);
	(void)pthread_mutex_unlock(&lock);
	atomic_fetch_add(&count, 1);
}

/* Whose work is done, or which lie where: what is not set says nothing. */
struct question {
	const void *session, *context;
	uint64_t done;
	uint64_t stream, number;
	uint64_t base, size;
};

static bool
is_over(const struct leaving *leaving, const struct question *question)
{
	const struct gpc_space_end *end = &leaving->end;

	if (question->session)
		return leaving->session == question->session && end->tag <= question->done;
	if (question->size)
		return leaving->range.base < question->base + question->size &&
		       question->base < leaving->range.base + leaving->range.size;
	if (end->number > question->number)
		return false;
	return question->context ? end->context == question->context || end->stream == 0
				 : end->stream == question->stream;
}

static void
retire(const struct question *question)
{
	struct leaving *over = NULL, *leaving, *next;

	if (atomic_load(&count) == 0)
		return;
	(void)pthread_mutex_lock(&lock);
	DL_FOREACH_SAFE(leaving_blocks, leaving, next)
	{
		if (!is_over(leaving, question))
			continue;
		DL_DELETE(leaving_blocks, leaving);
		DL_APPEND(over, leaving);
	}
	(void)pthread_mutex_unlock(&lock);
	DL_FOREACH_SAFE(over, leaving, next)
	{
		destroy(leaving->block, &leaving->range);
		free(leaving);
		atomic_fetch_sub(&count, 1);
	}
}

void
gpc_host_pooled_retire(const void *session, uint64_t done)
{
	retire(&(struct question){ .session = session, .done = done });
}

void
gpc_host_pooled_retire_stream(uint64_t stream, uint64_t number)
{
	retire(&(struct question){ .stream = stream, .number = number });
}

void
gpc_host_pooled_retire_context(const void *context, uint64_t number)
{
	retire(&(struct question){ .context = context, .number = number });
}

void
gpc_host_pooled_retire_range(uint64_t base, uint64_t size)
{
	retire(&(struct question){ .base = base, .size = size });
}
