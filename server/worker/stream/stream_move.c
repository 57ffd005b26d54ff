/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "server/common/base/log.h"
#include "server/worker/context/context.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/partition.h"
#include "server/worker/schedule/schedule.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/responder.h"
#include "server/worker/stream/stream.h"
#include "server/worker/stream/stream_pool.h"

#include <stdlib.h>
#include <utlist.h>

/* Retry interval after streams could not be moved to other multiprocessors. */
#define MOVE_AGAIN_NS 100000000u
/* Retry interval while the target green context is being created. */
#define MOVE_SOON_NS 2000000u

/* Orders `fresh` after the stream's work. */
static CUresult
fresh_stream_order(struct gpd_stream *stream, CUstream fresh)
{
	CUresult result = gpd_stream_record(stream, &stream->order);

	if (result != CUDA_SUCCESS)
		return result;
	stream->order_work = stream->moved_work = stream->work;
	return gpd_driver.cuStreamWaitEvent(fresh, stream->order, 0);
}

/* Leaves the present driver's stream to a nameless, dropped stream that is freed when its work is
 * done. Its marker there is the last operation, so no other one is needed. */
static CUresult
driver_stream_leave(struct gpd_session *session, const struct gpd_stream *stream)
{
	struct gpd_stream *left = calloc(1, sizeof(*left));
	CUresult result;

	if (!left)
		return CUDA_ERROR_OUT_OF_MEMORY;
	left->device = stream->device;
	left->driver = stream->driver;
	left->partition = stream->partition;
	left->work = stream->work;
	left->dropped = true;
	result = gpd_wait_add(session, left, NULL, NULL);
	if (result != CUDA_SUCCESS) {
		free(left);
		return result;
	}
	LL_PREPEND(session->streams->list, left);
	session->streams->count++;
	gpd_stream_pool_stream_added();
	return CUDA_SUCCESS;
}

/* Consumes a reference to the partition. */
static CUresult
stream_move(struct gpd_session *session, struct gpd_stream *stream, struct gpd_partition *partition)
{
	CUstream fresh;
	CUresult result =
		gpd_partition_stream(partition, stream->priority, &session->closing, &fresh);
	bool done;

	if (result != CUDA_SUCCESS) {
		gpd_partition_unref(partition);
		return result;
	}
	/* If the work is done, `fresh` must not wait for anything, or a query right after this
	 * would report it as busy. */
	done = gpd_stream_query_work(stream) == CUDA_SUCCESS;
	if (!done)
		result = fresh_stream_order(stream, fresh);
	if (result == CUDA_SUCCESS && (!done || gpd_stream_has_waits(stream)))
		result = driver_stream_leave(session, stream);
	else if (result == CUDA_SUCCESS)
		gpd_stream_destroy_driver(stream->driver, stream->partition);
	if (result != CUDA_SUCCESS) {
		gpd_stream_destroy_driver(fresh, partition);
		return result;
	}
	stream->driver = fresh;
	stream->partition = partition;
	return CUDA_SUCCESS;
}

CUresult
gpd_stream_move_all(struct gpd_session *session, int device)
{
	CUresult result = gpd_device_enter(device);

	gpd_issue_settle(&session->issue);
	gpd_schedule_mark(session->account.schedule);
	gpd_stream_reap(session);
	for (struct gpd_stream *s = session->streams->list; s && result == CUDA_SUCCESS;
	     s = s->next) {
		struct gpd_partition *now;

		/* A stream that the client has destroyed gets no more work. */
		if (s->device != device || s->dropped)
			continue;
		now = gpd_green_partition(session, s->context->green, device);
		if (now == s->partition) {
			gpd_partition_unref(now);
		} else if (gpd_partition_is_ready(now)) {
			result = stream_move(session, s, now);
		} else {
			gpd_partition_unref(now);
			result = CUDA_ERROR_NOT_READY;
		}
	}
	return result;
}

/* Called when the session's share of a device has changed. */
void
gpd_stream_follow_shares(struct gpd_session *session)
{
	bool again = session->streams->move_again_ns != 0;
	uint32_t changed;

	if (again && gp_now_ns() < session->streams->move_again_ns)
		return;
	session->streams->move_again_ns = 0;
	changed = atomic_exchange(&session->shares.changed, 0);
	for (int i = 0; changed; i++, changed >>= 1) {
		CUresult result = CUDA_SUCCESS;

		if (changed & 1)
			result = gpd_stream_move_all(session, i);
		if (changed & 1 && result == CUDA_SUCCESS && session->streams->watches_shares)
			(void)gpd_session_send_note(session, GP_NOTE_SHARE, (uint32_t)i, 0);
		if (result == CUDA_SUCCESS)
			continue;
		atomic_fetch_or(&session->shares.changed, 1u << i);
		if (result == CUDA_ERROR_NOT_READY) {
			session->streams->move_again_ns = gp_now_ns() + MOVE_SOON_NS;
			continue;
		}
		if (!again)
			gpd_session_log(session, GPD_LOG_WARNING,
					"its streams keep their multiprocessors of device %d until "
					"others are available: %d",
					i, (int)result);
		session->streams->move_again_ns = gp_now_ns() + MOVE_AGAIN_NS;
	}
}
