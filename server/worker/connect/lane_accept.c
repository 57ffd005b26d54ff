/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/connect/lane_accept.h"

#include "base/lock.h"
#include "base/thread.h"
#include "server/common/base/log.h"
#include "server/worker/connect/lane_refusal.h"
#include "server/worker/copy/lane.h"
#include "server/worker/executor/executor.h"
#include "server/worker/session/session.h"
#include "server/worker/session/sessions.h"
#include "transport/tls/tls.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#define STACK_SIZE ((size_t)256 << 10)
/* Maximum number of concurrent handshakes for one lane of a session: at most one of them is from
 * the session's client. */
#define HANDSHAKES_MAX 4

/* A lane whose session has not received it yet. */
struct incoming {
	struct incoming *next; /* list half_open */
	uint64_t session;
	unsigned int number;
	struct gp_conn *conn;
	uint8_t key[GP_TLS_KEY_SIZE];
	bool given_up;
};

/* Lanes with a handshake in progress, each with a thread, newest first. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct incoming *half_open GP_GUARDED_BY(lock);

/* Ends the session: the client relies on the lane. */
static void
lane_refuse_locked(struct gpd_session *session, unsigned int number, const char *reason)
{
	char text[160];

	snprintf(text, sizeof(text), "data lane %u: %s", number, reason);
	gpd_session_log(session, GPD_LOG_WARNING, "%s", text);
	gpd_session_stop(session, text);
}

/* Gives the connection to the session; lane 0 starts it. Returns the reason if the session refuses
 * it, else NULL. */
static const char *
lane_attach(struct gpd_session *session, const struct incoming *incoming)
	GP_LOCKED(gpd_sessions.lock)
{
	unsigned int ms = gpd_sessions_timeout_ms();

	gp_conn_set_stall_timeout(incoming->conn, ms);
	gp_conn_set_send_timeout(incoming->conn, ms);
	if (incoming->number)
		return gpd_lanes_add(session, incoming->number, incoming->conn);
	return gpd_session_start(session, incoming->conn) ? "the daemon has no thread for it"
							  : NULL;
}

/* Takes ownership of the connection. reason: why there is none, else NULL. */
static void
lane_deliver(const struct incoming *incoming, const char *reason)
{
	bool begins = incoming->number == 0;
	struct gpd_session *session;

	pthread_mutex_lock(&gpd_sessions.lock);
	session = gpd_sessions_find_locked(incoming->session);
	/* If there is no session, it has ended before the lane arrived. */
	if (session && gpd_session_is(session, GPD_SESSION_OPENED) != begins)
		session = NULL;
	if (session && !reason)
		reason = lane_attach(session, incoming);
	if (session && reason && begins)
		gpd_sessions_remove_locked(session);
	else if (session && reason)
		lane_refuse_locked(session, incoming->number, reason);
	pthread_mutex_unlock(&gpd_sessions.lock);
	if (session && reason && begins) {
		gpd_session_log(session, GPD_LOG_WARNING, "closed: %s", reason);
		gpd_session_discard(session, CUDA_ERROR_SYSTEM_NOT_READY, reason);
	}
	if (!session || reason)
		gp_conn_destroy(incoming->conn);
}

static void
incoming_destroy(struct incoming *incoming)
{
	explicit_bzero(incoming, sizeof(*incoming));
	free(incoming);
}

/* A lane's name can be read on the network, so the peer that has the key may not be the first to
 * connect. Beyond the limit the oldest handshake, which has had the most time, is ended. */
static void
handshake_evict_oldest(const struct incoming *incoming) GP_LOCKED(lock)
{
	struct incoming *oldest = NULL;
	unsigned int count = 0;

	for (struct incoming *i = half_open; i; i = i->next) {
		if (i->session != incoming->session || i->number != incoming->number || i->given_up)
			continue;
		count++;
		oldest = i;
	}
	if (count < HANDSHAKES_MAX)
		return;
	/* Its thread detects the shutdown; the connection belongs to that thread. */
	oldest->given_up = true;
	(void)shutdown(gp_conn_fd(oldest->conn), SHUT_RDWR);
}

/* The session goes on waiting for a peer with the key; the client, if it was the peer, may try
 * again. */
static void
incoming_refuse(const struct incoming *incoming, const char *reason)
{
	const char *peer = incoming->conn ? gp_conn_peer(incoming->conn) : "an unknown address";

	gpd_lane_refusal_report(peer, false, "session %llu: a lane (%u) is refused: %s",
				(unsigned long long)incoming->session, incoming->number, reason);
	gp_conn_destroy(incoming->conn);
}

/* Notifies the supervisor first, before the session can end. */
static void
incoming_complete(const struct incoming *incoming)
{
	(void)gpd_sessions_notify_supervisor(GPD_CHANNEL_LANE_OPENED, (int32_t)incoming->number,
					     incoming->session, NULL, 0);
	lane_deliver(incoming, NULL);
}

void
gpd_lane_accept_conn(uint64_t session, unsigned int number, struct gp_conn *conn)
{
	incoming_complete(&(struct incoming){ .session = session, .number = number, .conn = conn });
}

static void *
handshake_run(void *arg)
{
	struct incoming *incoming = arg;
	int r = gp_conn_secure_psk(incoming->conn, true, incoming->key, GP_TLS_HANDSHAKE_MS);

	pthread_mutex_lock(&lock);
	LL_DELETE(half_open, incoming);
	pthread_mutex_unlock(&lock);
	if (r)
		incoming_refuse(incoming, incoming->given_up
						  ? "its handshake is the oldest of too many"
						  : gp_conn_error(incoming->conn));
	else
		incoming_complete(incoming);
	incoming_destroy(incoming);
	return NULL;
}

static void
handshake_start(const struct incoming *template)
{
	struct incoming *incoming = malloc(sizeof(*incoming));
	int r = -ENOMEM;

	if (incoming) {
		*incoming = *template;
		pthread_mutex_lock(&lock);
		handshake_evict_oldest(incoming);
		LL_PREPEND(half_open, incoming);
		r = gp_thread_start("handshake", STACK_SIZE, handshake_run, incoming);
		if (r)
			LL_DELETE(half_open, incoming);
		pthread_mutex_unlock(&lock);
	}
	if (r == 0)
		return;
	if (incoming)
		incoming_destroy(incoming);
	incoming_refuse(template, "the daemon has no thread for its handshake");
}

/* Returns the reason if there is no connection, else NULL. */
static const char *
conn_adopt(const char *scheme, int fd, struct gp_conn **conn_p)
{
	int r;

	/* The kernel drops a passed descriptor if the process has too many. */
	if (fd < 0)
		return "the daemon has no descriptor left for its connection";
	r = gp_conn_adopt(scheme, fd, conn_p);
	if (r == 0)
		return NULL;
	close(fd);
	return r == -ENOMEM ? "the daemon has no memory for its connection"
			    : "its connection was gone before it was served";
}

void
gpd_lane_accept(const struct gpd_channel_message *message)
{
	const struct gpd_channel_lane *lane = message->data;
	struct incoming incoming = {
		.session = message->header.session,
		.number = (unsigned int)message->header.result,
	};
	const char *reason;

	if (message->size < sizeof(*lane)) {
		if (message->fd >= 0)
			close(message->fd);
		return;
	}
	reason = conn_adopt(lane->scheme, message->fd, &incoming.conn);
	if (!reason && lane->tls) {
		memcpy(incoming.key, lane->key, sizeof(incoming.key));
		handshake_start(&incoming);
	} else if (lane->tls) {
		incoming_refuse(&incoming, reason);
	} else {
		lane_deliver(&incoming, reason);
	}
	explicit_bzero(&incoming, sizeof(incoming));
	/* The channel's buffer would keep the key until the next message. */
	explicit_bzero((void *)lane, sizeof(*lane));
}
