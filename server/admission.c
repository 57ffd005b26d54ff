/* SPDX-License-Identifier: Apache-2.0 */
#include "server/admission.h"

#include "protocol/ticket.h"
#include "server/admission_state.h"
#include "server/answer.h"
#include "server/clock.h"
#include "server/log.h"

#include <cuda.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define SESSIONS_DEFAULT 256
/* Three data lanes: several times what one connection carries, and cores left for the rest. */
#define LANES_DEFAULT 4
/* Encrypted, each carries less. */
#define LANES_ENCRYPTED 8
#define QUEUED_MS 30000
#define FULL_MS 1500
#define OPENING_MS 15000
/* A client looks for a window that it can have, and has a few tries. */
#define WINDOWS_MAX 16

void
gpd_admission_init(struct gpd_admission *admission, struct gpd_quota *quota, int sessions_max,
		   int lanes_max)
{
	*admission = (struct gpd_admission){
		.quota = quota,
		.sessions_max = sessions_max,
		.lanes_max = lanes_max,
		.begin_ms = INT64_MAX,
	};
}

void
gpd_admission_add(struct gpd_admission *admission, struct gpd_peer *peer, int64_t now_ms)
{
	peer->state = GPD_PEER_HANDSHAKE;
	peer->deadline_ms = now_ms + GPD_HANDSHAKE_MS;
	peer->next = admission->peers;
	admission->peers = peer;
	admission->handshakes++;
	gpd_caller_count_handshake(peer->caller, 1);
}

void
gpd_admission_set_state(struct gpd_admission *admission, struct gpd_peer *peer,
			enum gpd_peer_state state, int64_t deadline_ms)
{
	if (peer->state <= GPD_PEER_REFUSED && state > GPD_PEER_REFUSED) {
		admission->handshakes--;
		gpd_caller_count_handshake(peer->caller, -1);
	}
	peer->state = state;
	peer->deadline_ms = deadline_ms;
}

void
gpd_admission_unlink(struct gpd_admission *admission, struct gpd_peer *peer)
{
	struct gpd_peer **link = &admission->peers;

	while (*link != peer)
		link = &(*link)->next;
	*link = peer->next;
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

static void
tell_worker(struct gpd_child *worker, enum gpd_channel_type type, uint64_t session,
	    const void *data, size_t size)
{
	struct gpd_channel_header header = { .type = type, .session = session };

	gpd_admission_tell(worker, &header, data, size, -1);
}

static void
end_session(struct gpd_peer *peer, const char *reason)
{
	if (peer->worker)
		tell_worker(peer->worker, GPD_CHANNEL_CLOSE, peer->session, reason, strlen(reason));
	else if (peer->own && peer->own->state == GPD_CHILD_READY)
		tell_worker(peer->own, GPD_CHANNEL_RETIRE, 0, NULL, 0);
	peer->worker = peer->own = NULL;
}

/* Its thread notices and posts the last event. */
void
gpd_admission_end_peer(struct gpd_admission *admission, struct gpd_peer *peer, const char *reason)
{
	if (peer->state == GPD_PEER_ENDING)
		return;
	end_session(peer, reason);
	gpd_admission_set_state(admission, peer, GPD_PEER_ENDING, INT64_MAX);
	gp_conn_shutdown(peer->conn);
}

void
gpd_admission_refuse(struct gpd_admission *admission, struct gpd_peer *peer,
		     Gpupool__Refused__Reason reason, const char *text)
{
	gpd_caller_log(peer->caller, GPD_LOG_WARNING, "%s (%s): refused: %s",
		       gp_conn_peer(peer->conn), peer->name, text);
	gpd_answer_refused(peer, reason, text);
	gpd_admission_end_peer(admission, peer, text);
}

/* OPEN or REWINDOW. */
static void
ask_for_window(struct gpd_peer *peer, enum gpd_channel_type type, uint32_t line, uint64_t size,
	       Gpupool__Range **avoid, size_t avoid_count)
{
	union {
		struct gpd_channel_open open;
		char room[sizeof(struct gpd_channel_open) +
			  GPD_AVOID_MAX * sizeof(struct gpd_range)];
	} message;
	size_t used;

	if (avoid_count > GPD_AVOID_MAX)
		avoid_count = GPD_AVOID_MAX;
	used = sizeof(struct gpd_channel_open) + avoid_count * sizeof(struct gpd_range);
	memset(&message, 0, used);
	snprintf(message.open.peer, sizeof(message.open.peer), "%s", peer->name);
	message.open.window_size = size;
	message.open.line = line;
	if (type == GPD_CHANNEL_OPEN)
		memcpy(message.open.ticket, peer->ticket, sizeof(message.open.ticket));
	message.open.lanes_max = peer->lanes_max;
	message.open.avoid_count = (uint32_t)avoid_count;
	for (size_t i = 0; i < avoid_count; i++)
		message.open.avoid[i] = (struct gpd_range){ avoid[i]->address, avoid[i]->size };
	tell_worker(peer->worker, type, peer->session, &message, used);
}

/*
 * Whoever had the place may have ended a moment ago, and its session not yet: a script that runs
 * one program after the other shall not fail for that.  False: it has waited, or cannot.
 */
static bool
wait_for_place(struct gpd_admission *admission, struct gpd_peer *peer, const char *text,
	       int64_t now_ms)
{
	bool waited = peer->full != NULL;

	if (waited)
		return peer->deadline_ms > now_ms;
	peer->full = strdup(text);
	if (peer->full)
		gpd_admission_set_state(admission, peer, GPD_PEER_QUEUED, now_ms + FULL_MS);
	return peer->full != NULL;
}

static unsigned int
lanes_max(const struct gpd_admission *admission, const struct gpd_peer *peer)
{
	uint32_t configured = admission->quota->tenants.config->lanes_max;

	if (admission->lanes_max)
		return (unsigned int)admission->lanes_max;
	if (configured)
		return configured;
	return gp_conn_caps(peer->conn) & GP_CONN_CAP_ENCRYPTED ? LANES_ENCRYPTED : LANES_DEFAULT;
}

static void
open_session(struct gpd_admission *admission, struct gpd_peer *peer, struct gpd_child *worker,
	     int64_t now_ms)
{
	const Gpupool__Hello *hello = peer->hello->hello;
	struct gpd_ledger_session *line;
	Gpupool__Refused__Reason reason;
	char error[GPD_CONFIG_ERROR_MAX];

	if (getrandom(peer->ticket, sizeof(peer->ticket), 0) != (ssize_t)sizeof(peer->ticket)) {
		gpd_admission_refuse(admission, peer, GPUPOOL__REFUSED__REASON__WORKER,
				     "no random numbers for a ticket");
		return;
	}
	gp_ticket_name(peer->ticket, peer->ticket_name);
	line = gpd_quota_open(admission->quota, admission->last_session + 1, hello, worker->pid,
			      &peer->grant, &reason, error);
	if (!line && reason == GPUPOOL__REFUSED__REASON__FULL &&
	    wait_for_place(admission, peer, error, now_ms))
		return;
	if (!line) {
		gpd_admission_refuse(admission, peer, reason, error);
		return;
	}
	free(peer->full);
	peer->full = NULL;
	peer->session = ++admission->last_session;
	gpd_roster_enter(admission->roster, gpd_ledger_index(admission->quota->ledger, line),
			 peer->session, hello, &peer->grant, gp_conn_peer(peer->conn));
	gpd_roster_set_credentials(admission->roster,
				   gpd_ledger_index(admission->quota->ledger, line), &peer->pass,
				   gp_conn_certificate(peer->conn));
	peer->worker = worker;
	peer->lanes_max = lanes_max(admission, peer);
	if (hello->lanes && hello->lanes < peer->lanes_max)
		peer->lanes_max = hello->lanes;
	gpd_admission_set_state(admission, peer, GPD_PEER_OPENING, now_ms + OPENING_MS);
	ask_for_window(peer, GPD_CHANNEL_OPEN, gpd_ledger_index(admission->quota->ledger, line), 0,
		       hello->window_avoid, hello->n_window_avoid);
}

/* If the worker that it waits for is there. */
static void
open_queued(struct gpd_admission *admission, struct gpd_peer *peer, int64_t now_ms)
{
	struct gpd_child *own = peer->own;

	if (own && own->state == GPD_CHILD_READY)
		open_session(admission, peer, own, now_ms);
	else if (!own && admission->worker)
		open_session(admission, peer, admission->worker, now_ms);
	/* A worker for one session ends with it. */
	if (own && peer->worker == own)
		tell_worker(own, GPD_CHANNEL_RETIRE, 0, NULL, 0);
}

/* Those who wait for a worker or a place. */
static void
open_all_queued(struct gpd_admission *admission, int64_t now_ms)
{
	for (struct gpd_peer *p = admission->peers; p; p = p->next) {
		if (p->state == GPD_PEER_QUEUED)
			open_queued(admission, p, now_ms);
	}
}

/* In a worker of its own, which has to be started. */
static void
open_alone(struct gpd_admission *admission, struct gpd_peer *peer, int64_t now_ms)
{
	peer->own = admission->start_alone(admission->arg);
	if (peer->own)
		gpd_admission_set_state(admission, peer, GPD_PEER_QUEUED, now_ms + QUEUED_MS);
	else
		gpd_admission_refuse(admission, peer, GPUPOOL__REFUSED__REASON__WORKER,
				     "no process can be started for the session");
}

int
gpd_admission_sessions_max(const struct gpd_admission *admission)
{
	uint32_t configured = admission->quota->tenants.config->sessions_max;

	if (admission->sessions_max)
		return admission->sessions_max;
	return configured ? (int)configured : SESSIONS_DEFAULT;
}

static int
count_sessions(const struct gpd_admission *admission)
{
	int count = 0;

	for (const struct gpd_peer *p = admission->peers; p; p = p->next)
		count += p->state >= GPD_PEER_QUEUED && p->state <= GPD_PEER_RUNNING;
	return count;
}

static unsigned int
sessions_per_address_max(const struct gpd_admission *admission, const struct gpd_peer *peer)
{
	uint32_t configured = admission->quota->tenants.config->sessions_per_address;

	if (configured)
		return configured;
	if (gp_conn_caps(peer->conn) & GP_CONN_CAP_LOCAL)
		return UINT32_MAX;
	/* So that there is always something left for others. */
	return (unsigned int)(gpd_admission_sessions_max(admission) + 1) / 2;
}

static bool
address_has_room(const struct gpd_admission *admission, const struct gpd_peer *peer)
{
	unsigned int count = 0;

	for (const struct gpd_peer *p = admission->peers; p; p = p->next)
		count += p->caller == peer->caller && p->state >= GPD_PEER_QUEUED &&
			 p->state <= GPD_PEER_RUNNING;
	return count < sessions_per_address_max(admission, peer);
}

/* Whose the client is; false: it is refused. */
static bool
admit(struct gpd_admission *admission, struct gpd_peer *peer)
{
	char error[GPD_CONFIG_ERROR_MAX];

	if (gpd_tenants_admit(&admission->quota->tenants, peer->hello->hello, peer->pass.tenant,
			      gp_conn_peer(peer->conn), &peer->grant, error) == 0)
		return true;
	gpd_admission_refuse(admission, peer, GPUPOOL__REFUSED__REASON__POLICY, error);
	return false;
}

static void
take_hello(struct gpd_admission *admission, struct gpd_peer *peer, Gpupool__ControlMessage *message,
	   int64_t now_ms)
{
	const Gpupool__Hello *hello = message->hello;

	peer->hello = message;
	snprintf(peer->name, sizeof(peer->name), "%.50s %u %.50s", hello->host, hello->pid,
		 hello->program);
	/* Who has no credentials learns nothing else. */
	if (!gpd_admission_let_in(admission, peer, now_ms))
		return;
	gpd_peer_trust(peer);
	if (admission->stopping) {
		gpd_admission_refuse(admission, peer, GPUPOOL__REFUSED__REASON__SHUTTING_DOWN,
				     "the daemon stops");
		return;
	}
	if (admission->draining) {
		gpd_admission_refuse(
			admission, peer, GPUPOOL__REFUSED__REASON__SHUTTING_DOWN,
			"the daemon admits no new sessions at the moment (gpupoolctl drain)");
		return;
	}
	if (count_sessions(admission) >= gpd_admission_sessions_max(admission)) {
		gpd_admission_refuse(admission, peer, GPUPOOL__REFUSED__REASON__FULL,
				     "all sessions are taken (--max-sessions)");
		return;
	}
	if (!address_has_room(admission, peer)) {
		gpd_admission_refuse(admission, peer, GPUPOOL__REFUSED__REASON__FULL,
				     "there are as many sessions from this address as may be "
				     "(sessions-per-address)");
		return;
	}
	if (!admit(admission, peer))
		return;
	if (hello->resume_ticket.len) {
		gpd_admission_refuse(admission, peer, GPUPOOL__REFUSED__REASON__NO_SESSION,
				     "the session to resume has ended");
		return;
	}
	if (peer->grant.alone) {
		open_alone(admission, peer, now_ms);
		return;
	}
	gpd_admission_set_state(admission, peer, GPD_PEER_QUEUED, now_ms + QUEUED_MS);
	open_queued(admission, peer, now_ms);
}

static void
take_window_request(struct gpd_admission *admission, struct gpd_peer *peer,
		    const Gpupool__WindowRequest *request, int64_t now_ms)
{
	if (peer->state != GPD_PEER_WELCOMED) {
		gpd_warning("session %llu (%s): a window is asked for at the wrong time",
			    (unsigned long long)peer->session, peer->name);
		gpd_admission_end_peer(admission, peer, "a window is asked for at the wrong time");
		return;
	}
	if (++peer->windows > WINDOWS_MAX) {
		gpd_admission_end_peer(admission, peer, "it asks for too many windows");
		gpd_warning("session %llu (%s): it asks for too many windows",
			    (unsigned long long)peer->session, peer->name);
		return;
	}
	gpd_admission_set_state(admission, peer, GPD_PEER_MOVING, now_ms + OPENING_MS);
	ask_for_window(peer, GPD_CHANNEL_REWINDOW, 0, request->size, request->avoid,
		       request->n_avoid);
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

void
gpd_admission_opened(struct gpd_admission *admission, struct gpd_child *worker,
		     const struct gpd_channel_message *message, int64_t now_ms)
{
	struct gpd_peer *peer =
		gpd_admission_find_session(admission, worker, message->header.session);
	const struct gpd_channel_opened *opened = message->data;
	bool moving;

	/* Without a peer the client has left meanwhile, and the worker was told so. */
	if (!peer || message->size < sizeof(*opened) ||
	    message->size < sizeof(*opened) + opened->device_count * sizeof(uint64_t))
		return;
	moving = peer->state == GPD_PEER_MOVING;
	if (!moving && peer->state != GPD_PEER_OPENING)
		return;
	if (!moving && opened->window.size == 0) {
		gpd_quota_close(admission->quota, peer->session);
		gpd_admission_refuse(admission, peer, GPUPOOL__REFUSED__REASON__FULL,
				     "there is no range of device addresses left for a session");
		return;
	}
	/* A move that found nothing leaves the client where it is; it may ask again. */
	gpd_admission_set_state(admission, peer, GPD_PEER_WELCOMED, now_ms + LANE_MS);
	if (moving)
		gpd_answer_window(peer, opened);
	else if (gpd_answer_welcome(admission->quota, peer, opened))
		gpd_admission_refuse(admission, peer, GPUPOOL__REFUSED__REASON__WORKER,
				     "the daemon has no memory for another session");
}

void
gpd_admission_closed(struct gpd_admission *admission, struct gpd_child *worker,
		     const struct gpd_channel_message *message, int64_t now_ms)
{
	struct gpd_peer *peer =
		gpd_admission_find_session(admission, worker, message->header.session);
	char text[256];

	gpd_quota_close(admission->quota, message->header.session);
	open_all_queued(admission, now_ms);
	if (!peer)
		return;
	gpd_channel_text(message, text, sizeof(text));
	peer->worker = NULL;
	if (message->header.result)
		gpd_answer_session_error(peer, message->header.result, text);
	else
		gpd_answer_bye(peer, text);
	gpd_admission_end_peer(admission, peer, text);
}

void
gpd_admission_set_worker(struct gpd_admission *admission, struct gpd_child *worker, int64_t now_ms)
{
	admission->worker = worker;
	if (worker)
		open_all_queued(admission, now_ms);
}

bool
gpd_admission_alone_ready(struct gpd_admission *admission, struct gpd_child *worker, int64_t now_ms)
{
	for (struct gpd_peer *p = admission->peers; p; p = p->next) {
		if (p->own != worker || p->state != GPD_PEER_QUEUED)
			continue;
		open_queued(admission, p, now_ms);
		return p->state != GPD_PEER_ENDING;
	}
	return false;
}

void
gpd_admission_worker_gone(struct gpd_admission *admission, struct gpd_child *worker, int result,
			  const char *text)
{
	for (struct gpd_peer *p = admission->peers; p; p = p->next) {
		bool own = p->own == worker;

		if (own)
			p->own = NULL;
		if (own && (p->state == GPD_PEER_QUEUED || p->state == GPD_PEER_OPENING)) {
			p->worker = NULL;
			gpd_admission_refuse(admission, p, GPUPOOL__REFUSED__REASON__WORKER, text);
			continue;
		}
		if (p->worker != worker)
			continue;
		p->worker = NULL;
		if (p->state == GPD_PEER_OPENING) {
			/* It knows of no session yet: the next worker will do. */
			gpd_admission_set_state(admission, p, GPD_PEER_QUEUED,
						p->deadline_ms - OPENING_MS + QUEUED_MS);
			continue;
		}
		gpd_answer_session_error(p, result, text);
		gpd_admission_end_peer(admission, p, text);
	}
}

static void
take_gone(struct gpd_admission *admission, struct gpd_peer *peer,
	  const struct gpd_peer_event *event)
{
	if (event->refused)
		admission->gate.refusals[GPD_AUTH_HANDSHAKE]++;
	if (event->refused)
		gpd_caller_log(peer->caller, GPD_LOG_WARNING, "%s: refused: %s",
			       gp_conn_peer(peer->conn), event->text);
	else if (peer->state == GPD_PEER_HANDSHAKE)
		gpd_caller_log(peer->caller, GPD_LOG_INFO, "%s: no session: %s",
			       gp_conn_peer(peer->conn), event->text);
	else if (peer->state != GPD_PEER_REFUSED && peer->state != GPD_PEER_ENDING && !event->ended)
		gpd_info("session %llu (%s): control connection: %s",
			 (unsigned long long)peer->session, peer->name, event->text);
	end_session(peer, event->text);
	gpd_admission_set_state(admission, peer, GPD_PEER_ENDING, INT64_MAX);
	gpd_admission_unlink(admission, peer);
	gpd_peer_destroy(peer);
}

void
gpd_admission_take_events(struct gpd_admission *admission, int64_t now_ms)
{
	struct gpd_peer_event *event;

	while ((event = gpd_peer_next_event())) {
		struct gpd_peer *peer = event->peer;

		switch (event->type) {
		case GPD_PEER_LANE:
			gpd_admission_take_lane(admission, peer, &event->preamble);
			break;
		case GPD_PEER_GONE:
			take_gone(admission, peer, event);
			break;
		case GPD_PEER_MESSAGE:
			if (peer->state == GPD_PEER_ENDING) {
				gp_control_free(event->message);
			} else if (event->message->body_case ==
				   GPUPOOL__CONTROL_MESSAGE__BODY_HELLO) {
				take_hello(admission, peer, event->message, now_ms);
			} else {
				take_window_request(admission, peer, event->message->window_request,
						    now_ms);
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
	const char *peer_name = gp_conn_peer(peer->conn);

	switch (peer->state) {
	case GPD_PEER_QUEUED:
		if (peer->full) {
			gpd_admission_refuse(admission, peer, GPUPOOL__REFUSED__REASON__FULL,
					     peer->full);
			break;
		}
		/* fall through */
	case GPD_PEER_OPENING:
		gpd_admission_refuse(admission, peer, GPUPOOL__REFUSED__REASON__WORKER,
				     "the GPUs cannot be used at the moment");
		break;
	case GPD_PEER_WELCOMED:
	case GPD_PEER_MOVING:
		gpd_warning("session %llu (%s): its lane did not come in time",
			    (unsigned long long)peer->session, peer->name);
		gpd_admission_end_peer(admission, peer, "its lane did not come in time");
		break;
	case GPD_PEER_REFUSED:
		gpd_admission_tell_refused(admission, peer);
		break;
	default:
		gpd_caller_log(peer->caller, GPD_LOG_WARNING,
			       "%s: no session: it did not say hello in time", peer_name);
		gpd_admission_end_peer(admission, peer, "it did not say hello in time");
		break;
	}
}

void
gpd_admission_check_deadlines(struct gpd_admission *admission, int64_t now_ms)
{
	if (gpd_admission_gate_deadline(admission) <= now_ms)
		gpd_admission_check_credentials(admission, now_ms);
	for (struct gpd_peer *p = admission->peers; p; p = p->next) {
		if (p->deadline_ms <= now_ms)
			run_out_of_time(admission, p);
	}
	gpd_admission_begin(admission, now_ms);
	if (gpd_caller_deadline() <= now_ms)
		gpd_caller_check(now_ms);
}

int64_t
gpd_admission_deadline(const struct gpd_admission *admission)
{
	int64_t deadline = gpd_admission_gate_deadline(admission);
	int64_t caller = gpd_caller_deadline();

	if (caller < deadline)
		deadline = caller;
	if (admission->begin_ms < deadline)
		deadline = admission->begin_ms;
	for (const struct gpd_peer *p = admission->peers; p; p = p->next) {
		if (p->deadline_ms < deadline)
			deadline = p->deadline_ms;
	}
	return deadline;
}

int
gpd_admission_reload(struct gpd_admission *admission, char *error)
{
	struct gpd_quota *quota = admission->quota;
	int r = gpd_tenants_reload(&quota->tenants, error);

	if (r == 0) {
		gpd_gate_reload(&admission->gate, quota->tenants.config);
		gpd_admission_check_certificates(admission);
	}
	for (struct gpd_peer *p = admission->peers; r == 0 && p; p = p->next) {
		struct gpd_ledger_session *line =
			p->worker ? gpd_ledger_find(quota->ledger, p->session) : NULL;

		/* Whoever still waits may be somebody else's now, or nobody's. */
		if (p->state == GPD_PEER_QUEUED)
			(void)admit(admission, p);
		/* A tenant that is not configured any more keeps what it had. */
		if (line && quota->tenants.places[p->grant.tenant] >= 0)
			gpd_quota_limit(quota, p->hello->hello, &p->grant, line);
		if (line)
			tell_worker(p->worker, GPD_CHANNEL_SHARES, p->session, NULL, 0);
	}
	return r;
}

static struct gpd_peer *
find_peer(const struct gpd_admission *admission, uint64_t session)
{
	struct gpd_peer *peer = admission->peers;

	while (peer && (!peer->worker || peer->session != session))
		peer = peer->next;
	return peer;
}

void
gpd_admission_end_session(struct gpd_admission *admission, struct gpd_peer *peer,
			  const char *reason)
{
	gpd_info("session %llu (%s): %s", (unsigned long long)peer->session, peer->name, reason);
	gpd_answer_session_error(peer, CUDA_ERROR_MPS_CLIENT_TERMINATED, reason);
	gpd_admission_end_peer(admission, peer, reason);
}

void
gpd_admission_terminate(struct gpd_admission *admission, uint64_t session)
{
	struct gpd_peer *peer = find_peer(admission, session);

	if (peer)
		gpd_admission_end_session(admission, peer, "terminated by the administrator");
}

void
gpd_admission_quota_changed(struct gpd_admission *admission, uint64_t session)
{
	struct gpd_peer *peer = find_peer(admission, session);

	if (peer)
		tell_worker(peer->worker, GPD_CHANNEL_SHARES, session, NULL, 0);
}

bool
gpd_admission_is_empty(const struct gpd_admission *admission)
{
	const struct gpd_ledger *ledger = admission->quota->ledger;

	if (count_sessions(admission))
		return false;
	for (int i = 0; i < GPD_LEDGER_SESSIONS; i++) {
		if (atomic_load(&ledger->sessions[i].id))
			return false;
	}
	return true;
}

void
gpd_admission_stop(struct gpd_admission *admission)
{
	admission->stopping = true;
	gpd_admission_forget_waiting(admission, gpd_now_ms());
	for (struct gpd_peer *p = admission->peers; p; p = p->next) {
		if (p->state == GPD_PEER_ENDING)
			continue;
		if (p->state > GPD_PEER_REFUSED)
			gpd_answer_bye(p, "the daemon stops");
		p->worker = NULL; /* it is told to stop as a whole */
		gpd_admission_end_peer(admission, p, "the daemon stops");
	}
}

void
gpd_admission_fini(struct gpd_admission *admission)
{
	struct gpd_peer_event *event;

	for (struct gpd_peer *p = admission->peers; p; p = p->next)
		gp_conn_shutdown(p->conn);
	while (admission->peers) {
		struct gpd_peer *peer = admission->peers;

		admission->peers = peer->next;
		gpd_peer_destroy(peer);
	}
	while ((event = gpd_peer_next_event())) {
		gp_control_free(event->message);
		free(event);
	}
	gpd_admission_forget_waiting(admission, gpd_now_ms());
	gpd_caller_forget_all();
}
