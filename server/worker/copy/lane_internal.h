/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal state of a session's data lanes, shared by lane.c, lane_in.c and gpudirect_in.c only.
 *
 * Ownership: the session owns gpd_lanes; each lane's threads use it until they are joined.
 * Threads: gpd_lanes.lock protects the members of gpd_lanes from `ended` on, except the atomic
 * ones.
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

/* A lane; constant after its start, except pack. */
struct gpd_lane {
	struct gpd_session *session;
	unsigned int number;        /* 1 and up */
	struct gp_conn *conn;       /* owned */
	pthread_t receiver, sender; /* its two threads */
	struct gp_pack pack;        /* compression state; used by the sender only */
};

/* A received chunk that the executor has not consumed. */
struct gpd_lane_arrived {
	struct gpd_lane_arrived *prev, *next; /* list gpd_lanes.arrived; a utlist */
	unsigned int lane;                    /* number of the lane that received it */
	bool ahead;                           /* received before the executor reached its copy */
	struct gp_chunk chunk;
	struct gpd_piece piece; /* its bytes; zero if they were written to device memory */
};

/* The chunk that a lane is receiving. */
struct gpd_lane_coming {
	/* A chunk is being received. false while a chunk that is ahead of its copy waits for
	 * staging memory. */
	bool any;
	uint32_t copy; /* with any: number of its copy */
};

/* A chunk for the client that is not sent yet. */
struct gpd_lane_outgoing {
	struct gpd_lane_outgoing *prev, *next; /* list gpd_lanes.outgoing; a utlist */
	struct gp_chunk chunk;
	struct gpd_piece piece; /* memory with its bytes */
	/* Called when the chunk is sent from registered memory, which has no slot to release; NULL:
	 * the piece is staging memory. */
	gpd_lanes_sent *sent;
	void *arg; /* for sent() */
};

/* State shared by the lanes of a session. */
struct gpd_lanes {
	pthread_mutex_t lock;
	pthread_cond_t copy_started;  /* receivers wait on it until another copy starts */
	pthread_cond_t chunk_arrived; /* the executor waits on it for a chunk */
	pthread_cond_t out;           /* senders wait on it for chunks to send */
	struct gpd_waker waker;       /* wakes all three conditions when the session ends */
	/* Number of valid elements of lanes, which are in the order of arrival, not of the lane
	 * number. Both grow under gpd_sessions.lock, and shrink in gpd_lanes_stop(), when no lane
	 * can be added any more. */
	unsigned int count;
	struct gpd_lane *lanes[GP_LANES_MAX]; /* owned */
	unsigned int ended;                   /* number of the first lane that has ended; 0: none */
	atomic_bool mixed;                    /* the lanes use several RDMA devices */
	/* maximum silence in milliseconds, constant; 0: no limit */
	unsigned int stall_ms;

	/* Number of the executor's current copy; 0 before the first copy. */
	uint32_t copy;
	uint64_t size, left; /* bytes of the current copy: in total, and not yet consumed */
	uint64_t step;       /* distance in bytes of the starts of two chunks */
	/* destination of the current copy in device memory (gpudirect_in.c); 0: staging */
	uint64_t gpudirect;
	/* One bit per chunk of the current copy: received or being received. Owned; NULL before the
	 * first copy. */
	uint8_t *seen;
	bool expecting; /* a copy has started and is not consumed completely */
	/* Time of gp_now_ms() at which one of its chunks last started or arrived. */
	int64_t heard_ms;
	struct gpd_lane_arrived *arrived; /* received chunks, including those of later copies */
	unsigned int ahead; /* number of chunks received or being received ahead of their copy */

	/* The chunk that each lane is receiving, by lane number. */
	struct gpd_lane_coming coming[GP_LANES_MAX];

	struct gpd_lane_outgoing *outgoing; /* chunks to be sent, oldest first */
	_Atomic unsigned int unsent;        /* number of chunks in outgoing or being sent */
};

/* Main function of a lane's receiving thread; in lane_in.c. lane: a struct gpd_lane. Ends when the
 * connection ends, a chunk is invalid or the session is closing, after it has ended the session if
 * necessary. Returns NULL. */
void *gpd_lane_receive(void *lane);
/* Releases all chunks that the executor has not consumed, after the threads have ended; in
 * lane_in.c. */
void gpd_lane_destroy_arrivals(struct gpd_session *session);
/* Any thread. Ends the session because the lane's connection has failed, with the connection's
 * error as the reason; does nothing if the session is closing. In lane.c. */
void gpd_lane_fail(struct gpd_lane *lane);

#endif /* GPD_LANE_INTERNAL_H */
