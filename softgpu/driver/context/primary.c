/* SPDX-License-Identifier: Apache-2.0 */
/* The primary context: who retains it, its limits, and the end of all that is in it. */
#include "softgpu/driver/code/binary.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/memory/array.h"
#include "softgpu/driver/memory/space.h"
#include "softgpu/driver/stream/event.h"
#include "softgpu/driver/stream/stream.h"
#include "softgpu/engine/engine.h"

#include <pthread.h>

#define FLAGS_KNOWN 0x7fu
#define HEAP_DEFAULT ((size_t)8 << 20)

static struct {
	pthread_mutex_t lock;
	unsigned int retained;
	unsigned int flags;
	size_t limits[CU_LIMIT_MAX];
	struct gs_heap *heap;
} primary = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.limits = {
		[CU_LIMIT_STACK_SIZE] = 1024,
		[CU_LIMIT_PRINTF_FIFO_SIZE] = GS_PRINT_MAX,
		[CU_LIMIT_MALLOC_HEAP_SIZE] = HEAP_DEFAULT,
		[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
		[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
		[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 128,
	},
};

CUresult
gs_context_heap(struct gs_heap **heap_p)
{
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&primary.lock);
	if (!primary.heap)
		r = (CUresult)gs_heap_create(primary.limits[CU_LIMIT_MALLOC_HEAP_SIZE],
					     &primary.heap);
	*heap_p = primary.heap;
	pthread_mutex_unlock(&primary.lock);
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
	pthread_mutex_lock(&primary.lock);
	if (primary.retained++ == 0)
		gs_context_set_active(true);
	pthread_mutex_unlock(&primary.lock);
	*ctx = gs_context_primary();
	return CUDA_SUCCESS;
}

/* Whatever the application has left behind goes, in the order in which it may. */
static void
destroy_contents(void)
{
	(void)gs_stream_synchronize_all(NULL);
	gs_print_flush();
	gs_event_destroy_all();
	gs_stream_destroy_all();
	gs_binary_destroy_all();
	gs_texture_destroy_all();
	gs_array_destroy_all();
	gs_space_reset();
	gs_heap_destroy(primary.heap);
	primary.heap = NULL;
}

CUresult CUDAAPI
cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	CUresult r = gs_check_device(dev);

	if (r)
		return r;
	pthread_mutex_lock(&primary.lock);
	if (!primary.retained) {
		r = CUDA_ERROR_INVALID_CONTEXT;
	} else if (--primary.retained == 0) {
		gs_context_set_active(false);
		destroy_contents();
		primary.flags = 0;
	}
	pthread_mutex_unlock(&primary.lock);
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
	pthread_mutex_lock(&primary.lock);
	primary.flags = flags;
	pthread_mutex_unlock(&primary.lock);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	CUresult r = gs_check_device(dev);

	if (r)
		return r;
	pthread_mutex_lock(&primary.lock);
	if (flags)
		*flags = primary.flags | CU_CTX_MAP_HOST;
	if (active)
		*active = primary.retained > 0;
	pthread_mutex_unlock(&primary.lock);
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
	pthread_mutex_lock(&primary.lock);
	*value = primary.limits[limit];
	pthread_mutex_unlock(&primary.lock);
	return CUDA_SUCCESS;
}

/* As with hardware, the heap's size cannot change once a kernel has used malloc. */
CUresult CUDAAPI
cuCtxSetLimit(CUlimit limit, size_t value)
{
	CUresult r = gs_enter();

	if (!r)
		r = check_limit(limit);
	if (r)
		return r;
	if (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
		return CUDA_SUCCESS;
	if (limit == CU_LIMIT_MALLOC_HEAP_SIZE && value > gs_device_memory())
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&primary.lock);
	if (limit == CU_LIMIT_MALLOC_HEAP_SIZE && primary.heap)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		primary.limits[limit] = value;
	pthread_mutex_unlock(&primary.lock);
	return r;
}
