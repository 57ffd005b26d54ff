/* SPDX-License-Identifier: Apache-2.0 */
/* API functions for streams. */
#include "softgpu/driver/context/green.h"
#include "softgpu/driver/stream/stream.h"

static CUresult
create(CUstream *handle, unsigned int flags, int priority)
{
	struct gs_stream *stream;
	struct gs_green *green;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!handle || flags & ~(unsigned int)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	green = gs_green_of_context(gs_context_current());
	if (green) {
		r = gs_green_stream_create(green, flags, priority, handle);
		gs_green_put(green);
		return r;
	}
	stream = gs_stream_create(NULL, gs_device_current(), flags, priority);
	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	gs_stream_publish(stream, handle);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuStreamCreate(CUstream *handle, unsigned int flags)
{
	return create(handle, flags, GS_PRIORITY_LEAST);
}

CUresult CUDAAPI
cuStreamCreateWithPriority(CUstream *handle, unsigned int flags, int priority)
{
	return create(handle, flags, priority);
}

CUresult CUDAAPI
cuStreamDestroy_v2(CUstream handle)
{
	CUresult r = gs_enter();

	struct gs_stream *stream;

	if (r)
		return r;
	if (gs_stream_is_special(handle))
		return CUDA_ERROR_INVALID_HANDLE;
	stream = gs_stream_get(handle);
	if (!stream)
		return gs_stream_missing(handle);
	gs_stream_put(stream);
	if (!gs_object_retire(handle, GS_KIND_STREAM))
		return CUDA_ERROR_INVALID_HANDLE;
	gs_stream_close((struct gs_stream *)handle);
	return CUDA_SUCCESS;
}

static CUresult
check(CUstream handle, bool wait)
{
	struct gs_stream *stream;
	CUresult r = gs_enter();

	if (r)
		return r;
	stream = gs_stream_get(handle);
	if (!stream)
		return gs_stream_missing(handle);
	r = gs_stream_check(stream, wait);
	gs_stream_put(stream);
	return r;
}

CUresult CUDAAPI
cuStreamSynchronize(CUstream handle)
{
	CUresult r = check(handle, true);

	gs_print_flush();
	return r;
}

CUresult CUDAAPI
cuStreamQuery(CUstream handle)
{
	return check(handle, false);
}

CUresult CUDAAPI
cuStreamGetPriority(CUstream handle, int *priority)
{
	struct gs_stream *stream;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!priority)
		return CUDA_ERROR_INVALID_VALUE;
	stream = gs_stream_get(handle);
	if (!stream)
		return gs_stream_missing(handle);
	*priority = gs_stream_priority(stream);
	gs_stream_put(stream);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuStreamGetFlags(CUstream handle, unsigned int *flags)
{
	struct gs_stream *stream;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	stream = gs_stream_get(handle);
	if (!stream)
		return gs_stream_missing(handle);
	*flags = gs_stream_flags(stream);
	gs_stream_put(stream);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
gpSoftStreamCancel(CUstream handle)
{
	struct gs_stream *stream;
	CUresult r = gs_enter_device();

	if (r)
		return r;
	stream = gs_object_get(handle, GS_KIND_STREAM);
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	r = gs_stream_cancel(stream);
	gs_stream_put(stream);
	return r;
}
