/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session/silence.h"

#include "base/clock.h"
#include "base/lock.h"
#include "client/base/config.h"
#include "client/base/log.h"
#include "client/session/lane_internal.h"
#include "client/session/session_internal.h"
#include "protocol/control.h"
#include "protocol/printable.h"
#include "transport/timeout.h"

#include <errno.h>
#include <stdio.h>

/* Timeout for the rest of a message on the control connection; such a message fits into one
 * packet. */
#define MESSAGE_MS 1000

static void
news_store(struct gpc_control_news *news, const Gpupool__ControlMessage *message)
{
	switch (message->body_case) {
	case GPUPOOL__CONTROL_MESSAGE__BODY_SESSION_ERROR:
		news->is_over = true;
		news->result = CUDA_SUCCESS;
		if (message->session_error->cuda_result > CUDA_SUCCESS &&
		    message->session_error->cuda_result <= CUDA_ERROR_UNKNOWN)
			news->result = (CUresult)message->session_error->cuda_result;
		(void)gp_printable_text(news->text, sizeof(news->text),
					message->session_error->text);
		break;
	case GPUPOOL__CONTROL_MESSAGE__BODY_BYE:
		if (!*message->bye->text)
			break;
		news->is_over = true;
		(void)gp_printable_text(news->text, sizeof(news->text), message->bye->text);
		break;
	case GPUPOOL__CONTROL_MESSAGE__BODY_PONG:
		news->pong = message->pong->number;
		news->hangs = message->pong->worker_hangs;
		break;
	default:
		break;
	}
}

/* Returns whether a message was received. */
static bool
news_recv(struct gpc_session *session, int timeout_ms)
{
	struct gpc_control_news *news = &session->news;
	Gpupool__ControlMessage *message;
	int r = gp_conn_wait(session->control, timeout_ms);

	if (r > 0)
		r = gp_control_recv(session->control, &message);
	else
		message = NULL;
	if (r != 0)
		news->failed = r;
	else if (message)
		news_store(news, message);
	else
		return false;
	if (r == 0)
		gp_control_free(message);
	return r == 0;
}

void
gpc_control_news_read(struct gpc_session *session) GP_LOCKED(session->reason_lock)
{
	struct gpc_control_news *news = &session->news;

	while (session->control && !news->is_over && news->failed == 0 &&
	       gp_conn_wait(session->control, 0) != 0) {
		gp_conn_set_deadline(session->control, MESSAGE_MS);
		if (!news_recv(session, 0))
			break;
		gp_conn_set_deadline(session->control, 0);
	}
}

bool
gpc_control_news_await(struct gpc_session *session, int64_t end)
{
	struct gpc_control_news *news = &session->news;
	int left;

	if (!session->control)
		return false;
	do {
		left = gp_remaining_ms(end);
		if (news->is_over || news->failed != 0)
			break;
		/* The deadline also covers a message that arrives byte by byte. */
		gp_conn_set_deadline(session->control, left > 0 ? (unsigned int)left : 1);
	} while (news_recv(session, left) && left > 0);
	return news->is_over;
}

/* Returns whether a thread may be waiting for the daemon. */
static bool
session_is_waiting(struct gpc_session *session)
{
	return atomic_load_explicit(&session->receiver.outstanding, memory_order_relaxed) > 0 ||
	       atomic_load_explicit(&session->sender.sending, memory_order_relaxed) ||
	       atomic_load_explicit(&session->lanes->unsent, memory_order_relaxed) > 0;
}

static bool
conn_is_lost(struct gp_conn *conn, unsigned int timeout_ms)
{
	return conn && gp_conn_get_unacknowledged_ms(conn) >= timeout_ms;
}

/* Finds a lane without acknowledgments, and formats the reason for the end of the session. */
static bool
session_find_lost_lane(struct gpc_session *session, char *text, size_t size)
{
	unsigned int timeout_ms = session->silence.timeout_ms;
	struct gpc_lanes *lanes = session->lanes;
	char time[GP_TIMEOUT_TEXT_MAX];
	bool lost;

	gp_timeout_format(timeout_ms, time);
	lost = conn_is_lost(session->lane, timeout_ms);
	if (lost)
		(void)snprintf(text, size, "no acknowledgment from %s for %s",
			       gp_conn_peer(session->lane), time);
	(void)pthread_mutex_lock(&lanes->lock);
	for (unsigned int i = 0; i < lanes->count && !lost && !lanes->over; i++) {
		lost = conn_is_lost(lanes->lanes[i].conn, timeout_ms);
		if (lost)
			(void)snprintf(text, size, "data lane %u: no acknowledgment from %s for %s",
				       lanes->lanes[i].number, gp_conn_peer(lanes->lanes[i].conn),
				       time);
	}
	(void)pthread_mutex_unlock(&lanes->lock);
	return lost;
}

/* Only a silent network is reported here: other reasons also arrive on the lanes, after the data
 * that the daemon sent before. */
static bool
session_read_control(struct gpc_session *session, char *text, size_t size)
{
	struct gpc_silence *silence = &session->silence;
	bool lost;

	(void)pthread_mutex_lock(&session->reason_lock);
	gpc_control_news_read(session);
	lost = session->news.failed == -ETIMEDOUT &&
	       gp_conn_is_silent(session->control, silence->timeout_ms);
	if (lost)
		(void)snprintf(text, size, "control connection: %s",
			       gp_conn_error(session->control));
	if (silence->pinged_ms && session->news.pong == silence->ping) {
		silence->pinged_ms = 0;
		silence->next_ping_ms = gp_now_ms() + silence->timeout_ms / 2;
		silence->hangs = session->news.hangs;
		if (!silence->hangs)
			silence->heard_ms = gp_now_ms();
	}
	(void)pthread_mutex_unlock(&session->reason_lock);
	return lost;
}

static void
session_send_ping(struct gpc_session *session, int64_t now)
{
	struct gpc_silence *silence = &session->silence;

	if (!session->control || session->news.failed != 0 || silence->pinged_ms ||
	    atomic_flag_test_and_set(&silence->sending))
		return;
	silence->ping++;
	silence->pinged_ms = now;
	/* If this fails, reading the connection returns the reason. */
	(void)!gp_control_send_ping(session->control, silence->ping);
	atomic_flag_clear(&silence->sending);
}

void
gpc_silence_send_bye(struct gpc_session *session)
{
	if (!session->control || atomic_flag_test_and_set(&session->silence.sending))
		return;
	(void)!gp_control_send_bye(session->control, "");
	atomic_flag_clear(&session->silence.sending);
}

static void
silence_report_end(struct gpc_session *session)
{
	if (!atomic_exchange(&session->silence.reported, false))
		return;
	session->silence.answers_since_ms = gp_now_ms();
	gpc_log_always("%s: the daemon answers again", gp_conn_peer(session->lane));
}

/* Returns whether a lane has stopped in the middle of a message while the daemon responds. */
static bool
lane_is_stalled(const struct gpc_silence *silence, int64_t now)
{
	int64_t noticed = atomic_load(&silence->stalled_ms);

	/* A lane that stopped together with the daemon resumes a little later. */
	return now - silence->answers_since_ms >= (int64_t)silence->timeout_ms && noticed &&
	       now - noticed <= 2 * GPC_SILENCE_CHECK_MS &&
	       atomic_load(&silence->stalled_for_ms) >= silence->timeout_ms;
}

/* A ping is sent after half of the timeout; silence is reported after all of it. */
static void
silence_evaluate(struct gpc_session *session, int64_t now)
{
	struct gpc_silence *silence = &session->silence;
	int64_t half_ms = silence->timeout_ms / 2;
	char time[GP_TIMEOUT_TEXT_MAX];

	if (now - silence->heard_ms >= half_ms && now >= silence->next_ping_ms)
		session_send_ping(session, now);
	gp_timeout_format(silence->timeout_ms, time);
	if (silence->pinged_ms && now - silence->pinged_ms >= half_ms &&
	    now - silence->heard_ms >= (int64_t)silence->timeout_ms) {
		if (!atomic_exchange(&silence->reported, true))
			gpc_log_always("%s: the daemon has not answered for %s, but its machine "
				       "acknowledges; waiting for gpupoold to continue",
				       gp_conn_peer(session->lane), time);
	} else if (silence->hangs && now - silence->heard_ms >= (int64_t)silence->timeout_ms) {
		if (!atomic_exchange(&silence->reported, true))
			gpc_log_always("%s: the daemon's worker process has not answered for %s; "
				       "waiting for it to continue",
				       gp_conn_peer(session->lane), time);
	} else if (!silence->pinged_ms && lane_is_stalled(silence, now)) {
		if (!atomic_exchange(&silence->reported, true))
			gpc_log_always("%s: lane %u has stopped in the middle of a message for %s, "
				       "but the daemon answers; waiting for the lane to continue",
				       gp_conn_peer(session->lane),
				       atomic_load(&silence->stalled_lane), time);
	} else if (!silence->pinged_ms) {
		silence_report_end(session);
	}
}

/* Returns whether the session is lost. */
static bool
silence_check(struct gpc_session *session, int64_t now, char *why, size_t size)
{
	struct gpc_silence *silence = &session->silence;
	uint64_t moved = atomic_load_explicit(&silence->moved, memory_order_relaxed);

	if (!session_is_waiting(session)) {
		silence->waiting = false;
		silence_report_end(session);
		return false;
	}
	if (!silence->waiting || moved != silence->seen_moved) {
		silence->heard_ms = now;
		silence->hangs = false;
		if (silence->waiting)
			silence_report_end(session);
	}
	silence->waiting = true;
	silence->seen_moved = moved;
	if (session_find_lost_lane(session, why, size) || session_read_control(session, why, size))
		return true;
	silence_evaluate(session, now);
	return false;
}

bool
gpc_silence_is_due(const struct gpc_session *session)
{
	const struct gpc_silence *silence = &session->silence;

	return silence->timeout_ms && gp_now_ms() >= atomic_load(&silence->next_ms);
}

bool
gpc_silence_check(struct gpc_session *session, char *why, size_t size)
{
	struct gpc_silence *silence = &session->silence;
	int64_t now = gp_now_ms();
	bool lost;

	if (!gpc_silence_is_due(session) || gpc_session_is_over(session) ||
	    atomic_flag_test_and_set(&silence->checking))
		return false;
	atomic_store(&silence->next_ms, now + GPC_SILENCE_CHECK_MS);
	lost = silence_check(session, now, why, size);
	atomic_flag_clear(&silence->checking);
	return lost;
}

/* Callback of gp_conn_set_stall_callback(). */
static bool
lane_note_stalled(void *arg, unsigned int silent_ms)
{
	const struct gpc_silence_lane *lane = arg;
	struct gpc_silence *silence = &lane->session->silence;
	char why[GPC_SILENCE_WHY_MAX];

	if (silent_ms >= silence->timeout_ms) {
		atomic_store(&silence->stalled_lane, lane->number);
		atomic_store(&silence->stalled_for_ms, silent_ms);
		atomic_store(&silence->stalled_ms, gp_now_ms());
	}
	if (!gpc_silence_check(lane->session, why, sizeof(why)))
		return true;
	/* Receiving reports this reason, whichever connection it concerns. */
	(void)gp_conn_fail(lane->conn, -ETIMEDOUT, "%s", why);
	return false;
}

void
gpc_silence_init(struct gpc_session *session)
{
	session->silence.timeout_ms = gpc_config_timeout_ms();
	session->silence.lane.session = session;
	gpc_silence_watch(session->lane, &session->silence.lane);
}

void
gpc_silence_watch(struct gp_conn *conn, struct gpc_silence_lane *lane)
{
	lane->conn = conn;
	if (lane->session->silence.timeout_ms == 0) {
		gp_conn_set_stall_timeout(conn, 0);
		return;
	}
	gp_conn_set_stall_timeout(conn, GPC_SILENCE_CHECK_MS);
	gp_conn_set_stall_callback(conn, lane_note_stalled, lane);
}
