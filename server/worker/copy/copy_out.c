/* SPDX-License-Identifier: Apache-2.0 */
#include "gpd_calls.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/copy_out_internal.h"
#include "server/worker/copy/copy_part.h"
#include "server/worker/copy/gpudirect.h"
#include "server/worker/copy/lane.h"
#include "server/worker/copy/staging.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/print.h"
#include "server/worker/stream/responder.h"
#include "server/worker/stream/stream.h"
#include "server/worker/trace/gpu_trace.h"
#include "transport/transport.h"

#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Maximum number of copies of a session that have parts left. */
#define WAITING_MAX 1024

struct out_part {
	struct gpd_copy_out *out;
	struct gpd_piece piece;
	uint64_t offset;
	size_t size;
};

void
gpd_copy_out_fail(struct gpd_copy_out *out, CUresult result)
{
	int none = CUDA_SUCCESS;

	atomic_compare_exchange_strong(&out->result, &none, (int)result);
}

void
gpd_copy_out_reply(struct gpd_session *session, const struct gpd_copy_out *out)
{
	uint64_t sent = htole64(out->sent);

	gpd_print_flush(session);
	(void)gpd_session_reply(session, out->call, out->request, (CUresult)out->result, &sent,
				out->lanes ? sizeof(sent) : 0);
}

void
gpd_copy_out_unref(struct gpd_session *session, struct gpd_copy_out *out)
{
	if (atomic_fetch_sub(&out->users, 1) > 1)
		return;
	if (!out->answered)
		gpd_copy_out_reply(session, out);
	free(out);
}

/* Passes the part's memory on, which is released after sending. A copy of a single part is sent
 * together with its reply. */
static int
send_part(struct gpd_session *session, struct out_part *part)
{
	struct gpd_copy_out *out = part->out;
	int r;

	if (out->lanes) {
		atomic_fetch_add(&out->sent, part->size);
		return gpd_lanes_send(session, out->copy, part->offset, part->size, &part->piece);
	}
	if (part->size < out->total) {
		r = gpd_session_send_data(session, out->request, part->offset, part->piece.memory,
					  part->size);
	} else {
		gpd_print_flush(session);
		out->answered = true;
		r = gpd_session_reply_data(session, out->call, out->request, part->piece.memory,
					   part->size);
	}
	gpd_staging_release(session, &part->piece);
	return r;
}

void
gpd_copy_out_fail_send(struct gpd_session *session, struct gpd_copy_out *out, int r)
{
	gpd_copy_out_fail(out, CUDA_ERROR_OPERATING_SYSTEM);
	/* On lane 0 the receiver also learns of the end of the connection, with its reason. */
	if (r == -EPIPE && !out->lanes)
		gpd_session_stop_disconnected(session);
	else
		gpd_session_stop(session, "its data could not be sent");
}

static void
part_done(struct gpd_session *session, void *arg, CUresult result)
{
	struct out_part *part = arg;
	struct gpd_copy_out *out = part->out;
	int r;

	if (result != CUDA_SUCCESS) {
		gpd_copy_out_fail(out, result);
		gpd_staging_release(session, &part->piece);
	} else {
		r = send_part(session, part);
		if (r)
			gpd_copy_out_fail_send(session, out, r);
	}
	free(part);
	gpd_copy_out_unref(session, out);
}

CUresult
gpd_copy_out_enqueue_part(struct gpd_session *session, struct gpd_copy_out *out)
{
	struct out_part *part = malloc(sizeof(*part));
	CUresult result;

	if (!part)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*part = (struct out_part){ .out = out, .offset = out->offset, .size = out->part.size };
	result = gpd_staging_acquire_out(session, part->size, &part->piece);
	if (result == CUDA_SUCCESS)
		result = gpd_part_copy(session, out->stream, &out->part, part->piece.memory, false);
	if (result != CUDA_SUCCESS) {
		gpd_staging_release(session, &part->piece);
		free(part);
		return result;
	}
	out->users++;
	result = gpd_wait_add(session, out->stream, part_done, part);
	if (result != CUDA_SUCCESS) {
		free(part);
		out->users--;
	}
	return result;
}

static CUresult
copy_out_enqueue_parts(struct gpd_session *session, struct gpd_copy_out *out)
{
	CUresult result = gpd_device_enter(out->stream->device);

	if (atomic_load(&session->closing))
		return CUDA_ERROR_DEINITIALIZED;
	while (result == CUDA_SUCCESS && (out->part.size || gpd_cut_next(&out->cut, &out->part))) {
		result = gpd_copy_out_enqueue_part(session, out);
		if (result != CUDA_SUCCESS)
			break;
		out->offset += out->part.size;
		out->part.size = 0;
	}
	if (result == CUDA_ERROR_NOT_READY)
		out->stream->work = gpd_session_count_work(session);
	return result;
}

CUresult
gpd_copy_out_begin(struct gpd_session *session, struct gpd_copy_out *out)
{
	struct gpd_copy_out *later = session->copies->out;
	CUresult result;

	session->copies->out = NULL;
	result = gpd_stream_begin(session, out->stream->handle.id, &out->stream);
	session->copies->out = later;
	out->begun = true;
	return result;
}

static bool
copy_out_continue(struct gpd_session *session, struct gpd_copy_out *out)
{
	CUresult result = CUDA_SUCCESS;

	if (!out->begun)
		result = gpd_copy_out_begin(session, out);
	if (result == CUDA_SUCCESS)
		result = copy_out_enqueue_parts(session, out);
	if (result == CUDA_ERROR_NOT_READY)
		return true;
	if (result == CUDA_SUCCESS)
		gpd_trace_record(session,
				 &(struct gpd_trace_operation){ .begun_ns = out->begun_ns,
								.stream = out->stream->handle.id,
								.call = out->call });
	else
		gpd_copy_out_fail(out, result);
	if (gpd_driver_is_sticky(result))
		gpd_session_poison(session, result);
	gpd_copy_out_unref(session, out);
	return false;
}

static bool
comes_before(const struct gpd_copy_out *out, const struct gpd_stream *stream)
{
	return !stream || out->stream == stream ||
	       (out->stream->context == stream->context &&
		((out->stream->legacy && stream->blocking) ||
		 (out->stream->blocking && stream->legacy)));
}

static bool
is_before(const struct gpd_session *session, const struct gpd_copy_out *end,
	  const struct gpd_stream *stream)
{
	const struct gpd_copy_out *out = session->copies->out;

	while (out != end && (gpd_gpudirect_out_is_done(out) || !comes_before(out, stream)))
		out = out->next;
	return out != end;
}

bool
gpd_copy_continue(struct gpd_session *session)
{
	struct gpd_copy_out **link = &session->copies->out, *out;
	bool left = false;

	while ((out = *link)) {
		if (gpd_gpudirect_out_is_done(out)) {
			*link = out->next;
			gpd_copy_out_unref(session, out);
			continue;
		}
		if (gpd_gpudirect_out_is_active(out) ||
		    (!out->begun && is_before(session, out, out->stream))) {
			link = &out->next;
			left = true;
			continue;
		}
		*link = out->next;
		if (!copy_out_continue(session, out))
			continue;
		out->next = *link;
		*link = out;
		return true;
	}
	return left;
}

static bool
has_parts_left(const struct gpd_copy_out *out)
{
	return !gpd_gpudirect_out_is_active(out) && !gpd_gpudirect_out_is_done(out);
}

int
gpd_copy_for_each_unfinished(struct gpd_session *session,
			     int (*use)(struct gpd_session *session, struct gpd_stream *stream))
{
	int r = 0;

	for (struct gpd_copy_out *out = session->copies->out; out && r == 0; out = out->next) {
		if (has_parts_left(out))
			r = use(session, out->stream);
	}
	return r;
}

bool
gpd_copy_is_unfinished(const struct gpd_session *session, const struct gpd_stream *stream)
{
	const struct gpd_copy_out *out = session->copies->out;

	while (out && !(has_parts_left(out) && out->stream == stream))
		out = out->next;
	return out;
}

static bool
gpudirect_cancel_before(struct gpd_session *session, const struct gpd_stream *stream)
{
	bool under_way = false;

	for (struct gpd_copy_out *out = session->copies->out; out; out = out->next) {
		if (gpd_gpudirect_out_is_active(out) && comes_before(out, stream))
			under_way = !gpd_gpudirect_out_cancel(out) || under_way;
	}
	return under_way;
}

void
gpd_copy_await(struct gpd_session *session, const struct gpd_stream *stream)
{
	bool under_way = gpudirect_cancel_before(session, stream);

	while (!atomic_load_explicit(&session->closing, memory_order_relaxed) &&
	       is_before(session, NULL, stream) && gpd_copy_continue(session)) {
		under_way = under_way && gpudirect_cancel_before(session, stream);
		if (under_way)
			gpd_staging_nap();
		else if (is_before(session, NULL, stream))
			gpd_staging_wait(session);
	}
}

void
gpd_copy_wait_before_call(struct gpd_session *session, uint16_t call, const void *fields,
			  size_t size)
{
	struct gpd_call_handles handles;

	if (!session->copies->out)
		return;
	(void)gpd_call_get_handles(call, fields, size, &handles);
	if (handles.no_dtoh_wait)
		return;
	if (handles.use == GPD_STREAM_AWAITED && handles.count == 1)
		gpd_copy_await(session, gpd_stream_get(session, handles.handles[0].id));
	else
		gpd_copy_await(session, NULL);
}

void
gpd_copy_destroy_all(struct gpd_session *session)
{
	struct gpd_copy_out *out;

	while ((out = session->copies->out)) {
		session->copies->out = out->next;
		free(out);
	}
}

static void
copy_out_append(struct gpd_session *session, struct gpd_copy_out *out)
{
	struct gpd_copy_out **end = &session->copies->out;
	unsigned int count = 0;

	while (*end) {
		end = &(*end)->next;
		count++;
	}
	*end = out;
	session->copies->added = true;
	session->streams->before_work = gpd_copy_await;
	if (count >= WAITING_MAX)
		gpd_copy_await(session, NULL);
}

static CUresult
copy_out_start(struct gpd_session *session, uint32_t id, const struct gpd_cut *cut, uint64_t total,
	       const uint32_t *lanes)
{
	struct gpd_stream *stream = gpd_stream_get(session, id);
	struct gpd_copy_out *out = calloc(1, sizeof(*out));

	if (!out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	out->stream = stream;
	out->cut = *cut;
	out->total = total;
	out->begun_ns = gpd_trace_begin(session);
	out->request = session->current.request;
	out->call = session->current.call;
	out->lanes = lanes != NULL;
	out->copy = lanes ? *lanes : 0;
	out->users = 1;
	gpd_account_copy(&session->account, 0, total);
	if (is_before(session, NULL, stream) || gpd_gpudirect_out_schedule(session, out) ||
	    copy_out_continue(session, out))
		copy_out_append(session, out);
	return GPD_LATER;
}

CUresult
gpd_copy_out(struct gpd_session *session, uint32_t id, const struct gpd_cut *cut, uint64_t total)
{
	return copy_out_start(session, id, cut, total, NULL);
}

static CUresult
start_rows(struct gpd_session *session, const struct gp_args_gpCopyOut *args, const uint32_t *lanes)
{
	struct gpd_cut cut;
	uint64_t total;
	CUresult result;

	if (!gpd_stream_get(session, args->stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!args->width || !args->height)
		return CUDA_SUCCESS;
	if (__builtin_mul_overflow(args->width, args->height, &total))
		return CUDA_ERROR_INVALID_VALUE;
	result = gpd_memory_check_rows(session, args->src, args->pitch, args->width, args->height);
	if (result != CUDA_SUCCESS)
		return result;
	gpd_cut_init(&cut, args->src, args->pitch, args->width, args->height);
	if (lanes && !gp_conn_get_device(session->conn))
		cut.largest = gp_chunk_get_step(total, true);
	return copy_out_start(session, args->stream, &cut, total, lanes);
}

CUresult
gpd_gpCopyOut(struct gpd_session *session, const struct gp_args_gpCopyOut *args)
{
	return start_rows(session, args, NULL);
}

CUresult
gpd_gpCopyOutLanes(struct gpd_session *session, const struct gp_args_gpCopyOutLanes *args,
		   struct gp_reply_gpCopyOutLanes *reply)
{
	const struct gp_args_gpCopyOut rows = {
		.stream = args->stream,
		.src = args->src,
		.pitch = args->size,
		.width = args->size,
		.height = 1,
	};

	reply->sent = 0;
	if (!session->copies->lanes) {
		gpd_session_violation(session, "a copy on data lanes, but the session has none");
		return CUDA_ERROR_INVALID_VALUE;
	}
	return start_rows(session, &rows, &args->copy);
}
