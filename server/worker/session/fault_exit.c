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
#include "server/worker/session/assertion.h"
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

/* Serializes the attribution of the loss. A session that is about to end detects the loss, too, and
 * waits here before it is removed, so it still is among the sessions that may have caused it. */
static struct {
	pthread_mutex_t lock;
} loss = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* A session that has launched has a lane; after DRAINING none of its work is running. */
static bool
has_running_work(const struct gpd_session *s)
{
	return atomic_load(&s->state) <= GPD_SESSION_DRAINING &&
	       atomic_load(&s->account.entry->counts.launches) > 0 &&
	       __atomic_load_n(&s->progress.work, __ATOMIC_RELAXED) >
		       atomic_load(&s->progress.done_work);
}

static bool
is_suspect(const struct gpd_session *s)
{
	return s->progress.suspect;
}

/* Describes the sessions of which the predicate is true, as gpd_running_work_find(). */
static struct gpd_session *
sessions_describe(bool (*is_so)(const struct gpd_session *s), int64_t tenant, char *text,
		  size_t size) GP_LOCKED(gpd_sessions.lock)
{
	struct gpd_session *only = NULL;
	size_t used = 0;
	int count = 0;

	text[0] = 0;
	for (struct gpd_session *s = gpd_sessions.first; s; s = s->next) {
		const char *kernel = __atomic_load_n(&s->progress.kernel, __ATOMIC_ACQUIRE);

		if (!is_so(s) || (tenant >= 0 && s->account.entry->tenant != tenant))
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

struct gpd_session *
gpd_running_work_find(int64_t tenant, char *text, size_t size)
{
	return sessions_describe(has_running_work, tenant, text, size);
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

/* Describes the error and the suspects. */
static void
suspects_describe(CUresult result, struct gpd_channel_lost *lost) GP_LOCKED(gpd_sessions.lock)
{
	char whose[900];

	(void)sessions_describe(is_suspect, -1, whose, sizeof(whose));
	result_describe(result, whose, lost->log, sizeof(lost->log));
	result_describe(result, whose[0] ? "another tenant" : "", lost->others,
			sizeof(lost->others));
	for (struct gpd_session *s = gpd_sessions.first; s; s = s->next) {
		uint32_t tenant = s->account.entry->tenant;

		if (!is_suspect(s))
			continue;
		if (lost->suspect_count < GPD_LOST_SUSPECTS)
			lost->suspects[lost->suspect_count++] = s->id;
		if (is_described(lost, tenant) || lost->tenant_count == GPD_LOST_TENANTS)
			continue;
		(void)sessions_describe(is_suspect, tenant, whose, sizeof(whose));
		lost->tenants[lost->tenant_count].tenant = tenant;
		result_describe(result, whose, lost->tenants[lost->tenant_count].text,
				sizeof(lost->tenants[0].text));
		lost->tenant_count++;
	}
}

/* Keeps the suspects of which the predicate is true, if there are any. */
static void
suspects_narrow(bool (*is_so)(const struct gpd_session *s)) GP_LOCKED(gpd_sessions.lock)
{
	bool any = false;

	for (struct gpd_session *s = gpd_sessions.first; s; s = s->next)
		any = any || (is_suspect(s) && is_so(s));
	for (struct gpd_session *s = gpd_sessions.first; any && s; s = s->next)
		s->progress.suspect = s->progress.suspect && is_so(s);
}

static bool
may_assert(const struct gpd_session *s)
{
	return s->progress.asserting != NULL;
}

static bool
has_complaint(const struct gpd_session *s)
{
	return s->send.complaint != NULL;
}

/* Appends to the text that the session's client gets before the error. */
static void
complaint_append(struct gpd_session *session, const char *text, size_t size)
{
	size_t used = session->send.complaint ? strlen(session->send.complaint) : 0;
	char *grown = realloc(session->send.complaint, used + size + 1);

	if (!grown)
		return;
	memcpy(grown + used, text, size);
	grown[used + size] = '\0';
	session->send.complaint = grown;
}

/* Sets `asserted` of the sessions that may have failed the assertion: those whose code contains it;
 * if it is in no code that was searched, the only session that may fail one. Returns their
 * number. */
static unsigned int
assertion_attribute(const struct gpd_assertion *assertion) GP_LOCKED(gpd_sessions.lock)
{
	struct gpd_session *last = NULL;
	unsigned int candidates = 0, found = 0;

	for (struct gpd_session *s = gpd_sessions.first; s; s = s->next) {
		s->progress.asserted = has_running_work(s) && may_assert(s);
		candidates += s->progress.asserted;
		if (s->progress.asserted)
			last = s;
	}
	for (struct gpd_session *s = gpd_sessions.first; s; s = s->next) {
		s->progress.asserted =
			s->progress.asserted &&
			gpd_assertion_matches(s, assertion, GPD_ASSERTION_SEARCH_MAX / candidates);
		found += s->progress.asserted;
	}
	if (found || candidates != 1)
		return found;
	last->progress.asserted = true;
	return 1;
}

static bool
assertion_equals(const struct gpd_assertion *a, const struct gpd_assertion *b)
{
	return a->file_size == b->file_size && a->expression_size == b->expression_size &&
	       memcmp(a->file, b->file, a->file_size) == 0 &&
	       memcmp(a->expression, b->expression, a->expression_size) == 0;
}

/* Gives each line about an assertion to the sessions that may have failed it. */
static void
assertions_deliver(const char *text) GP_LOCKED(gpd_sessions.lock)
{
	struct gpd_assertion assertion, before = { .file = "" };
	unsigned int count = 0;
	char shared[160] = "";

	for (const char *line = text, *next; *line; line = next) {
		size_t size = strcspn(line, "\n");

		next = line + size + (line[size] == '\n');
		if (!gpd_assertion_parse(line, size, &assertion))
			continue;
		if (!assertion_equals(&assertion, &before)) {
			count = assertion_attribute(&assertion);
			(void)snprintf(shared, sizeof(shared),
				       "gpupool: %u programs were running the code of this "
				       "assertion; it has failed in one of them\n",
				       count);
		}
		for (struct gpd_session *s = gpd_sessions.first; s; s = s->next) {
			if (!s->progress.asserted)
				continue;
			if (count > 1 && !assertion_equals(&assertion, &before))
				complaint_append(s, shared, strlen(shared));
			complaint_append(s, line, (size_t)(next - line));
		}
		before = assertion;
	}
}

/* Gives each other line to the only suspect; if there are several, no client gets it. */
static void
lines_deliver(const char *text) GP_LOCKED(gpd_sessions.lock)
{
	struct gpd_assertion assertion;
	char ignored[1];
	struct gpd_session *only = sessions_describe(is_suspect, -1, ignored, sizeof(ignored));

	for (const char *line = text, *next; only && *line; line = next) {
		size_t size = strcspn(line, "\n");

		next = line + size + (line[size] == '\n');
		if (!gpd_assertion_parse(line, size, &assertion))
			complaint_append(only, line, (size_t)(next - line));
	}
}

/* Finds the sessions whose kernels may be the cause, and gives the driver's text to the clients
 * that it is about. session: the one that has reported the loss. */
static void
loss_attribute(CUresult result, const struct gpd_session *session, const char *text)
	GP_LOCKED(gpd_sessions.lock)
{
	for (struct gpd_session *s = gpd_sessions.first; s; s = s->next) {
		/* A timeout is reported by the session whose work does not end. */
		s->progress.suspect =
			result == CUDA_ERROR_LAUNCH_TIMEOUT ? s == session : has_running_work(s);
	}
	assertions_deliver(text);
	if (result == CUDA_ERROR_ASSERT) {
		suspects_narrow(may_assert);
		suspects_narrow(has_complaint);
	}
	lines_deliver(text);
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

/* Returns true for the first caller that detects the loss, after it has set *lost and the texts for
 * the clients. */
static bool
loss_claim(CUresult result, const struct gpd_session *session, struct gpd_channel_lost *lost)
{
	static char text[GPD_DRIVER_STDERR_MAX]; /* protected by the lock */
	bool first;

	pthread_mutex_lock(&loss.lock);
	first = !atomic_load(&gpd_devices.lost);
	if (first) {
		/* Also logs the text, while the sessions are known. */
		(void)gpd_driver_stderr_read(text, sizeof(text));
		pthread_mutex_lock(&gpd_sessions.lock);
		atomic_store(&gpd_devices.lost, (int)result);
		loss_attribute(result, session, text);
		suspects_describe(result, lost);
		pthread_mutex_unlock(&gpd_sessions.lock);
	}
	pthread_mutex_unlock(&loss.lock);
	return first;
}

void
gpd_session_poison(struct gpd_session *session, CUresult result)
{
	struct gpd_channel_lost lost = { .tenant_count = 0 };

	if (!loss_claim(result, session, &lost))
		return;
	pthread_mutex_lock(&gpd_sessions.lock);
	for (struct gpd_session *s = gpd_sessions_next_locked(NULL); s;
	     s = gpd_sessions_next_locked(s)) {
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
