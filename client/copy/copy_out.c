/* SPDX-License-Identifier: Apache-2.0 */
#include "client/copy/copy_out.h"

#include "client/array/array.h"
#include "client/base/container.h"
#include "client/base/error.h"
#include "client/base/stats.h"
#include "client/host/bounce_buffer.h"
#include "client/host/pending_copy.h"
#include "client/session/lane.h"
#include "client/session/session.h"
#include "client/stream/stream.h"
#include "gpc_calls.h"
#include "transport/transport.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Maximum number of requests of one copy in flight. */
#define BATCH 16
/* Copies through shared memory are divided into pieces, so that the GPU writes the next piece while
 * this one is copied. Shorter copies do not benefit. */
#define STAGED_MIN ((uint64_t)32 << 10)
#define STAGED_PIECE ((uint64_t)256 << 10)
/* Last bytes of each piece, which are sent as a reply: its arrival shows that the rest of the piece
 * is complete. */
#define STAGED_END 64

_Static_assert(GPC_BOUNCE_BUFFER_SIZE <= BATCH * STAGED_PIECE, "a copy's pieces are one batch");

/* One slice of a copy: one request gpCopyOut, gpCopyOutLanes or gpArrayCopyOut. */
struct slice {
	struct gpc_request request;
	bool lanes;
	struct gpc_incoming_copy in;
	uint8_t *host;
	uint64_t pitch, width, height;
	uint64_t received;
};

/* A slice for which no thread waits, unless its memory is about to be freed. */
struct pending {
	struct gpc_pending_copy copy;
	struct slice slice;
};

static int
slice_recv_rows(struct gpc_request *request, struct gp_conn *conn, uint64_t offset, uint64_t size)
{
	struct slice *slice = request->arg;
	uint64_t total = slice->width * slice->height;

	if (offset > total || size > total - offset)
		return -EPROTO;
	slice->received += size;
	while (size > 0) {
		uint64_t column = offset % slice->width;
		uint64_t length = slice->width - column;
		int r;

		if (length > size)
			length = size;
		r = gp_conn_recv_bulk(
			conn, slice->host + offset / slice->width * slice->pitch + column, length);
		if (r)
			return r < 0 ? r : -EPROTO;
		offset += length;
		size -= length;
	}
	return 0;
}

/* Slices of an array whose destination is contiguous are requested together. */
static uint64_t
slice_count(const struct gpc_copy *copy)
{
	return copy->src.array && copy->dst.slice == copy->dst.pitch * copy->height ? 1
										    : copy->depth;
}

/* The reply has arrived; some of its data may still be in flight on the lanes. */
static void
slice_recv_reply(struct gpc_request *request)
{
	struct slice *slice = request->arg;
	uint64_t sent = 0;

	if (request->reply && request->reply_size >= sizeof(sent))
		memcpy(&sent, request->reply, sizeof(sent));
	sent = le64toh(sent);
	gpc_lanes_finish(request->session, &slice->in,
			 sent < slice->in.size ? sent : slice->in.size);
	slice->received = slice->in.received;
}

static uint64_t
slice_span(const struct slice *slice)
{
	return (slice->height - 1) * slice->pitch + slice->width;
}

static enum gpc_pending_overlap
slice_get_overlap(const struct slice *slice, const struct gpc_stream *stream)
{
	return gpc_pending_copy_overlap(slice->host, slice_span(slice), stream->number);
}

/*
 * If an earlier, unfinished copy writes the same memory, its data must be stored before that of
 * this one. Data lanes guarantee this for copies of one stream (lane.h). In any other case this
 * copy uses lane 0, where the reader has received the data of all copies whose replies precede.
 */
static bool
slice_suits_lanes(struct slice *slice, const struct gpc_stream *stream)
{
	enum gpc_pending_overlap overlap;

	if (!gpc_lanes_open_for_copy(slice->request.session, slice->width, false))
		return false;
	overlap = slice_get_overlap(slice, stream);
	slice->in.ordered = overlap == GPC_OVERLAP_STREAM;
	return overlap <= GPC_OVERLAP_STREAM;
}

static void
slice_init(struct slice *slice, struct gpc_stream *stream, const struct gpc_copy *copy, uint64_t at)
{
	*slice = (struct slice){
		.host = (uint8_t *)(uintptr_t)gpc_side_row(&copy->dst, at, 0),
		.pitch = copy->dst.pitch,
		.width = copy->width,
		.height = copy->height * (copy->depth / slice_count(copy)),
	};
	slice->request.session = stream->context->scope.session;
	slice->request.arg = slice;
	slice->lanes = !copy->src.array && copy->height == 1 && slice_suits_lanes(slice, stream);
	if (slice->lanes)
		slice->request.before = slice_recv_reply;
	else
		slice->request.data = slice_recv_rows;
}

static CUresult
slice_start_over_lanes(struct slice *slice, struct gpc_stream *stream, uint64_t src)
{
	struct gpc_session *session = slice->request.session;
	struct gp_args_gpCopyOutLanes args = {
		.stream = stream->handle.id,
		.src = src,
		.size = slice->width,
	};
	CUresult result;

	slice->in.memory = slice->host;
	slice->in.size = slice->width;
	slice->in.stream = stream->number;
	gpc_lanes_expect(session, &slice->in);
	args.copy = slice->in.copy;
	result = gpc_start_gpCopyOutLanes(stream->context, &args, &slice->request);
	if (result == CUDA_SUCCESS)
		gpc_lanes_posted(session, &slice->in);
	else
		gpc_lanes_finish(session, &slice->in, 0);
	return result;
}

static CUresult
slice_start_from_array(struct slice *slice, struct gpc_stream *stream, const struct gpc_copy *copy,
		       uint64_t at)
{
	const struct gp_args_gpArrayCopyOut args = {
		.stream = stream->handle.id,
		.array = copy->src.array->owner->handle.id,
		.level = copy->src.array->level,
		.x = copy->src.x,
		.y = copy->src.y,
		.z = copy->src.z + at,
		.width = copy->width,
		.height = copy->height,
		.depth = slice->height / copy->height,
	};

	return gpc_start_gpArrayCopyOut(stream->context, &args, &slice->request);
}

static CUresult
slice_start_from_memory(struct slice *slice, struct gpc_stream *stream, const struct gpc_copy *copy,
			uint64_t at)
{
	const struct gp_args_gpCopyOut args = {
		.stream = stream->handle.id,
		.src = gpc_side_row(&copy->src, at, 0),
		.pitch = copy->src.pitch,
		.width = copy->width,
		.height = copy->height,
	};

	return slice->lanes ? slice_start_over_lanes(slice, stream, args.src)
			    : gpc_start_gpCopyOut(stream->context, &args, &slice->request);
}

static CUresult
slice_start(struct slice *slice, struct gpc_stream *stream, const struct gpc_copy *copy,
	    uint64_t at)
{
	CUresult result = copy->src.array ? slice_start_from_array(slice, stream, copy, at)
					  : slice_start_from_memory(slice, stream, copy, at);

	(void)gpc_session_work_mark(stream->context->scope.session);
	return result;
}

/* A reply without its data is a protocol error. */
static CUresult
slice_result(struct slice *slice, CUresult result)
{
	struct gpc_session *session = slice->request.session;

	free(slice->request.reply);
	slice->request.reply = NULL;
	if (slice->request.result != CUDA_SUCCESS ||
	    slice->received == slice->width * slice->height)
		return result;
	gpc_session_fail(session, GPC_ERROR_LOST, "copy reply without its bytes");
	return GPC_ERROR_LOST;
}

static CUresult
slice_wait(struct slice *slice, struct gpc_stream *stream)
{
	CUresult result = slice_result(slice, gpc_request_wait(&slice->request));

	if (result == CUDA_SUCCESS)
		gpc_stream_set_done(stream, slice->request.issued);
	return result;
}

/* Waits for all requests that were started, even if one fails. */
static CUresult
copy_batch(struct gpc_stream *stream, const struct gpc_copy *copy, uint64_t at, unsigned int count)
{
	struct slice slices[BATCH];
	CUresult result = CUDA_SUCCESS;
	unsigned int started = 0;

	while (started < count && result == CUDA_SUCCESS) {
		slice_init(&slices[started], stream, copy, at + started);
		result = slice_start(&slices[started], stream, copy, at + started);
		started += result == CUDA_SUCCESS;
	}
	/* Counts as one wait, regardless of the number of replies. */
	if (started > 0)
		gpc_stats_wait_start(slices[0].request.call);
	for (unsigned int i = 0; i < started; i++) {
		CUresult one = slice_wait(&slices[i], stream);

		if (result == CUDA_SUCCESS)
			result = one;
	}
	if (started > 0)
		gpc_stats_wait_stop();
	return result;
}

/* Copies a piece to the shared memory, except its end, which is requested as a reply and ordered
 * after the piece. */
static CUresult
piece_start_staged(struct slice *slice, struct gpc_stream *stream, const struct gpc_copy *piece,
		   uint64_t address)
{
	uint64_t size = piece->width - STAGED_END;
	const struct gp_args_gpCopyDevice args = {
		.stream = stream->handle.id,
		.dst = address,
		.dst_pitch = size,
		.dst_slice = size,
		.src = piece->src.base,
		.src_pitch = size,
		.src_slice = size,
		.width = size,
		.height = 1,
		.depth = 1,
	};
	struct gpc_copy end = *piece;
	CUresult result = gpc_post_gpCopyDevice(stream->context, &args);

	(void)gpc_session_work_mark(stream->context->scope.session);
	end.width = STAGED_END;
	end.src.base += size;
	end.dst.base += size;
	slice_init(slice, stream, &end, 0);
	return result == CUDA_SUCCESS ? slice_start(slice, stream, &end, 0) : result;
}

/* Returns the piece that begins at offset. The sizes ensure that the last two pieces are at least
 * STAGED_END each. */
static struct gpc_copy
copy_get_piece(const struct gpc_copy *copy, uint64_t offset)
{
	struct gpc_copy piece = *copy;
	uint64_t left = copy->width - offset;

	piece.width = left >= STAGED_PIECE + 2 * STAGED_END ? STAGED_PIECE : left;
	piece.src.base += offset;
	piece.dst.base += offset;
	return piece;
}

static CUresult
copy_staged(struct gpc_stream *stream, const struct gpc_copy *copy, uint64_t address)
{
	struct slice slices[BATCH];
	uint64_t sizes[BATCH], offset = 0;
	CUresult result = CUDA_SUCCESS;
	unsigned int started = 0;

	while (offset < copy->width && result == CUDA_SUCCESS) {
		struct gpc_copy piece = copy_get_piece(copy, offset);

		result = piece_start_staged(&slices[started], stream, &piece, address + offset);
		sizes[started] = piece.width;
		started += result == CUDA_SUCCESS;
		offset += piece.width;
	}
	gpc_stats_wait_start(GP_CALL_gpCopyOut);
	offset = 0;
	for (unsigned int i = 0; i < started; i++) {
		CUresult one = slice_wait(&slices[i], stream);

		if (result == CUDA_SUCCESS)
			result = one;
		if (result == CUDA_SUCCESS)
			memcpy((void *)(uintptr_t)(copy->dst.base + offset),
			       (const void *)(uintptr_t)(address + offset), sizes[i] - STAGED_END);
		offset += sizes[i];
	}
	gpc_stats_wait_stop();
	return result;
}

/* One row from device memory to plain host memory. */
static bool
copy_suits_staging(const struct gpc_copy *copy)
{
	return !copy->src.array && copy->height == 1 && copy->depth == 1 &&
	       copy->width >= STAGED_MIN && copy->width <= GPC_BOUNCE_BUFFER_SIZE;
}

CUresult
gpc_copy_out(struct gpc_stream *stream, const struct gpc_copy *copy)
{
	struct gpc_bounce_buffer *staged =
		copy_suits_staging(copy) ? gpc_bounce_buffer_acquire(stream->context) : NULL;
	uint64_t count = slice_count(copy);
	CUresult result = CUDA_SUCCESS;

	if (staged) {
		result = copy_staged(stream, copy, staged->address);
		gpc_bounce_buffer_release(staged);
		return result;
	}
	for (uint64_t at = 0; at < count && result == CUDA_SUCCESS; at += BATCH) {
		uint64_t left = count - at;

		result = copy_batch(stream, copy, at, left < BATCH ? (unsigned int)left : BATCH);
	}
	return result;
}

/* If a thread waits, it returns the error; otherwise the error is deferred. */
static void
pending_done(struct gpc_request *request)
{
	struct pending *pending = GPC_CONTAINER(request->arg, struct pending, slice);
	struct gpc_session *session = request->session;
	CUresult result = slice_result(&pending->slice, request->result);

	if (!gpc_pending_copy_done(&pending->copy, result) && result != CUDA_SUCCESS)
		gpc_session_defer(session, result);
}

/* Returns whether an earlier copy of another stream to the same memory may be executed after this
 * one, because the daemon must defer it for a host function or a wait value. Later work of this
 * stream, which may end that wait, must then find this copy's data stored, as chunks of the other
 * copy do not wait for lane 0. */
static bool
slice_may_overtake(const struct slice *slice, const struct gpc_stream *stream)
{
	return gpc_pending_copy_over_lanes() && gpc_session_awaits_host(slice->request.session) &&
	       slice_get_overlap(slice, stream) == GPC_OVERLAP_OTHER;
}

static CUresult
pending_start(struct gpc_stream *stream, const struct gpc_copy *copy, uint64_t at)
{
	struct pending *pending = calloc(1, sizeof(*pending));
	struct slice *slice;
	bool before_others;
	CUresult result;

	if (!pending)
		return CUDA_ERROR_OUT_OF_MEMORY;
	slice = &pending->slice;
	slice_init(slice, stream, copy, at);
	slice->request.done = pending_done;
	pending->copy.request = &slice->request;
	pending->copy.stream = stream->handle.id;
	pending->copy.lanes = slice->lanes ? stream->number : 0;
	pending->copy.start = (uintptr_t)slice->host;
	pending->copy.end = pending->copy.start + slice_span(slice);
	before_others = slice_may_overtake(slice, stream);
	gpc_pending_copy_add(&pending->copy);
	result = slice_start(slice, stream, copy, at);
	gpc_pending_copy_started(&pending->copy, result == CUDA_SUCCESS);
	if (result == CUDA_SUCCESS && before_others)
		result = gpc_pending_copy_order(&stream->context->scope, stream->handle.id);
	return result;
}

CUresult
gpc_copy_out_async(struct gpc_stream *stream, const struct gpc_copy *copy)
{
	uint64_t count = slice_count(copy);
	CUresult result = CUDA_SUCCESS;

	for (uint64_t at = 0; at < count && result == CUDA_SUCCESS; at++)
		result = pending_start(stream, copy, at);
	gpc_session_note_visible(stream->context->scope.session);
	return result;
}
