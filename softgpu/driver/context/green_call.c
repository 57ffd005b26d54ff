/* SPDX-License-Identifier: Apache-2.0 */
/* API functions for green contexts. */
#include "softgpu/driver/context/green.h"
#include "softgpu/driver/stream/event.h"
#include "softgpu/driver/stream/stream.h"

CUresult CUDAAPI
cuGreenCtxCreate(CUgreenCtx *handle, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
	CUresult r = gs_check_device(dev);
	struct gs_green *green;
	struct gs_set set;
	CUcontext primary;

	if (!r)
		r = gs_failure();
	if (!r && (!handle || flags != CU_GREEN_CTX_DEFAULT_STREAM))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = gs_resources_get(desc, &set);
	if (!r)
		r = cuDevicePrimaryCtxRetain(&primary, dev);
	if (r)
		return r;
	green = gs_green_create(dev, &set);
	if (!green) {
		(void)cuDevicePrimaryCtxRelease_v2(dev);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*handle = (CUgreenCtx)green;
	return CUDA_SUCCESS;
}

/* Completes the work of its streams first. */
CUresult CUDAAPI
cuGreenCtxDestroy(CUgreenCtx handle)
{
	CUresult r = gs_enter_device();
	struct gs_green *green;

	if (r)
		return r;
	green = gs_green_get(handle);
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	(void)gs_stream_synchronize_all(green, -1);
	/* Another thread may have ended it already. */
	if (gs_green_end(green))
		(void)cuDevicePrimaryCtxRelease_v2(gs_green_device(green));
	gs_green_put(green);
	return gs_failure();
}

CUresult CUDAAPI
cuCtxFromGreenCtx(CUcontext *ctx, CUgreenCtx handle)
{
	CUresult r = gs_enter_device();
	struct gs_green *green;

	if (r)
		return r;
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	green = gs_green_get(handle);
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	*ctx = gs_green_context(green);
	gs_green_put(green);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuGreenCtxGetDevResource(CUgreenCtx handle, CUdevResource *resource, CUdevResourceType type)
{
	CUresult r = gs_enter_device();
	struct gs_green *green;

	if (r)
		return r;
	green = gs_green_get(handle);
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	r = gs_resource_fill(resource, gs_green_set(green), type);
	gs_green_put(green);
	return r;
}

CUresult CUDAAPI
cuCtxGetDevResource(CUcontext ctx, CUdevResource *resource, CUdevResourceType type)
{
	CUresult r = gs_enter_device();
	struct gs_green *green;

	if (r)
		return r;
	if (gs_context_is_primary(ctx))
		return cuDeviceGetDevResource(gs_context_device(ctx), resource, type);
	green = gs_green_of_context(ctx);
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	r = gs_resource_fill(resource, gs_green_set(green), type);
	gs_green_put(green);
	return r;
}

CUresult CUDAAPI
cuGreenCtxStreamCreate(CUstream *handle, CUgreenCtx green_handle, unsigned int flags, int priority)
{
	CUresult r = gs_enter_device();
	struct gs_green *green;

	if (!r)
		r = gs_failure();
	if (r)
		return r;
	if (!handle || flags != CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	green = gs_green_get(green_handle);
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	r = gs_green_stream_create(green, flags, priority, handle);
	gs_green_put(green);
	return r;
}

CUresult CUDAAPI
cuStreamGetGreenCtx(CUstream handle, CUgreenCtx *green)
{
	struct gs_stream *stream;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!green)
		return CUDA_ERROR_INVALID_VALUE;
	stream = gs_stream_get(handle);
	if (!stream)
		return gs_stream_missing(handle);
	*green = (CUgreenCtx)gs_stream_green(stream);
	gs_stream_put(stream);
	return CUDA_SUCCESS;
}

/* Called before work on a whole context. */
static CUresult
enter_working(void)
{
	CUresult r = gs_enter_device();

	return r ? r : gs_failure();
}

CUresult CUDAAPI
cuGreenCtxRecordEvent(CUgreenCtx handle, CUevent event)
{
	CUresult r = enter_working();
	struct gs_green *green;

	if (r)
		return r;
	green = gs_green_get(handle);
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	r = gs_stream_join(gs_green_joins(green), green);
	if (!r)
		r = gs_event_record(event, gs_green_joins(green));
	gs_green_put(green);
	return r;
}

/* Records all streams of a context; for the primary context also those of its green contexts. */
static CUresult
record_context(const struct gs_green *green, int device, CUevent event)
{
	struct gs_stream *joins =
		gs_stream_create(NULL, device, CU_STREAM_NON_BLOCKING, GS_PRIORITY_LEAST);
	CUresult r;

	if (!joins)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = gs_stream_join(joins, green);
	if (!r)
		r = gs_event_record(event, joins);
	gs_stream_close(joins);
	return r;
}

CUresult CUDAAPI
cuCtxRecordEvent(CUcontext ctx, CUevent event)
{
	CUresult r = enter_working();
	struct gs_green *green;

	if (r)
		return r;
	green = gs_green_of_context(ctx);
	if (!green && !gs_context_is_primary(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	r = record_context(green, gs_context_device(ctx), event);
	gs_green_put(green);
	return r;
}

static CUresult
wait_for_event(struct gs_stream *stream, void *event)
{
	return gs_event_wait(event, stream);
}

CUresult CUDAAPI
cuGreenCtxWaitEvent(CUgreenCtx handle, CUevent event)
{
	CUresult r = enter_working();
	struct gs_green *green;

	if (r)
		return r;
	green = gs_green_get(handle);
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	r = gs_stream_each(green, wait_for_event, event);
	gs_green_put(green);
	return r;
}
