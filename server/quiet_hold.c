/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions' part in a quiet moment. */
#include "server/ledger.h"
#include "server/quiet.h"
#include "server/session.h"
#include "server/stream_move.h"
#include "server/worker.h"

#include <time.h>

#define NAP_NS 20000
#define NAP_LONG_NS 200000
#define LONG_NS 1000000

static uint64_t
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

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
	uint64_t start = now_ns(), took = 0;

	if (gpd_device_enter(device) != CUDA_SUCCESS)
		return;
	while (gpd_quiet_is_held(device) && !atomic_load(&session->closing) &&
	       !atomic_load(&gpd_worker.lost) && has_work(session, device)) {
		struct timespec nap = { .tv_nsec = took < LONG_NS ? NAP_NS : NAP_LONG_NS };

		(void)nanosleep(&nap, NULL);
		took = now_ns() - start;
	}
	if (took > gpd_quiet_patience(device))
		gpd_quiet_await_end(device, &session->closing);
	gpd_ledger_count(&session->account.line->counts.waited_ns, now_ns() - start);
}
