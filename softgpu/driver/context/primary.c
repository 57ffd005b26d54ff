/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The primary contexts: reference counts, limits, and the destruction of their contents when the
 * last one ends.
 */
#include "softgpu/driver/code/binary.h"
#include "softgpu/driver/device_event.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/memory/array.h"
#include "softgpu/driver/memory/space.h"
#include "softgpu/driver/stream/event.h"
#include "softgpu/driver/stream/stream.h"
#include "softgpu/engine/engine.h"

#include <pthread.h>
#include <string.h>

#define FLAGS_KNOWN 0x7fu
#define HEAP_DEFAULT ((size_t)8 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct primary {
	unsigned int retained;
	unsigned int flags;
	size_t limits[CU_LIMIT_MAX];
	struct gs_heap *heap;
	size_t local;               /* bytes of local memory charged to the device */
	bool peers[GS_DEVICES_MAX]; /* devices with peer access enabled */
} primaries[] = {
	[0 ... GS_DEVICES_MAX - 1] = {
		.limits = {
			[CU_LIMIT_STACK_SIZE] = 1024,
			[CU_LIMIT_PRINTF_FIFO_SIZE] = GS_PRINT_MAX,
			[CU_LIMIT_MALLOC_HEAP_SIZE] = HEAP_DEFAULT,
			[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
			[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
			[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 128,
		},
	},
};

CUresult
gs_context_heap(struct gs_heap **heap_p)
{
	struct primary *primary = &primaries[gs_device_current()];
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&lock);
	if (!primary->heap)
		r = (CUresult)gs_heap_create(primary->limits[CU_LIMIT_MALLOC_HEAP_SIZE],
					     &primary->heap);
	*heap_p = primary->heap;
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult
gs_context_local(int device, uint32_t bytes, uint64_t threads)
{
	const uint64_t resident =
		(uint64_t)GS_MULTIPROCESSOR_THREADS * (uint64_t)gs_device_multiprocessors();
	const size_t needed = bytes * (threads < resident ? threads : resident);
	struct primary *primary = &primaries[device];
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&lock);
	if (needed > primary->local) {
		if (gs_space_charge(device, needed - primary->local))
			primary->local = needed;
		else
			r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult CUDAAPI
cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice dev)
{
	CUresult r = gs_check_device(dev);

	if (!r)
		r = gs_failure();
	if (r)
		return r;
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (gs_device_has_fault(dev, GS_DEVICE_BROKEN) || gs_device_has_fault(dev, GS_DEVICE_LOST))
		return CUDA_ERROR_UNKNOWN;
	if (gs_device_has_fault(dev, GS_DEVICE_FULL))
		return CUDA_ERROR_OUT_OF_MEMORY;
	gs_device_simulate_context();
	pthread_mutex_lock(&lock);
	if (primaries[dev].retained == 0 && !gs_space_charge(dev, gs_device_context_memory()))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	else if (primaries[dev].retained++ == 0)
		gs_context_set_active(dev, true);
	pthread_mutex_unlock(&lock);
	if (!r)
		*ctx = gs_context_primary(dev);
	return r;
}

/* Destroys everything that the application has left, in order of dependency. */
static void
destroy_contents(void)
{
	(void)gs_stream_synchronize_all(NULL, -1);
	gs_print_flush();
	gs_event_destroy_all();
	gs_stream_destroy_all();
	gs_binary_destroy_all();
	gs_texture_destroy_all();
	gs_array_destroy_all();
	gs_space_reset();
	for (int i = 0; i < GS_DEVICES_MAX; i++) {
		gs_heap_destroy(primaries[i].heap);
		primaries[i].heap = NULL;
	}
}

static bool
is_last(void)
{
	for (int i = 0; i < GS_DEVICES_MAX; i++) {
		if (primaries[i].retained > 0)
			return false;
	}
	return true;
}

static void
end(int device)
{
	gs_context_set_active(device, false);
	if (is_last())
		destroy_contents();
	else
		(void)gs_stream_synchronize_all(NULL, device);
	gs_space_discharge(device, primaries[device].local + gs_device_context_memory());
	primaries[device].local = 0;
	primaries[device].flags = 0;
	memset(primaries[device].peers, 0, sizeof(primaries[device].peers));
}

CUresult CUDAAPI
cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	CUresult r = gs_check_device(dev);

	if (r)
		return r;
	pthread_mutex_lock(&lock);
	if (!primaries[dev].retained)
		r = CUDA_ERROR_INVALID_CONTEXT;
	else if (--primaries[dev].retained == 0)
		end(dev);
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult CUDAAPI
cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	CUresult r = gs_check_device(dev);

	if (r)
		return r;
	if (flags & ~FLAGS_KNOWN)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	primaries[dev].flags = flags;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	CUresult r = gs_check_device(dev);

	if (r)
		return r;
	pthread_mutex_lock(&lock);
	if (flags)
		*flags = primaries[dev].flags | CU_CTX_MAP_HOST;
	if (active)
		*active = primaries[dev].retained > 0;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUresult
check_limit(CUlimit limit)
{
	if ((int)limit < 0 || limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	return limit > CU_LIMIT_PERSISTING_L2_CACHE_SIZE ? CUDA_ERROR_UNSUPPORTED_LIMIT
							 : CUDA_SUCCESS;
}

CUresult CUDAAPI
cuCtxGetLimit(size_t *value, CUlimit limit)
{
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	r = check_limit(limit);
	if (r)
		return r;
	pthread_mutex_lock(&lock);
	*value = primaries[gs_device_current()].limits[limit];
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

/* As on a GPU, the heap size cannot change after a kernel has used malloc. */
CUresult CUDAAPI
cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct primary *primary = &primaries[gs_device_current()];
	CUresult r = gs_enter();

	if (!r)
		r = check_limit(limit);
	if (r)
		return r;
	if (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
		return CUDA_SUCCESS;
	if (limit == CU_LIMIT_MALLOC_HEAP_SIZE && value > gs_device_memory())
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	if (limit == CU_LIMIT_MALLOC_HEAP_SIZE && primary->heap)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		primary->limits[limit] = value;
	pthread_mutex_unlock(&lock);
	return r;
}

/* Returns the device of a peer context, which must differ from the current one. */
static CUresult
enter_peer(CUcontext peer, int *device_p)
{
	CUresult r = gs_enter();

	if (r)
		return r;
	*device_p = gs_context_device(peer);
	if (*device_p < 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	int own = gs_device_current(), device;
	CUresult r = enter_peer(peer, &device);

	if (!r && flags)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && (device == own || !gs_device_peers()))
		r = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	if (r)
		return r;
	pthread_mutex_lock(&lock);
	if (primaries[own].peers[device])
		r = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	primaries[own].peers[device] = true;
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult CUDAAPI
cuCtxDisablePeerAccess(CUcontext peer)
{
	int own = gs_device_current(), device;
	CUresult r = enter_peer(peer, &device);

	if (r)
		return r;
	pthread_mutex_lock(&lock);
	if (!primaries[own].peers[device])
		r = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	primaries[own].peers[device] = false;
	pthread_mutex_unlock(&lock);
	return r;
}
