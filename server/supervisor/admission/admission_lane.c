/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes (data connections) of sessions, which the supervisor checks and passes to their workers. */
#include "base/clock.h"
#include "protocol/ticket.h"
#include "server/common/base/log.h"
#include "server/supervisor/admission/admission_internal.h"

#include <stdio.h>
#include <string.h>
#include <utlist.h>

/* Maximum number of connections per lane number that wait for lane 0: over TLS all but one may be a
 * stranger's. */
#define EARLY_MAX 4

/* Returns whether lane 0 is expected: other lanes may arrive before it. */
static bool
awaits_lane0(const struct gpd_connection *owner)
{
	return owner->state == GPD_CONNECTION_WELCOMED || owner->state == GPD_CONNECTION_MOVING;
}

/* Returns why the session cannot have this lane, or NULL. */
static const char *
lane_check_number(const struct gpd_connection *owner, unsigned int lane)
{
	if (lane == 0)
		return owner->state == GPD_CONNECTION_WELCOMED ? NULL
							       : "that the session already has";
	if (owner->state != GPD_CONNECTION_RUNNING && !awaits_lane0(owner))
		return "of a session without lane 0";
	if (lane >= owner->lanes_max)
		return "beyond the session's limit";
	return owner->lanes >> lane & 1 ? "that the session already has" : NULL;
}

static const char *
lane_check(const struct gpd_connection *owner, const struct gp_preamble *preamble,
	   const char *scheme)
{
	/* Cleartext lanes over RDMA are possible with TLS, but those arrive at the worker. */
	if (strcmp(owner->scheme, "tls") == 0 && !gp_preamble_is_tls(preamble))
		return "unencrypted, of a session over TLS";
	if (preamble->kind == GP_PREAMBLE_LANE_SHM && strcmp(scheme, "unix") != 0)
		return "through shared memory, not over a local socket";
	return lane_check_number(owner, preamble->lane);
}

/* With TLS the worker needs only the key: its handshake verifies that the peer has it. */
static void
lane_send(struct gpd_admission *admission, struct gpd_connection *owner,
	  const struct gp_preamble *preamble, const char *scheme, int fd)
{
	unsigned int lane = preamble->lane;
	struct gpd_channel_header header = {
		.type = lane ? GPD_CHANNEL_DATA_LANE : GPD_CHANNEL_LANE,
		.result = (int32_t)lane,
		.session = owner->session,
	};
	struct gpd_channel_lane handed = { .tls = gp_preamble_is_tls(preamble) };

	(void)snprintf(handed.scheme, sizeof(handed.scheme), "%s",
		       preamble->kind == GP_PREAMBLE_LANE_SHM ? "shm" : scheme);
	if (handed.tls)
		gp_ticket_derive_key(owner->ticket, preamble->lane, handed.key);
	gpd_admission_send(owner->worker, &header, &handed, sizeof(handed), fd);
	explicit_bzero(&handed, sizeof(handed));
	/* The preamble contains only the ticket's name, which can be observed: the worker reports
	 * the lane after the handshake. */
	if (gp_preamble_is_tls(preamble))
		return;
	owner->lanes |= 1u << lane;
	if (lane == 0)
		gpd_admission_set_state(admission, owner, GPD_CONNECTION_RUNNING, NO_DEADLINE);
}

static struct gpd_connection *
lane_find_owner(const struct gpd_admission *admission, const struct gp_preamble *preamble)
{
	struct gpd_connection *owner = NULL;

	for (struct gpd_connection *p = admission->connection_list; p; p = p->next) {
		if (p->worker &&
		    gp_ticket_equals(gp_preamble_is_tls(preamble) ? p->ticket_name : p->ticket,
				     preamble->ticket))
			owner = p;
	}
	return owner;
}

static void
lane_close(struct gpd_connection *lane, uint64_t session, const char *wrong)
{
	gpd_client_address_log(lane->client_address, GPD_LOG_WARNING,
			       "%s: session %llu: a lane (%u) %s: closed", gp_conn_peer(lane->conn),
			       (unsigned long long)session, lane->lane.lane, wrong);
	gpd_connection_destroy(lane);
}

/* Keeps the lane until lane 0 arrives. If there are too many, the oldest, which is first in the
 * list, is closed. */
static void
lane_defer(struct gpd_admission *admission, struct gpd_connection *lane)
{
	struct gpd_connection *oldest = NULL, *l;
	unsigned int count = 0;

	LL_FOREACH(admission->early, l)
	{
		if (l->lane.lane != lane->lane.lane ||
		    memcmp(l->lane.ticket, lane->lane.ticket, sizeof(l->lane.ticket)) != 0)
			continue;
		oldest = oldest ? oldest : l;
		count++;
	}
	if (count >= EARLY_MAX) {
		LL_DELETE(admission->early, oldest);
		gpd_connection_destroy(oldest);
	}
	lane->deadline_ms = gp_now_ms() + LANE_MS;
	LL_APPEND(admission->early, lane);
}

static void
lane_hand_over(struct gpd_admission *admission, struct gpd_connection *owner,
	       struct gpd_connection *lane)
{
	struct gp_preamble preamble = lane->lane;
	char scheme[sizeof(lane->scheme)];
	int fd;

	memcpy(scheme, lane->scheme, sizeof(scheme));
	if (gpd_connection_release_fd(lane, &fd)) {
		gpd_error("%s: the lane cannot be handed to the worker", gp_conn_peer(lane->conn));
		fd = -1;
	}
	gpd_connection_destroy(lane);
	if (fd >= 0)
		lane_send(admission, owner, &preamble, scheme, fd);
}

/* The lane is in no list. */
static void
lane_dispatch(struct gpd_admission *admission, struct gpd_connection *owner,
	      struct gpd_connection *lane)
{
	const char *wrong = lane_check(owner, &lane->lane, lane->scheme);

	if (wrong)
		lane_close(lane, owner->session, wrong);
	else if (lane->lane.lane && awaits_lane0(owner))
		lane_defer(admission, lane);
	else
		lane_hand_over(admission, owner, lane);
}

void
gpd_admission_handle_lane(struct gpd_admission *admission, struct gpd_connection *lane,
			  const struct gp_preamble *preamble)
{
	struct gpd_connection *owner = lane_find_owner(admission, preamble);

	LL_DELETE(admission->connection_list, lane);
	gpd_admission_set_state(admission, lane, GPD_CONNECTION_CLOSING, NO_DEADLINE);
	lane->lane = *preamble;
	admission->authentication.refusals[GPD_AUTH_TICKET] += !owner;
	if (owner) {
		lane_dispatch(admission, owner, lane);
		return;
	}
	gpd_client_address_count_wasted(lane->client_address, gp_now_ms());
	gpd_client_address_log(lane->client_address, GPD_LOG_WARNING,
			       "%s: a lane with an unknown ticket: closed",
			       gp_conn_peer(lane->conn));
	gpd_connection_destroy(lane);
}

void
gpd_admission_poll_early(struct gpd_admission *admission)
{
	struct gpd_connection *lane, *next;

	LL_FOREACH_SAFE(admission->early, lane, next)
	{
		struct gpd_connection *owner = lane_find_owner(admission, &lane->lane);

		if (owner && awaits_lane0(owner) && lane->deadline_ms > gp_now_ms())
			continue;
		LL_DELETE(admission->early, lane);
		if (owner && awaits_lane0(owner))
			lane_close(lane, owner->session, "without lane 0 within the timeout");
		else if (owner)
			lane_dispatch(admission, owner, lane);
		else
			gpd_connection_destroy(lane);
	}
}

void
gpd_admission_drop_early(struct gpd_admission *admission)
{
	struct gpd_connection *lane, *next;

	LL_FOREACH_SAFE(admission->early, lane, next)
	{
		LL_DELETE(admission->early, lane);
		gpd_connection_destroy(lane);
	}
}

void
gpd_admission_lane_opened(struct gpd_admission *admission, struct gpd_worker_process *worker,
			  const struct gpd_channel_message *message)
{
	unsigned int lane = (unsigned int)message->header.result;
	struct gpd_connection *connection =
		gpd_admission_find_session(admission, worker, message->header.session);

	if (!connection || lane >= connection->lanes_max)
		return;
	connection->lanes |= 1u << lane;
	if (lane == 0 && connection->state == GPD_CONNECTION_WELCOMED)
		gpd_admission_set_state(admission, connection, GPD_CONNECTION_RUNNING, NO_DEADLINE);
}
