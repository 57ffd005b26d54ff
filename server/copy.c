/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and fills.  What travels between host and device goes through staging in parts, so that
 * network, staging and the device's copy engines work at the same time.
 */
#include "gpd_calls.h"
#include "protocol/frame.h"
#include "server/driver.h"
#include "server/memory.h"
#include "server/print.h"
#include "server/session.h"
#include "server/staging.h"
#include "server/stream.h"
#include "server/wait.h"

#include <stdatomic.h>
#include <stdlib.h>

#define PART_MIN ((size_t)256 << 10)
/* The driver's 2D copies take no larger pitch; rows are then copied one by one. */
#define PITCH_MAX ((uint64_t)INT32_MAX)

/* Rows of a rectangle of device memory that is packed on the host side, cut into parts. */
struct gpd_cut {
	uint64_t pitch, width, height;
	uint64_t row, column; /* of the next part */
	size_t largest;
};

struct gpd_part {
	uint64_t offset; /* on the device */
	size_t width;
	size_t rows;
	size_t size; /* packed */
};

/* One copy from the device, until it is answered. */
struct out {
	struct gpd_stream *stream;
	uint32_t request;
	uint16_t call;
	_Atomic unsigned int left; /* parts under way, and the executor while it makes more */
	_Atomic int result;
};

struct out_part {
	struct out *out;
	struct gpd_piece piece;
	uint64_t offset; /* in the packed rows */
	size_t size;
};

/* The bytes from the first to behind the last; false: there is no such range. */
static bool
span(uint64_t pitch, uint64_t width, uint64_t height, uint64_t *span_p)
{
	uint64_t rest;

	if (height == 1) {
		*span_p = width;
		return true;
	}
	return pitch >= width && !__builtin_mul_overflow(pitch, height - 1, &rest) &&
	       !__builtin_add_overflow(rest, width, span_p);
}

static bool
span_3d(uint64_t pitch, uint64_t slice, uint64_t width, uint64_t height, uint64_t depth,
	uint64_t *span_p)
{
	uint64_t plane;

	return span(pitch, width, height, &plane) && span(slice, plane, depth, span_p);
}

static CUresult
check(struct gpd_session *session, uint64_t address, uint64_t pitch, uint64_t width,
      uint64_t height)
{
	uint64_t size;

	if (!span(pitch, width, height, &size) || !gpd_memory_accessible(session, address, size))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static size_t
largest_part(uint64_t total)
{
	if (total >= 4 * GPD_STAGING_SLOT)
		return GPD_STAGING_SLOT;
	return total / 4 > PART_MIN ? total / 4 : PART_MIN;
}

static void
cut_start(struct gpd_cut *cut, uint64_t pitch, uint64_t width, uint64_t height)
{
	bool linear = height == 1 || pitch == width;

	*cut = (struct gpd_cut){
		.pitch = pitch,
		.width = linear ? width * height : width,
		.height = linear ? 1 : height,
		.largest = largest_part(width * height),
	};
}

static bool
cut_next(struct gpd_cut *cut, struct gpd_part *part)
{
	if (cut->row == cut->height)
		return false;
	part->offset = cut->row * cut->pitch + cut->column;
	if (cut->height > 1 && cut->width <= cut->largest && cut->pitch <= PITCH_MAX) {
		part->width = cut->width;
		part->rows = cut->largest / cut->width;
		if (part->rows > cut->height - cut->row)
			part->rows = cut->height - cut->row;
		cut->row += part->rows;
	} else {
		part->rows = 1;
		part->width = cut->width - cut->column;
		if (part->width > cut->largest)
			part->width = cut->largest;
		cut->column += part->width;
		if (cut->column == cut->width) {
			cut->column = 0;
			cut->row++;
		}
	}
	part->size = part->width * part->rows;
	return true;
}

/* The marker behind a part says that the stream got as far as its work count: parts count. */
static void
count(struct gpd_session *session, struct gpd_stream *stream)
{
	stream->work = ++session->work;
}

static CUresult
part_in(const struct gpd_cut *cut, const struct gpd_part *part, uint64_t dst, const void *host,
	CUstream stream)
{
	if (part->rows == 1)
		return gpd_driver.cuMemcpyHtoDAsync_v2(dst + part->offset, host, part->width,
						       stream);
	return gpd_driver.cuMemcpy2DAsync_v2(
		&(CUDA_MEMCPY2D){
			.srcMemoryType = CU_MEMORYTYPE_HOST,
			.srcHost = host,
			.srcPitch = part->width,
			.dstMemoryType = CU_MEMORYTYPE_DEVICE,
			.dstDevice = dst + part->offset,
			.dstPitch = cut->pitch,
			.WidthInBytes = part->width,
			.Height = part->rows,
		},
		stream);
}

static CUresult
part_out(const struct gpd_cut *cut, const struct gpd_part *part, uint64_t src, void *host,
	 CUstream stream)
{
	if (part->rows == 1)
		return gpd_driver.cuMemcpyDtoHAsync_v2(host, src + part->offset, part->width,
						       stream);
	return gpd_driver.cuMemcpy2DAsync_v2(
		&(CUDA_MEMCPY2D){
			.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			.srcDevice = src + part->offset,
			.srcPitch = cut->pitch,
			.dstMemoryType = CU_MEMORYTYPE_HOST,
			.dstHost = host,
			.dstPitch = part->width,
			.WidthInBytes = part->width,
			.Height = part->rows,
		},
		stream);
}

static void
slot_done(struct gpd_session *session, void *arg, CUresult result)
{
	gpd_staging_put(session, &(struct gpd_piece){ .slot = arg });
}

/* The connection's end shows again at the next record. */
static CUresult
receive_part(struct gpd_session *session, const struct gpd_cut *cut, const struct gpd_part *part,
	     uint64_t dst, struct gpd_stream *stream)
{
	bool small = part->size <= GPD_STAGING_SMALL;
	struct gpd_piece piece;
	CUresult result = small ? gpd_staging_take_in(session, part->size, &piece)
				: gpd_staging_take(session, &piece);

	if (result != CUDA_SUCCESS)
		return result;
	if (gpd_session_recv_bulk(session, piece.memory, part->size))
		result = CUDA_ERROR_OPERATING_SYSTEM;
	if (result == CUDA_SUCCESS) {
		count(session, stream);
		result = part_in(cut, part, dst, piece.memory, stream->driver);
	}
	if (small)
		return result;
	if (result != CUDA_SUCCESS)
		gpd_staging_put(session, &piece);
	else
		result = gpd_wait_add(session, stream, slot_done, piece.slot);
	return result;
}

static CUresult
copy_in(struct gpd_session *session, const struct gp_args_gpCopyIn *args)
{
	struct gpd_stream *stream;
	struct gpd_cut cut;
	struct gpd_part part;
	CUresult result = check(session, args->dst, args->pitch, args->width, args->height);

	if (result == CUDA_SUCCESS)
		result = gpd_stream_begin(session, args->stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	cut_start(&cut, args->pitch, args->width, args->height);
	while (result == CUDA_SUCCESS && cut_next(&cut, &part))
		result = receive_part(session, &cut, &part, args->dst, stream);
	if (result == CUDA_SUCCESS && (args->flags & GP_COPY_BARRIER))
		result = gpd_stream_barrier(session, stream);
	return result;
}

CUresult
gpd_gpCopyIn(struct gpd_session *session, const struct gp_args_gpCopyIn *args)
{
	uint64_t bulk = gpd_session_bulk_size(session);
	uint64_t total;
	CUresult result = CUDA_SUCCESS;

	if (__builtin_mul_overflow(args->width, args->height, &total) || total != bulk ||
	    (args->flags & ~GP_COPY_BARRIER)) {
		gpd_session_violation(session, "copy of %lu rows of %lu bytes with a tail of %lu",
				      args->height, args->width, bulk);
		return CUDA_ERROR_INVALID_VALUE;
	}
	gpd_account_copy(&session->account, total, 0);
	if (total)
		result = copy_in(session, args);
	if (result != CUDA_SUCCESS)
		(void)gpd_session_recv_bulk(session, NULL, session->bulk_left);
	return result;
}

static void
out_fail(struct out *out, CUresult result)
{
	int none = CUDA_SUCCESS;

	atomic_compare_exchange_strong(&out->result, &none, (int)result);
}

static void
out_leave(struct gpd_session *session, struct out *out)
{
	if (atomic_fetch_sub(&out->left, 1) > 1)
		return;
	gpd_print_flush(session);
	(void)gpd_session_reply(session, out->call, out->request, (CUresult)out->result, NULL, 0);
	free(out);
}

static void
part_done(struct gpd_session *session, void *arg, CUresult result)
{
	struct out_part *part = arg;
	struct out *out = part->out;

	if (result != CUDA_SUCCESS)
		out_fail(out, result);
	else if (gpd_session_send_data(session, out->request, part->offset, part->piece.memory,
				       part->size))
		out_fail(out, CUDA_ERROR_OPERATING_SYSTEM);
	gpd_staging_put(session, &part->piece);
	free(part);
	out_leave(session, out);
}

static CUresult
send_part(struct gpd_session *session, struct out *out, const struct gpd_cut *cut,
	  const struct gpd_part *part, uint64_t src, uint64_t offset)
{
	struct out_part *under_way = malloc(sizeof(*under_way));
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	if (!under_way)
		return result;
	*under_way = (struct out_part){ .out = out, .offset = offset, .size = part->size };
	if (part->size <= GPD_STAGING_SMALL)
		result = gpd_staging_take_out(session, part->size, &under_way->piece);
	else
		result = gpd_staging_take(session, &under_way->piece);
	if (result == CUDA_SUCCESS) {
		count(session, out->stream);
		result = part_out(cut, part, src, under_way->piece.memory, out->stream->driver);
	}
	if (result != CUDA_SUCCESS) {
		gpd_staging_put(session, &under_way->piece);
		free(under_way);
		return result;
	}
	out->left++;
	result = gpd_wait_add(session, out->stream, part_done, under_way);
	if (result != CUDA_SUCCESS) {
		/* The device may still write to the piece, so it stays out of use. */
		free(under_way);
		out->left--;
	}
	return result;
}

CUresult
gpd_gpCopyOut(struct gpd_session *session, const struct gp_args_gpCopyOut *args)
{
	uint64_t total, offset = 0;
	struct gpd_cut cut;
	struct gpd_part part;
	struct out *out;
	CUresult result;

	if (!args->width || !args->height)
		return CUDA_SUCCESS;
	if (__builtin_mul_overflow(args->width, args->height, &total))
		return CUDA_ERROR_INVALID_VALUE;
	result = check(session, args->src, args->pitch, args->width, args->height);
	if (result != CUDA_SUCCESS)
		return result;
	out = malloc(sizeof(*out));
	if (!out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = (struct out){ .request = session->request, .call = session->call, .left = 1 };
	result = gpd_stream_begin(session, args->stream, &out->stream);
	if (result != CUDA_SUCCESS) {
		free(out);
		return result;
	}
	gpd_account_copy(&session->account, 0, total);
	cut_start(&cut, args->pitch, args->width, args->height);
	while (result == CUDA_SUCCESS && cut_next(&cut, &part)) {
		result = send_part(session, out, &cut, &part, args->src, offset);
		offset += part.size;
	}
	if (result != CUDA_SUCCESS)
		out_fail(out, result);
	if (gpd_driver_is_sticky(result))
		gpd_session_poison(session, result);
	out_leave(session, out);
	return GPD_LATER;
}

/* A box of one row per plane, or of one plane, is a rectangle. */
static void
flatten(struct gp_args_gpCopyDevice *box)
{
	if (box->height == 1) {
		box->dst_pitch = box->dst_slice;
		box->src_pitch = box->src_slice;
		box->height = box->depth;
		box->depth = 1;
	}
	if (box->depth == 1 &&
	    (box->height == 1 || (box->dst_pitch == box->width && box->src_pitch == box->width))) {
		box->width *= box->height;
		box->height = 1;
	}
}

static CUresult
copy_rectangle(const struct gp_args_gpCopyDevice *box, CUstream stream)
{
	if (box->height == 1)
		return gpd_driver.cuMemcpyDtoDAsync_v2(box->dst, box->src, box->width, stream);
	return gpd_driver.cuMemcpy2DAsync_v2(
		&(CUDA_MEMCPY2D){
			.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			.srcDevice = box->src,
			.srcPitch = box->src_pitch,
			.dstMemoryType = CU_MEMORYTYPE_DEVICE,
			.dstDevice = box->dst,
			.dstPitch = box->dst_pitch,
			.WidthInBytes = box->width,
			.Height = box->height,
		},
		stream);
}

static CUresult
copy_box(const struct gp_args_gpCopyDevice *box, CUstream stream)
{
	if (box->dst_slice % box->dst_pitch || box->src_slice % box->src_pitch)
		return CUDA_ERROR_INVALID_VALUE;
	return gpd_driver.cuMemcpy3DAsync_v2(
		&(CUDA_MEMCPY3D){
			.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			.srcDevice = box->src,
			.srcPitch = box->src_pitch,
			.srcHeight = box->src_slice / box->src_pitch,
			.dstMemoryType = CU_MEMORYTYPE_DEVICE,
			.dstDevice = box->dst,
			.dstPitch = box->dst_pitch,
			.dstHeight = box->dst_slice / box->dst_pitch,
			.WidthInBytes = box->width,
			.Height = box->height,
			.Depth = box->depth,
		},
		stream);
}

CUresult
gpd_gpCopyDevice(struct gpd_session *session, const struct gp_args_gpCopyDevice *args)
{
	struct gp_args_gpCopyDevice box = *args;
	struct gpd_stream *stream;
	uint64_t from, to;
	CUresult result;

	if (!box.width || !box.height || !box.depth)
		return CUDA_SUCCESS;
	if (!span_3d(box.src_pitch, box.src_slice, box.width, box.height, box.depth, &from) ||
	    !span_3d(box.dst_pitch, box.dst_slice, box.width, box.height, box.depth, &to) ||
	    !gpd_memory_accessible(session, box.src, from) ||
	    !gpd_memory_accessible(session, box.dst, to))
		return CUDA_ERROR_INVALID_VALUE;
	gpd_account_copy(&session->account, 0, 0);
	flatten(&box);
	result = gpd_stream_begin(session, box.stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (box.depth == 1)
		return copy_rectangle(&box, stream->driver);
	return copy_box(&box, stream->driver);
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

CUresult
gpd_gpFill(struct gpd_session *session, const struct gp_args_gpFill *args)
{
	uint32_t element = args->element_size;
	struct gpd_stream *stream;
	uint64_t bytes;
	CUresult result;

	if ((element != 1 && element != 2 && element != 4) || args->dst % element ||
	    __builtin_mul_overflow(args->width, element, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!args->width || !args->height)
		return CUDA_SUCCESS;
	result = check(session, args->dst, args->pitch, bytes, args->height);
	if (result == CUDA_SUCCESS)
		result = gpd_stream_begin(session, args->stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (args->height == 1 || args->pitch == bytes)
		return fill_row(args, args->width * args->height, stream->driver);
	return fill_rows(args, stream->driver);
}
