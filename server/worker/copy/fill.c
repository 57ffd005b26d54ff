/* SPDX-License-Identifier: Apache-2.0 */
/* Fills of device memory with a value: the hook of gpFill. */
#include "gpd_calls.h"
#include "server/worker/copy/peer_stream.h"
#include "server/worker/copy/registration_split.h"
#include "server/worker/device/driver.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"

static CUresult
fill_row(const struct gp_args_gpFill *fill, uint64_t count, CUstream stream)
{
	switch (fill->element_size) {
	case 1:
		return gpd_driver.cuMemsetD8Async(fill->dst, (unsigned char)fill->value, count,
						  stream);
	case 2:
		return gpd_driver.cuMemsetD16Async(fill->dst, (unsigned short)fill->value, count,
						   stream);
	default:
		return gpd_driver.cuMemsetD32Async(fill->dst, fill->value, count, stream);
	}
}

static CUresult
fill_rows(const struct gp_args_gpFill *fill, CUstream stream)
{
	switch (fill->element_size) {
	case 1:
		return gpd_driver.cuMemsetD2D8Async(fill->dst, fill->pitch,
						    (unsigned char)fill->value, fill->width,
						    fill->height, stream);
	case 2:
		return gpd_driver.cuMemsetD2D16Async(fill->dst, fill->pitch,
						     (unsigned short)fill->value, fill->width,
						     fill->height, stream);
	default:
		return gpd_driver.cuMemsetD2D32Async(fill->dst, fill->pitch, fill->value,
						     fill->width, fill->height, stream);
	}
}

static CUresult
part_fill(void *stream, const struct gp_args_gpFill *fill)
{
	if (fill->height == 1 || fill->pitch == fill->width * fill->element_size)
		return fill_row(fill, fill->width * fill->height, stream);
	return fill_rows(fill, stream);
}

CUresult
gpd_gpFill(struct gpd_session *session, const struct gp_args_gpFill *args)
{
	uint32_t element = args->element_size;
	struct gpd_stream *stream;
	uint64_t bytes;
	CUstream peer_stream;
	CUresult result, end;
	int remote_device;

	if ((element != 1 && element != 2 && element != 4) || args->dst % element ||
	    __builtin_mul_overflow(args->width, element, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!args->width || !args->height)
		return CUDA_SUCCESS;
	result = gpd_memory_check_rows(session, args->dst, args->pitch, bytes, args->height);
	if (result == CUDA_SUCCESS)
		result = gpd_stream_begin(session, args->stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	remote_device = gpd_memory_get_remote_device(session, args->dst, stream->device);
	if (remote_device < 0)
		return gpd_registration_split_fill(session, args, part_fill, stream->driver);
	result = gpd_peer_stream_begin(stream, remote_device, &peer_stream);
	if (result != CUDA_SUCCESS)
		return result;
	result = gpd_registration_split_fill(session, args, part_fill, peer_stream);
	end = gpd_peer_stream_end(stream);
	return result == CUDA_SUCCESS ? end : result;
}
