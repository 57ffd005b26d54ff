/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: memory pools. */
#include "client/api/pool_location.h"
#include "client/context/context.h"
#include "client/managed/advice.h"
#include "client/memory/ipc_memory.h"
#include "client/memory/ipc_pool.h"
#include "client/memory/memory.h"
#include "client/memory/peer_access.h"
#include "client/memory/pool.h"
#include "client/pages/pages.h"
#include "client/stream/stream.h"
#include "gpc_calls.h"

#include <string.h>
#include <unistd.h>

/* Allocation */

/* Initializes a block of managed memory: its contents are undefined, and its preferred location is
 * that of the pool. */
static CUresult
managed_block_init(CUmemLocation location, uint64_t address, uint64_t size)
{
	gpc_pages_set_unused(address, size);
	gpc_advice_drop(address, size);
	return location.type == CU_MEM_LOCATION_TYPE_INVALID
		       ? CUDA_SUCCESS
		       : gpc_advice_set(address, size, CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
					location);
}

static bool
pool_is_managed(CUmemoryPool handle, CUmemLocation *location_p)
{
	const struct gpc_pool *pool;
	bool managed;

	gpc_pools_lock();
	pool = gpc_pool_get(handle);
	managed = pool && pool->created_by_program;
	if (managed)
		*location_p = pool->location;
	gpc_pools_unlock();
	return managed;
}

static CUresult
pool_alloc_async(CUmemoryPool pool, CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	struct gpc_stream *stream;
	CUmemLocation location;
	CUresult result = gpc_stream_enter(hStream, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!dptr)
		return CUDA_ERROR_INVALID_VALUE;
	if (bytesize == 0) {
		*dptr = 0;
		return CUDA_SUCCESS;
	}
	result = gpc_pool_alloc(pool, stream->context, stream->number, bytesize, dptr);
	if (result != CUDA_SUCCESS || !pool || !pool_is_managed(pool, &location))
		return result;
	result = managed_block_init(location, *dptr, bytesize);
	if (result != CUDA_SUCCESS)
		(void)gpc_pool_free(*dptr, NULL, 0);
	return result;
}

CUresult
gpc_cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	return pool_alloc_async(NULL, dptr, bytesize, hStream);
}

CUresult
gpc_cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	CUresult result = pool ? CUDA_SUCCESS : gpc_enter_initialized();

	if (result == CUDA_SUCCESS && !pool)
		result = CUDA_ERROR_INVALID_VALUE;
	return result == CUDA_SUCCESS ? pool_alloc_async(pool, dptr, bytesize, hStream) : result;
}

CUresult
gpc_cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	struct gpc_context *context;
	struct gpc_stream *stream;
	CUresult result = gpc_enter(&context);

	if (result == CUDA_SUCCESS)
		result = gpc_stream_lookup(context, hStream, &stream);
	if (result != CUDA_SUCCESS || dptr == 0)
		return result;
	result = gpc_pool_free(dptr, stream->context, stream->number);
	if (result != CUDA_ERROR_INVALID_VALUE)
		return result;
	/* Memory of cuMemAlloc() may be freed in stream order, too. It is reused after all work is
	 * done. */
	gpc_ipc_memory_withdraw(dptr);
	return gpc_memory_free(context, dptr);
}

/* Pools */

static bool
location_is_host(CUmemLocationType type)
{
	return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
	       type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

/* A pool consists of whole mappings, so its maximum size is rounded up to them. */
static uint64_t
pool_round_max_size(const struct gpc_pool *pool, size_t requested)
{
	uint64_t rounded = requested ? gpc_space_required_size(&pool->space, requested) : 0;

	return rounded < requested ? requested : rounded;
}

/* Creates the file of a host memory pool that other processes may import. *file_p is -1 if the pool
 * needs none. */
static CUresult
pool_create_file(const CUmemPoolProps *props, int *file_p)
{
	*file_p = -1;
	if (!location_is_host(props->location.type) ||
	    props->handleTypes == CU_MEM_HANDLE_TYPE_NONE)
		return CUDA_SUCCESS;
	*file_p = gpc_pool_create_file(gpc_pool_device());
	return *file_p < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult
gpc_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	struct gpc_pool *created;
	int file;
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS)
		return result;
	if (!pool || !poolProps)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpc_pool_check_props(poolProps);
	if (result == CUDA_SUCCESS)
		result = pool_create_file(poolProps, &file);
	if (result != CUDA_SUCCESS)
		return result;
	gpc_pools_lock();
	created = gpc_pool_create_at(poolProps->location, poolProps->allocType);
	if (created) {
		created->file = file;
		created->max_size = pool_round_max_size(created, poolProps->maxSize);
		created->handle_types = poolProps->handleTypes;
		*pool = created->handle.token;
	}
	gpc_pools_unlock();
	if (created)
		return CUDA_SUCCESS;
	if (file >= 0)
		(void)close(file);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
gpc_cuMemPoolDestroy(CUmemoryPool handle)
{
	struct gpc_pool *pool;
	CUresult result = gpc_pool_enter(handle, &pool);

	if (result != CUDA_SUCCESS)
		return result;
	if (pool->is_default)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (!gpc_handle_claim(GPC_KIND_POOL, handle))
		result = CUDA_ERROR_INVALID_HANDLE;
	gpc_pools_unlock();
	if (result == CUDA_SUCCESS)
		gpc_pool_destroy(pool);
	return result;
}

CUresult
gpc_cuMemPoolTrimTo(CUmemoryPool handle, size_t minBytesToKeep)
{
	struct gpc_pool *pool;
	CUresult result = gpc_pool_enter(handle, &pool);

	if (result != CUDA_SUCCESS)
		return result;
	gpc_pools_unlock();
	gpc_pool_trim(pool, minBytesToKeep);
	return CUDA_SUCCESS;
}

static bool *
pool_get_flag(struct gpc_pool *pool, CUmemPool_attribute attribute)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
		return &pool->follow_events;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
		return &pool->opportunistic;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		return &pool->internal_dependencies;
	default:
		return NULL;
	}
}

/* A high watermark is reset to the current value. */
static CUresult
pool_set_value(struct gpc_pool *pool, CUmemPool_attribute attribute, uint64_t value)
{
	struct gpc_space *space = &pool->space;

	switch (attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->threshold = value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		if (value == 0)
			space->reserved_high = space->reserved - gpc_space_cached_bytes(space);
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		if (value == 0)
			space->used_high = space->used;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return value == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult
gpc_cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void *value)
{
	struct gpc_pool *pool;
	CUresult result = gpc_pool_enter(handle, &pool);
	cuuint64_t number;
	bool *flag;
	int on;

	if (result != CUDA_SUCCESS)
		return result;
	flag = pool_get_flag(pool, attr);
	if (!value) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else if (flag) {
		memcpy(&on, value, sizeof(on));
		*flag = on != 0;
	} else {
		memcpy(&number, value, sizeof(number));
		result = pool_set_value(pool, attr, number);
	}
	gpc_pools_unlock();
	return result;
}

static CUresult
pool_get_value(const struct gpc_pool *pool, CUmemPool_attribute attribute, cuuint64_t *value_p)
{
	const struct gpc_space *space = &pool->space;

	switch (attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*value_p = pool->threshold;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		/* Mappings cached only for speed do not count: they are available to every
		 * allocation (see cuMemGetInfo). */
		*value_p = space->reserved - gpc_space_cached_bytes(space);
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		*value_p = space->reserved_high;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*value_p = space->used;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*value_p = space->used_high;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult
gpc_cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void *value)
{
	struct gpc_pool *pool;
	CUresult result = gpc_pool_enter(handle, &pool);
	const bool *flag;
	cuuint64_t number;

	if (result != CUDA_SUCCESS)
		return result;
	flag = pool_get_flag(pool, attr);
	if (!value) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else if (flag) {
		memcpy(value, &(int){ *flag }, sizeof(int));
	} else {
		result = pool_get_value(pool, attr, &number);
		if (result == CUDA_SUCCESS)
			memcpy(value, &number, sizeof(number));
	}
	gpc_pools_unlock();
	return result;
}

/* Access to a pool's memory: its own location always has it, and devices with peer access can have
 * it. Managed memory is accessible everywhere, so its access cannot be set. */
static CUresult
access_check(const struct gpc_pool *pool, const CUmemAccessDesc *access)
{
	const struct gpc_device *device, *owner = pool->host ? NULL : pool->device;
	const bool none = access->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE;

	if (pool->created_by_program)
		return CUDA_ERROR_INVALID_VALUE;
	if (pool->host && location_is_host(access->location.type))
		return access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_VALUE;
	if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	device = gpc_device_get(access->location.id);
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	if (device != owner && none)
		return CUDA_SUCCESS;
	if (pool->host ? device->session != pool->device->session
		       : device != owner && !gpc_peer_access_is_possible(device, owner))
		return CUDA_ERROR_INVALID_DEVICE;
	return access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? CUDA_SUCCESS
								   : CUDA_ERROR_INVALID_VALUE;
}

/* Enables peer access in the daemon, which takes round trips. So the caller holds a reference to
 * the pool, not the lock. */
static CUresult
access_enable(const struct gpc_pool *pool, const CUmemAccessDesc *map, size_t count)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
		result = access_check(pool, &map[i]);
	for (size_t i = 0; i < count && result == CUDA_SUCCESS && !pool->host; i++) {
		struct gpc_device *device = gpc_device_get(map[i].location.id);

		if (device != pool->device && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
			result = gpc_peer_access_enable(device, pool->device);
	}
	return result;
}

/* The pools lock is held. */
static void
access_store(struct gpc_pool *pool, const CUmemAccessDesc *access)
{
	uint64_t bit;

	if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return;
	bit = UINT64_C(1) << access->location.id;
	if (access->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
		pool->peer_devices &= ~bit;
	else
		pool->peer_devices |= bit;
}

CUresult
gpc_cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *map, size_t count)
{
	struct gpc_pool *pool;
	CUresult result = gpc_pool_enter(handle, &pool);

	if (result != CUDA_SUCCESS)
		return result;
	gpc_pool_ref(pool);
	gpc_pools_unlock();
	result = !map && count > 0 ? CUDA_ERROR_INVALID_VALUE : access_enable(pool, map, count);
	if (result == CUDA_SUCCESS) {
		gpc_pools_lock();
		for (size_t i = 0; i < count; i++)
			access_store(pool, &map[i]);
		gpc_pools_unlock();
	}
	gpc_pool_unref(pool);
	return result;
}

static CUresult
access_get(const struct gpc_pool *pool, const CUmemLocation *location, CUmemAccess_flags *flags)
{
	bool can = pool->created_by_program;

	if (location_is_host(location->type) && (pool->host || pool->created_by_program)) {
		can = true;
	} else {
		if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
			return CUDA_ERROR_INVALID_VALUE;
		if (!gpc_device_get(location->id))
			return CUDA_ERROR_INVALID_DEVICE;
		can |= !pool->host && gpc_device_get(location->id) == pool->device;
		can |= pool->peer_devices >> location->id & 1;
	}
	*flags = can ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location)
{
	struct gpc_pool *pool;
	CUresult result = gpc_pool_enter(memPool, &pool);

	if (result != CUDA_SUCCESS)
		return result;
	result = flags && location ? access_get(pool, location, flags) : CUDA_ERROR_INVALID_VALUE;
	gpc_pools_unlock();
	return result;
}
