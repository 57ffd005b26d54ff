/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/driver/array.h"
#include "softgpu/driver/binary.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/event.h"
#include "softgpu/driver/green.h"
#include "softgpu/driver/space.h"
#include "softgpu/driver/stream.h"
#include "softgpu/engine/engine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STACK_DEPTH 64
#define PRINT_MAX ((size_t)1 << 20)
#define HEAP_DEFAULT ((size_t)8 << 20)
#define API_VERSION 3020
#define FLAGS_KNOWN 0x7fu

/* The one context; its address is the handle. */
static struct {
	pthread_mutex_t lock;
	unsigned int retained;
	unsigned int flags;
	unsigned long long id;
	int active; /* read without the lock */
	size_t limits[CU_LIMIT_MAX];
	struct gs_heap *heap;
} primary = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.limits = {
		[CU_LIMIT_STACK_SIZE] = 1024,
		[CU_LIMIT_PRINTF_FIFO_SIZE] = PRINT_MAX,
		[CU_LIMIT_MALLOC_HEAP_SIZE] = HEAP_DEFAULT,
		[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
		[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
		[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 128,
	},
};

static _Thread_local struct {
	unsigned int depth;
	CUcontext stack[STACK_DEPTH];
} current;

static struct {
	pthread_mutex_t lock;
	int code;
} failure = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct {
	pthread_mutex_t lock;
	char *text;
	size_t len;
	size_t room;
} printed = { .lock = PTHREAD_MUTEX_INITIALIZER };

uint64_t
gs_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

CUresult
gs_failure(void)
{
	return (CUresult)__atomic_load_n(&failure.code, __ATOMIC_ACQUIRE);
}

void
gs_fail(CUresult code, const char *who, const char *why)
{
	pthread_mutex_lock(&failure.lock);
	if (!failure.code) {
		/* A failed assertion has said all there is to say. */
		if (code != CUDA_ERROR_ASSERT)
			fprintf(stderr, "gpupool software device: %s: %s (%d): %s\n", who,
				gs_error_name(code), (int)code, why);
		__atomic_store_n(&failure.code, (int)code, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&failure.lock);
	gs_stream_stop_all();
}

static CUcontext
handle(void)
{
	return (CUcontext)&primary;
}

static bool
is_active(void)
{
	return __atomic_load_n(&primary.active, __ATOMIC_ACQUIRE);
}

static CUcontext
top(void)
{
	return current.depth ? current.stack[current.depth - 1] : NULL;
}

CUcontext
gs_context_current(void)
{
	return top();
}

CUresult
gs_enter(void)
{
	CUresult r = gs_enter_device();

	if (r)
		return r;
	if (!top())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!is_active() || (top() != handle() && !gs_green_is_context(top())))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return gs_failure();
}

int
gs_context_multiprocessors(void)
{
	struct gs_green *green = gs_green_of_context(top());
	int count = green ? (int)gs_green_partition(green)->count : gs_device_multiprocessors();

	gs_green_put(green);
	return count;
}

void
gs_print_append(void *unused, const char *text, size_t len)
{
	pthread_mutex_lock(&printed.lock);
	if (printed.len + len > printed.room) {
		size_t room = (printed.len + len) * 2;
		char *larger = realloc(printed.text, room);

		if (!larger) {
			pthread_mutex_unlock(&printed.lock);
			return;
		}
		printed.text = larger;
		printed.room = room;
	}
	memcpy(printed.text + printed.len, text, len);
	printed.len += len;
	len = printed.len;
	pthread_mutex_unlock(&printed.lock);
	/* The hardware's buffer would lose the oldest lines here. */
	if (len > PRINT_MAX)
		gs_print_flush();
}

static void
write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

void
gs_print_error(void *unused, const char *text, size_t len)
{
	write_all(STDERR_FILENO, text, len);
}

void
gs_print_flush(void)
{
	pthread_mutex_lock(&printed.lock);
	write_all(STDOUT_FILENO, printed.text, printed.len);
	printed.len = 0;
	pthread_mutex_unlock(&printed.lock);
}

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

bool
gs_context_is_primary(CUcontext ctx)
{
	return ctx == handle();
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
	if (primary.retained++ == 0) {
		primary.id++;
		__atomic_store_n(&primary.active, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&primary.lock);
	*ctx = handle();
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
		__atomic_store_n(&primary.active, 0, __ATOMIC_RELEASE);
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
		*active = primary.active;
	pthread_mutex_unlock(&primary.lock);
	return CUDA_SUCCESS;
}

static CUresult
check_handle(CUcontext ctx)
{
	if (ctx != handle() && !gs_green_is_context(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	return is_active() ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult CUDAAPI
cuCtxSetCurrent(CUcontext ctx)
{
	CUresult r = gs_enter_device();

	if (!r && ctx)
		r = check_handle(ctx);
	if (r)
		return r;
	if (!ctx) {
		if (current.depth)
			current.depth--;
		return CUDA_SUCCESS;
	}
	if (!current.depth)
		current.depth = 1;
	current.stack[current.depth - 1] = ctx;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuCtxGetCurrent(CUcontext *ctx)
{
	CUresult r = gs_enter_device();

	if (r)
		return r;
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	*ctx = top();
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuCtxPushCurrent_v2(CUcontext ctx)
{
	CUresult r = gs_enter_device();

	if (!r)
		r = check_handle(ctx);
	if (r)
		return r;
	if (current.depth == STACK_DEPTH)
		return CUDA_ERROR_OUT_OF_MEMORY;
	current.stack[current.depth++] = ctx;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuCtxPopCurrent_v2(CUcontext *ctx)
{
	CUresult r = gs_enter_device();

	if (r)
		return r;
	if (!current.depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	current.depth--;
	if (ctx)
		*ctx = current.stack[current.depth];
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuCtxGetDevice(CUdevice *dev)
{
	CUresult r = gs_enter_device();

	if (r)
		return r;
	if (!top())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!dev)
		return CUDA_ERROR_INVALID_VALUE;
	*dev = 0;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	CUresult r = gs_enter_device();

	if (!r)
		r = check_handle(ctx ? ctx : top());
	if (r)
		return r;
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = API_VERSION;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
	CUresult r = gs_enter_device();

	if (!r)
		r = check_handle(ctx ? ctx : top());
	if (r)
		return r;
	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	ctx = ctx ? ctx : top();
	if (ctx != handle())
		return gs_green_id(ctx, id);
	pthread_mutex_lock(&primary.lock);
	*id = primary.id;
	pthread_mutex_unlock(&primary.lock);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuCtxSynchronize(void)
{
	struct gs_green *green;
	CUresult r = gs_enter();

	if (!r) {
		green = gs_green_of_context(top());
		r = gs_stream_synchronize_all(green);
		gs_green_put(green);
	}
	gs_print_flush();
	return r;
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

CUresult CUDAAPI
cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	CUresult r = gs_enter();

	if (r)
		return r;
	if (least)
		*least = GS_PRIORITY_LEAST;
	if (greatest)
		*greatest = GS_PRIORITY_GREATEST;
	return CUDA_SUCCESS;
}
