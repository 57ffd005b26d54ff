/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal state of a session's data lanes, shared by lane.c, lane_in.c and gpudirect_in.c only.
 *
 * Ownership: the session owns gpd_lanes; each lane's threads use it until they are joined.
 * Threads: gpd_lanes.lock protects the members of gpd_lanes, except the atomic ones.
 */
#ifndef GPD_LANE_INTERNAL_H
#define GPD_LANE_INTERNAL_H

#include "protocol/frame.h"
#include "protocol/pack.h"
#include "server/worker/copy/lane.h"
#include "server/worker/session/session.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Maximum number of chunks received before the executor has reached their copy: enough that no lane
 * stalls between two copies, and few enough to leave staging for other operations of the
 * session. */
#define GPD_LANES_AHEAD 16

struct gpd_lane {
	struct gpd_session *session;
	unsigned int number;
	struct gp_conn *conn;
	pthread_t receiver, sender;
	struct gp_pack pack; /* compression state of the sender */
};

struct gpd_lane_arrived {
	struct gpd_lane_arrived *prev, *next; /* utlist */
	unsigned int lane;                    /* lane number */
	bool ahead;                           /* received before the executor reached its copy */
	struct gp_chunk chunk;
	struct gpd_piece piece;
};

/* A chunk that a lane is receiving. For one received ahead of its copy, set once it has staging
 * memory. */
struct gpd_lane_coming {
	bool any;
	uint32_t copy;
};

struct gpd_lane_outgoing {
	struct gpd_lane_outgoing *prev, *next; /* utlist */
	struct gp_chunk chunk;
	struct gpd_piece piece;
	gpd_lanes_sent *sent; /* NULL: the piece is staging memory */
	void *arg;
};

struct gpd_lanes {
	pthread_mutex_t lock;
	pthread_cond_t copy_started;  /* receivers wait: another copy has started */
	pthread_cond_t chunk_arrived; /* the executor waits */
	pthread_cond_t out;           /* senders wait */
	struct gpd_waker waker;
	unsigned int count;
	struct gpd_lane *lanes[GP_LANES_MAX];
	unsigned int ended; /* number of a lane that has ended; 0: none */
	atomic_bool mixed;  /* the lanes use several RDMA devices */
	unsigned int stall_ms;

	/* The executor's current copy; 0 before the first one. */
	uint32_t copy;
	uint64_t size, left; /* bytes; left: not yet consumed */
	uint64_t step;       /* from the start of a chunk to the start of the next */
	uint64_t gpudirect;  /* destination in device memory; 0: staging */
	uint8_t *seen;       /* bit for each chunk received or being received */
	bool expecting;
	int64_t heard_ms;                 /* when one of its chunks last started or arrived */
	struct gpd_lane_arrived *arrived; /* including chunks of later copies */
	unsigned int ahead;               /* chunks received or being received ahead */

	struct gpd_lane_coming coming[GP_LANES_MAX]; /* by lane number */

	struct gpd_lane_outgoing *outgoing;
	_Atomic unsigned int unsent; /* in the list or being sent */
};

/* Main function of a lane's receiving thread; lane_in.c. */
void *gpd_lane_receive(void *lane);
/* Releases chunks that the executor has not consumed; lane_in.c. */
void gpd_lane_destroy_arrivals(struct gpd_session *session);
/* Ends the session because the lane has failed; lane.c. */
void gpd_lane_fail(struct gpd_lane *lane);

#endif /* GPD_LANE_INTERNAL_H */
