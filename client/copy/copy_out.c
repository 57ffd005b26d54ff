/* SPDX-License-Identifier: Apache-2.0 */
#include "client/copy/copy_out.h"

#include "client/copy/array.h"
#include "client/stream/stream.h"
#include "client/wire/lane.h"
#include "client/wire/session.h"
#include "gpc_calls.h"
#include "transport/transport.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Requests of one copy that are under way together. */
#define BATCH 16

/* One slice of a copy: one gpCopyOut, gpCopyOutLanes or gpArrayCopyOut. */
struct slice {
	struct gpc_request request;
	bool lanes;
	struct gpc_lane_in in;
	uint8_t *host;
	uint64_t pitch, width, height;
	uint64_t received;
};

/* A slice that nobody waits for, unless to settle.  References: of its answer, of who starts it,
 * and of waiters. */
struct pending {
	struct slice slice;
	struct pending *prev, *next;
	unsigned int references;
	unsigned int waiters;
	bool started;
};

static struct pending *pending_list;
static pthread_mutex_t pending_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint pending_count;

static int
take_rows(struct gpc_request *request, struct gp_conn *conn, uint64_t offset, uint64_t size)
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

/* Slices of an array whose rows follow each other here are asked for together. */
static uint64_t
slice_count(const struct gpc_copy *copy)
{
	return copy->src.array && copy->dst.slice == copy->dst.pitch * copy->height ? 1
										    : copy->depth;
}

/* The reply has come; of the bytes that it is for some may still be on their way. */
static void
take_chunks(struct gpc_request *request)
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

static void
slice_init(struct slice *slice, struct gpc_stream *stream, const struct gpc_copy *copy, uint64_t at)
{
	*slice = (struct slice){
		.host = (uint8_t *)(uintptr_t)gpc_side_row(&copy->dst, at, 0),
		.pitch = copy->dst.pitch,
		.width = copy->width,
		.height = copy->height * (copy->depth / slice_count(copy)),
	};
	slice->request.session = stream->context->device->session;
	slice->request.arg = slice;
	slice->lanes = !copy->src.array && copy->height == 1 &&
		       gpc_lanes_want(slice->request.session, copy->width);
	if (slice->lanes)
		slice->request.before = take_chunks;
	else
		slice->request.data = take_rows;
}

static CUresult
start_over_lanes(struct slice *slice, struct gpc_stream *stream, uint64_t src)
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
	gpc_lanes_expect(session, &slice->in);
	args.copy = slice->in.copy;
	result = gpc_start_gpCopyOutLanes(stream->context, &args, &slice->request);
	if (result != CUDA_SUCCESS)
		gpc_lanes_finish(session, &slice->in, 0);
	return result;
}

static CUresult
start_from_array(struct slice *slice, struct gpc_stream *stream, const struct gpc_copy *copy,
		 uint64_t at)
{
	const struct gp_args_gpArrayCopyOut args = {
		.stream = stream->handle.id,
		.array = copy->src.array->whole->handle.id,
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
start_from_memory(struct slice *slice, struct gpc_stream *stream, const struct gpc_copy *copy,
		  uint64_t at)
{
	const struct gp_args_gpCopyOut args = {
		.stream = stream->handle.id,
		.src = gpc_side_row(&copy->src, at, 0),
		.pitch = copy->src.pitch,
		.width = copy->width,
		.height = copy->height,
	};

	if (slice->lanes)
		return start_over_lanes(slice, stream, args.src);
	return gpc_start_gpCopyOut(stream->context, &args, &slice->request);
}

static CUresult
slice_start(struct slice *slice, struct gpc_stream *stream, const struct gpc_copy *copy,
	    uint64_t at)
{
	CUresult result = copy->src.array ? start_from_array(slice, stream, copy, at)
					  : start_from_memory(slice, stream, copy, at);

	(void)gpc_session_work_mark(stream->context->device->session);
	return result;
}

/* An answer without the bytes is none. */
static CUresult
slice_result(struct slice *slice, CUresult result)
{
	struct gpc_session *session = slice->request.session;

	free(slice->request.reply);
	slice->request.reply = NULL;
	if (slice->request.result != CUDA_SUCCESS ||
	    slice->received == slice->width * slice->height)
		return result;
	gpc_session_fail(session, CUDA_ERROR_SYSTEM_NOT_READY, "copy answered without its bytes");
	return CUDA_ERROR_SYSTEM_NOT_READY;
}

/* What was started is waited for, also when another one failed. */
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
	for (unsigned int i = 0; i < started; i++) {
		CUresult one = gpc_request_wait(&slices[i].request);

		one = slice_result(&slices[i], one);
		if (result == CUDA_SUCCESS)
			result = one;
	}
	return result;
}

CUresult
gpc_copy_out(struct gpc_stream *stream, const struct gpc_copy *copy)
{
	uint64_t count = slice_count(copy);
	CUresult result = CUDA_SUCCESS;

	for (uint64_t at = 0; at < count && result == CUDA_SUCCESS; at += BATCH) {
		uint64_t left = count - at;

		result = copy_batch(stream, copy, at, left < BATCH ? (unsigned int)left : BATCH);
	}
	return result;
}

static void
pending_link(struct pending *pending)
{
	(void)pthread_mutex_lock(&pending_lock);
	pending->next = pending_list;
	if (pending->next)
		pending->next->prev = pending;
	pending_list = pending;
	atomic_fetch_add(&pending_count, 1);
	(void)pthread_mutex_unlock(&pending_lock);
}

/* Whether anybody waits for it. */
static bool
pending_unlink(struct pending *pending)
{
	bool waited;

	(void)pthread_mutex_lock(&pending_lock);
	if (pending->prev)
		pending->prev->next = pending->next;
	else
		pending_list = pending->next;
	if (pending->next)
		pending->next->prev = pending->prev;
	atomic_fetch_sub(&pending_count, 1);
	waited = pending->waiters > 0;
	(void)pthread_mutex_unlock(&pending_lock);
	return waited;
}

static void
pending_put(struct pending *pending)
{
	bool last;

	(void)pthread_mutex_lock(&pending_lock);
	last = --pending->references == 0;
	(void)pthread_mutex_unlock(&pending_lock);
	if (last)
		free(pending);
}

/* Who settles reports the error; else it is the session's. */
static void
pending_done(struct gpc_request *request)
{
	struct slice *slice = request->arg;
	struct pending *pending = (struct pending *)slice;
	CUresult result = slice_result(slice, request->result);

	if (!pending_unlink(pending) && result != CUDA_SUCCESS)
		gpc_session_defer(request->session, result);
	pending_put(pending);
}

static void
pending_set_started(struct pending *pending)
{
	(void)pthread_mutex_lock(&pending_lock);
	pending->started = true;
	(void)pthread_mutex_unlock(&pending_lock);
}

static CUresult
start_pending(struct gpc_stream *stream, const struct gpc_copy *copy, uint64_t at)
{
	struct pending *pending = calloc(1, sizeof(*pending));
	CUresult result;

	if (!pending)
		return CUDA_ERROR_OUT_OF_MEMORY;
	slice_init(&pending->slice, stream, copy, at);
	pending->slice.request.done = pending_done;
	pending->references = 2;
	pending_link(pending);
	result = slice_start(&pending->slice, stream, copy, at);
	if (result == CUDA_SUCCESS) {
		pending_set_started(pending);
	} else {
		(void)pending_unlink(pending);
		pending_put(pending);
	}
	pending_put(pending);
	return result;
}

CUresult
gpc_copy_out_async(struct gpc_stream *stream, const struct gpc_copy *copy)
{
	uint64_t count = slice_count(copy);
	CUresult result = CUDA_SUCCESS;

	for (uint64_t at = 0; at < count && result == CUDA_SUCCESS; at++)
		result = start_pending(stream, copy, at);
	return result;
}

static bool
overlaps(const struct slice *slice, uintptr_t base, uint64_t size)
{
	uintptr_t start = (uintptr_t)slice->host;
	uintptr_t end = start + (slice->height - 1) * slice->pitch + slice->width;

	return start < base + size && base < end;
}

/* A reference to a copy that still writes there; NULL: none does. */
static struct pending *
pending_find(uintptr_t base, uint64_t size)
{
	struct pending *pending;

	(void)pthread_mutex_lock(&pending_lock);
	for (pending = pending_list; pending; pending = pending->next) {
		if (pending->started &&
		    !__atomic_load_n(&pending->slice.request.complete, __ATOMIC_ACQUIRE) &&
		    overlaps(&pending->slice, base, size)) {
			pending->references++;
			pending->waiters++;
			break;
		}
	}
	(void)pthread_mutex_unlock(&pending_lock);
	return pending;
}

CUresult
gpc_copy_out_settle(const void *base, uint64_t size)
{
	CUresult result = CUDA_SUCCESS;
	struct pending *pending;

	if (atomic_load(&pending_count) == 0)
		return CUDA_SUCCESS;
	while ((pending = pending_find((uintptr_t)base, size))) {
		CUresult one = gpc_request_wait(&pending->slice.request);

		if (result == CUDA_SUCCESS)
			result = one;
		pending_put(pending);
	}
	return result;
}
