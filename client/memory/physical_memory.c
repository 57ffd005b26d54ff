/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory/physical_memory.h"

#include "client/context/context.h"
#include "client/host/host_block.h"
#include "client/memory/allowance.h"
#include "client/memory/ipc_export.h"
#include "client/memory/memory.h"
#include "client/memory/memory_cache.h"
#include "client/session/call.h"
#include "client/session/session.h"
#include "gpc_calls.h"
#include "transport/shm/sealed_memory.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Name of such a file in the kernel; and its maximum size. */
#define HOST_NAME "gpupool-host-memory"
#define HOST_MAX ((uint64_t)1 << 40)

/* Memory for tiles cannot be shared with other processes. */
static CUresult
prop_check_usage(const CUmemAllocationProp *prop)
{
	const struct gpc_device *device = gpc_device_get(prop->location.id);

	return prop->allocFlags.usage == CU_MEM_CREATE_USAGE_TILE_POOL &&
			       prop->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE &&
			       gpc_device_attribute(device,
						    CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_NOT_SUPPORTED;
}

bool
gpc_physical_is_host(const CUmemLocation *location)
{
	return location->type == CU_MEM_LOCATION_TYPE_HOST ||
	       location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

/* The capabilities of the daemon of the current context's device, or of the first device, apply. */
static struct gpc_device *
device_for_host(void)
{
	const struct gpc_context *current = gpc_context_get_current();

	return current ? current->device : gpc_device_get(0);
}

struct gpc_device *
gpc_physical_device(const CUmemLocation *location)
{
	return gpc_physical_is_host(location) ? device_for_host() : gpc_device_get(location->id);
}

/* Host memory without a NUMA node cannot be shared with other processes. */
static CUresult
prop_check_host(const CUmemAllocationProp *prop)
{
	const unsigned int handle_types = (unsigned int)prop->requestedHandleTypes;

	if (prop->location.type == CU_MEM_LOCATION_TYPE_HOST ? handle_types != 0
							     : prop->location.id < 0)
		return CUDA_ERROR_INVALID_VALUE;
	return handle_types & ~(unsigned int)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
			       prop->allocFlags.usage
		       ? CUDA_ERROR_NOT_SUPPORTED
		       : CUDA_SUCCESS;
}

CUresult
gpc_physical_check_prop(const CUmemAllocationProp *prop)
{
	const unsigned int handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

	if (prop->type == CU_MEM_ALLOCATION_TYPE_MANAGED)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || prop->win32HandleMetaData)
		return CUDA_ERROR_INVALID_VALUE;
	switch (prop->location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		break;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		return prop_check_host(prop);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!gpc_device_get(prop->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	if (prop->allocFlags.usage)
		return prop_check_usage(prop);
	return (unsigned int)prop->requestedHandleTypes & ~handle_types ? CUDA_ERROR_NOT_SUPPORTED
									: CUDA_SUCCESS;
}

bool
gpc_physical_is_for_tiles(const struct gpc_physical *allocation)
{
	return allocation->prop.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL;
}

static void
physical_drop(struct gpc_physical *allocation)
{
	struct gp_args_gpMemoryRelease args = { .memory = allocation->handle.id };

	if (allocation->host_fd >= 0) {
		(void)close(allocation->host_fd);
		gpc_handle_remove(&allocation->handle);
		return;
	}
	gpc_ipc_export_withdraw(allocation->export);
	/* The memory of an ended session is freed with it. */
	(void)gpc_post_gpMemoryRelease(allocation->device->primary, &args);
	gpc_handle_remove(&allocation->handle);
}

static void
cached_drop(const struct gpc_cached *cached)
{
	physical_drop(cached->object);
}

/* Cached with the primary context of its device, which all its calls use. */
static const struct gpc_cached_kind physical_kind = {
	.drop = cached_drop,
	GPC_MEMORY_CACHE_BUDGET,
};

static CUresult
tile_pool_request(const struct gpc_physical *allocation)
{
	const struct gp_args_gpTilePoolCreate args = {
		.memory = allocation->handle.id,
		.size = allocation->size,
		.device = allocation->device->remote,
	};

	return gpc_wait_gpTilePoolCreate(allocation->device->primary, &args);
}

/* Posted without waiting. */
static CUresult
physical_make_from_allowance(const struct gpc_physical *allocation)
{
	const struct gp_args_gpMemoryMake args = {
		.memory = allocation->handle.id,
		.size = allocation->size,
		.device = allocation->device->remote,
	};

	return gpc_post_gpMemoryMake(allocation->device->primary, &args);
}

static CUresult
physical_request(const struct gpc_physical *allocation)
{
	const struct gp_args_gpMemoryCreate args = {
		.memory = allocation->handle.id,
		.size = allocation->size,
		.device = allocation->device->remote,
	};

	if (gpc_physical_is_for_tiles(allocation))
		return tile_pool_request(allocation);
	if (gpc_allowance_acquire(allocation->device->primary, allocation->size))
		return physical_make_from_allowance(allocation);
	return gpc_wait_gpMemoryCreate(allocation->device->primary, &args);
}

static CUresult
physical_create(struct gpc_device *device, uint64_t size, unsigned short usage,
		struct gpc_physical **allocation_p)
{
	struct gpc_physical *allocation = gpc_handle_new(GPC_KIND_MEMORY, sizeof(*allocation));
	CUresult result;

	if (!allocation)
		return CUDA_ERROR_OUT_OF_MEMORY;
	allocation->device = device;
	allocation->size = size;
	allocation->host_fd = -1;
	allocation->prop.allocFlags.usage = usage;
	result = physical_request(allocation);
	if (result == CUDA_ERROR_OUT_OF_MEMORY &&
	    gpc_memory_reclaim(device->primary) == CUDA_SUCCESS)
		result = physical_request(allocation);
	if (result == CUDA_SUCCESS)
		*allocation_p = allocation;
	else
		gpc_handle_remove(&allocation->handle);
	return result;
}

/* Takes ownership of the descriptor, also on failure. */
static CUresult
host_create_from_file(int fd, uint64_t size, const CUmemAllocationProp *prop,
		      CUmemGenericAllocationHandle *handle)
{
	struct gpc_physical *allocation =
		fd < 0 ? NULL : gpc_handle_new(GPC_KIND_MEMORY, sizeof(*allocation));

	if (!allocation) {
		if (fd >= 0)
			(void)close(fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	allocation->device = device_for_host();
	allocation->size = size;
	allocation->host_fd = fd;
	allocation->users = 1;
	allocation->prop = *prop;
	memset(&allocation->prop.allocFlags, 0, sizeof(allocation->prop.allocFlags));
	*handle = (uintptr_t)allocation->handle.token;
	return CUDA_SUCCESS;
}

/* Allocates memory of this machine. The daemon's replica, which counts against the quota, is
 * created when the memory is mapped and a device is given access. */
static CUresult
host_create(uint64_t size, const CUmemAllocationProp *prop, CUmemGenericAllocationHandle *handle)
{
	const struct gpc_device *device = device_for_host();
	int fd;

	if (!gpc_device_attribute(
		    device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (size == 0 || size % gpc_session_facts(device->session)->granularity)
		return CUDA_ERROR_INVALID_VALUE;
	if (size > HOST_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	fd = gp_sealed_create(HOST_NAME, size, true);
	return host_create_from_file(fd, size, prop, handle);
}

CUresult
gpc_physical_open_host(int fd, CUmemGenericAllocationHandle *handle)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { .type = CU_MEM_LOCATION_TYPE_HOST_NUMA },
	};
	const struct gpc_device *device = device_for_host();
	size_t size;

	if (!gp_sealed_has_name(fd, HOST_NAME) || gp_sealed_check(fd, &size) ||
	    size % gpc_session_facts(device->session)->granularity)
		return CUDA_ERROR_INVALID_VALUE;
	atomic_store(&gpc_host_memory_exchanged, true);
	return host_create_from_file(fcntl(fd, F_DUPFD_CLOEXEC, 0), size, &prop, handle);
}

CUresult
gpc_physical_create(uint64_t size, const CUmemAllocationProp *prop,
		    CUmemGenericAllocationHandle *handle)
{
	struct gpc_device *device = gpc_device_get(prop->location.id);
	const unsigned short usage = prop->allocFlags.usage;
	struct gpc_physical *allocation = NULL;
	CUresult result = CUDA_SUCCESS;

	if (gpc_physical_is_host(&prop->location))
		return host_create(size, prop, handle);
	if (size == 0 || size % gpc_session_facts(device->session)->granularity)
		return CUDA_ERROR_INVALID_VALUE;
	/* Sizes that cannot fit need no round trip. */
	if (size > device->total_memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!usage)
		allocation = gpc_memory_cache_acquire(&physical_kind, device->primary, &size);
	if (!allocation)
		result = physical_create(device, size, usage, &allocation);
	if (result != CUDA_SUCCESS)
		return result;
	allocation->users = 1;
	allocation->prop = *prop;
	/* The remaining flags are hints, which are ignored. */
	memset(&allocation->prop.allocFlags, 0, sizeof(allocation->prop.allocFlags));
	allocation->prop.allocFlags.usage = usage;
	*handle = (uintptr_t)allocation->handle.token;
	return CUDA_SUCCESS;
}

static atomic_bool any_shared;

bool
gpc_physical_any_shared(void)
{
	return atomic_load_explicit(&any_shared, memory_order_relaxed);
}

static CUresult
export_request(const struct gpc_physical *allocation, struct gpc_ipc_export *export)
{
	const struct gp_args_gpPhysicalShare args = { .share = export->handle.id,
						      .memory = allocation->handle.id };
	struct gp_reply_gpPhysicalShare reply;
	void *raw = NULL;
	CUresult result =
		gpc_wait_gpPhysicalShare(allocation->device->primary, &args, &reply, &raw);

	return gpc_reply_copy_bytes(result, &reply.handle, &export->ipc_handle,
				    sizeof(export->ipc_handle), raw);
}

CUresult
gpc_physical_export(struct gpc_physical *allocation)
{
	struct gpc_ipc_export *export;
	CUresult result;

	if (allocation->export)
		return CUDA_SUCCESS;
	export = gpc_handle_new(GPC_KIND_SHARE, sizeof(*export));
	if (!export)
		return CUDA_ERROR_OUT_OF_MEMORY;
	export->context = allocation->device->primary;
	result = export_request(allocation, export);
	if (result != CUDA_SUCCESS) {
		gpc_handle_remove(&export->handle);
		return result;
	}
	allocation->export = export;
	allocation->may_be_mapped_elsewhere = true;
	atomic_store(&any_shared, true);
	return CUDA_SUCCESS;
}

static CUresult
import_request(const struct gpc_physical *allocation, const struct gp_ipc_handle *ipc_handle)
{
	const struct gp_args_gpPhysicalOpen args = {
		.memory = allocation->handle.id,
		.size = allocation->size,
		.device = allocation->device->remote,
		.handle = { ipc_handle, sizeof(*ipc_handle) },
	};

	return gpc_wait_gpPhysicalOpen(allocation->device->primary, &args);
}

CUresult
gpc_physical_open(struct gpc_device *device, const struct gp_ipc_handle *ipc_handle,
		  CUmemGenericAllocationHandle *handle)
{
	struct gpc_physical *allocation = gpc_handle_new(GPC_KIND_MEMORY, sizeof(*allocation));
	CUresult result;

	if (!allocation)
		return CUDA_ERROR_OUT_OF_MEMORY;
	allocation->device = device;
	allocation->size = ipc_handle->mapping;
	allocation->host_fd = -1;
	result = import_request(allocation, ipc_handle);
	if (result != CUDA_SUCCESS) {
		gpc_handle_remove(&allocation->handle);
		return result;
	}
	allocation->users = 1;
	allocation->may_be_mapped_elsewhere = true;
	atomic_store(&any_shared, true);
	allocation->prop = (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->ordinal },
	};
	*handle = (uintptr_t)allocation->handle.token;
	return CUDA_SUCCESS;
}

struct gpc_physical *
gpc_physical_get(CUmemGenericAllocationHandle handle)
{
	struct gpc_physical *allocation =
		gpc_handle_from_token(GPC_KIND_MEMORY, (const void *)(uintptr_t)handle);

	return allocation && allocation->users > 0 ? allocation : NULL;
}

void
gpc_physical_drop_unused(struct gpc_physical *allocation)
{
	if (allocation->users > 0 || allocation->mappings > 0)
		return;
	if (allocation->host_fd >= 0 || allocation->may_be_mapped_elsewhere ||
	    gpc_physical_is_for_tiles(allocation) ||
	    !gpc_memory_cache_put(&physical_kind, allocation, allocation->device->primary,
				  allocation->size))
		physical_drop(allocation);
}
