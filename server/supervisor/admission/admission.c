/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/admission/admission.h"

#include "base/clock.h"
#include "server/common/base/log.h"
#include "server/supervisor/admission/admission_state.h"
#include "server/supervisor/door/control_reply.h"

#include <cuda.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* How often addresses are forgotten, and the log says what it has left out. */
#define TIDY_MS 30000

int
gpd_admission_init(struct gpd_admission *admission, struct gpd_quota *quota, int sessions_max,
		   int lanes_max)
{
	*admission = (struct gpd_admission){
		.quota = quota,
		.sessions_max = sessions_max,
		.lanes_max = lanes_max,
	};
	return gpd_roster_init(&admission->roster);
}

void
gpd_admission_add(struct gpd_admission *admission, struct gpd_peer *peer)
{
	peer->deadline_ms = gp_now_ms() + GPD_HANDSHAKE_MS;
	LL_PREPEND(admission->peers, peer);
	admission->handshakes++;
	peer->source->handshakes++;
}

void
gpd_admission_set_state(struct gpd_admission *admission, struct gpd_peer *peer,
			enum gpd_peer_state state, int64_t wait_ms)
{
	bool was_outside = peer->state <= GPD_PEER_REFUSED;
	int64_t deadline_ms = wait_ms == FOREVER ? INT64_MAX : gp_now_ms() + wait_ms;

	if (!gpd_peer_set_state(peer, state, deadline_ms) || !was_outside ||
	    state <= GPD_PEER_REFUSED)
		return;
	admission->handshakes--;
	peer->source->handshakes--;
}

/* A worker that cannot be told does not read any more; one that has ended says so by its end. */
void
gpd_admission_tell(struct gpd_child *worker, const struct gpd_channel_header *header,
		   const void *data, size_t size, int fd)
{
	int r = gpd_channel_post(&worker->channel, header, data, size, fd);

	if (r == 0 || r == -EPIPE || r == -ECONNRESET)
		return;
	gpd_error("worker %d does not listen: killed", (int)worker->pid);
	(void)kill(worker->pid, SIGKILL);
}

void
gpd_admission_tell_session(struct gpd_child *worker, enum gpd_channel_type type, uint64_t session,
			   const void *data, size_t size)
{
	struct gpd_channel_header header = { .type = type, .session = session };

	gpd_admission_tell(worker, &header, data, size, -1);
}

static void
end_session(struct gpd_admission *admission, struct gpd_peer *peer, const char *reason)
{
	struct gpd_channel_header header = { .type = GPD_CHANNEL_CLOSE,
					     .result = peer->turned_out,
					     .session = peer->session };

	if (peer->worker)
		gpd_admission_tell(peer->worker, &header, reason, strlen(reason), -1);
	gpd_admission_abandon_own(admission, peer);
	peer->worker = peer->own = NULL;
}

/* Its thread notices and posts the last event. */
void
gpd_admission_end_peer(struct gpd_admission *admission, struct gpd_peer *peer, const char *reason)
{
	if (peer->state == GPD_PEER_ENDING)
		return;
	end_session(admission, peer, reason);
	gpd_admission_set_state(admission, peer, GPD_PEER_ENDING, FOREVER);
	gp_conn_shutdown(peer->conn);
}

void
gpd_admission_log_session(const struct gpd_peer *peer, enum gpd_log_level level, const char *text)
{
	gpd_log_budget_log(peer->log_budget, level, "session %llu (%s): %s",
			   (unsigned long long)peer->session, peer->name, text);
}

/* Who asks again learns how many are before. */
static const char *
tell_place(struct gpd_admission *admission, const struct gpd_peer *peer, const char *text,
	   char room[GPD_CONFIG_ERROR_MAX])
{
	uint64_t number = peer->hello ? peer->hello->hello->wait : 0;
	unsigned int place = 0;

	if (number)
		place = gpd_queue_wait(&admission->quota->queue, number, peer->grant.tenant,
				       peer->full_for_any, gp_now_ms());
	if (!number)
		return text;
	if (place)
		(void)snprintf(room, GPD_CONFIG_ERROR_MAX, "%.*s; number %u in the queue",
			       GPD_CONFIG_ERROR_MAX - 40, text, place);
	else
		(void)snprintf(room, GPD_CONFIG_ERROR_MAX,
			       "%.*s; no number: the queue is full (%d of a tenant, %d of all)",
			       GPD_CONFIG_ERROR_MAX - 80, text, GPD_QUEUE_OF_TENANT, GPD_QUEUE_MAX);
	return room;
}

void
gpd_admission_refuse(struct gpd_admission *admission, struct gpd_peer *peer,
		     Gpupool__Refused__Reason reason, const char *text)
{
	char room[GPD_CONFIG_ERROR_MAX];

	if (reason == GPUPOOL__REFUSED__REASON__FULL)
		text = tell_place(admission, peer, text, room);
	gpd_source_log(peer->source, GPD_LOG_WARNING, "%s (%s): refused: %s",
		       gp_conn_peer(peer->conn), peer->name, text);
	gpd_control_reply_refused(peer, reason, text);
	gpd_admission_end_peer(admission, peer, text);
}

struct gpd_peer *
gpd_admission_find_session(const struct gpd_admission *admission, const struct gpd_child *worker,
			   uint64_t id)
{
	struct gpd_peer *peer = admission->peers;

	while (peer && (peer->worker != worker || peer->session != id))
		peer = peer->next;
	return peer;
}

/* It asks no more: a place that is kept for it others may have. */
static void
leave_queue(struct gpd_admission *admission, uint64_t number)
{
	gpd_queue_leave(&admission->quota->queue, number);
	gpd_admission_go_on(admission);
}

/* There was none for as long as it was kept. */
static void
refuse_place(struct gpd_admission *admission, struct gpd_peer *peer)
{
	const Gpupool__Hello *hello = peer->hello->hello;
	bool last = gpd_queue_has(&admission->quota->queue, hello->wait) && hello->patience_ms &&
		    hello->patience_ms < GPD_HELD_MS;

	gpd_admission_refuse(admission, peer, GPUPOOL__REFUSED__REASON__FULL, peer->full);
	if (last)
		leave_queue(admission, hello->wait);
}

static void
take_gone(struct gpd_admission *admission, struct gpd_peer *peer,
	  const struct gpd_peer_event *event)
{
	bool waited = peer->state == GPD_PEER_QUEUED && peer->full[0];
	char text[sizeof(event->text) + 24];

	(void)snprintf(text, sizeof(text), "control connection: %s", event->text);
	if (event->refused)
		admission->gate.refusals[GPD_AUTH_HANDSHAKE]++;
	if (peer->state == GPD_PEER_HANDSHAKE)
		gpd_source_count_wasted(peer->source, gp_now_ms());
	if (event->refused)
		gpd_source_log(peer->source, GPD_LOG_WARNING, "%s: refused: %s",
			       gp_conn_peer(peer->conn), event->text);
	else if (peer->state == GPD_PEER_HANDSHAKE && !event->ended)
		gpd_source_log(peer->source, GPD_LOG_INFO, "%s: no session: %s",
			       gp_conn_peer(peer->conn), event->text);
	else if (peer->state == GPD_PEER_HANDSHAKE)
		gpd_debug("%s: no session: %s", gp_conn_peer(peer->conn), event->text);
	else if (peer->state != GPD_PEER_REFUSED && peer->state != GPD_PEER_ENDING && !event->ended)
		gpd_admission_log_session(peer, GPD_LOG_INFO, text);
	end_session(admission, peer, event->text);
	gpd_admission_set_state(admission, peer, GPD_PEER_ENDING, FOREVER);
	LL_DELETE(admission->peers, peer);
	if (waited)
		leave_queue(admission, peer->hello->hello->wait);
	gpd_peer_destroy(peer);
}

void
gpd_admission_take_events(struct gpd_admission *admission)
{
	struct gpd_peer_event *next;

	/* Events that peers post meanwhile have the next turn. */
	for (struct gpd_peer_event *event = gpd_peer_take_events(); event; event = next) {
		struct gpd_peer *peer = event->peer;

		next = event->next;
		switch (event->type) {
		case GPD_PEER_LANE:
			gpd_admission_take_lane(admission, peer, &event->preamble);
			break;
		case GPD_PEER_GONE:
			take_gone(admission, peer, event);
			break;
		case GPD_PEER_MESSAGE:
			atomic_fetch_sub(&peer->queued, 1);
			if (peer->state == GPD_PEER_ENDING) {
				gp_control_free(event->message);
			} else if (event->message->body_case ==
				   GPUPOOL__CONTROL_MESSAGE__BODY_HELLO) {
				gpd_admission_take_hello(admission, peer, event->message);
			} else {
				gpd_admission_take_window_request(admission, peer,
								  event->message->window_request);
				gp_control_free(event->message);
			}
			break;
		}
		free(event);
	}
}

static void
run_out_of_time(struct gpd_admission *admission, struct gpd_peer *peer)
{
	static const char no_lane[] = "its lane did not come in time";
	const char *peer_name = gp_conn_peer(peer->conn);

	switch (peer->state) {
	case GPD_PEER_QUEUED:
		if (peer->full[0]) {
			refuse_place(admission, peer);
			break;
		}
		/* fall through */
	case GPD_PEER_OPENING:
		gpd_admission_refuse(admission, peer, GPUPOOL__REFUSED__REASON__WORKER,
				     "the GPUs cannot be used at the moment");
		break;
	case GPD_PEER_STARTING:
		gpd_admission_refuse(admission, peer,
				     peer->own ? GPUPOOL__REFUSED__REASON__WORKER
					       : GPUPOOL__REFUSED__REASON__FULL,
				     peer->own ? "its own process is not ready in time"
					       : "other sessions' own processes start, and its "
						 "turn has not come in time");
		break;
	case GPD_PEER_WELCOMED:
	case GPD_PEER_MOVING:
		gpd_admission_log_session(peer, GPD_LOG_WARNING, no_lane);
		gpd_control_reply_session_error(peer, CUDA_ERROR_SYSTEM_NOT_READY, no_lane);
		gpd_admission_end_peer(admission, peer, no_lane);
		break;
	case GPD_PEER_REFUSED:
		gpd_admission_tell_refused(admission, peer);
		break;
	default:
		gpd_source_log(peer->source, GPD_LOG_WARNING,
			       "%s: no session: it did not say hello in time", peer_name);
		gpd_admission_end_peer(admission, peer, "it did not say hello in time");
		break;
	}
}

void
gpd_admission_check_deadlines(struct gpd_admission *admission)
{
	int64_t now_ms = gp_now_ms();

	if (admission->gate_ms <= now_ms)
		gpd_admission_check_credentials(admission);
	for (struct gpd_peer *p = admission->peers; p; p = p->next) {
		if (p->deadline_ms <= now_ms)
			run_out_of_time(admission, p);
	}
	gpd_admission_tend_early(admission);
	gpd_admission_begin(admission);
	if (admission->tidy_ms > now_ms)
		return;
	admission->tidy_ms = now_ms + TIDY_MS;
	gpd_source_check(now_ms);
	gpd_log_budget_check(now_ms);
}

void
gpd_admission_reload(struct gpd_admission *admission, struct gpd_config *config,
		     struct gpd_reloaded *reloaded)
{
	struct gpd_quota *quota = admission->quota;

	gpd_tenants_use(&quota->tenants, config);
	gpd_gate_reload(&admission->gate, config, gp_now_ms(), reloaded);
	gpd_admission_check_certificates(admission);
	for (struct gpd_peer *p = admission->peers; p; p = p->next) {
		bool has_line = p->worker || p->state == GPD_PEER_STARTING;
		struct gpd_ledger_session *line =
			has_line ? gpd_ledger_find(quota->ledger, p->session) : NULL;

		/* Whoever still waits may be somebody else's now, or nobody's. */
		if (p->state == GPD_PEER_QUEUED)
			(void)gpd_admission_admit(admission, p);
		/* A tenant that is not configured any more keeps what it had. */
		if (line && quota->tenants.places[p->grant.tenant] >= 0)
			gpd_quota_limit(quota, p->hello->hello, &p->grant, line);
	}
	gpd_admission_quotas_changed(admission);
	/* There may be more places now, and those who wait may be of another class. */
	gpd_admission_go_on(admission);
}

struct gpd_peer *
gpd_admission_find(const struct gpd_admission *admission, uint64_t session)
{
	struct gpd_peer *peer = admission->peers;

	while (peer &&
	       ((!peer->worker && peer->state != GPD_PEER_STARTING) || peer->session != session))
		peer = peer->next;
	return peer;
}

void
gpd_admission_turn_out(struct gpd_admission *admission, struct gpd_peer *peer,
		       Gpupool__Refused__Reason reason, const char *text)
{
	if (!peer->worker) {
		gpd_admission_refuse(admission, peer, reason, text);
		return;
	}
	gpd_info("session %llu (%s): %s", (unsigned long long)peer->session, peer->name, text);
	gpd_control_reply_session_error(peer, CUDA_ERROR_MPS_CLIENT_TERMINATED, text);
	peer->turned_out = true;
	gpd_admission_end_peer(admission, peer, text);
}

void
gpd_admission_terminate(struct gpd_admission *admission, uint64_t session)
{
	struct gpd_peer *peer = gpd_admission_find(admission, session);

	if (peer)
		gpd_admission_turn_out(admission, peer, GPUPOOL__REFUSED__REASON__POLICY,
				       "terminated by the administrator");
}

void
gpd_admission_quotas_changed(struct gpd_admission *admission)
{
	for (struct gpd_peer *p = admission->peers; p; p = p->next) {
		if (p->worker)
			gpd_admission_tell_session(p->worker, GPD_CHANNEL_SHARES, p->session, NULL,
						   0);
	}
}

bool
gpd_admission_is_empty(const struct gpd_admission *admission)
{
	return gpd_admission_count_sessions(admission) == 0 &&
	       !gpd_ledger_next(admission->quota->ledger, NULL, GPD_LEDGER_ANY_WORKER);
}

void
gpd_admission_stop(struct gpd_admission *admission)
{
	admission->stopping = true;
	gpd_admission_forget_waiting(admission);
	for (struct gpd_peer *p = admission->peers; p; p = p->next) {
		if (p->state == GPD_PEER_ENDING)
			continue;
		if (p->state > GPD_PEER_REFUSED)
			gpd_control_reply_bye(p, "the daemon stops");
		p->worker = NULL; /* it is told to stop as a whole */
		gpd_admission_end_peer(admission, p, "the daemon stops");
	}
}

void
gpd_admission_fini(struct gpd_admission *admission)
{
	struct gpd_peer_event *next;

	for (struct gpd_peer *p = admission->peers; p; p = p->next)
		gp_conn_shutdown(p->conn);
	while (admission->peers) {
		struct gpd_peer *peer = admission->peers;

		admission->peers = peer->next;
		gpd_peer_destroy(peer);
	}
	for (struct gpd_peer_event *event = gpd_peer_take_events(); event; event = next) {
		next = event->next;
		gp_control_free(event->message);
		free(event);
	}
	gpd_admission_forget_waiting(admission);
	gpd_admission_forget_early(admission);
	gpd_roster_fini(&admission->roster);
	gpd_source_check(INT64_MAX);
	gpd_log_budget_check(gp_now_ms());
}
