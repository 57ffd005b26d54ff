/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/connect/lane_rdma.h"

#include "base/clock.h"
#include "base/thread.h"
#include "protocol/frame.h"
#include "protocol/preamble.h"
#include "protocol/ticket.h"
#include "server/common/base/log.h"
#include "server/worker/connect/lane_accept.h"
#include "server/worker/connect/lane_refusal.h"
#include "server/worker/session/session.h"
#include "server/worker/session/sessions.h"
#include "transport/transport.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define PREAMBLE_MS 1000
#define PAUSE_NS 50000000
/* Repeated errors are logged at this interval. */
#define LOG_INTERVAL_MS 10000

/* The lane that gp_accept() is about to return. */
struct arrival {
	uint64_t session;
	unsigned int lane;
};

static struct gp_listener *listener;

/* The sessions' lock must be held. Returns why the lane is refused, or NULL. */
static const char *
check_lane(const struct gpd_session *session, unsigned int lane)
{
	if (session->lanes_accepted >> lane & 1 ||
	    (lane == 0 && !gpd_session_is(session, GPD_SESSION_OPENED)))
		return "that the session already has";
	if (lane > 0 && gpd_session_is(session, GPD_SESSION_OPENED))
		return "of a session without lane 0";
	return lane >= session->lanes_max ? "beyond the session's limit" : NULL;
}

/* A lane that was not completed may be requested again. */
static void
arrival_cancel(const struct arrival *arrival)
{
	struct gpd_session *session;

	pthread_mutex_lock(&gpd_sessions.lock);
	session = gpd_sessions_find_locked(arrival->session);
	if (session)
		session->lanes_accepted &= ~(1u << arrival->lane);
	pthread_mutex_unlock(&gpd_sessions.lock);
}

/* Whether the peer with this preamble may connect. */
static bool
lane_admit(void *arg, const char *peer, const void *bytes, size_t size)
{
	static const uint8_t none[GP_TICKET_SIZE];
	struct arrival *arrival = arg;
	struct gpd_session *owner = NULL;
	struct gp_preamble preamble;
	const char *wrong = NULL;
	uint64_t session;

	/* The previous connection was not completed. */
	if (arrival->session)
		arrival_cancel(arrival);
	arrival->session = 0;
	if (size != GP_PREAMBLE_SIZE || gp_preamble_decode(bytes, &preamble) ||
	    preamble.kind != GP_PREAMBLE_LANE || preamble.lane >= GP_LANES_MAX) {
		gpd_lane_refusal_report(peer, false, "a connection that is not a lane: refused");
		return false;
	}
	pthread_mutex_lock(&gpd_sessions.lock);
	for (struct gpd_session *s = gpd_sessions_next_locked(NULL); s;
	     s = gpd_sessions_next_locked(s)) {
		if (gp_ticket_equals(s->ticket, preamble.ticket) &&
		    !gp_ticket_equals(s->ticket, none))
			owner = s;
	}
	if (owner)
		wrong = check_lane(owner, preamble.lane);
	if (owner && !wrong) {
		owner->lanes_accepted |= 1u << preamble.lane;
		*arrival = (struct arrival){ owner->id, preamble.lane };
	}
	session = owner ? owner->id : 0;
	pthread_mutex_unlock(&gpd_sessions.lock);
	if (!owner)
		gpd_lane_refusal_report(peer, false, "a lane with an unknown ticket: refused");
	else if (wrong)
		gpd_lane_refusal_report(peer, true, "session %llu: a lane (%u) %s: refused",
					(unsigned long long)session, preamble.lane, wrong);
	return owner && !wrong;
}

static void
lane_recv_preamble(struct gp_conn *conn, const struct arrival *arrival)
{
	uint8_t preamble[GP_PREAMBLE_SIZE];

	if (gp_conn_recv_preamble(conn, preamble, sizeof(preamble), PREAMBLE_MS)) {
		arrival_cancel(arrival);
		gp_conn_destroy(conn);
		return;
	}
	gpd_lane_accept_conn(arrival->session, arrival->lane, conn);
}

static void
accept_log_error(int r)
{
	static int64_t next_ms;
	int64_t now_ms = gp_now_ms();

	if (now_ms < next_ms)
		return;
	next_ms = now_ms + LOG_INTERVAL_MS;
	gpd_warning("rdma: lanes cannot be accepted at the moment: %s",
		    r == GP_E_RESOURCE ? "out of descriptors or memory" : strerror(-r));
}

static void *
lanes_accept_run(void *arg)
{
	struct arrival arrival = { 0 };

	gp_listener_set_admit(listener, lane_admit, &arrival);
	for (;;) {
		struct gp_conn *conn;
		int r;

		arrival.session = 0;
		r = gp_accept(listener, -1, &conn);
		if (r == 0) {
			lane_recv_preamble(conn, &arrival);
			continue;
		}
		if (arrival.session)
			arrival_cancel(&arrival);
		accept_log_error(r);
		gp_sleep_ns(PAUSE_NS);
	}
	return NULL;
}

int
gpd_lane_rdma_start(const char *text, uint16_t *port_p, char *error, size_t size)
{
	struct gp_url url;
	int r;

	if (gp_url_parse(text, &url, error, size) ||
	    gp_listen_any_port(&url, &listener, error, size))
		return -1;
	r = gp_thread_start("lane-rdma", 0, lanes_accept_run, NULL);
	if (r) {
		(void)snprintf(error, size, "no thread for lanes over RDMA: %s", strerror(-r));
		return -1;
	}
	*port_p = gp_listener_url(listener)->port;
	gpd_info("lanes are accepted over RDMA, on port %u", *port_p);
	return 0;
}
