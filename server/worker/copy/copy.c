/* SPDX-License-Identifier: Apache-2.0 */
/* Copies on the device: the hook of gpCopyDevice. */
#include "server/worker/copy/copy.h"

#include "gpd_calls.h"
#include "server/worker/copy/copy_part.h"
#include "server/worker/copy/registration_split.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"

CUresult
gpd_copy_device_box(struct gpd_session *session, const struct gp_args_gpCopyDevice *args,
		    CUDA_MEMCPY3D *params)
{
	/* A box with one row per slice is a rectangle. */
	bool flat = args->height == 1;
	uint64_t width = args->width, height = flat ? args->depth : args->height;
	uint64_t depth = flat ? 1 : args->depth;
	struct gpd_side dst = { .address = args->dst,
				.pitch = flat ? args->dst_slice : args->dst_pitch };
	struct gpd_side src = { .address = args->src,
				.pitch = flat ? args->src_slice : args->src_pitch };

	if (!width || !height || !depth ||
	    gpd_side_check(session, &dst, args->dst_slice, width, height, depth) != CUDA_SUCCESS ||
	    gpd_side_check(session, &src, args->src_slice, width, height, depth) != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_VALUE;
	/* A rectangle without gaps is a single row. */
	if (depth == 1 && (height == 1 || (dst.pitch == width && src.pitch == width))) {
		width *= height;
		height = 1;
		dst.pitch = src.pitch = 0;
	}
	*params = gpd_copy_params(&dst, &src, width, height, depth);
	return CUDA_SUCCESS;
}

/* Context of the device of one side. Arrays need none: the driver finds their device. */
static CUcontext
side_get_context(int remote_device, const struct gpd_stream *stream)
{
	return gpd_device_get(remote_device < 0 ? stream->device : remote_device)->primary;
}

/* The same copy as CUDA_MEMCPY3D_PEER, with the contexts. */
static CUDA_MEMCPY3D_PEER
with_contexts(const CUDA_MEMCPY3D *copy, CUcontext dst, CUcontext src)
{
	return (CUDA_MEMCPY3D_PEER){
		.srcXInBytes = copy->srcXInBytes,
		.srcY = copy->srcY,
		.srcZ = copy->srcZ,
		.srcMemoryType = copy->srcMemoryType,
		.srcDevice = copy->srcDevice,
		.srcArray = copy->srcArray,
		.srcContext = src,
		.srcPitch = copy->srcPitch,
		.srcHeight = copy->srcHeight,
		.dstXInBytes = copy->dstXInBytes,
		.dstY = copy->dstY,
		.dstZ = copy->dstZ,
		.dstMemoryType = copy->dstMemoryType,
		.dstDevice = copy->dstDevice,
		.dstArray = copy->dstArray,
		.dstContext = dst,
		.dstPitch = copy->dstPitch,
		.dstHeight = copy->dstHeight,
		.WidthInBytes = copy->WidthInBytes,
		.Height = copy->Height,
		.Depth = copy->Depth,
	};
}

static int
side_get_remote_device(struct gpd_session *session, const struct gpd_stream *stream,
		       CUmemorytype type, uint64_t address)
{
	return type == CU_MEMORYTYPE_DEVICE
		       ? gpd_memory_get_remote_device(session, address, stream->device)
		       : -1;
}

struct target {
	struct gpd_session *session;
	const struct gpd_stream *stream;
};

static CUresult
part_copy(void *arg, const CUDA_MEMCPY3D *copy)
{
	const struct target *target = arg;
	struct gpd_session *session = target->session;
	const struct gpd_stream *stream = target->stream;
	bool memory = copy->dstMemoryType == CU_MEMORYTYPE_DEVICE &&
		      copy->srcMemoryType == CU_MEMORYTYPE_DEVICE;
	bool row = memory && copy->Height == 1 && copy->Depth == 1;
	int dst = side_get_remote_device(session, stream, copy->dstMemoryType, copy->dstDevice);
	int src = side_get_remote_device(session, stream, copy->srcMemoryType, copy->srcDevice);
	CUDA_MEMCPY3D_PEER peer;

	if (dst < 0 && src < 0 && row)
		return gpd_driver.cuMemcpyDtoDAsync_v2(copy->dstDevice, copy->srcDevice,
						       copy->WidthInBytes, stream->driver);
	if (dst < 0 && src < 0)
		return gpd_driver.cuMemcpy3DAsync_v2(copy, stream->driver);
	if (row)
		return gpd_driver.cuMemcpyPeerAsync(copy->dstDevice, side_get_context(dst, stream),
						    copy->srcDevice, side_get_context(src, stream),
						    copy->WidthInBytes, stream->driver);
	peer = with_contexts(copy, side_get_context(dst, stream), side_get_context(src, stream));
	return gpd_driver.cuMemcpy3DPeerAsync(&peer, stream->driver);
}

CUresult
gpd_copy_enqueue(struct gpd_session *session, const struct gpd_stream *stream,
		 const CUDA_MEMCPY3D *copy)
{
	struct target target = { .session = session, .stream = stream };

	return gpd_registration_split_copy(session, copy, part_copy, &target);
}

CUresult
gpd_gpCopyDevice(struct gpd_session *session, const struct gp_args_gpCopyDevice *args)
{
	struct gpd_stream *stream;
	CUDA_MEMCPY3D copy;
	CUresult result;

	if (!args->width || !args->height || !args->depth)
		return CUDA_SUCCESS;
	result = gpd_copy_device_box(session, args, &copy);
	if (result == CUDA_SUCCESS)
		result = gpd_stream_begin(session, args->stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	return gpd_copy_enqueue(session, stream, &copy);
}
