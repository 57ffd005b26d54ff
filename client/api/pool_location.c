/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: locations of memory pools, and the default and current pool of each location. */
#include "client/api/pool_location.h"

#include "client/context/context.h"
#include "client/managed/managed_copy.h"
#include "gpc_calls.h"

#include <string.h>

/* Returns whether pools of the device can be exported as these handle types. */
static bool
device_can_export(const struct gpc_device *device, unsigned int types)
{
	const int possible =
		gpc_device_attribute(device, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES);

	return (types & ~(unsigned int)possible) == 0;
}

/* Checks that pools can be created at the location. Managed memory needs no location. */
static CUresult
location_check(const CUmemLocation *location, CUmemAllocationType type)
{
	const bool managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;

	if (!managed && type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	switch (location->type) {
	case CU_MEM_LOCATION_TYPE_INVALID:
		return managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return gpc_device_get(location->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		if (location->id < 0)
			return CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_MEM_LOCATION_TYPE_HOST:
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return managed || gpc_pool_can_be_host(gpc_pool_device()) ? CUDA_SUCCESS
								  : CUDA_ERROR_NOT_SUPPORTED;
}

/* Pools can be exported if they are of a device's memory, or of the host memory of one NUMA node,
 * which is a file of this machine. */
static CUresult
props_check_handle_types(const CUmemPoolProps *props)
{
	if (props->handleTypes == CU_MEM_HANDLE_TYPE_NONE)
		return CUDA_SUCCESS;
	if (props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED ||
	    props->location.type == CU_MEM_LOCATION_TYPE_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	if (props->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
		return props->handleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_NOT_SUPPORTED;
	return device_can_export(gpc_device_get(props->location.id),
				 (unsigned int)props->handleTypes)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult
gpc_pool_check_props(const CUmemPoolProps *props)
{
	static const unsigned char zeros[sizeof(props->reserved)];
	CUresult result;

	if (props->win32SecurityAttributes || memcmp(props->reserved, zeros, sizeof(zeros)) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = location_check(&props->location, props->allocType);
	if (result == CUDA_ERROR_INVALID_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_SUPPORTED) {
		CUresult types = props_check_handle_types(props);

		result = types == CUDA_SUCCESS ? result : types;
	}
	/* The only usage flag is hardware decompression, which is not supported. */
	return result == CUDA_SUCCESS && props->usage ? CUDA_ERROR_NOT_SUPPORTED : result;
}

struct gpc_pool *
gpc_pool_create_at(CUmemLocation location, CUmemAllocationType type)
{
	const bool device = location.type == CU_MEM_LOCATION_TYPE_DEVICE;
	struct gpc_pool *pool =
		gpc_pool_create(device ? gpc_device_get(location.id) : gpc_pool_device());

	if (!pool)
		return NULL;
	pool->type = type;
	pool->location = location;
	if (type == CU_MEM_ALLOCATION_TYPE_MANAGED) {
		pool->created_by_program = true;
		pool->managed = pool->device->primary;
		pool->pages = &gpc_managed_calls;
	} else {
		pool->host = !device;
	}
	return pool;
}

CUresult
gpc_pool_enter(CUmemoryPool handle, struct gpc_pool **pool_p)
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

/* Pools of a device */

static CUresult
device_get_pool(CUmemoryPool *pool_out, CUdevice dev,
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
	return device_get_pool(pool_out, dev, gpc_pool_get_default);
}

CUresult
gpc_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	return device_get_pool(pool, dev, gpc_pool_get_current);
}

CUresult
gpc_cuDeviceSetMemPool(CUdevice dev, CUmemoryPool handle)
{
	const struct gpc_device *device = gpc_device_get(dev);
	struct gpc_pool *pool;
	CUresult result = gpc_pool_enter(handle, &pool);

	if (result != CUDA_SUCCESS)
		return result;
	if (!device)
		result = CUDA_ERROR_INVALID_DEVICE;
	else if (pool->device != device || pool->imported || pool->host || pool->created_by_program)
		result = CUDA_ERROR_INVALID_VALUE;
	else
		gpc_pool_set_current(pool);
	gpc_pools_unlock();
	return result;
}

/* Pools of other locations: the default pool of a location is created when it is first
 * requested. */

static CUresult
location_enter(const CUmemLocation *location, CUmemAllocationType type)
{
	CUresult result = gpc_enter_initialized();

	if (result == CUDA_SUCCESS && !location)
		result = CUDA_ERROR_INVALID_VALUE;
	return result == CUDA_SUCCESS ? location_check(location, type) : result;
}

static bool
location_is_device_memory(const CUmemLocation *location, CUmemAllocationType type)
{
	return type == CU_MEM_ALLOCATION_TYPE_PINNED &&
	       location->type == CU_MEM_LOCATION_TYPE_DEVICE;
}

/* The location's ID counts for devices and NUMA nodes only. */
static bool
pool_is_at(const struct gpc_pool *pool, const CUmemLocation *location, CUmemAllocationType type)
{
	const bool numbered = location->type == CU_MEM_LOCATION_TYPE_DEVICE ||
			      location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;

	return !pool->destroyed && !pool->imported && pool->type == type &&
	       (pool->created_by_program || pool->host) && pool->location.type == location->type &&
	       (!numbered || pool->location.id == location->id);
}

/* The pools lock is held. Returns NULL if out of memory. */
static struct gpc_pool *
pool_get_at(const CUmemLocation *location, CUmemAllocationType type, bool current)
{
	struct gpc_pool *pool, *default_pool = NULL;

	for (pool = gpc_pools_first(); pool; pool = pool->next) {
		if (!pool_is_at(pool, location, type))
			continue;
		if (current && pool->current)
			return pool;
		if (pool->is_default)
			default_pool = pool;
	}
	if (default_pool)
		return default_pool;
	pool = gpc_pool_create_at(*location, type);
	if (pool)
		pool->is_default = true;
	return pool;
}

static CUresult
location_get_pool(CUmemoryPool *pool_out, const CUmemLocation *location, CUmemAllocationType type,
		  bool current)
{
	struct gpc_pool *pool;
	CUresult result = location_enter(location, type);

	if (result != CUDA_SUCCESS)
		return result;
	if (location_is_device_memory(location, type))
		return current ? gpc_cuDeviceGetMemPool(pool_out, location->id)
			       : gpc_cuDeviceGetDefaultMemPool(pool_out, location->id);
	if (!pool_out)
		return CUDA_ERROR_INVALID_VALUE;
	gpc_pools_lock();
	pool = pool_get_at(location, type, current);
	if (pool)
		*pool_out = pool->handle.token;
	gpc_pools_unlock();
	return pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
gpc_cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location,
			   CUmemAllocationType type)
{
	return location_get_pool(pool_out, location, type, false);
}

CUresult
gpc_cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	return location_get_pool(pool, location, type, true);
}

CUresult
gpc_cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool handle)
{
	struct gpc_pool *pool;
	CUresult result = location_enter(location, type);

	if (result != CUDA_SUCCESS)
		return result;
	if (location_is_device_memory(location, type))
		return gpc_cuDeviceSetMemPool(location->id, handle);
	result = gpc_pool_enter(handle, &pool);
	if (result != CUDA_SUCCESS)
		return result;
	if (pool_is_at(pool, location, type)) {
		for (struct gpc_pool *other = gpc_pools_first(); other; other = other->next)
			other->current &= !pool_is_at(other, location, type);
		pool->current = true;
	} else {
		result = CUDA_ERROR_INVALID_VALUE;
	}
	gpc_pools_unlock();
	return result;
}
