/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a session's data lanes, for lane.c, lane_in.c and straight_in.c only.
 */
#ifndef GPD_LANE_STATE_H
#define GPD_LANE_STATE_H

#include "protocol/frame.h"
#include "protocol/pack.h"
#include "server/worker/copy/lane.h"
#include "server/worker/session/session.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Chunks that are received before the executor has come to their copy: so many that no lane stands
 * still between two copies, so few that the session's staging is left to other things. */
#define GPD_LANES_AHEAD 16

struct gpd_lane {
	struct gpd_session *session;
	unsigned int number;
	struct gp_conn *conn;
	pthread_t receiver, sender;
	struct gp_pack pack; /* the sender's */
};

struct gpd_lane_arrived {
	struct gpd_lane_arrived *prev, *next; /* utlist */
	unsigned int lane;                    /* its number */
	bool ahead;                           /* it came before the executor was at its copy */
	struct gp_chunk chunk;
	struct gpd_piece piece;
};

/* A chunk that a lane has on its way; one that came ahead: when there is staging for it. */
struct gpd_lane_coming {
	bool any;
	uint32_t copy;
};

struct gpd_lane_outgoing {
	struct gpd_lane_outgoing *prev, *next; /* utlist */
	struct gp_chunk chunk;
	struct gpd_piece piece;
	gpd_lanes_sent *sent; /* NULL: the piece is staging */
	void *arg;
};

struct gpd_lanes {
	pthread_mutex_t lock;
	pthread_cond_t copy_started;  /* of receivers: another copy has begun */
	pthread_cond_t chunk_arrived; /* of the executor */
	pthread_cond_t out;           /* of senders */
	struct gpd_waker waker;
	unsigned int count;
	struct gpd_lane *lanes[GP_LANES_MAX];
	unsigned int ended; /* a lane that has; 0: none */
	atomic_bool mixed;  /* they are of several devices */
	unsigned int stall_ms;

	/* The copy that the executor is at; before the first one, 0. */
	uint32_t copy;
	uint64_t size, left; /* bytes; left: not yet taken */
	uint64_t step;       /* from one chunk's beginning to the next */
	uint64_t gpudirect;  /* where it goes in device memory; 0: through staging */
	uint8_t *seen;       /* bit for each chunk that has come, or is on its way */
	bool expecting;
	int64_t heard_ms;                 /* when a chunk of it last began or came */
	struct gpd_lane_arrived *arrived; /* of later copies, too */
	unsigned int ahead;               /* those that are or were, and those on their way */

	struct gpd_lane_coming coming[GP_LANES_MAX]; /* by the lanes' numbers */

	struct gpd_lane_outgoing *outgoing;
	_Atomic unsigned int unsent; /* those, and those that lanes have */
};

/* lane_in.c: the main function of a lane's receiving thread. */
void *gpd_lane_receive(void *lane);
void gpd_lane_destroy_arrivals(struct gpd_session *session);
/* lane.c: the lane has failed, which ends the session. */
void gpd_lane_fail(struct gpd_lane *lane);

#endif /* GPD_LANE_STATE_H */
