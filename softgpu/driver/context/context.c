/* SPDX-License-Identifier: Apache-2.0 */
/* Current contexts of threads, and validation of contexts. */
#include "softgpu/driver/context/green.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/stream/stream.h"

#define STACK_DEPTH 64
#define API_VERSION 3020

/* The primary contexts, whose addresses are their handles. All members are atomic. */
static struct primary {
	unsigned long long id;
	int active;
} primaries[GS_DEVICES_MAX];
static unsigned long long last_id;

static _Thread_local struct {
	unsigned int depth;
	CUcontext stack[STACK_DEPTH];
} current;

CUcontext
gs_context_primary(int device)
{
	return (CUcontext)&primaries[device];
}

static int
device_of_primary(CUcontext ctx)
{
	for (int i = 0; i < GS_DEVICES_MAX; i++) {
		if (ctx == gs_context_primary(i))
			return i;
	}
	return -1;
}

bool
gs_context_is_primary(CUcontext ctx)
{
	return device_of_primary(ctx) >= 0;
}

int
gs_context_device(CUcontext ctx)
{
	int device = device_of_primary(ctx);
	struct gs_green *green = device < 0 ? gs_green_of_context(ctx) : NULL;

	if (green)
		device = gs_green_device(green);
	gs_green_put(green);
	return device;
}

void
gs_context_set_active(int device, bool active)
{
	struct primary *primary = &primaries[device];

	if (active)
		__atomic_store_n(&primary->id, __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
	__atomic_store_n(&primary->active, active, __ATOMIC_RELEASE);
}

/* Also false if ctx is not a context. */
static bool
is_active(CUcontext ctx)
{
	int device = gs_context_device(ctx);

	return device >= 0 && __atomic_load_n(&primaries[device].active, __ATOMIC_ACQUIRE);
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

int
gs_device_current(void)
{
	int device = gs_context_device(top());

	return device < 0 ? 0 : device;
}

CUresult
gs_enter(void)
{
	CUresult r = gs_enter_device();

	if (r)
		return r;
	if (!top())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!is_active(top()))
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

static CUresult
check_handle(CUcontext ctx)
{
	if (!gs_context_is_primary(ctx) && !gs_green_is_context(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	return is_active(ctx) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
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
	*dev = gs_device_current();
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
	if (!gs_context_is_primary(ctx))
		return gs_green_id(ctx, id);
	*id = __atomic_load_n(&primaries[device_of_primary(ctx)].id, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuCtxSynchronize(void)
{
	struct gs_green *green;
	CUresult r = gs_enter();

	if (!r) {
		green = gs_green_of_context(top());
		r = gs_stream_synchronize_all(green, gs_device_current());
		gs_green_put(green);
	}
	gs_print_flush();
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
