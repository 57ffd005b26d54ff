/* SPDX-License-Identifier: Apache-2.0 */
#include "gpd_calls.h"
#include "protocol/frame.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/lane.h"
#include "server/worker/copy/staging.h"
#include "server/worker/device/driver.h"
#include "server/worker/memory/copy_part.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/print.h"
#include "server/worker/session/session.h"
#include "server/worker/session/stream.h"
#include "server/worker/session/wait.h"
#include "server/worker/worker.h"
#include "transport/transport.h"

#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Copies of a session that have parts left. */
#define WAITING_MAX 1024

/* How a copy goes.  Who changes it from PROMISED has it. */
enum way {
	STAGED,   /* the executor gives its parts to the stream */
	PROMISED, /* straight from device memory, when its stream is through with what came before;
		   * or staged, if the executor is to give work to the stream before that */
	STRAIGHT, /* the lanes are sending it */
	DONE,     /* it is sent and answered; the executor takes it off the list */
};

/* One copy from the device, until it is answered. */
struct gpd_copy_out {
	struct gpd_copy_out *next; /* of the session's that have parts left */
	struct gpd_stream *stream; /* as long as there are parts left */
	struct gpd_cut cut;
	struct gpd_part part; /* the next one, if size is not 0 */
	uint64_t offset;      /* of the next part in the packed rows */
	uint64_t total;
	uint32_t request;
	uint16_t call;
	bool answered; /* with its only part */
	bool lanes;    /* its bytes go out on the data lanes, as this copy of the client's */
	uint32_t copy;
	bool begun; /* the stream is ordered behind what it must wait for */
	_Atomic int way;
	_Atomic uint64_t chunks; /* of a straight one, not yet sent */
	/* Parts under way, and the executor while there are parts left. */
	_Atomic unsigned int users;
	_Atomic int result;
	_Atomic uint64_t sent; /* by the data lanes, or soon */
};

struct out_part {
	struct gpd_copy_out *out;
	struct gpd_piece piece;
	uint64_t offset;
	size_t size;
};

static void
fail(struct gpd_copy_out *out, CUresult result)
{
	int none = CUDA_SUCCESS;

	atomic_compare_exchange_strong(&out->result, &none, (int)result);
}

static void
answer(struct gpd_session *session, const struct gpd_copy_out *out)
{
	uint64_t sent = htole64(out->sent);

	gpd_print_flush(session);
	(void)gpd_session_reply(session, out->call, out->request, (CUresult)out->result, &sent,
				out->lanes ? sizeof(sent) : 0);
}

static void
leave(struct gpd_session *session, struct gpd_copy_out *out)
{
	if (atomic_fetch_sub(&out->users, 1) > 1)
		return;
	if (!out->answered)
		answer(session, out);
	free(out);
}

/* With the part's memory, which goes back when it is sent.  What fits into one part needs no note
 * of its own. */
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
	gpd_staging_put(session, &part->piece);
	return r;
}

/* Nobody is there to read: what else was asked for need not be done. */
static void
lost(struct gpd_session *session, struct gpd_copy_out *out, int r)
{
	fail(out, CUDA_ERROR_OPERATING_SYSTEM);
	/* Who receives learns of the connection's end, too, and why. */
	if (r == -EPIPE && !out->lanes)
		gpd_session_break(session);
	else
		gpd_session_end(session, "it could not be sent its data");
}

static void
part_done(struct gpd_session *session, void *arg, CUresult result)
{
	struct out_part *part = arg;
	struct gpd_copy_out *out = part->out;
	int r;

	if (result != CUDA_SUCCESS) {
		fail(out, result);
		gpd_staging_put(session, &part->piece);
	} else {
		r = send_part(session, part);
		if (r)
			lost(session, out, r);
	}
	free(part);
	leave(session, out);
}

static CUresult
give_part(struct gpd_session *session, struct gpd_copy_out *out)
{
	struct out_part *part = malloc(sizeof(*part));
	CUresult result;

	if (!part)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*part = (struct out_part){ .out = out, .offset = out->offset, .size = out->part.size };
	result = gpd_staging_take_out(session, part->size, &part->piece);
	if (result == CUDA_SUCCESS)
		result = gpd_part_out(session, out->stream, &out->part, part->piece.memory);
	if (result != CUDA_SUCCESS) {
		gpd_staging_put(session, &part->piece);
		free(part);
		return result;
	}
	out->users++;
	result = gpd_wait_add(session, out->stream, part_done, part);
	if (result != CUDA_SUCCESS) {
		/* The device may still write to the piece, so it stays out of use. */
		free(part);
		out->users--;
	}
	return result;
}

/* CUDA_ERROR_NOT_READY: there are parts left, and no staging memory for them. */
static CUresult
give_parts(struct gpd_session *session, struct gpd_copy_out *out)
{
	CUresult result = gpd_device_enter(out->stream->device);

	if (atomic_load(&session->closing))
		return CUDA_ERROR_DEINITIALIZED;
	while (result == CUDA_SUCCESS && (out->part.size || gpd_cut_next(&out->cut, &out->part))) {
		result = give_part(session, out);
		if (result != CUDA_SUCCESS)
			break;
		out->offset += out->part.size;
		out->part.size = 0;
	}
	/* A stream that is to get more is not done when it has done what it has. */
	if (result == CUDA_ERROR_NOT_READY)
		out->stream->work = gpd_session_count_work(session);
	return result;
}

static void
given(struct gpd_session *session, struct gpd_copy_out *out, CUresult result)
{
	if (result != CUDA_SUCCESS)
		fail(out, result);
	if (gpd_driver_is_sticky(result))
		gpd_session_poison(session, result);
	leave(session, out);
}

/* All that came earlier has its parts by now, and nothing that came later matters. */
static CUresult
begin(struct gpd_session *session, struct gpd_copy_out *out)
{
	struct gpd_copy_out *later = session->copies_out;
	CUresult result;

	session->copies_out = NULL;
	result = gpd_stream_begin(session, out->stream->handle.id, &out->stream);
	session->copies_out = later;
	out->begun = true;
	return result;
}

static void
chunk_sent(struct gpd_session *session, void *arg, int r)
{
	struct gpd_copy_out *out = arg;

	if (r)
		fail(out, CUDA_ERROR_OPERATING_SYSTEM);
	if (atomic_fetch_sub(&out->chunks, 1) > 1)
		return;
	answer(session, out);
	out->answered = true;
	/* From now on it is the executor's. */
	atomic_store(&out->way, DONE);
	gpd_staging_rouse();
}

/* Its memory is read by the lanes' RDMA device; a short end has come through the stream. */
static void
send_straight(struct gpd_session *session, struct gpd_copy_out *out)
{
	struct gp_chunk chunk = { .copy = out->copy };
	int r = 0;

	/* Until all are with the lanes, one more. */
	atomic_store(&out->chunks, 1);
	while (r == 0 && chunk.offset < out->cut.width) {
		chunk.size = gp_chunk_expected(out->total, chunk.offset);
		atomic_fetch_add(&out->chunks, 1);
		atomic_fetch_add(&out->sent, chunk.size);
		r = gpd_lanes_send_kept(session, &chunk, out->cut.address + chunk.offset,
					chunk_sent, out);
		if (r) {
			lost(session, out, r);
			chunk_sent(session, out, r);
		}
		chunk.offset += chunk.size;
	}
	atomic_fetch_add(&session->straight_out, chunk.offset);
	chunk_sent(session, out, r);
}

/* What came before in its stream is done. */
static void
promised_done(struct gpd_session *session, void *arg, CUresult result)
{
	struct gpd_copy_out *out = arg;
	int promised = PROMISED;

	if (atomic_compare_exchange_strong(&out->way, &promised, STRAIGHT)) {
		if (result == CUDA_SUCCESS) {
			send_straight(session, out);
		} else {
			fail(out, result);
			atomic_store(&out->chunks, 1);
			chunk_sent(session, out, 0);
		}
	}
	leave(session, out);
}

/* The last chunk, which goes through the stream in any case. */
static CUresult
give_end(struct gpd_session *session, struct gpd_copy_out *out, uint64_t size)
{
	CUresult result;

	out->offset = out->total - size;
	out->part = (struct gpd_part){
		.address = out->cut.address + out->offset,
		.pitch = size,
		.width = size,
		.rows = 1,
		.size = size,
	};
	result = give_part(session, out);
	out->offset = 0;
	out->part.size = 0;
	if (result == CUDA_SUCCESS)
		out->cut.width -= size;
	return result;
}

/* Whether it is one that may go straight, and does unless it is in the way of others. */
static bool
promise(struct gpd_session *session, struct gpd_copy_out *out)
{
	uint64_t end = out->total % GP_CHUNK_MAX;
	void *end_at = (void *)(uintptr_t)(out->cut.address + out->total - end);

	if (!out->lanes || out->total < GP_CHUNK_MAX || !gpd_lanes_uniform(session) ||
	    gpd_memory_reach(session, out->cut.address, out->total) < 0)
		return false;
	if (begin(session, out) != CUDA_SUCCESS) {
		/* It will fail again, and say so. */
		out->begun = false;
		return false;
	}
	/* One that is too short for the lanes to move it without the CPU. */
	if (end && !gp_conn_reaches(session->conn, end_at, end) &&
	    give_end(session, out, end) != CUDA_SUCCESS)
		return false;
	out->way = PROMISED;
	out->users++;
	if (gpd_wait_add(session, out->stream, promised_done, out) == CUDA_SUCCESS)
		return true;
	out->way = STAGED;
	out->users--;
	return false;
}

/* Whether the copy has parts left. */
static bool
go_on(struct gpd_session *session, struct gpd_copy_out *out)
{
	CUresult result = CUDA_SUCCESS;

	if (!out->begun)
		result = begin(session, out);
	if (result == CUDA_SUCCESS)
		result = give_parts(session, out);
	if (result == CUDA_ERROR_NOT_READY)
		return true;
	given(session, out, result);
	return false;
}

/* Work on the legacy stream and on the blocking ones of its context waits for one another. */
static bool
comes_before(const struct gpd_copy_out *out, const struct gpd_stream *stream)
{
	return !stream || out->stream == stream ||
	       (out->stream->context == stream->context &&
		((out->stream->legacy && stream->blocking) ||
		 (out->stream->blocking && stream->legacy)));
}

/* What comes before work for the stream, of the list up to `end`, and not in one of these ways:
 * bits.  The stream of one that is done may be gone. */
static bool
is_before(const struct gpd_session *session, const struct gpd_copy_out *end,
	  const struct gpd_stream *stream, unsigned int but)
{
	for (const struct gpd_copy_out *out = session->copies_out; out != end; out = out->next) {
		if (!((but | 1u << DONE) >> atomic_load(&out->way) & 1) &&
		    comes_before(out, stream))
			return true;
	}
	return false;
}

static bool
must_wait(const struct gpd_session *session, const struct gpd_stream *stream)
{
	return is_before(session, NULL, stream, 0);
}

bool
gpd_copy_continue(struct gpd_session *session)
{
	struct gpd_copy_out **link = &session->copies_out, *out;
	bool left = false;

	while ((out = *link)) {
		int way = atomic_load(&out->way);

		if (way == PROMISED || way == STRAIGHT ||
		    (way == STAGED && !out->begun && is_before(session, out, out->stream, 0))) {
			link = &out->next;
			left = true;
			continue;
		}
		*link = out->next;
		if (way == DONE) {
			leave(session, out);
			continue;
		}
		if (!go_on(session, out))
			continue;
		out->next = *link;
		*link = out;
		return true;
	}
	return left;
}

/* The stream, NULL: any one, is to get work that must not be before those that were promised to go
 * straight: what is not on its way goes through the stream instead. */
static void
withdraw(struct gpd_session *session, const struct gpd_stream *stream)
{
	for (struct gpd_copy_out *out = session->copies_out; out; out = out->next) {
		int promised = PROMISED;

		if (atomic_load(&out->way) == PROMISED && comes_before(out, stream))
			(void)atomic_compare_exchange_strong(&out->way, &promised, STAGED);
	}
}

void
gpd_copy_settle(struct gpd_session *session, const struct gpd_stream *stream)
{
	withdraw(session, stream);
	/* Nobody waits for the copies of a session that ends. */
	while (!atomic_load_explicit(&session->closing, memory_order_relaxed) &&
	       must_wait(session, stream) && gpd_copy_continue(session)) {
		if (is_before(session, NULL, stream, 1u << STAGED))
			gpd_staging_nap();
		else if (must_wait(session, stream))
			gpd_staging_wait(session);
	}
}

void
gpd_copy_before(struct gpd_session *session, uint16_t call, const void *fields, size_t size)
{
	uint32_t id;

	if (!session->copies_out)
		return;
	switch (call) {
	case GP_CALL_gpContextCreate:
	case GP_CALL_gpMemoryMap:
	case GP_CALL_gpMemoryInfo:
	case GP_CALL_gpImageLoad:
	case GP_CALL_gpImageGlobal:
	case GP_CALL_gpCopyIn:
	case GP_CALL_gpCopyOut:
	case GP_CALL_gpCopyInLanes:
	case GP_CALL_gpCopyOutLanes:
	case GP_CALL_gpCopyDevice:
	case GP_CALL_gpArrayCreate:
	case GP_CALL_gpArrayCopyIn:
	case GP_CALL_gpArrayCopyOut:
	case GP_CALL_gpArrayCopy:
	case GP_CALL_gpTextureCreate:
	case GP_CALL_gpSurfaceCreate:
	case GP_CALL_gpFill:
	case GP_CALL_gpLaunch:
	case GP_CALL_gpLaunchChecked:
	case GP_CALL_gpOccupancyCluster:
	case GP_CALL_cuStreamCreateWithPriority:
	case GP_CALL_cuStreamWaitEvent:
	case GP_CALL_cuEventCreate:
	case GP_CALL_cuEventRecordWithFlags:
	case GP_CALL_cuEventQuery:
	case GP_CALL_cuEventSynchronize:
	case GP_CALL_cuEventElapsedTime_v2:
	case GP_CALL_cuFuncGetAttribute:
	case GP_CALL_cuFuncSetAttribute:
	case GP_CALL_cuFuncSetCacheConfig:
	case GP_CALL_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags:
	case GP_CALL_cuOccupancyAvailableDynamicSMemPerBlock:
		return;
	case GP_CALL_cuStreamSynchronize:
	case GP_CALL_cuStreamQuery:
		/* The stream is their only field. */
		if (size < sizeof(id))
			return;
		memcpy(&id, fields, sizeof(id));
		gpd_copy_settle(session, gpd_stream_get(session, id));
		return;
	default:
		gpd_copy_settle(session, NULL);
	}
}

void
gpd_copy_forget(struct gpd_session *session)
{
	struct gpd_copy_out *out;

	while ((out = session->copies_out)) {
		session->copies_out = out->next;
		free(out);
	}
}

static void
append(struct gpd_session *session, struct gpd_copy_out *out)
{
	struct gpd_copy_out **end = &session->copies_out;
	unsigned int count = 0;

	while (*end) {
		end = &(*end)->next;
		count++;
	}
	*end = out;
	/* A client that asks for more and more and reads nothing is not listened to. */
	if (count >= WAITING_MAX)
		gpd_copy_settle(session, NULL);
}

/* lanes: which copy of the client's on the data lanes; NULL: it goes over lane 0. */
static CUresult
start(struct gpd_session *session, uint32_t id, const struct gpd_cut *cut, uint64_t total,
      const uint32_t *lanes)
{
	struct gpd_stream *stream = gpd_stream_get(session, id);
	struct gpd_copy_out *out = calloc(1, sizeof(*out));

	if (!out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	out->stream = stream;
	out->cut = *cut;
	out->total = total;
	out->request = session->request;
	out->call = session->call;
	out->lanes = lanes != NULL;
	out->copy = lanes ? *lanes : 0;
	out->users = 1;
	gpd_account_copy(&session->account, 0, total);
	/* Behind others of its stream, which the call stream does not wait for. */
	if (must_wait(session, stream) || promise(session, out) || go_on(session, out))
		append(session, out);
	return GPD_LATER;
}

CUresult
gpd_copy_out(struct gpd_session *session, uint32_t id, const struct gpd_cut *cut, uint64_t total)
{
	return start(session, id, cut, total, NULL);
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
	result = gpd_cut_check(session, args->src, args->pitch, args->width, args->height);
	if (result != CUDA_SUCCESS)
		return result;
	gpd_cut_start(&cut, args->src, args->pitch, args->width, args->height);
	return start(session, args->stream, &cut, total, lanes);
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
	if (!session->lanes) {
		gpd_session_violation(session, "a copy on data lanes, of which it has none");
		return CUDA_ERROR_INVALID_VALUE;
	}
	return start_rows(session, &rows, &args->copy);
}
