/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/door/peer.h"

#include "base/lock.h"
#include "base/thread.h"
#include "server/common/base/log.h"
#include "server/common/base/nonblocking.h"
#include "server/supervisor/door/tls_files.h"

#include <cuda.h>
#include <errno.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define STACK_SIZE ((size_t)512 << 10)
/* A Hello is much smaller; who has said none gets no more of the daemon's memory. */
#define HELLO_MAX ((size_t)16 << 10)
/* With this number of unread bytes the peer counts as one that does not read. */
#define UNREAD_MAX 8192
/* Size of the largest message: a Welcome with the images that the program used last. */
#define MESSAGE_MAX ((size_t)128 << 10)
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
gpd_peer_take_events(void)
{
	struct gpd_peer_event *taken;
	uint64_t count;

	if (read(events_fd, &count, sizeof(count)) < 0)
		count = 0;
	pthread_mutex_lock(&lock);
	taken = events;
	events = NULL;
	events_end = &events;
	pthread_mutex_unlock(&lock);
	return taken;
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

static bool leave(struct gpd_peer *peer, const char *format, ...) GP_PRINTF(2, 3);

/* What the thread's last event will say.  Always false. */
static bool
leave(struct gpd_peer *peer, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(peer->last->text, sizeof(peer->last->text), format, args);
	va_end(args);
	return false;
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

	/* The main thread acquires the lock as well. */
	gpd_nonblocking_begin();
	pthread_mutex_lock(&peer->send_lock);
	if (reads(peer))
		r = gp_control_send(peer->conn, message);
	pthread_mutex_unlock(&peer->send_lock);
	gpd_nonblocking_end();
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
	const char *text = wants_tls(peer)
				   ? "this address wants TLS: tls:// in place of tcp://, and "
				     "GPUPOOL_TOKEN_FILE or GPUPOOL_TLS_CA set"
				   : "this address of the daemon is without TLS";
	uint8_t bytes[GP_CONN_PREAMBLE_MAX];
	size_t size = gp_control_frame_refused(GPUPOOL__REFUSED__REASON__POLICY, text, bytes,
					       sizeof(bytes));

	/* Whether or not it hears it, the log says it. */
	if (gp_preamble_is_control(preamble) && send_preamble(peer, GP_PREAMBLE_CONTROL) == 0)
		(void)!gp_conn_send_preamble(peer->conn, bytes, size);
	peer->last->refused = true;
	(void)leave(peer, "%s", text);
}

/* False: the connection ends. */
static bool
secure(struct gpd_peer *peer)
{
	struct gp_tls *tls = gpd_tls_get();
	int r = -ENOENT;

	if (tls)
		r = gp_conn_secure(peer->conn, tls, NULL, GP_TLS_HANDSHAKE_MS);
	gp_tls_put(tls);
	peer->last->refused = r != 0;
	return r == 0 ||
	       leave(peer, "%s",
		     tls ? gp_conn_error(peer->conn) : "the daemon has no certificate any more");
}

/* Whether it is a control connection's; else the connection is a lane, or ends. */
static bool
receive_preamble(struct gpd_peer *peer)
{
	uint8_t bytes[GP_PREAMBLE_SIZE];
	struct gp_preamble preamble;
	char text[200];
	int r = gp_conn_recv_preamble(peer->conn, bytes, sizeof(bytes), -1);

	/* A client may connect before it needs to, and then not need to. */
	peer->last->ended = r == GP_E_EOF;
	if (r)
		return leave(peer, "%s",
			     r == GP_E_EOF ? "closed before its preamble"
					   : gp_conn_error(peer->conn));
	atomic_store(&peer->spoke, true);
	r = gp_preamble_decode(bytes, &preamble);
	if (r == 0 && gp_preamble_is_tls(&preamble) != wants_tls(peer)) {
		refuse_kind(peer, &preamble);
		return false;
	}
	if (r == 0 && !gp_preamble_is_control(&preamble)) {
		peer->last->type = GPD_PEER_LANE;
		peer->last->preamble = preamble;
		return false;
	}
	/* The other version learns ours; who speaks something else learns nothing. */
	if ((r == 0 || r == GP_E_VERSION) &&
	    send_preamble(peer, r ? GP_PREAMBLE_CONTROL : preamble.kind))
		return leave(peer, "%s", gp_conn_error(peer->conn));
	if (r) {
		gp_preamble_explain(r, &preamble, text, sizeof(text));
		return leave(peer, "%s", text);
	}
	return !wants_tls(peer) || secure(peer);
}

static int
answer_ping(struct gpd_peer *peer, const Gpupool__Ping *ping)
{
	Gpupool__ControlMessage message;
	Gpupool__Pong pong;

	gp_control_fill_pong(&message, &pong, ping->number);
	pong.worker_hangs = atomic_load(&peer->worker_hangs);
	return send_message(peer, &message);
}

static bool
refuse_flood(struct gpd_peer *peer)
{
	static const char text[] = "it asks for windows and does not wait for the answers";
	Gpupool__ControlMessage message;
	Gpupool__SessionError error;

	gp_control_fill_session_error(&message, &error, CUDA_ERROR_NOT_PERMITTED, text);
	/* Whether or not it hears it, the log says it. */
	(void)send_message(peer, &message);
	return leave(peer, "%s", text);
}

/* For the main thread, which frees it.  False: it is still the caller's, and the connection ends.
 */
static bool
pass_on(struct gpd_peer *peer, Gpupool__ControlMessage *message)
{
	struct gpd_peer_event *event;

	if (atomic_load(&peer->queued) >= QUEUED_MAX)
		return refuse_flood(peer);
	event = calloc(1, sizeof(*event));
	if (!event)
		return leave(peer, "no memory");
	atomic_fetch_add(&peer->queued, 1);
	event->type = GPD_PEER_MESSAGE;
	event->peer = peer;
	event->message = message;
	post(event);
	return true;
}

/* Whether to go on.  Frees the message, or passes it on. */
static bool
take_message(struct gpd_peer *peer, Gpupool__ControlMessage *message, bool first)
{
	bool hello = message->body_case == GPUPOOL__CONTROL_MESSAGE__BODY_HELLO, more = false;

	switch (hello == first ? message->body_case : GPUPOOL__CONTROL_MESSAGE__BODY__NOT_SET) {
	case GPUPOOL__CONTROL_MESSAGE__BODY_HELLO:
		/* Here, for it may take a while where there are many sockets. */
		peer->has_uid = gp_conn_peer_uid(peer->conn, &peer->uid) == 0;
		/* fall through */
	case GPUPOOL__CONTROL_MESSAGE__BODY_WINDOW_REQUEST:
		if (pass_on(peer, message))
			return true;
		break;
	case GPUPOOL__CONTROL_MESSAGE__BODY_PING:
		more = answer_ping(peer, message->ping) == 0 ||
		       leave(peer, "it does not read what it is sent");
		break;
	case GPUPOOL__CONTROL_MESSAGE__BODY_PONG:
		more = true;
		break;
	case GPUPOOL__CONTROL_MESSAGE__BODY_BYE:
		peer->last->ended = true;
		more = leave(peer, "the client said goodbye");
		break;
	default:
		more = leave(peer, "%s does not belong there", gp_control_name(message));
		break;
	}
	gp_control_free(message);
	return more;
}

static bool
receive_message(struct gpd_peer *peer, bool first)
{
	Gpupool__ControlMessage *message;
	int r = gp_control_recv(peer->conn, &message);

	if (r == 0)
		return take_message(peer, message, first);
	peer->last->ended = r == GP_E_EOF;
	return leave(peer, "%s", r == GP_E_EOF ? "the client is gone" : gp_conn_error(peer->conn));
}

static void *
receive(void *arg)
{
	struct gpd_peer *peer = arg;
	/* It was made with the peer, so that it can be sent; then the peer is the main thread's. */
	struct gpd_peer_event *last = peer->last;

	if (receive_preamble(peer)) {
		peer->send_room = gp_conn_set_nonblocking_send(peer->conn, MESSAGE_MAX);
		if (receive_message(peer, true)) {
			while (receive_message(peer, false))
				continue;
		}
	}
	peer->last = NULL;
	post(last);
	return NULL;
}

struct gpd_peer *
gpd_peer_create(struct gp_conn *conn, const char *scheme, unsigned int timeout_ms)
{
	struct gpd_peer *peer = calloc(1, sizeof(*peer));

	if (peer)
		peer->last = calloc(1, sizeof(*peer->last));
	if (!peer || !peer->last) {
		gp_conn_destroy(conn);
		free(peer);
		return NULL;
	}
	peer->last->type = GPD_PEER_GONE;
	peer->last->peer = peer;
	peer->conn = conn;
	gp_conn_set_stall(conn, timeout_ms);
	gp_conn_set_unread(conn, timeout_ms);
	gp_conn_set_message_max(conn, HELLO_MAX);
	peer->deadline_ms = INT64_MAX;
	snprintf(peer->scheme, sizeof(peer->scheme), "%s", scheme);
	pthread_mutex_init(&peer->send_lock, NULL);
	return peer;
}

int
gpd_peer_start(struct gpd_peer *peer)
{
	int r = gp_thread_start_joined(&peer->thread, "peer", STACK_SIZE, receive, peer);

	peer->started = r == 0;
	return r;
}

/* The thread's last event has been posted, or its connection shut down: it returns at once. */
static void
join(struct gpd_peer *peer)
{
	unsigned int depth = gpd_nonblocking_suspend();

	if (peer->started)
		(void)pthread_join(peer->thread, NULL);
	gpd_nonblocking_resume(depth);
	peer->started = false;
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
	free(peer->last);
	if (peer->source)
		gpd_source_put(peer->source);
	gp_conn_destroy(peer->conn);
	pthread_mutex_destroy(&peer->send_lock);
	explicit_bzero(peer->ticket, sizeof(peer->ticket));
	explicit_bzero(&peer->lane, sizeof(peer->lane));
	free(peer);
}
