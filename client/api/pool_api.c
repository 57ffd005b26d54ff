/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: memory pools. */
#include "client/context/context.h"
#include "client/context/reach.h"
#include "client/memory/ipc_memory.h"
#include "client/memory/memory.h"
#include "client/memory/pool.h"
#include "client/stream/stream.h"
#include "gpc_calls.h"

#include <string.h>

/* Allocating and freeing. */

static CUresult
alloc_async(CUmemoryPool pool, CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	struct gpc_stream *stream;
	CUresult result = gpc_stream_enter(hStream, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!dptr)
		return CUDA_ERROR_INVALID_VALUE;
	if (bytesize == 0) {
		*dptr = 0;
		return CUDA_SUCCESS;
	}
	return gpc_pool_alloc(pool, stream->context, stream->number, bytesize, dptr);
}

CUresult
gpc_cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	return alloc_async(NULL, dptr, bytesize, hStream);
}

CUresult
gpc_cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	CUresult result = pool ? CUDA_SUCCESS : gpc_enter_initialized();

	if (result == CUDA_SUCCESS && !pool)
		result = CUDA_ERROR_INVALID_VALUE;
	return result == CUDA_SUCCESS ? alloc_async(pool, dptr, bytesize, hStream) : result;
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
	/* Memory of cuMemAlloc may be freed like this, too: it waits for all work. */
	gpc_ipc_memory_frees(dptr);
	return gpc_memory_free(context, dptr);
}

/* Pools. */

/* As what other processes may import a pool. */
static bool
can_export(const struct gpc_device *device, unsigned int types)
{
	const int possible =
		gpc_device_attribute(device, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES);

	return (types & ~(unsigned int)possible) == 0;
}

static CUresult
check_props(const CUmemPoolProps *props)
{
	static const unsigned char zeros[sizeof(props->reserved)];

	if (props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || props->win32SecurityAttributes ||
	    memcmp(props->reserved, zeros, sizeof(zeros)) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (props->location.type == CU_MEM_LOCATION_TYPE_HOST)
		return props->handleTypes ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
	if (props->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    !gpc_device_get(props->location.id))
		return CUDA_ERROR_INVALID_VALUE;
	/* Nothing is decompressed. */
	return can_export(gpc_device_get(props->location.id), (unsigned int)props->handleTypes) &&
			       props->usage == 0
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult
gpc_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	struct gpc_pool *created;
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS)
		return result;
	if (!pool || !poolProps)
		return CUDA_ERROR_INVALID_VALUE;
	result = check_props(poolProps);
	if (result != CUDA_SUCCESS)
		return result;
	gpc_pools_lock();
	created = gpc_pool_create(gpc_device_get(poolProps->location.id));
	if (created) {
		created->max_size = poolProps->maxSize;
		created->handle_types = poolProps->handleTypes;
		*pool = created->handle.token;
	}
	gpc_pools_unlock();
	return created ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* With the pools locked, unless it fails. */
static CUresult
enter_pool(CUmemoryPool handle, struct gpc_pool **pool_p)
{
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS)
		return result;
	gpc_pools_lock();
	*pool_p = gpc_pool_get(handle);
	if (*pool_p)
		return CUDA_SUCCESS;
	gpc_pools_unlock();
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult
gpc_cuMemPoolDestroy(CUmemoryPool handle)
{
	struct gpc_pool *pool;
	CUresult result = enter_pool(handle, &pool);

	if (result != CUDA_SUCCESS)
		return result;
	gpc_pools_unlock();
	if (pool->standard)
		return CUDA_ERROR_INVALID_VALUE;
	gpc_pool_destroy(pool);
	return CUDA_SUCCESS;
}

CUresult
gpc_cuMemPoolTrimTo(CUmemoryPool handle, size_t minBytesToKeep)
{
	struct gpc_pool *pool;
	CUresult result = enter_pool(handle, &pool);

	if (result != CUDA_SUCCESS)
		return result;
	gpc_pools_unlock();
	gpc_pool_trim(pool, minBytesToKeep);
	return CUDA_SUCCESS;
}

static bool *
flag_of(struct gpc_pool *pool, CUmemPool_attribute attribute)
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

/* The high watermarks begin anew where the current ones are. */
static CUresult
set_value(struct gpc_pool *pool, CUmemPool_attribute attribute, uint64_t value)
{
	struct gpc_space *space = &pool->space;

	switch (attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->threshold = value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		if (value == 0)
			space->reserved_high = space->reserved - gpc_space_due(space);
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
	CUresult result = enter_pool(handle, &pool);
	cuuint64_t number;
	bool *flag;
	int on;

	if (result != CUDA_SUCCESS)
		return result;
	flag = flag_of(pool, attr);
	if (!value) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else if (flag) {
		memcpy(&on, value, sizeof(on));
		*flag = on != 0;
	} else {
		memcpy(&number, value, sizeof(number));
		result = set_value(pool, attr, number);
	}
	gpc_pools_unlock();
	return result;
}

static CUresult
get_value(const struct gpc_pool *pool, CUmemPool_attribute attribute, cuuint64_t *value_p)
{
	const struct gpc_space *space = &pool->space;

	switch (attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*value_p = pool->threshold;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		/* What is kept for speed alone is to be had by anybody: see cuMemGetInfo. */
		*value_p = space->reserved - gpc_space_due(space);
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
	CUresult result = enter_pool(handle, &pool);
	const bool *flag;
	cuuint64_t number;

	if (result != CUDA_SUCCESS)
		return result;
	flag = flag_of(pool, attr);
	if (!value) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else if (flag) {
		memcpy(value, &(int){ *flag }, sizeof(int));
	} else {
		result = get_value(pool, attr, &number);
		if (result == CUDA_SUCCESS)
			memcpy(value, &number, sizeof(number));
	}
	gpc_pools_unlock();
	return result;
}

/* Who may touch a pool's memory: its own device, always, and others that reach it. */
static CUresult
check_access(const struct gpc_device *owner, const CUmemAccessDesc *access)
{
	const struct gpc_device *device;

	if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	device = gpc_device_get(access->location.id);
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	if (device != owner && access->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
		return CUDA_SUCCESS;
	if (device != owner && !gpc_reach_can(device, owner))
		return CUDA_ERROR_INVALID_DEVICE;
	return access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? CUDA_SUCCESS
								   : CUDA_ERROR_INVALID_VALUE;
}

/* What the daemon has to do for it, which takes round trips. */
static CUresult
give_access(const struct gpc_device *owner, const CUmemAccessDesc *map, size_t count)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
		result = check_access(owner, &map[i]);
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
		struct gpc_device *device = gpc_device_get(map[i].location.id);

		if (device != owner && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
			result = gpc_reach_give(device, owner);
	}
	return result;
}

CUresult
gpc_cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *map, size_t count)
{
	struct gpc_pool *pool;
	const struct gpc_device *owner;
	CUresult result = enter_pool(handle, &pool);

	if (result != CUDA_SUCCESS)
		return result;
	owner = pool->device;
	gpc_pools_unlock();
	if (!map && count > 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = give_access(owner, map, count);
	if (result == CUDA_SUCCESS)
		result = enter_pool(handle, &pool);
	if (result != CUDA_SUCCESS)
		return result;
	for (size_t i = 0; i < count; i++) {
		uint64_t bit = UINT64_C(1) << map[i].location.id;

		if (map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
			pool->reached_by &= ~bit;
		else
			pool->reached_by |= bit;
	}
	gpc_pools_unlock();
	return CUDA_SUCCESS;
}

CUresult
gpc_cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location)
{
	struct gpc_pool *pool;
	CUresult result = enter_pool(memPool, &pool);

	if (result != CUDA_SUCCESS)
		return result;
	if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (!gpc_device_get(location->id))
		result = CUDA_ERROR_INVALID_DEVICE;
	else
		*flags = gpc_device_get(location->id) == pool->device ||
					 (pool->reached_by >> location->id & 1)
				 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
				 : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	gpc_pools_unlock();
	return result;
}

/* The pools of a device. */

static CUresult
pool_of_device(CUmemoryPool *pool_out, CUdevice dev,
	       struct gpc_pool *(*which)(struct gpc_device *device))
{
	struct gpc_device *device = gpc_device_get(dev);
	struct gpc_pool *pool;
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS)
		return result;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!pool_out)
		return CUDA_ERROR_INVALID_VALUE;
	gpc_pools_lock();
	pool = which(device);
	if (pool)
		*pool_out = pool->handle.token;
	gpc_pools_unlock();
	return pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
gpc_cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
	return pool_of_device(pool_out, dev, gpc_pool_default_of);
}

CUresult
gpc_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	return pool_of_device(pool, dev, gpc_pool_current_of);
}

CUresult
gpc_cuDeviceSetMemPool(CUdevice dev, CUmemoryPool handle)
{
	const struct gpc_device *device = gpc_device_get(dev);
	struct gpc_pool *pool;
	CUresult result = enter_pool(handle, &pool);

	if (result != CUDA_SUCCESS)
		return result;
	if (!device)
		result = CUDA_ERROR_INVALID_DEVICE;
	else if (pool->device != device || pool->imported)
		result = CUDA_ERROR_INVALID_VALUE;
	else
		gpc_pool_set_current(pool);
	gpc_pools_unlock();
	return result;
}

/* Pools are of device memory only. */
static CUresult
check_location(const CUmemLocation *location, CUmemAllocationType type)
{
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS)
		return result;
	if (!location)
		return CUDA_ERROR_INVALID_VALUE;
	if (type == CU_MEM_ALLOCATION_TYPE_MANAGED)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	switch (location->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult
gpc_cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location,
			   CUmemAllocationType type)
{
	CUresult result = check_location(location, type);

	return result == CUDA_SUCCESS ? gpc_cuDeviceGetDefaultMemPool(pool_out, location->id)
				      : result;
}

CUresult
gpc_cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	CUresult result = check_location(location, type);

	return result == CUDA_SUCCESS ? gpc_cuDeviceGetMemPool(pool, location->id) : result;
}

CUresult
gpc_cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	CUresult result = check_location(location, type);

	return result == CUDA_SUCCESS ? gpc_cuDeviceSetMemPool(location->id, pool) : result;
}
