/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions' part in a quiet moment. */
#include "base/clock.h"
#include "server/common/ledger/ledger.h"
#include "server/worker/device/quiet.h"
#include "server/worker/session/session.h"
#include "server/worker/session/stream_move.h"
#include "server/worker/worker.h"

#define NAP_NS 20000
#define NAP_LONG_NS 200000
#define LONG_NS 1000000

static bool
has_work(const struct gpd_session *session, int device)
{
	for (const struct gpd_stream *s = session->streams; s; s = s->next) {
		if (s->device == device && gpd_stream_query_work(s) == CUDA_ERROR_NOT_READY)
			return true;
	}
	return false;
}

void
gpd_quiet_wait(struct gpd_session *session, int device)
{
	uint64_t start = gp_now_ns(), took = 0;

	if (gpd_device_enter(device) != CUDA_SUCCESS)
		return;
	while (gpd_quiet_is_held(device) && !atomic_load(&session->closing) &&
	       !atomic_load(&gpd_worker.lost) && has_work(session, device)) {
		gp_nap(took < LONG_NS ? NAP_NS : NAP_LONG_NS);
		took = gp_now_ns() - start;
	}
	if (took > gpd_quiet_patience(device))
		gpd_quiet_await_end(device, &session->closing);
	gpd_ledger_count(&session->account.line->counts.waited_ns, gp_now_ns() - start);
}
