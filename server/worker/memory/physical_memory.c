/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/memory/physical_memory.h"

#include "gpd_calls.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/gpudirect_memory.h"
#include "server/worker/device/window.h"
#include "server/worker/memory/allowance.h"
#include "server/worker/memory/memory.h"
#include "server/worker/memory/shared_physical.h"
#include "server/worker/session/session.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static struct {
	pthread_mutex_t lock;
	CUstream streams[GPD_DEVICES_MAX]; /* for zeroing */
	bool plain;                        /* the driver cannot allocate exportable memory */
} shared = { .lock = PTHREAD_MUTEX_INITIALIZER };

static CUmemAllocationProp
get_allocation_properties(int device)
{
	bool shared_with_cards = gpd_gpudirect_memory_is_possible(device);

	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = shared.plain ? CU_MEM_HANDLE_TYPE_NONE
						     : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
			      .id = gpd_device_get(device)->device },
		.allocFlags = { .gpuDirectRDMACapable = shared_with_cards },
	};
}

CUresult
gpd_physical_zero_stream(int device, CUstream *stream_p)
{
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&shared.lock);
	if (!shared.streams[device])
		result = gpd_driver.cuStreamCreateWithPriority(&shared.streams[device],
							       CU_STREAM_NON_BLOCKING, 0);
	*stream_p = shared.streams[device];
	pthread_mutex_unlock(&shared.lock);
	return result;
}

CUresult
gpd_physical_zero(uint64_t address, uint64_t size, int device)
{
	CUstream stream;
	CUresult result = gpd_device_enter(device);

	if (result == CUDA_SUCCESS)
		result = gpd_physical_zero_stream(device, &stream);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuMemsetD32Async(address, 0, size / 4, stream);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuStreamSynchronize(stream);
	return result;
}

CUresult
gpd_physical_obtain(uint64_t size, int device, CUmemGenericAllocationHandle *handle_p)
{
	CUmemAllocationProp property = get_allocation_properties(device);
	CUresult result = gpd_driver.cuMemCreate(handle_p, size, &property, 0);

	if (property.allocFlags.gpuDirectRDMACapable && result != CUDA_SUCCESS &&
	    result != CUDA_ERROR_OUT_OF_MEMORY) {
		property.allocFlags.gpuDirectRDMACapable = 0;
		result = gpd_driver.cuMemCreate(handle_p, size, &property, 0);
		if (result == CUDA_SUCCESS)
			gpd_gpudirect_memory_disable(device);
	}
	if (result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY || shared.plain)
		return result;
	property.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	result = gpd_driver.cuMemCreate(handle_p, size, &property, 0);
	if (result == CUDA_SUCCESS)
		shared.plain = true;
	return result;
}

CUmemLocation
gpd_physical_get_host_location(int device)
{
	int node = 0;

	(void)gpd_driver.cuDeviceGetAttribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID,
					      gpd_device_get(device)->device);
	return (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = node > 0 ? node : 0 };
}

CUresult
gpd_physical_obtain_host(uint64_t size, int device, CUmemGenericAllocationHandle *handle_p)
{
	const CUmemAllocationProp property = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = gpd_physical_get_host_location(device),
	};
	CUresult result = gpd_driver.cuMemCreate(handle_p, size, &property, 0);

	return result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY
		       ? result
		       : CUDA_ERROR_NOT_SUPPORTED;
}

/* In a container without permission for NUMA nodes the driver reports the attribute but cannot
 * allocate. */
bool
gpd_physical_has_host(int device)
{
	CUmemGenericAllocationHandle handle;
	int supported = 0;

	if (gpd_driver.cuDeviceGetAttribute(
		    &supported, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
		    gpd_device_get(device)->device) != CUDA_SUCCESS ||
	    !supported ||
	    gpd_physical_obtain_host(gpd_device_get(device)->granularity, device, &handle) !=
		    CUDA_SUCCESS)
		return false;
	return gpd_driver.cuMemRelease(handle) == CUDA_SUCCESS;
}

/* Lets the kernel read the byte, so that a fault becomes an error. */
bool
gpd_physical_is_accessible(uint64_t address)
{
	bool ours;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return false;
	ours = write(fds[1], (const void *)(uintptr_t)address, 1) == 1;
	(void)close(fds[0]);
	(void)close(fds[1]);
	return ours;
}

struct gpd_physical *
gpd_physical_get(const struct gpd_session *session, uint32_t id)
{
	return gpd_handle_get(&session->handles, GPD_KIND_MEMORY, id);
}

static CUresult
physical_obtain(struct gpd_session *session, struct gpd_physical *physical,
		gpd_physical_obtain_fn *obtain, bool granted)
{
	CUresult result =
		granted ? gpd_allowance_obtain_memory(session, physical->device, physical->size,
						      &physical->allocation)
			: obtain(physical->size, physical->device, &physical->allocation);
	uint64_t until = 0;

	while (result == CUDA_ERROR_OUT_OF_MEMORY &&
	       gpd_memory_wait(session, physical->device, &until))
		result = obtain(physical->size, physical->device, &physical->allocation);
	return result;
}

/* Tile memory is shared from the start, because arrays are users of it, too. */
static CUresult
prepare_tiles(struct gpd_session *session, struct gpd_physical *physical)
{
	physical->zeroed = physical->size;
	physical->shared = gpd_shared_physical_create(&session->account, physical->allocation,
						      physical->size, physical->device);
	return physical->shared ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
physical_add_handle(struct gpd_session *session, struct gpd_physical *physical, uint32_t id)
{
	int r = gpd_handle_add(&session->handles, GPD_KIND_MEMORY, id, &physical->handle);
	CUresult result;

	if (r)
		return r == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
	result = physical->tiles ? prepare_tiles(session, physical) : CUDA_SUCCESS;
	if (result != CUDA_SUCCESS)
		gpd_handle_remove(&session->handles, &physical->handle);
	return result;
}

/* obtain: NULL for memory that is mapped, or makes the memory of a tile pool. */
static CUresult
physical_create(struct gpd_session *session, uint32_t id, uint64_t size, int device,
		gpd_physical_obtain_fn *obtain, bool granted)
{
	const struct gpd_device *on = gpd_device_get(device);
	struct gpd_physical *physical;
	CUresult result;

	if (!on)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!size || size % on->granularity)
		return CUDA_ERROR_INVALID_VALUE;
	physical = calloc(1, sizeof(*physical));
	if (!physical)
		return CUDA_ERROR_OUT_OF_MEMORY;
	physical->size = size;
	physical->device = device;
	physical->tiles = obtain != NULL;
	result = physical_obtain(session, physical, obtain ? obtain : gpd_physical_obtain, granted);
	if (result == CUDA_SUCCESS) {
		result = physical_add_handle(session, physical, id);
		if (result != CUDA_SUCCESS)
			(void)gpd_driver.cuMemRelease(physical->allocation);
	}
	if (result != CUDA_SUCCESS)
		free(physical);
	return result;
}

CUresult
gpd_gpMemoryCreate(struct gpd_session *session, const struct gp_args_gpMemoryCreate *args)
{
	return physical_create(session, args->memory, args->size, args->device, NULL, false);
}

CUresult
gpd_gpMemoryMake(struct gpd_session *session, const struct gp_args_gpMemoryMake *args)
{
	CUresult result;

	if (!gpd_allowance_consume(session, args->device, args->size))
		return CUDA_ERROR_INVALID_VALUE;
	result = physical_create(session, args->memory, args->size, args->device, NULL, true);
	if (result != CUDA_SUCCESS)
		gpd_account_free(&session->account, args->device, args->size);
	return result;
}

CUresult
gpd_physical_create_tile_pool(struct gpd_session *session, uint32_t id, uint64_t size, int device,
			      gpd_physical_obtain_fn *obtain)
{
	return physical_create(session, id, size, device, obtain, false);
}

struct gpd_physical *
gpd_physical_tiles(const struct gpd_session *session, uint32_t id)
{
	struct gpd_physical *physical = gpd_physical_get(session, id);

	return physical && physical->tiles ? physical : NULL;
}

void
gpd_physical_finish(struct gpd_session *session, struct gpd_physical *physical)
{
	if (physical->shared) {
		gpd_shared_physical_unref(physical->shared, &session->account);
	} else {
		(void)gpd_driver.cuMemRelease(physical->allocation);
		gpd_account_free(&session->account, physical->device, physical->size);
	}
	free(physical);
}

CUresult
gpd_gpMemoryRelease(struct gpd_session *session, const struct gp_args_gpMemoryRelease *args)
{
	struct gpd_physical *physical = gpd_physical_get(session, args->memory);

	/* The memory must not be mapped. */
	if (!physical || physical->mappings > 0)
		return CUDA_ERROR_INVALID_VALUE;
	gpd_handle_remove(&session->handles, &physical->handle);
	if (!gpd_memory_release_later(session, physical))
		gpd_physical_finish(session, physical);
	return CUDA_SUCCESS;
}

/* Zeroes the part that was never mapped: another session will map it, and must not zero it while
 * others use it. */
static CUresult
zero_rest(struct gpd_physical *physical)
{
	CUmemAccessDesc access = {
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
			      .id = gpd_device_get(physical->device)->device },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	struct gpd_range range;
	CUresult result;

	if (physical->zeroed >= physical->size)
		return CUDA_SUCCESS;
	if (gpd_window_acquire(physical->size, 0, NULL, 0, &range))
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = gpd_driver.cuMemMap(range.address, physical->size, 0, physical->allocation, 0);
	if (result == CUDA_SUCCESS) {
		result = gpd_driver.cuMemSetAccess(range.address, physical->size, &access, 1);
		if (result == CUDA_SUCCESS)
			result = gpd_physical_zero(range.address + physical->zeroed,
						   physical->size - physical->zeroed,
						   physical->device);
		(void)gpd_driver.cuMemUnmap(range.address, physical->size);
	}
	gpd_window_release(&range);
	if (result == CUDA_SUCCESS)
		physical->zeroed = physical->size;
	return result;
}

struct gpd_shared_physical *
gpd_physical_export(struct gpd_session *session, uint32_t id)
{
	struct gpd_physical *physical = gpd_physical_get(session, id);

	if (!physical || physical->tiles || zero_rest(physical) != CUDA_SUCCESS)
		return NULL;
	if (!physical->shared)
		physical->shared = gpd_shared_physical_create(
			&session->account, physical->allocation, physical->size, physical->device);
	return physical->shared;
}

CUresult
gpd_physical_open(struct gpd_session *session, uint32_t id,
		  struct gpd_shared_physical *shared_memory)
{
	CUresult result;
	struct gpd_physical *physical =
		gpd_session_create_object(session, GPD_KIND_MEMORY, id, sizeof(*physical), &result);

	if (!physical)
		return result;
	physical->size = physical->zeroed = shared_memory->size;
	physical->device = shared_memory->device;
	physical->allocation = shared_memory->handle;
	physical->shared = shared_memory;
	return CUDA_SUCCESS;
}

void
gpd_physical_destroy_all(struct gpd_session *session)
{
	struct gpd_physical *physical;
	uint32_t at = 0;

	/* Their charges end with the session, too. */
	while ((physical = gpd_handle_next(&session->handles, GPD_KIND_MEMORY, &at))) {
		gpd_handle_remove(&session->handles, &physical->handle);
		gpd_physical_finish(session, physical);
	}
}
