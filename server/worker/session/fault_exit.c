/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the sessions whose work is running, and ends a worker whose GPU contexts are lost. */
#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "server/common/ledger/channel.h"
#include "server/common/ledger/ledger.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/driver_stderr.h"
#include "server/worker/session/session.h"
#include "server/worker/session/sessions.h"

#include <stdio.h>
#include <string.h>

/* Maximum and minimum time for the sessions to notify their clients. */
#define LOST_MS 900
#define REPLIES_MS 100
#define POLL_MS 10
/* Then the time for clients to copy memory that is lost with the process. The supervisor kills the
 * process after 1.5 s in total. */
#define CLIENT_MS 400

/* A session that has launched has a lane; after DRAINING none of its work is running. */
static bool
is_culprit(const struct gpd_session *s)
{
	return atomic_load(&s->state) <= GPD_SESSION_DRAINING &&
	       atomic_load(&s->account.entry->counts.launches) > 0 &&
	       __atomic_load_n(&s->progress.work, __ATOMIC_RELAXED) >
		       atomic_load(&s->progress.done_work);
}

struct gpd_session *
gpd_running_work_find(int64_t tenant, char *text, size_t size)
{
	struct gpd_session *only = NULL;
	size_t used = 0;
	int count = 0;

	text[0] = 0;
	for (struct gpd_session *s = gpd_sessions.first; s; s = s->next) {
		const char *kernel = __atomic_load_n(&s->progress.kernel, __ATOMIC_ACQUIRE);

		if (!is_culprit(s) || (tenant >= 0 && s->account.entry->tenant != tenant))
			continue;
		only = count++ ? NULL : s;
		/* Text that does not fit is cut off. */
		(void)snprintf(text + used, size - used, "%ssession %llu (%s)%s%s",
			       count > 1 ? ", " : "", (unsigned long long)s->id, s->peer,
			       kernel ? ", last kernel " : "", kernel ? kernel : "");
		used += strlen(text + used);
	}
	return only;
}

uint32_t
gpd_running_work_describe(char *text, size_t size)
{
	struct gpd_session *about;
	uint32_t budget;

	pthread_mutex_lock(&gpd_sessions.lock);
	about = gpd_running_work_find(-1, text, size);
	budget =
		about ? about->account.entry->log_budget
		      : gpd_log_budget_get(GPD_LOG_BUDGET_SESSIONS, "sessions that share a worker");
	pthread_mutex_unlock(&gpd_sessions.lock);
	if (!text[0])
		(void)snprintf(text, size, "no session");
	return budget;
}

/* Writes "CUDA_ERROR_ILLEGAL_ADDRESS (700), after work of ...". */
static void
result_describe(CUresult result, const char *whose, char *text, size_t size)
{
	const char *name = NULL;

	(void)gpd_driver.cuGetErrorName(result, &name);
	(void)snprintf(text, size, "%.80s (%d)%s%s", name ? name : "unknown error", (int)result,
		       whose[0] ? ", after work of " : "", whose);
}

static bool
is_described(const struct gpd_channel_lost *lost, uint32_t tenant)
{
	for (uint32_t i = 0; i < lost->tenant_count; i++)
		if (lost->tenants[i].tenant == tenant)
			return true;
	return false;
}

/* Describes the error and the sessions whose work may have caused it. Returns the session if there
 * is only one, else NULL. */
static struct gpd_session *
describe_culprits(CUresult result, struct gpd_channel_lost *lost) GP_LOCKED(gpd_sessions.lock)
{
	char whose[900];
	struct gpd_session *culprit = gpd_running_work_find(-1, whose, sizeof(whose));

	result_describe(result, whose, lost->log, sizeof(lost->log));
	result_describe(result, whose[0] ? "another tenant" : "", lost->others,
			sizeof(lost->others));
	for (struct gpd_session *s = gpd_sessions.first; s; s = s->next) {
		uint32_t tenant = s->account.entry->tenant;

		if (!is_culprit(s) || is_described(lost, tenant) ||
		    lost->tenant_count == GPD_LOST_TENANTS)
			continue;
		(void)gpd_running_work_find(tenant, whose, sizeof(whose));
		lost->tenants[lost->tenant_count].tenant = tenant;
		result_describe(result, whose, lost->tenants[lost->tenant_count].text,
				sizeof(lost->tenants[0].text));
		lost->tenant_count++;
	}
	return culprit;
}

static bool
session_is_notified(const struct gpd_session *s)
{
	return gpd_session_is(s, GPD_SESSION_OPENED) || atomic_load(&s->send.sticky_reported);
}

/* Whether the client has copied the memory it shares with the process. */
static bool
has_left(const struct gpd_session *s)
{
	return gpd_session_is(s, GPD_SESSION_OPENED) || !gpd_session_client_has_shared_memory(s);
}

/* Waits until the predicate is true of all sessions. */
static void
sessions_wait_all(bool (*is_so)(const struct gpd_session *s), int least_ms, int most_ms)
{
	for (int waited = 0; waited < most_ms; waited += POLL_MS) {
		bool all = true;

		pthread_mutex_lock(&gpd_sessions.lock);
		for (struct gpd_session *s = gpd_sessions_next_locked(NULL); s;
		     s = gpd_sessions_next_locked(s))
			all = all && is_so(s);
		pthread_mutex_unlock(&gpd_sessions.lock);
		if (all && waited >= least_ms)
			break;
		gp_sleep_ns(POLL_MS * UINT64_C(1000000));
	}
}

/* Ends the process when all clients have been notified, or when their time is over. */
static void *
fault_exit(void *arg)
{
	/* The minimum time lets replies to running calls be sent, too. */
	sessions_wait_all(session_is_notified, REPLIES_MS, LOST_MS);
	sessions_wait_all(has_left, 0, CLIENT_MS);
	gpd_sessions_exit();
}

/* Returns true for the first caller that detects the loss. A session that is about to end detects
 * it as well and takes the lock before it is removed, so it is still among the sessions that may
 * have caused it. */
static bool
loss_claim(CUresult result, struct gpd_channel_lost *lost, struct gpd_session **culprit_p)
{
	int none = 0;
	bool first;

	/* Attributed under the same rule: the text that the driver has written about it is logged
	 * first. */
	gpd_driver_stderr_flush();
	pthread_mutex_lock(&gpd_sessions.lock);
	first = atomic_compare_exchange_strong(&gpd_devices.lost, &none, (int)result);
	if (first)
		*culprit_p = describe_culprits(result, lost);
	pthread_mutex_unlock(&gpd_sessions.lock);
	return first;
}

void
gpd_session_poison(struct gpd_session *session, CUresult result)
{
	struct gpd_channel_lost lost = { .tenant_count = 0 };
	char complaint[GPD_DRIVER_STDERR_MAX];
	struct gpd_session *culprit;

	if (!loss_claim(result, &lost, &culprit))
		return;
	(void)gpd_driver_stderr_read(complaint, sizeof(complaint));
	pthread_mutex_lock(&gpd_sessions.lock);
	for (struct gpd_session *s = gpd_sessions_next_locked(NULL); s;
	     s = gpd_sessions_next_locked(s)) {
		if (s == culprit && *complaint)
			s->send.complaint = strdup(complaint);
		atomic_store(&s->sticky, (int)result);
		(void)gpd_session_set_state(s, GPD_SESSION_LOST);
		gpd_session_wake(s);
	}
	pthread_mutex_unlock(&gpd_sessions.lock);
	(void)gpd_sessions_notify_supervisor(GPD_CHANNEL_LOST, (int32_t)result, session->id, &lost,
					     sizeof(lost));
	if (gp_thread_start("fault-exit", 0, fault_exit, NULL))
		gpd_sessions_exit();
}
