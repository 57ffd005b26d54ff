/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session/session.h"

#include "base/clock.h"
#include "base/lock.h"
#include "client/base/error.h"
#include "client/base/log.h"
#include "client/base/log_history.h"
#include "client/session/call.h"
#include "client/session/host_queue.h"
#include "client/session/lane.h"
#include "client/session/session_internal.h"
#include "client/session/session_threads.h"
#include "client/session/shared_pages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Time for which a receiver polls for a reply before it sleeps, unless another thread needs the
 * processor: waking it costs a tenth of the time of a copy of some MiB. */
#define SPIN_USEC 1000
/* When the lane breaks, the supervisor may report the reason a little later. */
#define REASON_WAIT_MS 300

static struct gpc_session *sessions[GPC_SESSIONS_MAX];
static int session_count;

struct gpc_session *
gpc_session_get(void)
{
	return __atomic_load_n(&sessions[0], __ATOMIC_ACQUIRE);
}

int
gpc_session_count(void)
{
	return __atomic_load_n(&session_count, __ATOMIC_ACQUIRE);
}

struct gpc_session *
gpc_session_at(int number)
{
	return sessions[number];
}

int
gpc_session_number(const struct gpc_session *session)
{
	return session->number;
}

void
gpc_session_set(struct gpc_session *session)
{
	__atomic_store_n(&session_count, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&sessions[0], NULL, __ATOMIC_RELEASE);
	if (session)
		gpc_session_add(session);
}

void
gpc_session_add(struct gpc_session *session)
{
	session->number = session_count;
	__atomic_store_n(&sessions[session_count], session, __ATOMIC_RELEASE);
	__atomic_store_n(&session_count, session_count + 1, __ATOMIC_RELEASE);
}

const struct gpc_session_facts *
gpc_session_facts(const struct gpc_session *session)
{
	return &session->facts;
}

static void
session_free(struct gpc_session *session)
{
	gpc_sender_fini(session);
	gpc_receiver_fini(session);
	gpc_host_queue_fini(session);
	gpc_lanes_fini(session);
	(void)pthread_cond_destroy(&session->threads_ended);
	(void)pthread_mutex_destroy(&session->threads_lock);
	(void)pthread_mutex_destroy(&session->reason_lock);
	free(session);
}

/* Wakes all waiting threads at the end of the session. */
static void
session_wake_all(struct gpc_session *session)
{
	const struct gpc_session_callbacks *callbacks = atomic_load(&session->callbacks);

	gpc_sender_wake_all(session);
	gpc_receiver_abort(session);
	gpc_host_queue_stop(session);
	if (callbacks)
		callbacks->over(callbacks->arg);
}

bool
gpc_session_shares_memory(const struct gpc_session *session)
{
	return gp_conn_caps(session->lane) & GP_CONN_CAP_PASS_FD;
}

int
gpc_session_recv_fd(struct gpc_session *session)
{
	return gp_conn_recv_fd(session->lane);
}

void
gpc_session_set_callbacks(struct gpc_session *session,
			  const struct gpc_session_callbacks *callbacks)
{
	atomic_store(&session->callbacks, callbacks);
	/* The session may have ended before. */
	if (gpc_session_is_over(session))
		callbacks->over(callbacks->arg);
}

int
gpc_session_create(struct gp_conn *lane, struct gp_conn *control,
		   const struct gpc_session_facts *facts, unsigned int max_outstanding,
		   struct gpc_session **session_p)
{
	struct gpc_session *session = calloc(1, sizeof(*session));
	int r;

	if (!session)
		return -ENOMEM;
	session->facts = *facts;
	session->room.max = gpc_call_room(facts->max_deferred);
	session->max_outstanding = max_outstanding;
	session->lane = lane;
	session->control = control;
	(void)pthread_mutex_init(&session->threads_lock, NULL);
	(void)pthread_mutex_init(&session->reason_lock, NULL);
	gp_cond_init(&session->threads_ended);
	gpc_host_queue_init(session);
	gpc_silence_init(session);
	r = gpc_receiver_init(session);
	if (r == 0)
		r = gpc_lanes_init(session);
	if (r == 0)
		r = gpc_sender_init(session);
	if (r == 0)
		r = gpc_thread_start(session, gpc_sender_main, session, "gpupool-send");
	if (r == 0)
		r = gpc_thread_start(session, gpc_receiver_main, session, "gpupool-recv");
	if (r != 0) {
		(void)gpc_session_state_move(&session->state, GPC_SESSION_CLOSED, CUDA_SUCCESS);
		session_wake_all(session);
		(void)gpc_threads_wait(session, GP_FOREVER);
		session_free(session);
		return r;
	}
	gp_conn_set_spin(lane, SPIN_USEC);
	(void)gpc_session_state_move(&session->state, GPC_SESSION_OPEN, CUDA_SUCCESS);
	*session_p = session;
	return 0;
}

const char *
gpc_session_peer(const struct gpc_session *session)
{
	return gp_conn_peer(session->lane);
}

CUresult
gpc_session_status(struct gpc_session *session)
{
	return gpc_session_state_result(&session->state);
}

void
gpc_session_note_pinned(struct gpc_session *session)
{
	atomic_store_explicit(&session->pinned, true, memory_order_relaxed);
}

/* Formats possible causes on this side. */
static void
session_format_causes(const struct gpc_session *session, CUresult result, char *text, size_t size)
{
	unsigned int suspended_s = gpc_receiver_suspended(session);

	text[0] = '\0';
	if (suspended_s)
		(void)snprintf(text, size,
			       "; the program was suspended for %u s, and the daemon waits for at "
			       "most its GPUPOOL_TIMEOUT",
			       suspended_s);
	else if (result == CUDA_ERROR_ILLEGAL_ADDRESS && atomic_load(&session->pinned))
		(void)snprintf(text, size,
			       "; the program has pinned host memory, which kernels reach at "
			       "addresses of cuMemHostGetDevicePointer() (gpupool(7))");
}

/* Reports the end of the session to the user, unless the program itself is about to close it. */
static void
session_end(struct gpc_session *session, CUresult result, const char *why)
{
	bool closing = gpc_session_state_get(&session->state) == GPC_SESSION_CLOSING;
	char more[160];

	/* Lower layers, and older daemons, use this code for a session that cannot be opened. */
	if (result == GPC_ERROR_NO_SESSION)
		result = GPC_ERROR_LOST;
	session_format_causes(session, result, more, sizeof(more));
	if (!gpc_session_state_move(&session->state, GPC_SESSION_FAILED, result))
		return;
	if (closing)
		gpc_log(GPC_LOG_ERROR, "%s: the session ended with error %d: %s%s",
			gp_conn_peer(session->lane), (int)result, why, more);
	else
		gpc_log_always("%s: the session ended with error %d: %s%s",
			       gp_conn_peer(session->lane), (int)result, why, more);
	if (!closing)
		gpc_shared_pages_make_private(session);
	gp_conn_shutdown(session->lane);
	gpc_lanes_stop(session);
	session_wake_all(session);
}

void
gpc_session_fail(struct gpc_session *session, CUresult result, const char *why)
{
	session_end(session, result, why);
}

/* Waits for the daemon's reason for ending the session. Returns whether it was reported. */
static bool
session_await_reason(struct gpc_session *session, int64_t end, CUresult *result_p, char *text,
		     size_t size) GP_LOCKED(session->reason_lock)
{
	const struct gpc_control_news *news = &session->news;

	if (!gpc_control_news_await(session, end))
		return false;
	if (news->result != CUDA_SUCCESS)
		*result_p = news->result;
	(void)snprintf(text, size, "%s", news->text);
	return true;
}

void
gpc_session_fault(struct gpc_session *session, CUresult result)
{
	int64_t end_of_wait = gp_deadline_ms(REASON_WAIT_MS);
	char why[GPC_REASON_MAX] = "a kernel faulted";
	CUresult reported = result;

	(void)pthread_mutex_lock(&session->reason_lock);
	if (gpc_session_status(session) == CUDA_SUCCESS)
		(void)session_await_reason(session, end_of_wait, &reported, why, sizeof(why));
	(void)pthread_mutex_unlock(&session->reason_lock);
	session_end(session, result, why);
}

void
gpc_session_lost(struct gpc_session *session, int r)
{
	gpc_session_lost_on(session, session->lane, "", r);
}

/* The worker reports why it has ended only after freeing the shared pages, for which it waits until
 * the lane is closed. */
static void
session_leave_shared(struct gpc_session *session) GP_LOCKED(session->reason_lock)
{
	if (!(gp_conn_caps(session->lane) & GP_CONN_CAP_PASS_FD))
		return;
	if (gpc_session_state_get(&session->state) == GPC_SESSION_OPEN)
		gpc_shared_pages_make_private(session);
	gp_conn_shutdown(session->lane);
}

void
gpc_session_lost_on(struct gpc_session *session, struct gp_conn *conn, const char *name, int r)
{
	CUresult result = gpc_error_to_cuda(r);
	char why[GPC_REASON_MAX];

	(void)snprintf(why, sizeof(why), "%s%s", name,
		       r == GP_E_EOF ? "the daemon closed the connection" : gp_conn_error(conn));
	(void)pthread_mutex_lock(&session->reason_lock);
	if (r != -EPROTO && gpc_session_status(session) == CUDA_SUCCESS) {
		session_leave_shared(session);
		(void)session_await_reason(session, gp_deadline_ms(REASON_WAIT_MS), &result, why,
					   sizeof(why));
	}
	(void)pthread_mutex_unlock(&session->reason_lock);
	session_end(session, result, why);
}

void
gpc_session_defer(struct gpc_session *session, CUresult result)
{
	int none = CUDA_SUCCESS;

	/* The first error is retained, because later ones are often its consequences. */
	(void)atomic_compare_exchange_strong(&session->deferred, &none, (int)result);
}

CUresult
gpc_session_pop_deferred(struct gpc_session *session)
{
	if (atomic_load_explicit(&session->deferred, memory_order_relaxed) == CUDA_SUCCESS)
		return CUDA_SUCCESS;
	return (CUresult)atomic_exchange(&session->deferred, CUDA_SUCCESS);
}

uint64_t
gpc_session_revision(const struct gpc_session *session)
{
	return atomic_load(&session->revision);
}

void
gpc_session_revise(struct gpc_session *session)
{
	atomic_fetch_add(&session->revision, 1);
}

bool
gpc_session_watches_revision(const struct gpc_session *session)
{
	return atomic_load(&session->revision_watched);
}

void
gpc_session_set_revision_watch(struct gpc_session *session)
{
	atomic_store(&session->revision_watched, true);
}

bool
gpc_session_awaits_host(const struct gpc_session *session)
{
	return atomic_load_explicit(&session->functions.unanswered, memory_order_relaxed) > 0;
}

void
gpc_session_note_foreign_wait(struct gpc_session *session)
{
	gpc_atomic_max(&session->foreign_wait, gpc_session_work_mark(session));
}

bool
gpc_session_is_host_gated(const struct gpc_session *session)
{
	return gpc_session_awaits_host(session) ||
	       atomic_load(&session->foreign_wait) > atomic_load(&session->work_done);
}

bool
gpc_session_has_host_functions(const struct gpc_session *session)
{
	return atomic_load(&session->functions.host) > 0;
}

void
gpc_session_close(struct gpc_session *session, int timeout_ms)
{
	uint64_t deadline = gp_deadline_ns(timeout_ms);
	bool sent;

	(void)gpc_session_state_move(&session->state, GPC_SESSION_CLOSING, CUDA_SUCCESS);
	sent = gpc_sender_drain(session, deadline) && gpc_lanes_drain(session, deadline);
	/* No log line as in gpc_session_fail(), because this is a regular end. */
	(void)gpc_session_state_move(&session->state, GPC_SESSION_CLOSED, CUDA_SUCCESS);
	if (sent)
		gpc_silence_send_bye(session);
	gp_conn_shutdown(session->lane);
	gpc_lanes_stop(session);
	session_wake_all(session);
	if (session->control)
		gp_conn_shutdown(session->control);
	/* A host function that calls exit() runs on one of these threads. */
	if (!gpc_in_host_function)
		(void)gpc_threads_wait(session, deadline);
}

void
gpc_session_destroy(struct gpc_session *session)
{
	if (!session)
		return;
	/* gpc_session_close() may have returned without waiting for them. */
	(void)gpc_threads_wait(session, GP_FOREVER);
	gp_conn_destroy(session->lane);
	gp_conn_destroy(session->control);
	session_free(session);
}

void
gpc_session_abandon(struct gpc_session *session)
{
	(void)gpc_session_state_move(&session->state, GPC_SESSION_ABANDONED, CUDA_SUCCESS);
	/* gp_conn_destroy() would send messages to the peer in the name of the parent. */
	gp_conn_abandon(session->lane);
	if (session->control)
		gp_conn_abandon(session->control);
	gpc_lanes_abandon(session);
}

bool
gpc_session_is_abandoned(const struct gpc_session *session)
{
	return gpc_session_state_get(&session->state) == GPC_SESSION_ABANDONED;
}

uint64_t
gpc_session_work_mark(struct gpc_session *session)
{
	return atomic_fetch_add(&session->work_posted, 1) + 1;
}

uint64_t
gpc_session_work_posted(struct gpc_session *session)
{
	return atomic_load(&session->work_posted);
}

uint64_t
gpc_session_work_done(struct gpc_session *session)
{
	return atomic_load(&session->work_done);
}

void
gpc_session_work_set_done(struct gpc_session *session, uint64_t count)
{
	gpc_atomic_max(&session->work_done, count);
}

uint64_t
gpc_session_issued(const struct gpc_session *session)
{
	return atomic_load_explicit(&session->issued.last, memory_order_relaxed);
}

uint64_t
gpc_session_issued_visible(const struct gpc_session *session)
{
	return atomic_load(&session->issued.seen);
}

void
gpc_session_note_visible(struct gpc_session *session)
{
	gpc_atomic_max(&session->issued.seen, gpc_session_issued(session));
}

void
gpc_session_count_visible_blocks(struct gpc_session *session, int count)
{
	(void)atomic_fetch_add(&session->issued.visible_blocks, (unsigned int)count);
}

uint64_t
gpc_session_issued_to(const struct gpc_session *session, uint32_t stream)
{
	return atomic_load_explicit(&session->issued.to[stream % GPC_ISSUED_SLOTS],
				    memory_order_relaxed);
}

CUresult
gpc_session_result(struct gpc_session *session)
{
	CUresult result = gpc_session_status(session);

	return result == CUDA_SUCCESS ? gpc_session_pop_deferred(session) : result;
}
