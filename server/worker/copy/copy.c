/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies to and on the device, and fills. Bytes from the client go through staging in parts, so
 * that the network, the staging copy and the device's copy engines work at the same time.
 */
#include "server/worker/copy/copy.h"

#include "gpd_calls.h"
#include "protocol/frame.h"
#include "server/worker/copy/aside.h"
#include "server/worker/copy/copy_part.h"
#include "server/worker/copy/pieces.h"
#include "server/worker/copy/staging.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/session.h"
#include "server/worker/session/stream.h"
#include "server/worker/session/wait.h"

/* A failed receive needs no report here: the next record fails in the same way. */
static CUresult
receive_part(struct gpd_session *session, const struct gpd_part *part, struct gpd_stream *stream,
	     uint32_t flags, uint64_t offset)
{
	struct gpd_piece piece;
	CUresult result = gpd_staging_acquire_in(session, part->size, &piece);

	if (result != CUDA_SUCCESS)
		return result;
	if (gpd_session_recv_bulk(session, piece.memory, part->size))
		result = CUDA_ERROR_OPERATING_SYSTEM;
	if (result == CUDA_SUCCESS && (flags & GP_COPY_LISTED))
		result = gpd_staging_list(session, &piece, flags >> GP_COPY_NUMBER_SHIFT, offset,
					  part->size);
	if (result == CUDA_SUCCESS)
		result = gpd_part_copy(session, stream, part, piece.memory, true);
	if (result != CUDA_SUCCESS)
		gpd_staging_release(session, &piece);
	else if (piece.slot)
		result = gpd_wait_add(session, stream, gpd_staging_done, piece.slot);
	return result;
}

CUresult
gpd_copy_in(struct gpd_session *session, uint32_t id, struct gpd_cut *cut, uint32_t flags)
{
	struct gpd_stream *stream;
	struct gpd_part part;
	uint64_t offset = 0;
	CUresult result = gpd_stream_begin(session, id, &stream);

	while (result == CUDA_SUCCESS && gpd_cut_next(cut, &part)) {
		result = receive_part(session, &part, stream, flags, offset);
		offset += part.size;
	}
	if (result == CUDA_SUCCESS && (flags & GP_COPY_BARRIER))
		result = gpd_stream_barrier(session, stream);
	return result;
}

bool
gpd_copy_in_is_sound(struct gpd_session *session, uint64_t width, uint64_t height, uint64_t depth,
		     uint32_t flags)
{
	uint64_t bulk = session->bulk_left, total;

	if (__builtin_mul_overflow(width, height, &total) ||
	    __builtin_mul_overflow(total, depth, &total) || total != bulk ||
	    !gp_copy_flags_are_valid(flags)) {
		gpd_session_violation(
			session, "copy of %lu slices of %lu rows of %lu bytes with a tail of %lu",
			depth, height, width, bulk);
		return false;
	}
	gpd_account_copy(&session->account, total, 0);
	return true;
}

CUresult
gpd_copy_in_finish(struct gpd_session *session, CUresult result)
{
	if (result != CUDA_SUCCESS)
		(void)gpd_session_recv_bulk(session, NULL, session->bulk_left);
	return result;
}

static CUresult
copy_in(struct gpd_session *session, const struct gp_args_gpCopyIn *args)
{
	struct gpd_cut cut;
	CUresult result = gpd_cut_check(session, args->dst, args->pitch, args->width, args->height);

	if (result != CUDA_SUCCESS)
		return result;
	gpd_cut_init(&cut, args->dst, args->pitch, args->width, args->height);
	return gpd_copy_in(session, args->stream, &cut, args->flags);
}

CUresult
gpd_gpCopyIn(struct gpd_session *session, const struct gp_args_gpCopyIn *args)
{
	if (!gpd_copy_in_is_sound(session, args->width, args->height, 1, args->flags))
		return CUDA_ERROR_INVALID_VALUE;
	return gpd_copy_in_finish(session,
				  session->bulk_left ? copy_in(session, args) : CUDA_SUCCESS);
}

/* The record's own bytes are treated as bulk that has already arrived. */
CUresult
gpd_gpCopyInShort(struct gpd_session *session, const struct gp_args_gpCopyInShort *args)
{
	const struct gp_args_gpCopyIn copy = { .stream = args->stream,
					       .dst = args->dst,
					       .pitch = args->pitch,
					       .width = args->width,
					       .height = args->height,
					       .flags = args->flags };
	CUresult result;

	session->bulk_read = args->data.data;
	session->bulk_left = args->data.size;
	result = gpd_gpCopyIn(session, &copy);
	session->bulk_read = NULL;
	session->bulk_left = 0;
	return result;
}

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
copy_piece(void *arg, const CUDA_MEMCPY3D *copy)
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

	return gpd_pieces_of_copy(session, copy, copy_piece, &target);
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
fill_piece(void *stream, const struct gp_args_gpFill *fill)
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
	result = gpd_cut_check(session, args->dst, args->pitch, bytes, args->height);
	if (result == CUDA_SUCCESS)
		result = gpd_stream_begin(session, args->stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	remote_device = gpd_memory_get_remote_device(session, args->dst, stream->device);
	if (remote_device < 0)
		return gpd_pieces_of_fill(session, args, fill_piece, stream->driver);
	result = gpd_peer_stream_begin(stream, remote_device, &peer_stream);
	if (result != CUDA_SUCCESS)
		return result;
	result = gpd_pieces_of_fill(session, args, fill_piece, peer_stream);
	end = gpd_peer_stream_end(stream);
	return result == CUDA_SUCCESS ? end : result;
}
