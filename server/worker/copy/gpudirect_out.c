/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/frame.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/copy_out_internal.h"
#include "server/worker/copy/gpudirect.h"
#include "server/worker/copy/lane.h"
#include "server/worker/copy/staging.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/responder.h"
#include "transport/transport.h"

/* How a copy is sent. The thread that changes it from SCHEDULED owns the copy. */
enum way {
	STAGED,    /* the executor gives its parts to the stream */
	SCHEDULED, /* by GPUDirect after preceding work, unless canceled */
	SENDING,   /* the lanes are sending it */
	DONE,      /* sent with its reply; the executor removes it from the list */
};

bool
gpd_gpudirect_out_is_active(const struct gpd_copy_out *out)
{
	int way = atomic_load(&out->gpudirect.way);

	return way == SCHEDULED || way == SENDING;
}

bool
gpd_gpudirect_out_is_done(const struct gpd_copy_out *out)
{
	return atomic_load(&out->gpudirect.way) == DONE;
}

bool
gpd_gpudirect_out_cancel(struct gpd_copy_out *out)
{
	int scheduled = SCHEDULED;

	return atomic_compare_exchange_strong(&out->gpudirect.way, &scheduled, STAGED);
}

static void
chunk_sent(struct gpd_session *session, void *arg, int r)
{
	struct gpd_copy_out *out = arg;

	if (r)
		gpd_copy_out_fail(out, CUDA_ERROR_OPERATING_SYSTEM);
	if (atomic_fetch_sub(&out->gpudirect.chunks, 1) > 1)
		return;
	gpd_copy_out_reply(session, out);
	out->answered = true;
	/* Must be last: the executor may free the copy after this. */
	atomic_store(&out->gpudirect.way, DONE);
	gpd_staging_wake();
}

/* The lanes' RDMA device reads the memory; a short last chunk has gone through the stream. */
static void
gpudirect_send(struct gpd_session *session, struct gpd_copy_out *out)
{
	struct gp_chunk chunk = { .copy = out->copy };
	int r = 0;

	/* One more until all chunks are queued, so that the count cannot reach 0 early. */
	atomic_store(&out->gpudirect.chunks, 1);
	while (r == 0 && chunk.offset < out->cut.box.width) {
		chunk.size = gp_chunk_get_expected_size(out->total, GP_CHUNK_MAX, chunk.offset);
		atomic_fetch_add(&out->gpudirect.chunks, 1);
		atomic_fetch_add(&out->sent, chunk.size);
		r = gpd_lanes_send_registered(session, &chunk, out->cut.address + chunk.offset,
					      chunk_sent, out);
		if (r) {
			gpd_copy_out_fail_send(session, out, r);
			chunk_sent(session, out, r);
		}
		chunk.offset += chunk.size;
	}
	atomic_fetch_add(&session->copies->gpudirect_out, chunk.offset);
	chunk_sent(session, out, r);
}

/* The preceding work of the stream is done. */
static void
scheduled_ready(struct gpd_session *session, void *arg, CUresult result)
{
	struct gpd_copy_out *out = arg;
	int scheduled = SCHEDULED;

	if (atomic_compare_exchange_strong(&out->gpudirect.way, &scheduled, SENDING)) {
		if (result == CUDA_SUCCESS) {
			gpudirect_send(session, out);
		} else {
			gpd_copy_out_fail(out, result);
			atomic_store(&out->gpudirect.chunks, 1);
			chunk_sent(session, out, 0);
		}
	}
	gpd_copy_out_unref(session, out);
}

/* Enqueues the last, short chunk on the stream. */
static CUresult
end_enqueue(struct gpd_session *session, struct gpd_copy_out *out, uint64_t size)
{
	CUresult result;

	out->offset = out->total - size;
	out->part = gpd_part_from_range(out->cut.address + out->offset, size);
	result = gpd_copy_out_enqueue_part(session, out);
	out->offset = 0;
	out->part.size = 0;
	if (result == CUDA_SUCCESS)
		out->cut.box.width -= size;
	return result;
}

bool
gpd_gpudirect_out_schedule(struct gpd_session *session, struct gpd_copy_out *out)
{
	uint64_t end = out->total % GP_CHUNK_MAX;
	void *end_at = (void *)(uintptr_t)(out->cut.address + out->total - end);

	if (!out->lanes || out->total < GP_CHUNK_MAX || !gpd_lanes_are_uniform(session) ||
	    gpd_memory_get_gpudirect_device(session, out->cut.address, out->total) < 0)
		return false;
	if (gpd_copy_out_begin(session, out) != CUDA_SUCCESS) {
		/* The staged copy repeats the failing step and reports the error. */
		out->begun = false;
		return false;
	}
	/* A chunk too short for the lanes to move without the CPU. */
	if (end && !gp_conn_has_registered(session->conn, end_at, end) &&
	    end_enqueue(session, out, end) != CUDA_SUCCESS)
		return false;
	out->gpudirect.way = SCHEDULED;
	out->users++;
	if (gpd_wait_add(session, out->stream, scheduled_ready, out) == CUDA_SUCCESS)
		return true;
	out->gpudirect.way = STAGED;
	out->users--;
	return false;
}
