/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/session/worker_retirement.h"

#include "base/clock.h"
#include "base/lock.h"
#include "server/common/base/log.h"
#include "server/worker/device/device.h"
#include "server/worker/device/window.h"
#include "server/worker/session/session.h"
#include "server/worker/session/sessions.h"

#include <stdatomic.h>
#include <string.h>

/* Most kernels end sooner, and no report is needed. */
#define REPORT_MS 100
/* A session that hangs for HANG_MS, while work has been running for ENDLESS_MS after its client
 * left, will not make progress. */
#define HANG_MS 5000
#define ENDLESS_MS 2500

/* Under the sessions' lock, which is held when the process ends, so that no session is added
 * meanwhile. */
static bool retired GP_GUARDED_BY(gpd_sessions.lock);

static void
busy_report(const struct gpd_session *session, bool busy)
{
	(void)gpd_sessions_notify_supervisor(GPD_CHANNEL_BUSY, busy, session->id, session->peer,
					     strlen(session->peer));
}

/* Only sessions whose clients are present; closing ones are not in the list. */
static bool
any_hangs_locked(void) GP_LOCKED(gpd_sessions.lock)
{
	int64_t now = gp_now_ms();

	for (struct gpd_session *s = gpd_sessions_next_locked(NULL); s;
	     s = gpd_sessions_next_locked(s)) {
		int64_t since = atomic_load(&s->loading_since_ms);

		if (since && now - since > HANG_MS)
			return true;
	}
	return false;
}

void
gpd_retirement_work_pending(struct gpd_session *session, unsigned int waited_ms)
{
	bool hangs;

	if (waited_ms >= REPORT_MS && !session->busy_reported) {
		session->busy_reported = true;
		busy_report(session, true);
	}
	pthread_mutex_lock(&gpd_sessions.lock);
	if (retired && !gpd_sessions_next_locked(NULL) && waited_ms >= REPORT_MS) {
		gpd_session_log(session, GPD_LOG_WARNING,
				"orphaned work does not end: the worker exits");
		gpd_sessions_exit();
	}
	hangs = waited_ms >= ENDLESS_MS && any_hangs_locked();
	pthread_mutex_unlock(&gpd_sessions.lock);
	if (hangs)
		gpd_session_poison(session, CUDA_ERROR_LAUNCH_TIMEOUT);
}

void
gpd_retirement_work_done(struct gpd_session *session)
{
	if (session->busy_reported)
		busy_report(session, false);
	session->busy_reported = false;
}

/* Returns why this worker, which has no session, must be replaced; NULL: it need not. */
static const char *
get_worn_reason(void)
{
	const char *reason = atomic_load(&gpd_devices.worn);

	if (!reason && gpd_window_is_exhausted())
		reason = "no range of device addresses is left";
	return reason;
}

void
gpd_retirement_check_idle(void)
{
	const char *reason;
	bool stays;

	if (atomic_load(&gpd_sessions.count))
		return;
	pthread_mutex_lock(&gpd_sessions.lock);
	stays = !retired;
	if (retired && !gpd_sessions_next_locked(NULL))
		gpd_sessions_exit();
	pthread_mutex_unlock(&gpd_sessions.lock);
	reason = stays ? get_worn_reason() : NULL;
	if (reason)
		(void)gpd_sessions_notify_supervisor(GPD_CHANNEL_WORN, 0, 0, reason,
						     strlen(reason));
}

void
gpd_retirement_start(void)
{
	pthread_mutex_lock(&gpd_sessions.lock);
	retired = true;
	pthread_mutex_unlock(&gpd_sessions.lock);
	gpd_retirement_check_idle();
}
