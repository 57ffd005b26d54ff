/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/door/peer.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "server/common/base/log.h"
#include "server/supervisor/door/tls_files.h"

#include <cuda.h>
#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define STACK_SIZE ((size_t)512 << 10)
/* A Hello is much smaller; who has said none gets no more of the daemon's memory. */
#define HELLO_MAX ((size_t)16 << 10)
/* So many bytes not yet taken by the peer, and it does not read what it is sent. */
#define UNREAD_MAX 8192
/* Messages for the main thread.  A client that waits for the answers, as it must, has one. */
#define QUEUED_MAX 2

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpd_peer_event *events GP_GUARDED_BY(lock), **events_end = &events;
static int events_fd = -1;

int
gpd_peer_setup(void)
{
	events_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return events_fd < 0 ? -errno : 0;
}

int
gpd_peer_events_fd(void)
{
	return events_fd;
}

struct gpd_peer_event *
gpd_peer_next_event(void)
{
	struct gpd_peer_event *event;
	uint64_t count;

	if (read(events_fd, &count, sizeof(count)) < 0)
		count = 0;
	pthread_mutex_lock(&lock);
	event = events;
	if (event) {
		events = event->next;
		if (!events)
			events_end = &events;
	}
	pthread_mutex_unlock(&lock);
	return event;
}

/* The event that says that the thread ends; it was made with the peer, so that it can be sent. */
static struct gpd_peer_event *
last_event(struct gpd_peer *peer, enum gpd_peer_event_type type)
{
	struct gpd_peer_event *event = peer->last;

	peer->last = NULL;
	event->type = type;
	event->peer = peer;
	return event;
}

static void
post(struct gpd_peer_event *event)
{
	uint64_t one = 1;

	pthread_mutex_lock(&lock);
	*events_end = event;
	events_end = &event->next;
	pthread_mutex_unlock(&lock);
	if (write(events_fd, &one, sizeof(one)) < 0)
		return; /* The counter is full: it is readable. */
}

static void
post_gone(struct gpd_peer *peer, bool ended, const char *text)
{
	struct gpd_peer_event *event = last_event(peer, GPD_PEER_GONE);

	event->ended = ended;
	snprintf(event->text, sizeof(event->text), "%s", text);
	post(event);
}

/* The same, for the log to show as a refusal. */
static void
post_refused(struct gpd_peer *peer, const char *text)
{
	peer->last->refused = true;
	post_gone(peer, false, text);
}

/* Whether the peer reads what it is sent. */
static bool
reads(const struct gpd_peer *peer)
{
	int fd = gp_conn_fd(peer->conn);
	int unread = 0;

	return fd < 0 || ioctl(fd, SIOCOUTQ, &unread) < 0 || unread < UNREAD_MAX;
}

static int
send_message(struct gpd_peer *peer, const Gpupool__ControlMessage *message)
{
	int r = -EPIPE;

	pthread_mutex_lock(&peer->send_lock);
	if (reads(peer))
		r = gp_control_send(peer->conn, message);
	pthread_mutex_unlock(&peer->send_lock);
	return r;
}

void
gpd_peer_send(struct gpd_peer *peer, const Gpupool__ControlMessage *message)
{
	if (send_message(peer, message))
		gp_conn_shutdown(peer->conn);
}

#define TO(state) (1u << (GPD_PEER_##state))

/* What may come after each state. */
static const unsigned int next_states[GPD_PEER_STATES] = {
	[GPD_PEER_HANDSHAKE] = TO(REFUSED) | TO(QUEUED) | TO(ENDING),
	[GPD_PEER_REFUSED] = TO(ENDING),
	[GPD_PEER_QUEUED] = TO(QUEUED) | TO(STARTING) | TO(OPENING) | TO(ENDING),
	[GPD_PEER_STARTING] = TO(STARTING) | TO(OPENING) | TO(ENDING),
	[GPD_PEER_OPENING] = TO(QUEUED) | TO(WELCOMED) | TO(ENDING),
	[GPD_PEER_WELCOMED] = TO(MOVING) | TO(RUNNING) | TO(ENDING),
	[GPD_PEER_MOVING] = TO(WELCOMED) | TO(ENDING),
	[GPD_PEER_RUNNING] = TO(ENDING),
	[GPD_PEER_ENDING] = 0,
};

bool
gpd_peer_set_state(struct gpd_peer *peer, enum gpd_peer_state state, int64_t deadline_ms)
{
	if (!(next_states[peer->state] >> state & 1))
		return false;
	peer->state = state;
	peer->deadline_ms = deadline_ms;
	return true;
}

void
gpd_peer_trust(struct gpd_peer *peer)
{
	gp_conn_set_message_max(peer->conn, GP_CONTROL_MAX);
}

static int
send_preamble(struct gpd_peer *peer, enum gp_preamble_kind kind)
{
	uint8_t bytes[GP_PREAMBLE_SIZE];
	struct gp_preamble preamble;

	gp_preamble_init(&preamble, kind, 0);
	gp_preamble_encode(&preamble, bytes);
	return gp_conn_send_preamble(peer->conn, bytes, sizeof(bytes));
}

/* Whether connections begin with TLS behind their preambles. */
static bool
wants_tls(const struct gpd_peer *peer)
{
	return strcmp(peer->scheme, "tls") == 0;
}

/* Of a kind that this address does not take.  A control connection is told so, in clear. */
static void
refuse_kind(struct gpd_peer *peer, const struct gp_preamble *preamble)
{
	const char *text = wants_tls(peer) ? "this address wants TLS: tls:// in place of tcp://, "
					     "GPUPOOL_TLS_CA with rdma://"
					   : "this address of the daemon is without TLS";
	uint8_t bytes[GP_CONN_PREAMBLE_MAX];
	size_t size = gp_control_frame_refused(GPUPOOL__REFUSED__REASON__POLICY, text, bytes,
					       sizeof(bytes));

	/* Whether or not it hears it, the log says it. */
	if (gp_preamble_is_control(preamble) && send_preamble(peer, GP_PREAMBLE_CONTROL) == 0)
		(void)!gp_conn_send_preamble(peer->conn, bytes, size);
	post_refused(peer, text);
}

/* 0; or 1, and the last event has been posted. */
static int
secure(struct gpd_peer *peer)
{
	struct gp_tls *tls = gpd_tls_get();
	int r = -ENOENT;

	if (tls)
		r = gp_conn_secure(peer->conn, tls, NULL, GP_TLS_HANDSHAKE_MS);
	gp_tls_put(tls);
	if (r)
		post_refused(peer, tls ? gp_conn_error(peer->conn)
				       : "the daemon has no certificate any more");
	return r != 0;
}

/* 0: the preamble is a control connection's; 1: the last event has been posted. */
static int
receive_preamble(struct gpd_peer *peer)
{
	uint8_t bytes[GP_PREAMBLE_SIZE];
	struct gp_preamble preamble;
	struct gpd_peer_event *event;
	char text[200];
	int r = gp_conn_recv_preamble(peer->conn, bytes, sizeof(bytes), -1);

	if (r) {
		post_gone(peer, false,
			  r == GP_E_EOF ? "closed before its preamble" : gp_conn_error(peer->conn));
		return 1;
	}
	r = gp_preamble_decode(bytes, &preamble);
	if (r == 0 && gp_preamble_is_tls(&preamble) != wants_tls(peer)) {
		refuse_kind(peer, &preamble);
		return 1;
	}
	if (r == 0 && !gp_preamble_is_control(&preamble)) {
		event = last_event(peer, GPD_PEER_LANE);
		event->preamble = preamble;
		post(event);
		return 1;
	}
	/* The other version learns ours; who speaks something else learns nothing. */
	if ((r == 0 || r == GP_E_VERSION) &&
	    send_preamble(peer, r ? GP_PREAMBLE_CONTROL : preamble.kind)) {
		post_gone(peer, false, gp_conn_error(peer->conn));
		return 1;
	}
	if (r) {
		gp_preamble_explain(r, &preamble, text, sizeof(text));
		post_gone(peer, false, text);
		return 1;
	}
	return wants_tls(peer) ? secure(peer) : 0;
}

static int
answer_ping(struct gpd_peer *peer, const Gpupool__Ping *ping)
{
	Gpupool__ControlMessage message;
	Gpupool__Pong pong;

	gp_control_fill_pong(&message, &pong, ping->number);
	return send_message(peer, &message);
}

static void
refuse_flood(struct gpd_peer *peer)
{
	static const char text[] = "it asks for windows and does not wait for the answers";
	Gpupool__ControlMessage message;
	Gpupool__SessionError error;

	gp_control_fill_session_error(&message, &error, CUDA_ERROR_NOT_PERMITTED, text);
	/* Whether or not it hears it, the log says it. */
	(void)send_message(peer, &message);
	post_gone(peer, false, text);
}

/* For the main thread, which frees it: 0; or 1, and it is still the caller's. */
static int
pass_on(struct gpd_peer *peer, Gpupool__ControlMessage *message)
{
	struct gpd_peer_event *event;

	if (atomic_load(&peer->queued) >= QUEUED_MAX) {
		refuse_flood(peer);
		return 1;
	}
	event = calloc(1, sizeof(*event));
	if (!event) {
		post_gone(peer, false, "no memory");
		return 1;
	}
	atomic_fetch_add(&peer->queued, 1);
	event->type = GPD_PEER_MESSAGE;
	event->peer = peer;
	event->message = message;
	post(event);
	return 0;
}

/* 0: go on; 1: the last event has been posted.  Frees the message, or passes it on. */
static int
take_message(struct gpd_peer *peer, Gpupool__ControlMessage *message, bool first)
{
	char text[200];
	int r = 1;

	if (first != (message->body_case == GPUPOOL__CONTROL_MESSAGE__BODY_HELLO)) {
		snprintf(text, sizeof(text), "%s does not belong there", gp_control_name(message));
		post_gone(peer, false, text);
		gp_control_free(message);
		return 1;
	}
	switch (message->body_case) {
	case GPUPOOL__CONTROL_MESSAGE__BODY_HELLO:
		/* Here, for it may take a while where there are many sockets. */
		peer->has_uid = gp_conn_peer_uid(peer->conn, &peer->uid) == 0;
		/* fall through */
	case GPUPOOL__CONTROL_MESSAGE__BODY_WINDOW_REQUEST:
		if (pass_on(peer, message) == 0)
			return 0;
		break;
	case GPUPOOL__CONTROL_MESSAGE__BODY_PING:
		r = answer_ping(peer, message->ping) != 0;
		if (r)
			post_gone(peer, false, "it does not read what it is sent");
		break;
	case GPUPOOL__CONTROL_MESSAGE__BODY_PONG:
		r = 0;
		break;
	case GPUPOOL__CONTROL_MESSAGE__BODY_BYE:
		post_gone(peer, true, "the client said goodbye");
		break;
	default:
		snprintf(text, sizeof(text), "%s does not belong there", gp_control_name(message));
		post_gone(peer, false, text);
		break;
	}
	gp_control_free(message);
	return r;
}

static void *
receive(void *arg)
{
	struct gpd_peer *peer = arg;
	bool first = true;

	if (receive_preamble(peer))
		return NULL;
	for (;;) {
		Gpupool__ControlMessage *message;
		int r = gp_control_recv(peer->conn, &message);

		if (r) {
			post_gone(peer, r == GP_E_EOF,
				  r == GP_E_EOF ? "the client is gone" : gp_conn_error(peer->conn));
			return NULL;
		}
		if (take_message(peer, message, first))
			return NULL;
		first = false;
	}
}

struct gpd_peer *
gpd_peer_create(struct gp_conn *conn, const char *scheme)
{
	struct gpd_peer *peer = calloc(1, sizeof(*peer));

	if (peer)
		peer->last = calloc(1, sizeof(*peer->last));
	if (!peer || !peer->last) {
		gp_conn_destroy(conn);
		free(peer);
		return NULL;
	}
	peer->conn = conn;
	gp_conn_set_stall(conn, gp_conn_stall_of(getenv("GPUPOOL_STALL_MS")));
	gp_conn_set_unread(conn, gp_conn_stall_of(getenv("GPUPOOL_STALL_MS")));
	gp_conn_set_message_max(conn, HELLO_MAX);
	peer->deadline_ms = INT64_MAX;
	snprintf(peer->scheme, sizeof(peer->scheme), "%s", scheme);
	pthread_mutex_init(&peer->send_lock, NULL);
	if (gp_thread_start_joined(&peer->thread, "peer", STACK_SIZE, receive, peer)) {
		gp_conn_destroy(conn);
		free(peer->last);
		free(peer);
		return NULL;
	}
	return peer;
}

static void
join(struct gpd_peer *peer)
{
	if (!peer->joined)
		(void)pthread_join(peer->thread, NULL);
	peer->joined = true;
}

int
gpd_peer_release_fd(struct gpd_peer *peer, int *fd_p)
{
	int r;

	join(peer);
	r = gp_conn_release_fd(peer->conn, fd_p);
	if (r == 0)
		peer->conn = NULL;
	return r;
}

void
gpd_peer_destroy(struct gpd_peer *peer)
{
	join(peer);
	gp_control_free(peer->hello);
	free(peer->full);
	free(peer->refusal);
	if (peer->source)
		gpd_source_put(peer->source, gp_now_ms());
	gp_conn_destroy(peer->conn);
	pthread_mutex_destroy(&peer->send_lock);
	explicit_bzero(peer->ticket, sizeof(peer->ticket));
	free(peer);
}
