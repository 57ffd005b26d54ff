/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: host functions in a stream. */
#include "client/session/host_queue.h"
#include "client/stream/stream.h"
#include "gpc_calls.h"

static CUresult
host_function_post(CUstream hStream, const struct gpc_host_call *wanted)
{
	struct gpc_stream *stream;
	CUresult result = gpc_stream_enter(hStream, &stream);

	return result == CUDA_SUCCESS
		       ? gpc_host_queue_post(&stream->context->scope, stream->handle.id, wanted)
		       : result;
}

CUresult
gpc_cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
	const struct gpc_host_call wanted = { .function = fn, .data = userData };

	return fn ? host_function_post(hStream, &wanted) : CUDA_ERROR_INVALID_VALUE;
}

CUresult
gpc_cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData,
			unsigned int flags)
{
	const struct gpc_host_call wanted = { .callback = callback,
					      .stream = hStream,
					      .data = userData };

	CUresult result = gpc_enter_initialized();

	if (result == CUDA_SUCCESS && (!callback || flags != 0))
		result = CUDA_ERROR_INVALID_VALUE;
	return result == CUDA_SUCCESS ? host_function_post(hStream, &wanted) : result;
}
