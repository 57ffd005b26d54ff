/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/copy/peer_stream.h"

#include "gpd_calls.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/stream/stream.h"

static CUresult
peer_stream_prepare(struct gpd_stream *stream, int device)
{
	CUresult result;

	if (stream->peer_stream && stream->peer_stream_device == device)
		return CUDA_SUCCESS;
	gpd_stream_destroy_peer_stream(stream);
	result = gpd_device_enter(device);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuStreamCreateWithPriority(
			&stream->peer_stream, CU_STREAM_NON_BLOCKING, stream->priority);
	if (result != CUDA_SUCCESS)
		stream->peer_stream = NULL;
	stream->peer_stream_device = device;
	return result;
}

CUresult
gpd_peer_stream_begin(struct gpd_stream *stream, int device, CUstream *peer_stream_p)
{
	CUresult result = peer_stream_prepare(stream, device);

	if (result == CUDA_SUCCESS)
		result = gpd_device_enter(stream->device);
	if (result == CUDA_SUCCESS)
		result = gpd_stream_record(stream, &stream->peer_stream_begin);
	if (result == CUDA_SUCCESS)
		result = gpd_device_enter(device);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuStreamWaitEvent(stream->peer_stream,
						      stream->peer_stream_begin, 0);
	*peer_stream_p = stream->peer_stream;
	if (result != CUDA_SUCCESS)
		(void)gpd_device_enter(stream->device);
	return result;
}

CUresult
gpd_peer_stream_end(struct gpd_stream *stream)
{
	CUresult result = CUDA_SUCCESS, entered;

	if (!stream->peer_stream_end)
		result =
			gpd_driver.cuEventCreate(&stream->peer_stream_end, CU_EVENT_DISABLE_TIMING);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuEventRecord(stream->peer_stream_end, stream->peer_stream);
	entered = gpd_device_enter(stream->device);
	if (result == CUDA_SUCCESS)
		result = entered;
	if (result != CUDA_SUCCESS)
		return result;
	return gpd_driver.cuStreamWaitEvent(stream->driver, stream->peer_stream_end, 0);
}
