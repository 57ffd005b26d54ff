/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory/memory.h"

#include "client/alloc/heap.h"
#include "client/context/context.h"
#include "client/context/fence.h"
#include "client/memory/address.h"
#include "client/memory/allowance.h"
#include "client/memory/memory_internal.h"
#include "client/memory/pool.h"
#include "client/session/session.h"
#include "gpc_calls.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Deferred-free bytes above which the client queries the progress of the work. */
#define WAITING_MAX ((uint64_t)1 << 20)
/* Deferred-free bytes above which the client waits instead of mapping more. */
#define WAITING_SETTLE ((uint64_t)16 << 20)

static _Atomic(struct gpc_memory *) memories;
static pthread_mutex_t memories_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint_fast64_t last_id;

uint64_t
gpc_memory_next_id(void)
{
	return atomic_fetch_add(&last_id, 1) + 1;
}

static struct gpc_memory *
memory_find(const struct gpc_session *session)
{
	struct gpc_memory *memory = atomic_load(&memories);

	while (memory && memory->session != session)
		memory = memory->next;
	return memory;
}

static struct gpc_memory *
memory_create(struct gpc_session *session)
{
	const struct gpc_session_facts *facts = gpc_session_facts(session);
	struct gpc_memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return NULL;
	if (gpc_heap_create(facts->window_base, facts->window_size, facts->granularity,
			    facts->heap_size, &memory->heap)) {
		free(memory);
		return NULL;
	}
	memory->session = session;
	gpc_fence_init(&memory->fence);
	gpc_object_cache_init(&memory->cache, gpc_memory_cache_count);
	(void)pthread_mutex_init(&memory->refused_lock, NULL);
	(void)pthread_mutex_init(&memory->grow_lock, NULL);
	memory->next = atomic_load(&memories);
	atomic_store(&memories, memory);
	return memory;
}

/* Returns NULL if memory is exhausted. */
static struct gpc_memory *
memory_get(struct gpc_session *session)
{
	struct gpc_memory *memory = memory_find(session);

	if (memory)
		return memory;
	(void)pthread_mutex_lock(&memories_lock);
	memory = memory_find(session);
	if (!memory)
		memory = memory_create(session);
	(void)pthread_mutex_unlock(&memories_lock);
	return memory;
}

struct gpc_memory *
gpc_memory_from_context(struct gpc_context *context)
{
	return memory_get(context->scope.session);
}

/* Returns the allocator whose window contains the address, or NULL. */
static struct gpc_memory *
memory_around(uint64_t address)
{
	struct gpc_memory *memory = atomic_load(&memories);

	while (memory && !gpc_heap_contains(memory->heap, address))
		memory = memory->next;
	return memory;
}

bool
gpc_memory_find(uint64_t address, struct gpc_address *found)
{
	struct gpc_memory *memory = memory_around(address);
	struct gpc_heap_block block;

	if (!memory)
		return false;
	*found = (struct gpc_address){ .kind = GPC_ADDRESS_INVALID };
	if (!gpc_heap_find(memory->heap, address, &block))
		return true;
	found->kind = GPC_ADDRESS_DEVICE;
	found->base = block.address;
	found->size = block.size;
	found->context = block.owner;
	found->buffer_id = block.id;
	found->mapping_base = block.mapping_base;
	found->mapping_size = block.mapping_size;
	found->plain = true;
	return true;
}

static void
memory_reap(struct gpc_memory *memory)
{
	gpc_heap_reap(memory->heap, gpc_session_work_done(memory->session),
		      atomic_load(&memory->unmaps_done));
}

/* Waits for everything posted, including unmappings. */
CUresult
gpc_memory_settle_all(struct gpc_memory *memory, struct gpc_context *context)
{
	uint64_t unmaps = atomic_load(&memory->unmaps);
	uint64_t before = atomic_load(&memory->unmaps_done);
	CUresult result = gpc_fence_wait(context);

	if (result != CUDA_SUCCESS)
		return result;
	while (before < unmaps &&
	       !atomic_compare_exchange_weak(&memory->unmaps_done, &before, unmaps))
		;
	memory_reap(memory);
	return CUDA_SUCCESS;
}

void
gpc_memory_unmap_now(struct gpc_memory *memory, struct gpc_context *context,
		     const struct gpc_heap_range *range)
{
	const struct gp_args_gpMemoryUnmap args = { .address = range->base, .size = range->size };

	/* The memory of an ended session is freed with it. */
	(void)gpc_post_gpMemoryUnmap(context, &args);
	atomic_fetch_sub(&context->device->allowance.mapped, range->size);
	gpc_heap_defer_range(memory->heap, range, atomic_fetch_add(&memory->unmaps, 1) + 1);
}

void
gpc_memory_return_unused(struct gpc_memory *memory, struct gpc_context *context)
{
	struct gpc_heap_range range;

	while (gpc_heap_pop_spare(memory->heap, &range))
		gpc_memory_unmap_now(memory, context, &range);
	(void)gpc_object_cache_drop(&memory->cache, NULL, NULL);
	gpc_allowance_return(memory->session);
}

/* Returns all free memory to the daemon, and waits until that is done. */
static CUresult
memory_reclaim(struct gpc_memory *memory, struct gpc_context *context)
{
	CUresult result = gpc_memory_settle_all(memory, context);

	if (result != CUDA_SUCCESS)
		return result;
	gpc_pool_reclaim(context->device);
	gpc_memory_return_unused(memory, context);
	return gpc_memory_settle_all(memory, context);
}

/* Mapping from the allowance needs no wait. */
static CUresult
range_map_from_allowance(struct gpc_context *context, const struct gpc_heap_range *range)
{
	const struct gp_args_gpMemoryUse args = {
		.address = range->base,
		.size = range->size,
		.device = context->device->remote,
	};

	return gpc_post_gpMemoryUse(context, &args);
}

static CUresult
range_map_and_wait(struct gpc_context *context, const struct gpc_heap_range *range)
{
	const struct gp_args_gpMemoryMap args = {
		.address = range->base,
		.size = range->size,
		.device = context->device->remote,
	};

	return gpc_wait_gpMemoryMap(context, &args);
}

/* acquire_allowance: how the allowance for it is acquired. */
static CUresult
memory_map(struct gpc_memory *memory, struct gpc_context *context, uint64_t size,
	   bool (*acquire_allowance)(struct gpc_context *context, uint64_t size),
	   struct gpc_heap_range *range_p)
{
	CUresult result;

	if (gpc_mapping_acquire(memory, context, size, range_p))
		return CUDA_SUCCESS;
	if (gpc_heap_reserve(memory->heap, size, range_p))
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = acquire_allowance(context, range_p->size)
			 ? range_map_from_allowance(context, range_p)
			 : range_map_and_wait(context, range_p);
	if (result != CUDA_SUCCESS)
		gpc_heap_unreserve(memory->heap, range_p);
	else
		atomic_fetch_add(&context->device->allowance.mapped, range_p->size);
	return result;
}

/* Chunk sizes double, so waits are rare, and no allowance is requested for them. */
static CUresult
heap_add_chunk(struct gpc_memory *memory, struct gpc_context *context, uint64_t size)
{
	struct gpc_heap_range range;
	CUresult result = memory_map(memory, context, size, gpc_allowance_try_acquire, &range);

	if (result != CUDA_SUCCESS)
		return result;
	if (gpc_heap_add_chunk(memory->heap, context, &range)) {
		gpc_memory_unmap_now(memory, context, &range);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

/* Called with grow_lock held: allocates from the chunks, or from a new one; another thread may use
 * the new one up, so that a further one is needed. */
static CUresult
heap_grow_and_alloc(struct gpc_memory *memory, struct gpc_context *context, uint64_t size,
		    uint64_t id, uint64_t *address_p)
{
	for (int tries = 0;; tries++) {
		uint64_t chunk = gpc_heap_chunk_size(memory->heap, context);
		CUresult result;

		if (!gpc_heap_alloc(memory->heap, context, size, id, address_p))
			return CUDA_SUCCESS;
		if (tries == GPC_GROW_TRIES)
			return CUDA_ERROR_OUT_OF_MEMORY;
		result = heap_add_chunk(memory, context, chunk);
		if (result == CUDA_ERROR_OUT_OF_MEMORY &&
		    chunk > gpc_session_facts(memory->session)->granularity)
			result = heap_add_chunk(memory, context, size);
		if (result != CUDA_SUCCESS)
			return result;
	}
}

static CUresult
heap_alloc_growing(struct gpc_memory *memory, struct gpc_context *context, uint64_t size,
		   uint64_t id, uint64_t *address_p)
{
	CUresult result;

	(void)pthread_mutex_lock(&memory->grow_lock);
	result = heap_grow_and_alloc(memory, context, size, id, address_p);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && memory_reclaim(memory, context) == CUDA_SUCCESS)
		result = heap_grow_and_alloc(memory, context, size, id, address_p);
	(void)pthread_mutex_unlock(&memory->grow_lock);
	return result;
}

/*
 * Called before the heap grows: frees memory whose work has completed. If the amount that waits for
 * work is as large as a new mapping, the work is waited for, as cuMemFree itself may do.
 */
static void
heap_recover_freed(struct gpc_memory *memory, struct gpc_context *context)
{
	uint64_t much = gpc_heap_chunk_size(memory->heap, context);

	if (much > WAITING_SETTLE)
		much = WAITING_SETTLE;
	gpc_fence_poll(&memory->fence);
	(void)gpc_fence_is_redundant(memory->session);
	memory_reap(memory);
	/* Outstanding host functions may depend on this thread. */
	if (gpc_heap_deferred_bytes(memory->heap) >= much &&
	    !gpc_session_awaits_host(memory->session))
		(void)gpc_memory_settle_all(memory, context);
	else
		gpc_fence_start(&memory->fence, context);
}

static CUresult
heap_alloc_small(struct gpc_memory *memory, struct gpc_context *context, uint64_t size,
		 uint64_t *address_p)
{
	uint64_t id = gpc_memory_next_id();

	if (!gpc_heap_alloc(memory->heap, context, size, id, address_p))
		return CUDA_SUCCESS;
	if (gpc_heap_deferred_bytes(memory->heap) > 0) {
		heap_recover_freed(memory, context);
		if (!gpc_heap_alloc(memory->heap, context, size, id, address_p))
			return CUDA_SUCCESS;
	}
	return heap_alloc_growing(memory, context, size, id, address_p);
}

static CUresult
heap_alloc_large(struct gpc_memory *memory, struct gpc_context *context, uint64_t size,
		 uint64_t *address_p)
{
	struct gpc_heap_range range;
	CUresult result;

	result = memory_map(memory, context, size, gpc_allowance_acquire, &range);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && memory_reclaim(memory, context) == CUDA_SUCCESS)
		result = memory_map(memory, context, size, gpc_allowance_acquire, &range);
	if (result != CUDA_SUCCESS)
		return result;
	if (gpc_heap_add_large(memory->heap, context, &range, size, gpc_memory_next_id())) {
		gpc_memory_unmap_now(memory, context, &range);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*address_p = range.base;
	return CUDA_SUCCESS;
}

CUresult
gpc_memory_alloc(struct gpc_context *context, uint64_t size, uint64_t *address_p)
{
	struct gpc_memory *memory = gpc_memory_from_context(context);

	/* Sizes that cannot fit need no round trip. */
	if (!memory || size > gpc_session_facts(memory->session)->window_size)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return size <= GPC_HEAP_SMALL_MAX ? heap_alloc_small(memory, context, size, address_p)
					  : heap_alloc_large(memory, context, size, address_p);
}

CUresult
gpc_memory_free(struct gpc_context *context, uint64_t address)
{
	struct gpc_memory *memory = memory_around(address);
	struct gpc_heap_range range;
	struct gpc_heap_block block;

	/* The memory may belong to another daemon. */
	if (memory && memory->session != context->scope.session &&
	    gpc_heap_find(memory->heap, address, &block))
		context = block.owner;
	if (!memory ||
	    gpc_heap_free(memory->heap, address, gpc_session_work_posted(memory->session),
			  gpc_session_work_done(memory->session), &range))
		return CUDA_ERROR_INVALID_VALUE;
	if (range.size != 0)
		gpc_mapping_release(memory, context, &range);
	else if (gpc_heap_deferred_bytes(memory->heap) > WAITING_MAX)
		gpc_fence_start(&memory->fence, context);
	return CUDA_SUCCESS;
}

CUresult
gpc_memory_map(struct gpc_context *context, uint64_t size, struct gpc_heap_range *range_p)
{
	struct gpc_memory *memory = gpc_memory_from_context(context);

	return memory ? memory_map(memory, context, size, gpc_allowance_acquire, range_p)
		      : CUDA_ERROR_OUT_OF_MEMORY;
}

void
gpc_memory_unmap(struct gpc_context *context, const struct gpc_heap_range *range)
{
	gpc_mapping_release(gpc_memory_from_context(context), context, range);
}

CUresult
gpc_memory_reserve_addresses(struct gpc_context *context, uint64_t size,
			     struct gpc_heap_range *range_p)
{
	struct gpc_memory *memory = gpc_memory_from_context(context);

	return memory && gpc_heap_reserve(memory->heap, size, range_p) == 0
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The addresses can be reused at once: the daemon orders a later mapping after its unmapping. */
void
gpc_memory_unreserve_addresses(struct gpc_context *context, const struct gpc_heap_range *range)
{
	gpc_heap_unreserve(gpc_memory_from_context(context)->heap, range);
}

void
gpc_memory_poll(struct gpc_context *context)
{
	struct gpc_memory *memory = gpc_memory_from_context(context);

	if (!memory)
		return;
	gpc_fence_poll(&memory->fence);
	gpc_fence_start(&memory->fence, context);
}

CUresult
gpc_memory_settle(struct gpc_context *context)
{
	struct gpc_memory *memory = gpc_memory_from_context(context);

	return memory ? gpc_memory_settle_all(memory, context) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
gpc_memory_reclaim(struct gpc_context *context)
{
	struct gpc_memory *memory = gpc_memory_from_context(context);

	return memory ? memory_reclaim(memory, context) : CUDA_ERROR_OUT_OF_MEMORY;
}

static bool
cached_is_of_device(const struct gpc_cached *cached, const void *device)
{
	return cached->context->device == device;
}

bool
gpc_memory_available(struct gpc_context *context, uint64_t *bytes_p)
{
	struct gpc_memory *memory = gpc_memory_from_context(context);

	if (!memory)
		return false;
	gpc_fence_poll(&memory->fence);
	memory_reap(memory);
	*bytes_p = gpc_heap_free_bytes(memory->heap, context) +
		   gpc_object_cache_bytes(&memory->cache, cached_is_of_device, context->device) +
		   gpc_allowance_get_bytes(context->device);
	return true;
}

/* Returns the size of a new context's first chunk: a daemon that creates contexts asynchronously
 * provides at most what it has granted, other daemons what they map with the context. */
static uint64_t
context_get_first_chunk(struct gpc_memory *memory, struct gpc_context *context)
{
	const struct gpc_session_facts *facts = gpc_session_facts(memory->session);

	if (gpc_facts_have_call(facts, GP_CALL_gpContextMake))
		return atomic_exchange(&context->device->granted, 0);
	return facts->heap_size ? gpc_heap_chunk_size(memory->heap, context) : 0;
}

/* Reserves addresses for the context's first heap chunk; 0: none is wanted. */
CUresult
gpc_memory_prepare_context(struct gpc_context *context, struct gp_args_gpContextCreate *args)
{
	struct gpc_memory *memory = gpc_memory_from_context(context);
	uint64_t size = memory ? context_get_first_chunk(memory, context) : 0;
	struct gpc_heap_range range;

	if (size == 0 || gpc_heap_reserve(memory->heap, size, &range))
		return CUDA_SUCCESS;
	args->heap = range.base;
	args->heap_size = range.size;
	return CUDA_SUCCESS;
}

void
gpc_memory_context_made(struct gpc_context *context, const struct gp_args_gpContextCreate *args,
			bool success)
{
	const struct gpc_heap_range range = { .base = args->heap, .size = args->heap_size };
	struct gpc_memory *memory = gpc_memory_from_context(context);

	if (!memory || range.size == 0)
		return;
	if (success)
		atomic_fetch_add(&context->device->allowance.mapped, range.size);
	if (!success)
		gpc_heap_unreserve(memory->heap, &range);
	else if (gpc_heap_add_chunk(memory->heap, context, &range))
		gpc_memory_unmap_now(memory, context, &range);
}

void
gpc_memory_drop_context(struct gpc_context *context)
{
	struct gpc_memory *memory = memory_find(context->scope.session);
	struct gpc_heap_range range;

	while (memory && gpc_heap_pop_mapping(memory->heap, context, &range))
		gpc_memory_unmap_now(memory, context, &range);
	if (memory)
		(void)gpc_object_cache_drop(&memory->cache, NULL, NULL);
}
