/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/memory/physical.h"

#include "gpd_calls.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/peer_memory.h"
#include "server/worker/memory/array.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/session.h"

#include <pthread.h>
#include <stdlib.h>

static struct {
	pthread_mutex_t lock;
	CUstream streams[GPD_DEVICES_MAX]; /* for zeroing */
	bool plain;                        /* the driver makes no exportable memory */
} shared = { .lock = PTHREAD_MUTEX_INITIALIZER };

static CUmemAllocationProp
properties(int device)
{
	bool shared_with_cards = gpd_peer_memory_prepares(device);

	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = shared.plain ? CU_MEM_HANDLE_TYPE_NONE
						     : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device },
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
	CUmemAllocationProp property = properties(device);
	CUresult result = gpd_driver.cuMemCreate(handle_p, size, &property, 0);

	if (property.allocFlags.gpuDirectRDMACapable && result != CUDA_SUCCESS &&
	    result != CUDA_ERROR_OUT_OF_MEMORY) {
		property.allocFlags.gpuDirectRDMACapable = 0;
		result = gpd_driver.cuMemCreate(handle_p, size, &property, 0);
		if (result == CUDA_SUCCESS)
			gpd_peer_memory_unprepared(device);
	}
	if (result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY || shared.plain)
		return result;
	property.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	result = gpd_driver.cuMemCreate(handle_p, size, &property, 0);
	if (result == CUDA_SUCCESS)
		shared.plain = true;
	return result;
}

static struct gpd_physical *
get(const struct gpd_session *session, uint32_t id)
{
	return (struct gpd_physical *)gpd_handle_get(&session->handles, GPD_KIND_MEMORY, id);
}

static CUresult
obtain(struct gpd_session *session, struct gpd_physical *physical)
{
	CUresult result = gpd_physical_obtain(physical->size, physical->device, &physical->handle);
	uint64_t until = 0;
	bool again;

	if (result != CUDA_ERROR_OUT_OF_MEMORY)
		return result;
	/* What the client has given back may still have been on its way out. */
	gpd_memory_wait_unmapped(session);
	(void)gpd_array_wait_gone(session, physical->device);
	do {
		again = gpd_account_wait(&session->account, false, &until);
		result = gpd_physical_obtain(physical->size, physical->device, &physical->handle);
	} while (again && result == CUDA_ERROR_OUT_OF_MEMORY);
	return result;
}

CUresult
gpd_gpMemoryCreate(struct gpd_session *session, const struct gp_args_gpMemoryCreate *args)
{
	const struct gpd_device *on = gpd_device_get(args->device);
	struct gpd_physical *physical;
	CUresult result;

	if (!on)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!args->size || args->size % on->granularity)
		return CUDA_ERROR_INVALID_VALUE;
	physical = calloc(1, sizeof(*physical));
	if (!physical)
		return CUDA_ERROR_OUT_OF_MEMORY;
	physical->size = args->size;
	physical->device = args->device;
	result = obtain(session, physical);
	if (result == CUDA_SUCCESS) {
		int r = gpd_handle_add(&session->handles, GPD_KIND_MEMORY, args->memory,
				       &physical->name);

		if (r)
			(void)gpd_driver.cuMemRelease(physical->handle);
		if (r)
			result = r == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
	}
	if (result != CUDA_SUCCESS)
		free(physical);
	return result;
}

static void
destroy(struct gpd_handle *name, void *session)
{
	struct gpd_physical *physical = (struct gpd_physical *)name;

	gpd_handle_remove(&((struct gpd_session *)session)->handles, name);
	(void)gpd_driver.cuMemRelease(physical->handle);
	free(physical);
}

void
gpd_physical_finish(struct gpd_session *session, struct gpd_physical *physical)
{
	(void)gpd_driver.cuMemRelease(physical->handle);
	gpd_account_free(&session->account, physical->device, physical->size);
	free(physical);
}

CUresult
gpd_gpMemoryRelease(struct gpd_session *session, const struct gp_args_gpMemoryRelease *args)
{
	struct gpd_physical *physical = get(session, args->memory);

	/* What is mapped counts. */
	if (!physical || physical->mappings > 0)
		return CUDA_ERROR_INVALID_VALUE;
	gpd_handle_remove(&session->handles, &physical->name);
	if (!gpd_memory_release_later(session, physical))
		gpd_physical_finish(session, physical);
	return CUDA_SUCCESS;
}

static CUresult
attach(struct gpd_session *session, uint32_t memory, uint64_t address, uint64_t size)
{
	struct gpd_physical *physical = get(session, memory);

	if (!physical || size > physical->size)
		return CUDA_ERROR_INVALID_VALUE;
	return gpd_memory_attach(session, address, size, physical);
}

CUresult
gpd_gpMemoryAttach(struct gpd_session *session, const struct gp_args_gpMemoryAttach *args)
{
	return attach(session, args->memory, args->address, args->size);
}

CUresult
gpd_gpMemoryPlace(struct gpd_session *session, const struct gp_args_gpMemoryPlace *args)
{
	return attach(session, args->memory, args->address, args->size);
}

void
gpd_physical_forget(struct gpd_session *session)
{
	gpd_handle_each(&session->handles, GPD_KIND_MEMORY, destroy, session);
}
