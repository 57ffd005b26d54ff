/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/executor/executor.h"

#include "base/clock.h"
#include "base/thread.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/lane.h"
#include "server/worker/copy/staging.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/window.h"
#include "server/worker/executor/record.h"
#include "server/worker/executor/session_parts.h"
#include "server/worker/memory/memory.h"
#include "server/worker/module/image.h"
#include "server/worker/module/launch.h"
#include "server/worker/session/session.h"
#include "server/worker/session/sessions.h"
#include "server/worker/stream/responder.h"
#include "server/worker/stream/stream.h"
#include "server/worker/stream_ops/deferred_gate.h"
#include "server/worker/stream_ops/deferred_queue.h"
#include "server/worker/stream_ops/mem_op.h"
#include "transport/transport.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long the executor polls for the next call before it sleeps, and how long while a client may
 * be waiting for the GPU, because its next call comes when the GPU is done. */
#define SPIN_USEC 50
#define SPIN_PENDING_USEC 1000
/* Interval of checks for idleness, if there is a limit. */
#define IDLE_POLL_MS 500

/* Until the client sends a new message: continues copies that wait for staging memory and streams
 * that wait for words or are full. Returns 0, or -EPROTO if the session must end. */
static int
deferred_continue(struct gpd_session *session)
{
	int r = 0;

	while (r == 0) {
		bool copies = gpd_copy_continue(session);
		bool wait_values =
			gpd_wait_values_are_pending(session) && !atomic_load(&session->sticky);
		bool gates = session->stream_ops->gates && !atomic_load(&session->sticky);
		unsigned int wait_ms = gates ? GPD_DEFERRED_GATE_POLL_MS : GPD_COPY_CONTINUE_MS;

		if (!copies && !wait_values && !gates)
			return 0;
		if (gates)
			r = gpd_executor_poll_gates(session);
		if (wait_values && gpd_wait_values_poll(session) > 0) {
			r = gpd_executor_run_deferred(session);
			continue;
		}
		if (gp_conn_wait(session->conn, wait_values ? 0 : wait_ms))
			return 0;
		if (wait_values)
			gpd_wait_values_pause(session);
	}
	return r;
}

/* Whether no wait is pending, here or at the client. */
static bool
session_is_idle(struct gpd_session *session)
{
	gpd_issue_settle(&session->issue);
	if (!gpd_wait_is_empty(session) || !gpd_deferred_is_empty(session) ||
	    !gpd_lanes_sent_all(session))
		return false;
	for (const struct gpd_stream *s = session->streams->list; s; s = s->next) {
		if (!gpd_stream_is_idle(s) &&
		    gpd_driver.cuStreamQuery(s->driver) == CUDA_ERROR_NOT_READY)
			return false;
	}
	return true;
}

/* A limit may be set while the session waits, so it checks from time to time without one, too. The
 * interval is that of the receive timeout, because many sessions sleep. */
static unsigned int
get_default_poll_ms(void)
{
	unsigned int timeout_ms = gpd_sessions_timeout_ms();

	return timeout_ms ? timeout_ms : GP_CONN_TIMEOUT_MS;
}

/* Receives the next message. -ETIMEDOUT, with a reason set: the session was idle for too long. */
static int
message_recv(struct gpd_session *session, unsigned int usual_ms, struct gp_message *message)
{
	uint64_t since = 0;

	for (;;) {
		uint32_t limit = atomic_load(&session->account.ledger->idle_timeout);
		unsigned int poll_ms = limit ? IDLE_POLL_MS : usual_ms;
		uint64_t now;
		int r;

		gp_conn_set_idle_timeout(session->conn, poll_ms);
		r = gp_conn_recv(session->conn, message);
		if (r != GP_E_TIMEOUT)
			return r;
		now = gp_now_ns();
		/* Idle time counts from the first check that finds the session idle. */
		if (!session_is_idle(session))
			since = 0;
		else if (since == 0)
			since = now;
		if (limit == 0 || since == 0 || now - since < limit * 1000000000ull)
			continue;
		gpd_session_violation(session, "it was idle for %u s (idle-timeout)", limit);
		return -ETIMEDOUT;
	}
}

/* A program that ends before its bytes are read resets the connection, which is not a network
 * error. TLS reports a cut connection in its own words. */
static const char *
get_close_reason(const struct gpd_session *session, int r)
{
	if (r == GP_E_EOF)
		return "the client closed it";
	if (r == -ECONNRESET && strncmp(gp_conn_peer(session->conn), "tls:", 4) != 0)
		return "the program exited without closing the session, or its connection was cut";
	return gp_conn_error(session->conn);
}

static unsigned int
get_spin_usec(struct gpd_session *session)
{
	if (!gpd_sessions_may_spin())
		return 0;
	return gpd_wait_is_empty(session) ? SPIN_USEC : SPIN_PENDING_USEC;
}

static void
session_serve(struct gpd_session *session)
{
	const unsigned int poll_ms = get_default_poll_ms();
	struct gp_message message;
	int r;

	do {
		gp_conn_set_spin(session->conn, get_spin_usec(session));
		r = deferred_continue(session);
		if (r == 0)
			r = message_recv(session, poll_ms, &message);
		if (r == 0)
			r = gpd_executor_run_message(session, &message);
		else if (!atomic_load(&session->sticky))
			gpd_session_set_reason(session, get_close_reason(session, r));
	} while (r == 0);
}

void
gpd_session_follow_ledger(struct gpd_session *session)
{
	struct gpd_ledger *ledger = session->account.ledger;
	struct gpd_ledger_session *entry = session->account.entry;

	for (int i = 0; i < gpd_devices.count; i++) {
		uint32_t granularity = atomic_load(&ledger->sm_granularity[i]);
		uint32_t of_all = atomic_load(&ledger->tenants[entry->tenant].devices[i].sm_wanted);
		uint32_t wanted = atomic_load(&entry->devices[i].sm_wanted);

		if (granularity)
			gpd_partition_set_granularity(i, granularity);
		atomic_store(&entry->devices[i].sm_assigned,
			     gpd_partition_assign(&session->shares, i, of_all, wanted));
	}
}

static void
report_open(const struct gpd_session *session)
{
	const struct gpd_account *account = &session->account;

	gpd_session_log(session, GPD_LOG_INFO,
			"open from %s, tenant %s, authenticated by %s, window 0x%llx of %llu GiB",
			gp_conn_peer(session->conn),
			account->ledger->tenants[account->entry->tenant].name,
			session->authenticated_by, (unsigned long long)session->window_base,
			(unsigned long long)(session->window_size >> 30));
	atomic_store(&account->entry->logged, GPD_LOGGED_OPEN);
}

static bool
reclaim_memory(struct gpd_account *account)
{
	struct gpd_session *session =
		(struct gpd_session *)((char *)account - offsetof(struct gpd_session, account));
	bool waited = gpd_memory_wait_freed(session);

	return gpd_image_wait_unloaded(session) || waited;
}

static void
supervisor_request_recall(void)
{
	(void)gpd_sessions_notify_supervisor(GPD_CHANNEL_RECALL, 0, 0, NULL, 0);
}

static void *
executor_run(void *arg)
{
	struct gpd_session *session = arg;
	int r = 0;

	if (gpd_device_enter_any() != CUDA_SUCCESS)
		r = -EIO;
	if (r == 0)
		r = gpd_wait_start(session);
	if (r) {
		gpd_session_violation(session, "it could not be set up: %s", strerror(-r));
	} else {
		report_open(session);
		(void)gpd_session_set_state(session, atomic_load(&session->sticky)
							     ? GPD_SESSION_LOST
							     : GPD_SESSION_SERVING);
		if (session->notice[0])
			(void)gpd_session_send_complaint(session, session->notice);
		session_serve(session);
		gpd_issue_stop(&session->issue);
	}
	gpd_session_close(session);
	return NULL;
}

struct gpd_session *
gpd_session_open(uint64_t id, const struct gpd_channel_open *open, const struct gpd_range *window)
{
	struct gpd_session *session = calloc(1, sizeof(*session));

	if (!session)
		return NULL;
	pthread_mutex_init(&session->send.lock, NULL);
	pthread_mutex_init(&session->reason_lock, NULL);
	pthread_mutex_init(&session->wakers_lock, NULL);
	session->id = id;
	session->window_base = window->address;
	session->window_size = window->size;
	if (gpd_session_parts_create(session)) {
		free(session);
		return NULL;
	}
	memcpy(session->ticket, open->ticket, sizeof(session->ticket));
	session->lanes_max = open->lanes_max;
	session->features = open->features;
	session->compression = open->compression;
	session->account.closing = &session->closing;
	session->account.reclaim_memory = reclaim_memory;
	session->account.recall = supervisor_request_recall;
	session->account.issue = &session->issue;
	session->issue = (struct gpd_issue){
		.failed = gpd_launch_failed,
		.closing = &session->closing,
		.sticky = &session->sticky,
		.most = gpd_issue_most(gpd_sessions.cpus, getenv("GPUPOOL_LAUNCHERS")),
	};
	session->account.ledger = gpd_sessions.ledger;
	session->account.entry = &gpd_sessions.ledger->sessions[open->entry];
	session->handles.memory = (struct gpd_handle_memory){ .ledger = session->account.ledger,
							      .entry = session->account.entry };
	session->shares.tenant = session->account.entry->tenant + 1;
	gpd_session_follow_ledger(session);
	snprintf(session->peer, sizeof(session->peer), "%.*s", (int)sizeof(session->peer) - 1,
		 open->peer);
	snprintf(session->authenticated_by, sizeof(session->authenticated_by), "%.*s",
		 (int)sizeof(session->authenticated_by) - 1, open->authenticated_by);
	snprintf(session->notice, sizeof(session->notice), "%.*s", (int)sizeof(session->notice) - 1,
		 open->notice);
	gpd_sessions_add(session);
	return session;
}

int
gpd_session_start(struct gpd_session *session, struct gp_conn *conn)
{
	session->conn = conn;
	(void)gpd_session_set_state(session, GPD_SESSION_STARTING);
	atomic_fetch_add(&gpd_sessions.count, 1);
	if (gp_thread_start("session", 0, executor_run, session)) {
		atomic_fetch_sub(&gpd_sessions.count, 1);
		session->conn = NULL;
		return -ENOMEM;
	}
	return 0;
}
