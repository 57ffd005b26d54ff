/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/auth/connection.h"

#include "base/lock.h"
#include "base/thread.h"
#include "server/common/base/log.h"
#include "server/common/base/nonblocking.h"
#include "server/supervisor/auth/tls_files.h"

#include <cuda.h>
#include <errno.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define STACK_SIZE ((size_t)512 << 10)
/* A Hello is much smaller; the limit bounds the memory of unauthenticated peers. */
#define HELLO_MAX ((size_t)16 << 10)
/* A peer with this number of unread bytes is considered as not reading. */
#define UNREAD_MAX 8192
/* Size of the largest message: a Welcome with the list of the program's recent images. */
#define MESSAGE_MAX ((size_t)128 << 10)
/* Pending messages for the main thread. A client that waits for replies, as the protocol requires,
 * has one. */
#define QUEUED_MAX 2

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpd_connection_event *events GP_GUARDED_BY(lock), **events_end = &events;
static int events_fd = -1;

int
gpd_connection_setup(void)
{
	events_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return events_fd < 0 ? -errno : 0;
}

int
gpd_connection_events_fd(void)
{
	return events_fd;
}

struct gpd_connection_event *
gpd_connection_pop_events(void)
{
	struct gpd_connection_event *popped;
	uint64_t count;

	if (read(events_fd, &count, sizeof(count)) < 0)
		count = 0;
	pthread_mutex_lock(&lock);
	popped = events;
	events = NULL;
	events_end = &events;
	pthread_mutex_unlock(&lock);
	return popped;
}

static void
event_post(struct gpd_connection_event *event)
{
	uint64_t one = 1;

	pthread_mutex_lock(&lock);
	*events_end = event;
	events_end = &event->next;
	pthread_mutex_unlock(&lock);
	if (write(events_fd, &one, sizeof(one)) < 0)
		return; /* The counter is full, so the descriptor is readable already. */
}

static bool conn_set_close_reason(struct gpd_connection *connection, const char *format, ...)
	GP_PRINTF(2, 3);

/* Sets the text of the receiver's last event. Returns false always. */
static bool
conn_set_close_reason(struct gpd_connection *connection, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(connection->last->text, sizeof(connection->last->text), format, args);
	va_end(args);
	return false;
}

/* Returns whether the peer reads the data sent to it. */
static bool
peer_is_reading(const struct gpd_connection *connection)
{
	int fd = gp_conn_fd(connection->conn);
	int unread = 0;

	return fd < 0 || ioctl(fd, SIOCOUTQ, &unread) < 0 || unread < UNREAD_MAX;
}

static int
message_send(struct gpd_connection *connection, const Gpupool__ControlMessage *message)
{
	int r = -EPIPE;

	/* The main thread acquires this lock as well, so it must not be held while blocking. */
	gpd_nonblocking_begin();
	pthread_mutex_lock(&connection->send_lock);
	if (peer_is_reading(connection))
		r = gp_control_send(connection->conn, message);
	pthread_mutex_unlock(&connection->send_lock);
	gpd_nonblocking_end();
	return r;
}

void
gpd_connection_send(struct gpd_connection *connection, const Gpupool__ControlMessage *message)
{
	if (message_send(connection, message))
		gp_conn_shutdown(connection->conn);
}

#define TO(state) (1u << (GPD_CONNECTION_##state))

/* Valid successors of each state. */
static const unsigned int next_states[GPD_CONNECTION_STATES] = {
	[GPD_CONNECTION_HANDSHAKE] = TO(REFUSED) | TO(QUEUED) | TO(CLOSING),
	[GPD_CONNECTION_REFUSED] = TO(CLOSING),
	[GPD_CONNECTION_QUEUED] = TO(QUEUED) | TO(STARTING) | TO(OPENING) | TO(CLOSING),
	[GPD_CONNECTION_STARTING] = TO(STARTING) | TO(OPENING) | TO(CLOSING),
	[GPD_CONNECTION_OPENING] = TO(QUEUED) | TO(WELCOMED) | TO(CLOSING),
	[GPD_CONNECTION_WELCOMED] = TO(MOVING) | TO(RUNNING) | TO(CLOSING),
	[GPD_CONNECTION_MOVING] = TO(WELCOMED) | TO(CLOSING),
	[GPD_CONNECTION_RUNNING] = TO(CLOSING),
	[GPD_CONNECTION_CLOSING] = 0,
};

bool
gpd_connection_set_state(struct gpd_connection *connection, enum gpd_connection_state state,
			 int64_t deadline_ms)
{
	if (!(next_states[connection->state] >> state & 1))
		return false;
	connection->state = state;
	connection->deadline_ms = deadline_ms;
	return true;
}

static int
preamble_send(struct gpd_connection *connection, enum gp_preamble_kind kind)
{
	uint8_t bytes[GP_PREAMBLE_SIZE];
	struct gp_preamble preamble;

	gp_preamble_init(&preamble, kind, 0);
	gp_preamble_encode(&preamble, bytes);
	return gp_conn_send_preamble(connection->conn, bytes, sizeof(bytes));
}

/* Returns whether connections on this address use TLS after the preamble. */
static bool
conn_uses_tls(const struct gpd_connection *connection)
{
	return strcmp(connection->scheme, "tls") == 0;
}

/* Rejects a connection whose preamble does not match the address's use of TLS. A control connection
 * gets the reason in cleartext. */
static void
preamble_refuse(struct gpd_connection *connection, const struct gp_preamble *preamble)
{
	const char *text = conn_uses_tls(connection)
				   ? "this address requires TLS: use tls:// instead of tcp://, and "
				     "GPUPOOL_TOKEN_FILE or GPUPOOL_TLS_CA set"
				   : "this address of the daemon is without TLS";
	uint8_t bytes[GP_CONN_PREAMBLE_MAX];
	size_t size = gp_control_frame_refused(GPUPOOL__REFUSED__REASON__POLICY, text, bytes,
					       sizeof(bytes));

	/* The refusal is logged even if it cannot be sent. */
	if (gp_preamble_is_control(preamble) && preamble_send(connection, GP_PREAMBLE_CONTROL) == 0)
		(void)!gp_conn_send_preamble(connection->conn, bytes, size);
	connection->last->refused = true;
	(void)conn_set_close_reason(connection, "%s", text);
}

/* Returns false if the connection must end. */
static bool
tls_handshake(struct gpd_connection *connection)
{
	struct gp_tls *tls = gpd_tls_get();
	int r = -ENOENT;

	if (tls)
		r = gp_conn_secure(connection->conn, tls, NULL, GP_TLS_HANDSHAKE_MS);
	gp_tls_unref(tls);
	connection->last->refused = r != 0;
	return r == 0 || conn_set_close_reason(connection, "%s",
					       tls ? gp_conn_error(connection->conn)
						   : "the daemon no longer has a certificate");
}

/* Returns whether the connection is a control connection; otherwise it is a lane, or ends. */
static bool
preamble_receive(struct gpd_connection *connection)
{
	uint8_t bytes[GP_PREAMBLE_SIZE];
	struct gp_preamble preamble;
	char text[200];
	int r = gp_conn_recv_preamble(connection->conn, bytes, sizeof(bytes), -1);

	/* Not an error: a client may connect in advance and not use the connection. */
	connection->last->ended = r == GP_E_EOF;
	if (r)
		return conn_set_close_reason(connection, "%s",
					     r == GP_E_EOF ? "closed before its preamble"
							   : gp_conn_error(connection->conn));
	atomic_store(&connection->has_preamble, true);
	r = gp_preamble_decode(bytes, &preamble);
	if (r == 0 && gp_preamble_is_tls(&preamble) != conn_uses_tls(connection)) {
		preamble_refuse(connection, &preamble);
		return false;
	}
	if (r == 0 && !gp_preamble_is_control(&preamble)) {
		connection->last->type = GPD_CONNECTION_LANE;
		connection->last->preamble = preamble;
		return false;
	}
	/* A peer with another protocol version gets ours in reply; a peer with another protocol
	 * gets nothing. */
	if ((r == 0 || r == GP_E_VERSION) &&
	    preamble_send(connection, r ? GP_PREAMBLE_CONTROL : preamble.kind))
		return conn_set_close_reason(connection, "%s", gp_conn_error(connection->conn));
	if (r) {
		gp_preamble_format_status(r, &preamble, text, sizeof(text));
		return conn_set_close_reason(connection, "%s", text);
	}
	return !conn_uses_tls(connection) || tls_handshake(connection);
}

static int
ping_reply(struct gpd_connection *connection, const Gpupool__Ping *ping)
{
	Gpupool__ControlMessage message;
	Gpupool__Pong pong;

	gp_control_fill_pong(&message, &pong, ping->number);
	pong.worker_hangs = atomic_load(&connection->worker_is_hung);
	return message_send(connection, &message);
}

static bool
flood_refuse(struct gpd_connection *connection)
{
	static const char text[] = "too many pending WindowRequests";
	Gpupool__ControlMessage message;
	Gpupool__SessionError error;

	gp_control_fill_session_error(&message, &error, CUDA_ERROR_NOT_PERMITTED, text);
	/* The refusal is logged even if it cannot be sent. */
	(void)message_send(connection, &message);
	return conn_set_close_reason(connection, "%s", text);
}

/* Returns the process that has connected over a local socket; 0: it is not known. */
static pid_t
query_peer_process(const struct gpd_connection *connection)
{
	struct ucred peer = { 0 };
	socklen_t size = sizeof(peer);
	int fd = gp_conn_fd(connection->conn);

	return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

/* Posts the message to the main thread, which frees it. Returns false if the caller still owns the
 * message; the connection then ends. */
static bool
event_post_message(struct gpd_connection *connection, Gpupool__ControlMessage *message)
{
	struct gpd_connection_event *event;

	if (atomic_load(&connection->queued) >= QUEUED_MAX)
		return flood_refuse(connection);
	event = calloc(1, sizeof(*event));
	if (!event)
		return conn_set_close_reason(connection, "no memory");
	atomic_fetch_add(&connection->queued, 1);
	event->type = GPD_CONNECTION_MESSAGE;
	event->peer = connection;
	event->message = message;
	event_post(event);
	return true;
}

/* Returns whether to continue receiving. Frees the message, or passes it on. */
static bool
message_handle(struct gpd_connection *connection, Gpupool__ControlMessage *message, bool first)
{
	bool hello = message->body_case == GPUPOOL__CONTROL_MESSAGE__BODY_HELLO, more = false;

	switch (hello == first ? message->body_case : GPUPOOL__CONTROL_MESSAGE__BODY__NOT_SET) {
	case GPUPOOL__CONTROL_MESSAGE__BODY_HELLO:
		/* In this thread, as the lookup can be slow if the machine has many sockets. */
		connection->has_uid = gp_conn_peer_uid(connection->conn, &connection->uid) == 0;
		connection->pid = query_peer_process(connection);
		/* fall through */
	case GPUPOOL__CONTROL_MESSAGE__BODY_WINDOW_REQUEST:
		if (event_post_message(connection, message))
			return true;
		break;
	case GPUPOOL__CONTROL_MESSAGE__BODY_PING:
		more = ping_reply(connection, message->ping) == 0 ||
		       conn_set_close_reason(connection, "client does not read");
		break;
	case GPUPOOL__CONTROL_MESSAGE__BODY_PONG:
		more = true;
		break;
	case GPUPOOL__CONTROL_MESSAGE__BODY_BYE:
		connection->last->ended = true;
		more = conn_set_close_reason(connection, "client sent Bye");
		break;
	default:
		more = conn_set_close_reason(connection, "unexpected %s",
					     gp_control_get_name(message));
		break;
	}
	gp_control_free(message);
	return more;
}

static bool
message_receive(struct gpd_connection *connection, bool first)
{
	Gpupool__ControlMessage *message;
	int r = gp_control_recv(connection->conn, &message);

	if (r == 0)
		return message_handle(connection, message, first);
	connection->last->ended = r == GP_E_EOF;
	return conn_set_close_reason(connection, "%s",
				     r == GP_E_EOF ? "connection closed by the client"
						   : gp_conn_error(connection->conn));
}

static void *
conn_receive(void *arg)
{
	struct gpd_connection *connection = arg;
	/* Preallocated with the connection, so that it can always be posted; after that the main
	 * thread owns the connection. */
	struct gpd_connection_event *last = connection->last;

	if (preamble_receive(connection)) {
		connection->send_room = gp_conn_set_nonblocking_send(connection->conn, MESSAGE_MAX);
		if (message_receive(connection, true)) {
			while (message_receive(connection, false))
				continue;
		}
	}
	connection->last = NULL;
	event_post(last);
	return NULL;
}

struct gpd_connection *
gpd_connection_create(struct gp_conn *conn, const char *scheme, unsigned int timeout_ms)
{
	struct gpd_connection *connection = calloc(1, sizeof(*connection));

	if (connection)
		connection->last = calloc(1, sizeof(*connection->last));
	if (!connection || !connection->last) {
		gp_conn_destroy(conn);
		free(connection);
		return NULL;
	}
	connection->last->type = GPD_CONNECTION_CLOSED;
	connection->last->peer = connection;
	connection->conn = conn;
	gp_conn_set_stall_timeout(conn, timeout_ms);
	gp_conn_set_send_timeout(conn, timeout_ms);
	gp_conn_set_message_max(conn, HELLO_MAX);
	connection->deadline_ms = INT64_MAX;
	snprintf(connection->scheme, sizeof(connection->scheme), "%s", scheme);
	pthread_mutex_init(&connection->send_lock, NULL);
	return connection;
}

int
gpd_connection_start(struct gpd_connection *connection)
{
	int r = gp_thread_start_joinable(&connection->thread, "conn", STACK_SIZE, conn_receive,
					 connection);

	connection->started = r == 0;
	return r;
}

/* The last event has been posted, or the connection shut down, so the thread returns at once. */
static void
conn_join_thread(struct gpd_connection *connection)
{
	unsigned int depth = gpd_nonblocking_leave();

	if (connection->started)
		(void)pthread_join(connection->thread, NULL);
	gpd_nonblocking_reenter(depth);
	connection->started = false;
}

int
gpd_connection_release_fd(struct gpd_connection *connection, int *fd_p)
{
	int r;

	conn_join_thread(connection);
	r = gp_conn_release_fd(connection->conn, fd_p);
	if (r == 0)
		connection->conn = NULL;
	return r;
}

void
gpd_connection_destroy(struct gpd_connection *connection)
{
	conn_join_thread(connection);
	gp_control_free(connection->hello);
	free(connection->last);
	if (connection->client_address)
		gpd_client_address_put(connection->client_address);
	gp_conn_destroy(connection->conn);
	pthread_mutex_destroy(&connection->send_lock);
	explicit_bzero(connection->ticket, sizeof(connection->ticket));
	explicit_bzero(&connection->lane, sizeof(connection->lane));
	free(connection);
}
