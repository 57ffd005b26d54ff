/* SPDX-License-Identifier: Apache-2.0 */
/* Delays launches while other sessions need a nearly idle device, and until the session has its
 * turn. */
#include "base/clock.h"
#include "server/common/ledger/ledger.h"
#include "server/worker/device/device.h"
#include "server/worker/device/quiesce.h"
#include "server/worker/schedule/schedule.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"

#define NAP_NS 20000
#define NAP_LONG_NS 200000
#define LONG_NS 1000000
/* Maximum number of other streams that are checked. */
#define IDLE_CHECKS_MAX 64
/* Launches between two checks. */
#define LAUNCHES 16

static bool
has_work(const struct gpd_session *session, int device)
{
	for (const struct gpd_stream *s = session->streams->list; s; s = s->next) {
		if (s->device == device && gpd_stream_query_work(s) == CUDA_ERROR_NOT_READY)
			return true;
	}
	return false;
}

/* Waits until the session may launch a few kernels. */
static void
quiesce_wait(struct gpd_session *session, int device)
{
	uint64_t start = gp_now_ns(), took = 0;

	gpd_issue_settle(&session->issue);
	if (gpd_device_enter(device) != CUDA_SUCCESS)
		return;
	while (gpd_quiesce_is_stopped(device) && !atomic_load(&session->closing) &&
	       !atomic_load(&gpd_devices.lost) && has_work(session, device)) {
		gp_sleep_ns(took < LONG_NS ? NAP_NS : NAP_LONG_NS);
		took = gp_now_ns() - start;
	}
	if (took > gpd_quiesce_get_stop_threshold_ns(device))
		gpd_quiesce_wait_end(device, &session->closing);
	gpd_ledger_count(&session->account.entry->counts.waited_ns, gp_now_ns() - start);
}

void
gpd_stream_wait_quiesce(struct gpd_session *session, int device)
{
	if (__builtin_expect(!gpd_quiesce_is_stopped(device), 1))
		return;
	if (session->streams->quiesce_pass == 0) {
		quiesce_wait(session, device);
		session->streams->quiesce_pass = LAUNCHES;
	}
	session->streams->quiesce_pass--;
}

/* Returns the latest batch of the session's other streams of the device; 1 if one of them was
 * created but has not launched; GPD_SCHEDULE_BUSY if one is not known to be idle or there are too
 * many to check. */
static uint64_t
last_of_others(const struct gpd_session *session, const struct gpd_stream *stream)
{
	unsigned int seen = 0;
	uint64_t last = 0;

	for (const struct gpd_stream *s = session->streams->list; s; s = s->next) {
		if (s == stream || s->device != stream->device)
			continue;
		if (++seen > IDLE_CHECKS_MAX || !gpd_stream_is_idle(s))
			return GPD_SCHEDULE_BUSY;
		last = s->batch > last ? s->batch : last;
		if (!last && !s->legacy)
			last = 1;
	}
	return last;
}

void
gpd_stream_launch(struct gpd_session *session, uint32_t id)
{
	struct gpd_stream *stream = gpd_stream_get(session, id);

	/* The hook reports the error. */
	if (!stream)
		return;
	gpd_stream_wait_quiesce(session, stream->device);
	if (__builtin_expect(
		    gpd_schedule_continue_batch(&session->account, stream->device, stream->batch),
		    1))
		return;
	gpd_schedule_launch(&session->account, stream->device, stream->driver, &stream->batch,
			    last_of_others(session, stream));
}
