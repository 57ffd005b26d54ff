/* SPDX-License-Identifier: Apache-2.0 */
#include "base/lock.h"
#include "client/alloc/heap.h"
#include "client/base/container.h"
#include "client/base/ranges.h"
#include "client/connect/connect.h"
#include "client/host/pool_block.h"
#include "client/memory/address.h"
#include "client/memory/ipc_export.h"
#include "client/memory/ipc_pool.h"
#include "client/memory/memory.h"
#include "client/memory/pool_internal.h"
#include "client/session/session.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* A pool whose freed memory waits for work maps more instead, up to WAITING_MAX or this multiple of
 * its peak use; beyond that it waits. */
#define WAITING_MAX ((uint64_t)64 << 20)
#define WAITING_TIMES 2

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t grow_lock = PTHREAD_MUTEX_INITIALIZER; /* only one thread maps at a time */
static struct gpc_pool *pools GP_GUARDED_BY(lock);
static struct gpc_ranges mappings GP_GUARDED_BY(lock); /* of all pools: struct gpc_space_mapping */
static struct {
	struct gpc_pool *default_pool, *current;
} devices[GPC_DEVICES_MAX];
static atomic_uint_fast64_t frees;
static atomic_bool any; /* there has been a pool */

void
gpc_pools_lock(void) GP_LOCKS(lock)
{
	(void)pthread_mutex_lock(&lock);
}

void
gpc_pools_unlock(void) GP_UNLOCKS(lock)
{
	(void)pthread_mutex_unlock(&lock);
}

bool
gpc_pools_any(void)
{
	return atomic_load_explicit(&any, memory_order_relaxed);
}

struct gpc_pool *
gpc_pools_first(void) GP_LOCKED(lock)
{
	return pools;
}

struct gpc_pool *
gpc_pool_from_mapping(const struct gpc_space_mapping *mapping)
{
	return GPC_CONTAINER(mapping->space, struct gpc_pool, space);
}

static struct gpc_session *
pool_get_session(const struct gpc_pool *pool)
{
	return pool->device->session;
}

/* A pool's mappings are created and unmapped in the primary context, which always exists. */
static struct gpc_context *
pool_get_context(const struct gpc_pool *pool)
{
	return pool->device->primary;
}

struct gpc_pool *
gpc_pool_get(CUmemoryPool handle)
{
	return gpc_handle_from_token(GPC_KIND_POOL, handle);
}

struct gpc_space_mapping *
gpc_pool_find_mapping(uint64_t address) GP_LOCKED(lock)
{
	const struct gpc_range *range = gpc_ranges_find(&mappings, address, 1);

	return range ? range->item : NULL;
}

struct gpc_pool *
gpc_pool_create(struct gpc_device *device) GP_LOCKED(lock)
{
	struct gpc_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	if (gpc_handle_add(GPC_KIND_POOL, &pool->handle) < 0) {
		free(pool);
		return NULL;
	}
	pool->device = device;
	pool->file = -1;
	pool->type = CU_MEM_ALLOCATION_TYPE_PINNED;
	pool->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	pool->location.id = device->ordinal;
	pool->follow_events = true;
	pool->opportunistic = true;
	pool->internal_dependencies = true;
	gpc_space_init(&pool->space, gpc_session_facts(device->session)->granularity);
	pool->next = pools;
	pools = pool;
	atomic_store(&any, true);
	return pool;
}

struct gpc_pool *
gpc_pool_get_default(struct gpc_device *device) GP_LOCKED(lock)
{
	struct gpc_pool *pool = devices[device->ordinal].default_pool;

	if (pool)
		return pool;
	pool = gpc_pool_create(device);
	if (!pool)
		return NULL;
	pool->is_default = true;
	devices[device->ordinal].default_pool = pool;
	return pool;
}

struct gpc_pool *
gpc_pool_get_current(struct gpc_device *device) GP_LOCKED(lock)
{
	struct gpc_pool *pool = devices[device->ordinal].current;

	return pool ? pool : gpc_pool_get_default(device);
}

struct gpc_device *
gpc_pool_device(void)
{
	const struct gpc_context *current = gpc_context_get_current();

	return current ? current->device : gpc_device_get(0);
}

bool
gpc_pool_can_be_host(const struct gpc_device *device)
{
	const struct gpc_session_facts *facts = gpc_session_facts(device->session);

	return gpc_facts_have_call(facts, GP_CALL_gpHostReserve) &&
	       gpc_facts_have_call(facts, GP_CALL_gpHostTake);
}

static bool
pool_is_managed_by(const struct gpc_pool *pool, const struct gpc_context *context)
{
	return pool->managed == context && !pool->created_by_program && !pool->destroyed;
}

struct gpc_pool *
gpc_pool_get_managed(struct gpc_context *context, const struct gpc_pages_ops *pages) GP_LOCKED(lock)
{
	struct gpc_pool *pool = pools;

	while (pool && !pool_is_managed_by(pool, context))
		pool = pool->next;
	if (pool)
		return pool;
	pool = gpc_pool_create(context->device);
	if (!pool)
		return NULL;
	pool->managed = context;
	pool->pages = pages;
	return pool;
}

void
gpc_pool_set_current(struct gpc_pool *pool)
{
	devices[pool->device->ordinal].current = pool;
}

/* The caller unmaps *range. */
static void
mapping_drop(struct gpc_space_mapping *mapping, struct gpc_heap_range *range) GP_LOCKED(lock)
{
	*range = (struct gpc_heap_range){ .base = mapping->base, .size = mapping->size };
	gpc_ipc_export_withdraw(mapping->export);
	gpc_ranges_remove(&mappings, gpc_ranges_find(&mappings, mapping->base, 1));
	gpc_space_remove(mapping->space, mapping);
}

/* Unlinks a destroyed pool without users and blocks, so that it can no longer be found. Returns
 * whether it was unlinked. Memory that is also accessible here stays for the host functions before
 * the free. */
static bool
pool_unlink_unused(struct gpc_pool *pool)
{
	struct gpc_pool **link = &pools;

	if (!pool->destroyed || pool->users > 0 || pool->space.blocks > 0 ||
	    ((pool->host || pool->created_by_program) && pool->space.waiting > 0))
		return false;
	while (*link != pool)
		link = &(*link)->next;
	*link = pool->next;
	for (uint32_t i = 0; i < pool->space.large.tlsf.region_capacity; i++) {
		const struct gpc_space_mapping *mapping = pool->space.mappings[i];

		if (mapping)
			gpc_ranges_remove(&mappings, gpc_ranges_find(&mappings, mapping->base, 1));
	}
	return true;
}

/* Work may still use freed blocks: the daemon orders the unmapping after it. */
static void
pool_dispose(struct gpc_pool *pool)
{
	gpc_memory_count_cached(pool->device, -pool->counted_cached);
	for (uint32_t i = 0; i < pool->space.large.tlsf.region_capacity; i++) {
		const struct gpc_space_mapping *mapping = pool->space.mappings[i];
		struct gpc_heap_range range;

		if (!mapping)
			continue;
		range = (struct gpc_heap_range){ .base = mapping->base, .size = mapping->size };
		gpc_ipc_export_withdraw(mapping->export);
		gpc_pool_unmap(pool, &range);
	}
	gpc_ipc_export_withdraw(pool->export);
	if (pool->file >= 0)
		(void)close(pool->file);
	gpc_space_fini(&pool->space);
	free(pool);
}

void
gpc_pool_destroy(struct gpc_pool *pool)
{
	bool unused;

	gpc_pools_lock();
	gpc_handle_remove(&pool->handle);
	if (devices[pool->device->ordinal].current == pool)
		devices[pool->device->ordinal].current = NULL;
	pool->destroyed = true;
	unused = pool_unlink_unused(pool);
	gpc_pools_unlock();
	if (unused)
		pool_dispose(pool);
}

/* Reuses memory of completed work. */
void
gpc_pool_reap(struct gpc_pool *pool) GP_LOCKED(lock)
{
	uint64_t done = gpc_session_work_done(pool_get_session(pool));

	if (pool->host)
		gpc_host_pooled_reap(&(struct gpc_host_pooled_query){
			.session = pool_get_session(pool), .done = done });
	gpc_space_reap(&pool->space, done);
}

void
gpc_pools_drop_unused(void) GP_LOCKED(lock)
{
	struct gpc_pool *next;

	for (struct gpc_pool *pool = pools; pool; pool = next) {
		next = pool->next;
		if (pool->destroyed)
			gpc_pool_reap(pool);
		if (pool_unlink_unused(pool))
			pool_dispose(pool);
	}
}

bool
gpc_pool_release_mapping(struct gpc_pool *pool, uint64_t keep, bool keep_one) GP_LOCKED(lock)
{
	struct gpc_space_mapping *mapping;
	struct gpc_heap_range range;

	gpc_pool_reap(pool);
	mapping = gpc_space_find_excess(&pool->space, keep, keep_one);
	if (!mapping)
		return false;
	mapping_drop(mapping, &range);
	gpc_pool_count_spare(pool);
	gpc_pool_unmap(pool, &range);
	return true;
}

void
gpc_pool_ref(struct gpc_pool *pool)
{
	pool->users++;
}

void
gpc_pool_unref(struct gpc_pool *pool)
{
	bool unused;

	gpc_pools_lock();
	pool->users--;
	unused = pool_unlink_unused(pool);
	gpc_pools_unlock();
	if (unused)
		pool_dispose(pool);
}

/* Allocation. */

static int
host_block_create(struct gpc_pool *pool, uint64_t address, uint64_t size, uint64_t id)
	GP_LOCKED(lock)
{
	const struct gpc_space_free_order at_once = { 0 };
	int r = gpc_host_pooled_create(pool_get_context(pool), address, size, id,
				       pool->handle.token, pool->file >= 0);

	if (r && gpc_space_free(gpc_pool_find_mapping(address), address, &at_once))
		return GP_E_INVALID;
	return r;
}

static CUresult
pool_try_alloc(struct gpc_pool *pool, uint64_t stream, uint64_t size, bool wait,
	       CUdeviceptr *address_p)
{
	uint64_t id = gpc_memory_next_id(), address;
	int r;

	gpc_pools_lock();
	r = gpc_space_alloc(&pool->space, stream, size, id, &address);
	if (r && pool->space.waiting > 0 && (wait || pool->opportunistic)) {
		gpc_pool_reap(pool);
		r = gpc_space_alloc(&pool->space, stream, size, id, &address);
	}
	if (r == 0 && pool->counted_cached > 0)
		gpc_pool_count_spare(pool);
	if (r == 0 && pool->host)
		r = host_block_create(pool, address, size, id);
	gpc_pools_unlock();
	if (r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*address_p = address;
	return CUDA_SUCCESS;
}

/* Called before more is mapped: checks whether the work that freed memory waits for is done. */
static void
pool_recover_freed(struct gpc_pool *pool)
{
	uint64_t waiting, most;

	gpc_pools_lock();
	waiting = pool->space.waiting;
	most = pool->space.used_peak * WAITING_TIMES;
	gpc_pools_unlock();
	if (waiting == 0)
		return;
	/* Outstanding host functions may depend on this thread. */
	if (waiting >= (most > WAITING_MAX ? most : WAITING_MAX) &&
	    !gpc_session_awaits_host(pool_get_session(pool)))
		(void)gpc_memory_settle(pool_get_context(pool));
	else
		gpc_memory_poll(pool_get_context(pool));
}

static CUresult
pool_add_mapping(struct gpc_pool *pool, const struct gpc_heap_range *range)
{
	struct gpc_space_mapping *mapping;
	int r;

	gpc_pools_lock();
	r = gpc_space_add(&pool->space, range->base, range->size, &mapping);
	if (r == 0) {
		r = gpc_ranges_add(&mappings, range->base, range->size, mapping);
		if (r)
			gpc_space_remove(&pool->space, mapping);
	}
	gpc_pools_unlock();
	if (r == 0)
		return CUDA_SUCCESS;
	gpc_pool_unmap(pool, range);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Frees the memory even if it is in use, as it ends with its context. */
void
gpc_pool_drop_context(struct gpc_context *context)
{
	struct gpc_pool *pool;

	if (!atomic_load_explicit(&any, memory_order_relaxed))
		return;
	gpc_pools_lock();
	pool = pools;
	while (pool && !pool_is_managed_by(pool, context))
		pool = pool->next;
	if (pool) {
		gpc_handle_remove(&pool->handle);
		pool->destroyed = true;
		pool->space.blocks = 0;
		if (!pool_unlink_unused(pool))
			pool = NULL;
	}
	gpc_pools_unlock();
	if (pool)
		pool_dispose(pool);
}

static CUresult
pool_grow(struct gpc_pool *pool, uint64_t size)
{
	struct gpc_heap_range range;
	uint64_t wanted, needed;
	CUresult result;

	gpc_pool_sizes(pool, size, &wanted, &needed);
	if (needed == 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = gpc_pool_map(pool, wanted, &range);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && wanted > needed)
		result = gpc_pool_map(pool, needed, &range);
	return result == CUDA_SUCCESS ? pool_add_mapping(pool, &range) : result;
}

/* Another thread may take the memory that was mapped for this block; the pool then grows again. */
static CUresult
pool_grow_and_alloc(struct gpc_pool *pool, uint64_t stream, uint64_t size, bool reap,
		    CUdeviceptr *address_p)
{
	for (int tries = 0;; tries++) {
		CUresult result;

		if (pool_try_alloc(pool, stream, size, reap, address_p) == CUDA_SUCCESS)
			return CUDA_SUCCESS;
		if (tries == GPC_GROW_TRIES)
			return CUDA_ERROR_OUT_OF_MEMORY;
		result = pool_grow(pool, size);
		if (result != CUDA_SUCCESS)
			return result;
	}
}

static CUresult
pool_reclaim_and_alloc(struct gpc_pool *pool, uint64_t stream, uint64_t size,
		       CUdeviceptr *address_p)
{
	CUresult result = pool_grow_and_alloc(pool, stream, size, false, address_p);

	if (result != CUDA_ERROR_OUT_OF_MEMORY)
		return result;
	/* No more memory is available, so memory that waits for work, or that is unused elsewhere,
	 * must be reused. */
	if (gpc_memory_settle(pool_get_context(pool)) == CUDA_SUCCESS &&
	    pool_try_alloc(pool, stream, size, true, address_p) == CUDA_SUCCESS)
		return CUDA_SUCCESS;
	if (gpc_memory_reclaim(pool_get_context(pool)) != CUDA_SUCCESS)
		return result;
	return pool_grow_and_alloc(pool, stream, size, true, address_p);
}

static CUresult
pool_alloc(struct gpc_pool *pool, uint64_t stream, uint64_t size, CUdeviceptr *address_p)
{
	CUresult result = pool_try_alloc(pool, stream, size, false, address_p);

	if (result == CUDA_SUCCESS)
		return result;
	pool_recover_freed(pool);
	(void)pthread_mutex_lock(&grow_lock);
	result = pool_reclaim_and_alloc(pool, stream, size, address_p);
	(void)pthread_mutex_unlock(&grow_lock);
	return result;
}

CUresult
gpc_pool_alloc(CUmemoryPool handle, const struct gpc_context *context, uint64_t stream,
	       uint64_t size, CUdeviceptr *address_p)
{
	struct gpc_device *device = context->device;
	struct gpc_pool *pool;
	CUresult result;

	gpc_pools_lock();
	pool = handle ? gpc_pool_get(handle) : gpc_pool_get_current(device);
	if (pool)
		gpc_pool_ref(pool);
	gpc_pools_unlock();
	if (!pool)
		return handle ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
	/* Memory that is also accessible here is not reused, even by the same stream, before its
	 * work is done. */
	if (pool->host || pool->created_by_program)
		stream = GPC_POOL_NO_STREAM;
	if (pool->imported)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (pool_get_session(pool) != device->session)
		result = CUDA_ERROR_NOT_SUPPORTED;
	else if (size > gpc_session_facts(device->session)->window_size)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	else
		result = pool_alloc(pool, stream, size, address_p);
	gpc_pool_unref(pool);
	return result;
}

struct gpc_space_free_order
gpc_pool_number_free(struct gpc_session *session, const struct gpc_context *context,
		     uint64_t stream)
{
	struct gpc_space_free_order end = { .number = atomic_fetch_add(&frees, 1) + 1 };

	if (context) {
		end.stream = stream;
		end.context = context;
	}
	/* In this order: if `done` were read after `posted`, unfinished work might be considered
	 * done. */
	end.done = gpc_session_work_done(session);
	end.tag = gpc_session_work_posted(session);
	return end;
}

static int
block_free_locked(struct gpc_space_mapping *mapping, uint64_t address, struct gpc_context *context,
		  uint64_t stream) GP_LOCKED(lock)
{
	const struct gpc_space_free_order end = gpc_pool_number_free(
		pool_get_session(gpc_pool_from_mapping(mapping)), context, stream);
	int r = gpc_space_free(mapping, address, &end);

	if (r == 0 && gpc_pool_from_mapping(mapping)->host)
		gpc_host_pooled_free(address, &end);
	return r;
}

CUresult
gpc_pool_free(uint64_t address, struct gpc_context *context, uint64_t stream)
{
	struct gpc_pool *pool = NULL;
	struct gpc_range *range;
	bool unused = false;
	int r = GP_E_INVALID;

	gpc_pools_lock();
	range = gpc_ranges_find(&mappings, address, 1);
	if (range) {
		pool = gpc_pool_from_mapping(range->item);
		if (!context || context->scope.session == pool_get_session(pool))
			r = block_free_locked(range->item, address, context, stream);
		/* A free on no stream needs no synchronization. */
		if (r == 0 && !context)
			gpc_pool_count_spare(pool);
		unused = pool_unlink_unused(pool);
	}
	gpc_pools_unlock();
	if (unused)
		pool_dispose(pool);
	if (!pool)
		return gpc_pool_free_imported(address, context, stream);
	if (r == 0)
		return CUDA_SUCCESS;
	return r == GP_E_INVALID ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
}

bool
gpc_pool_find(uint64_t address, struct gpc_address *found)
{
	struct gpc_space_block block;
	const struct gpc_range *range;
	bool is_block;

	if (!atomic_load_explicit(&any, memory_order_relaxed))
		return false;
	gpc_pools_lock();
	range = gpc_ranges_find(&mappings, address, 1);
	is_block = range && gpc_space_find(range->item, address, &block);
	if (is_block) {
		const struct gpc_space_mapping *mapping = range->item;
		const struct gpc_pool *pool = gpc_pool_from_mapping(mapping);

		*found = (struct gpc_address){
			.kind = GPC_ADDRESS_DEVICE,
			.base = block.address,
			.size = block.size,
			.context = pool->managed ? pool->managed : pool_get_context(pool),
			.buffer_id = block.id,
			.mapping_base = range->base,
			.mapping_size = range->size,
			.pool = pool->managed && !pool->created_by_program ? NULL
									   : pool->handle.token,
			.contextless = !pool->managed || pool->created_by_program,
			.shared = mapping->export != NULL,
			.handle_types = pool->handle_types,
			.managed = pool->managed != NULL,
		};
	}
	gpc_pools_unlock();
	return is_block;
}

uint64_t
gpc_pool_frees(void)
{
	return atomic_load(&frees);
}
