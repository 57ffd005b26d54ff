/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory/map_ahead.h"

#include "client/context/context.h"
#include "gpc_calls.h"

#include <stdlib.h>

/* At a time; there is room for them among what is kept. */
#define COUNT_MAX 32
#define BYTES_MAX ((uint64_t)256 << 20)

struct gpc_ahead {
	struct gpc_ahead *next;
	struct gpc_map_ahead *all;
	struct gpc_kept_mapping mapping;
	struct gpc_request request;
};

void
gpc_map_ahead_init(struct gpc_map_ahead *ahead, struct gpc_heap *heap, struct gpc_kept *kept,
		   const atomic_bool *keeps)
{
	*ahead = (struct gpc_map_ahead){ .heap = heap, .kept = kept, .keeps = keeps };
}

/* Twice as many each time, so that however many there will be, few are waited for. */
unsigned int
gpc_map_ahead_plan(struct gpc_map_ahead *ahead, uint64_t size)
{
	unsigned int count = atomic_load(&ahead->row) * 2;

	if (atomic_exchange(&ahead->size, size) != size) {
		atomic_store(&ahead->row, 0);
		return 0;
	}
	if (count == 0)
		count = 1;
	if (count > COUNT_MAX)
		count = COUNT_MAX;
	while (count > 0 && count * size > BYTES_MAX)
		count /= 2;
	atomic_store(&ahead->row, count);
	return atomic_load(&ahead->pending) > 0 ? 0 : count;
}

/* It comes before the answer to any later question. */
void
gpc_map_ahead_await(struct gpc_map_ahead *ahead, struct gpc_context *context)
{
	const struct gp_args_gpMemoryInfo args = { .device = context->device->remote };
	struct gp_reply_gpMemoryInfo reply;

	if (atomic_load(&ahead->pending) > 0)
		(void)!gpc_wait_gpMemoryInfo(context, &args, &reply);
}

static void
add_stray(struct gpc_map_ahead *all, struct gpc_ahead *ahead)
{
	ahead->next = atomic_load(&all->strays);
	while (!atomic_compare_exchange_weak(&all->strays, &ahead->next, ahead))
		;
}

/* By who reads the answers: nothing is posted here. */
static void
answered(struct gpc_request *request)
{
	struct gpc_ahead *ahead = request->arg;
	struct gpc_map_ahead *all = ahead->all;
	bool mapped = request->result == CUDA_SUCCESS;

	free(request->reply);
	if (!mapped) {
		atomic_store(&all->row, 0);
		gpc_heap_give_back(all->heap, &ahead->mapping.range);
	}
	if (mapped && (!atomic_load(all->keeps) || !gpc_kept_put(all->kept, &ahead->mapping)))
		add_stray(all, ahead);
	else
		free(ahead);
	atomic_fetch_sub(&all->pending, 1);
}

static bool
start_one(struct gpc_map_ahead *all, struct gpc_context *context, uint64_t size)
{
	struct gpc_ahead *ahead = calloc(1, sizeof(*ahead));
	struct gp_args_gpMemoryTry args = { .device = context->device->remote };

	if (!ahead)
		return false;
	ahead->all = all;
	ahead->mapping.owner = context->device;
	ahead->request = (struct gpc_request){ .done = answered, .arg = ahead, .lazy = true };
	if (gpc_heap_reserve(all->heap, size, &ahead->mapping.range) != 0) {
		free(ahead);
		return false;
	}
	args.address = ahead->mapping.range.base;
	args.size = ahead->mapping.range.size;
	atomic_fetch_add(&all->pending, 1);
	/* In the name of the primary context, which always exists. */
	if (gpc_start_gpMemoryTry(context->device->primary, &args, &ahead->request) == CUDA_SUCCESS)
		return true;
	atomic_fetch_sub(&all->pending, 1);
	gpc_heap_give_back(all->heap, &ahead->mapping.range);
	free(ahead);
	return false;
}

void
gpc_map_ahead_start(struct gpc_map_ahead *ahead, struct gpc_context *context, uint64_t size,
		    unsigned int count)
{
	while (count > 0 && start_one(ahead, context, size))
		count--;
}

bool
gpc_map_ahead_take_stray(struct gpc_map_ahead *ahead, struct gpc_kept_mapping *mapping)
{
	struct gpc_ahead *all = atomic_exchange(&ahead->strays, NULL), *first = all;

	if (!first)
		return false;
	for (struct gpc_ahead *rest = first->next, *next; rest; rest = next) {
		next = rest->next;
		add_stray(ahead, rest);
	}
	*mapping = first->mapping;
	free(first);
	return true;
}
