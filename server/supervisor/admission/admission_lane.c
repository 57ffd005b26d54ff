/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of sessions, which the supervisor checks and hands to their workers. */
#include "protocol/ticket.h"
#include "server/common/base/log.h"
#include "server/supervisor/admission/admission_state.h"

#include <stdio.h>
#include <string.h>
#include <utlist.h>

/* Why this lane is not one of the session's, or NULL. */
static const char *
check_lane(const struct gpd_peer *owner, unsigned int lane)
{
	if (lane == 0)
		return owner->state == GPD_PEER_WELCOMED ? NULL : "that the session has already";
	if (owner->state != GPD_PEER_RUNNING)
		return "of a session without lane 0";
	if (lane >= owner->lanes_max)
		return "beyond the session's limit";
	return owner->lanes >> lane & 1 ? "that the session has already" : NULL;
}

/* With TLS the key is all that the worker needs: its handshake shows whether the peer has it. */
static void
hand_lane(struct gpd_admission *admission, struct gpd_peer *owner,
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
		gp_ticket_key(owner->ticket, preamble->lane, handed.key);
	gpd_admission_tell(owner->worker, &header, &handed, sizeof(handed), fd);
	explicit_bzero(&handed, sizeof(handed));
	/* Anybody who has seen the ticket's name may have sent it: the worker will say. */
	if (gp_preamble_is_tls(preamble))
		return;
	owner->lanes |= 1u << lane;
	if (lane == 0)
		gpd_admission_set_state(admission, owner, GPD_PEER_RUNNING, FOREVER);
}

void
gpd_admission_take_lane(struct gpd_admission *admission, struct gpd_peer *lane,
			const struct gp_preamble *preamble)
{
	struct gpd_peer *owner = NULL;
	char scheme[sizeof(lane->scheme)];
	const char *wrong = NULL;
	int fd = -1;

	for (struct gpd_peer *p = admission->peers; p; p = p->next) {
		if (p->worker &&
		    gp_ticket_same(gp_preamble_is_tls(preamble) ? p->ticket_name : p->ticket,
				   preamble->ticket))
			owner = p;
	}
	LL_DELETE(admission->peers, lane);
	gpd_admission_set_state(admission, lane, GPD_PEER_ENDING, FOREVER);
	memcpy(scheme, lane->scheme, sizeof(scheme));
	if (owner)
		wrong = check_lane(owner, preamble->lane);
	/* Over RDMA its lanes may come in clear, but those come to the worker. */
	if (owner && strcmp(owner->scheme, "tls") == 0 && !gp_preamble_is_tls(preamble))
		wrong = "in clear, of a session over TLS";
	if (owner && preamble->kind == GP_PREAMBLE_LANE_SHM && strcmp(scheme, "unix") != 0)
		wrong = "through shared memory, not over a local socket";
	admission->gate.refusals[GPD_AUTH_TICKET] += !owner;
	if (!owner)
		gpd_source_log(lane->source, GPD_LOG_WARNING,
			       "%s: a lane with an unknown ticket: closed",
			       gp_conn_peer(lane->conn));
	else if (wrong)
		gpd_source_log(lane->source, GPD_LOG_WARNING,
			       "%s: session %llu: a lane (%u) %s: closed", gp_conn_peer(lane->conn),
			       (unsigned long long)owner->session, preamble->lane, wrong);
	else if (gpd_peer_release_fd(lane, &fd))
		gpd_error("%s: the lane cannot be handed to the worker", gp_conn_peer(lane->conn));
	gpd_peer_destroy(lane);
	if (fd >= 0)
		hand_lane(admission, owner, preamble, scheme, fd);
}

void
gpd_admission_lane_came(struct gpd_admission *admission, struct gpd_child *worker,
			const struct gpd_channel_message *message)
{
	unsigned int lane = (unsigned int)message->header.result;
	struct gpd_peer *peer =
		gpd_admission_find_session(admission, worker, message->header.session);

	if (!peer || lane >= peer->lanes_max)
		return;
	peer->lanes |= 1u << lane;
	if (lane == 0 && peer->state == GPD_PEER_WELCOMED)
		gpd_admission_set_state(admission, peer, GPD_PEER_RUNNING, FOREVER);
}
