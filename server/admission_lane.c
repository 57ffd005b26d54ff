/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of sessions, which the supervisor checks and hands to their workers. */
#include "server/admission_state.h"
#include "server/log.h"

#include <string.h>

/* Takes the same time for every ticket. */
static bool
same_ticket(const uint8_t *a, const uint8_t *b)
{
	volatile uint8_t difference = 0;

	for (size_t i = 0; i < GP_TICKET_SIZE; i++)
		difference |= a[i] ^ b[i];
	return difference == 0;
}

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

static void
hand_lane(struct gpd_admission *admission, struct gpd_peer *owner, unsigned int lane,
	  const char *scheme, int fd)
{
	struct gpd_channel_header header = {
		.type = lane ? GPD_CHANNEL_DATA_LANE : GPD_CHANNEL_LANE,
		.result = (int32_t)lane,
		.session = owner->session,
	};

	gpd_admission_tell(owner->worker, &header, scheme, strlen(scheme), fd);
	owner->lanes |= 1u << lane;
	if (lane == 0)
		gpd_admission_set_state(admission, owner, GPD_PEER_RUNNING, INT64_MAX);
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
		if (p->worker && same_ticket(p->ticket, preamble->ticket))
			owner = p;
	}
	gpd_admission_unlink(admission, lane);
	gpd_admission_set_state(admission, lane, GPD_PEER_ENDING, INT64_MAX);
	memcpy(scheme, lane->scheme, sizeof(scheme));
	if (owner)
		wrong = check_lane(owner, preamble->lane);
	if (!owner)
		gpd_warning("%s: a lane with an unknown ticket: closed", gp_conn_peer(lane->conn));
	else if (wrong)
		gpd_warning("%s: session %llu: a lane (%u) %s: closed", gp_conn_peer(lane->conn),
			    (unsigned long long)owner->session, preamble->lane, wrong);
	else if (gpd_peer_release_fd(lane, &fd))
		gpd_error("%s: the lane cannot be handed to the worker", gp_conn_peer(lane->conn));
	gpd_peer_destroy(lane);
	if (fd >= 0)
		hand_lane(admission, owner, preamble->lane, scheme, fd);
}
