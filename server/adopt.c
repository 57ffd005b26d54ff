/* SPDX-License-Identifier: Apache-2.0 */
#include "server/adopt.h"

#include "server/lane.h"
#include "server/log.h"
#include "server/session.h"
#include "server/worker.h"
#include "transport/transport.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Why there is no connection, or NULL. */
static const char *
adopt_lane(const struct gpd_channel_message *message, struct gp_conn **conn_p)
{
	char scheme[32];
	int r;

	/* The kernel drops a descriptor for which there is no room. */
	if (message->fd < 0)
		return "the daemon has no descriptor left for its connection";
	r = gp_conn_adopt(gpd_channel_text(message, scheme, sizeof(scheme)), message->fd, conn_p);
	if (r == 0) {
		gp_conn_set_stall(*conn_p, gp_conn_stall_of(getenv("GPUPOOL_STALL_MS")));
		return NULL;
	}
	close(message->fd);
	return r == -ENOMEM ? "the daemon has no memory for its connection"
			    : "its connection was gone before it was served";
}

void
gpd_adopt_lane(const struct gpd_channel_message *message)
{
	struct gp_conn *conn = NULL;
	const char *reason = adopt_lane(message, &conn);
	struct gpd_session *session;

	pthread_mutex_lock(&gpd_worker.lock);
	session = gpd_worker_find_locked(message->header.session);
	/* Without a session it has ended while the lane was on its way. */
	if (session && session->conn)
		session = NULL;
	if (session && !reason) {
		if (gpd_session_start(session, conn) == 0)
			conn = NULL;
		else
			reason = "the daemon has no thread for it";
	}
	pthread_mutex_unlock(&gpd_worker.lock);
	if (session && reason) {
		gpd_warning("session %llu (%s): closed: %s", (unsigned long long)session->id,
			    session->peer, reason);
		/* Only this thread knows it. */
		gpd_session_discard(session, CUDA_ERROR_SYSTEM_NOT_READY, reason);
	}
	gp_conn_destroy(conn);
}

/* Without it the session is not what the client believes it to be. */
static void
refuse_locked(struct gpd_session *session, unsigned int number, const char *reason)
{
	char text[160];

	snprintf(text, sizeof(text), "data lane %u: %s", number, reason);
	gpd_warning("session %llu (%s): %s", (unsigned long long)session->id, session->peer, text);
	gpd_session_end(session, text);
}

void
gpd_adopt_data_lane(const struct gpd_channel_message *message)
{
	unsigned int number = (unsigned int)message->header.result;
	struct gp_conn *conn = NULL;
	const char *reason = adopt_lane(message, &conn);
	struct gpd_session *session;

	pthread_mutex_lock(&gpd_worker.lock);
	session = gpd_worker_find_locked(message->header.session);
	/* Without a session it has ended while the lane was on its way. */
	if (session && !session->conn)
		session = NULL;
	if (session && !reason) {
		reason = gpd_lanes_add(session, number, conn);
		if (!reason)
			conn = NULL;
	}
	if (session && reason)
		refuse_locked(session, number, reason);
	pthread_mutex_unlock(&gpd_worker.lock);
	gp_conn_destroy(conn);
}
