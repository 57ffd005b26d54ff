/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/copy/aside.h"

#include "gpd_calls.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/session/stream.h"

static CUresult
make(struct gpd_stream *stream, int device)
{
	CUresult result;

	if (stream->aside && stream->aside_device == device)
		return CUDA_SUCCESS;
	gpd_stream_forget_aside(stream);
	result = gpd_device_enter(device);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuStreamCreateWithPriority(
			&stream->aside, CU_STREAM_NON_BLOCKING, stream->priority);
	if (result != CUDA_SUCCESS)
		stream->aside = NULL;
	stream->aside_device = device;
	return result;
}

CUresult
gpd_aside_begin(struct gpd_stream *stream, int device, CUstream *aside_p)
{
	CUresult result = make(stream, device);

	if (result == CUDA_SUCCESS)
		result = gpd_device_enter(stream->device);
	if (result == CUDA_SUCCESS)
		result = gpd_stream_record(stream, &stream->aside_begin);
	if (result == CUDA_SUCCESS)
		result = gpd_device_enter(device);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuStreamWaitEvent(stream->aside, stream->aside_begin, 0);
	*aside_p = stream->aside;
	if (result != CUDA_SUCCESS)
		(void)gpd_device_enter(stream->device);
	return result;
}

CUresult
gpd_aside_end(struct gpd_stream *stream)
{
	CUresult result = CUDA_SUCCESS;

	if (!stream->aside_end)
		result = gpd_driver.cuEventCreate(&stream->aside_end, CU_EVENT_DISABLE_TIMING);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuEventRecord(stream->aside_end, stream->aside);
	if (gpd_device_enter(stream->device) != CUDA_SUCCESS || result != CUDA_SUCCESS)
		return result;
	return gpd_driver.cuStreamWaitEvent(stream->driver, stream->aside_end, 0);
}
