/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a session's data lanes, for lane.c, lane_out.c and lane_in.c only: the lanes
 * themselves, what goes out over them, what comes in.  The session owns it; lanes.lock guards it
 * where nothing else is said, and is held where the name of a function says so.
 */
#ifndef GPC_LANE_INSIDE_H
#define GPC_LANE_INSIDE_H

#include "base/lock.h"
#include "client/wire/lane.h"
#include "client/wire/session_inside.h"
#include "protocol/frame.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum gpc_lanes_state {
	GPC_LANES_CLOSED,
	GPC_LANES_OPENING, /* their threads connect them */
	GPC_LANES_OPEN,
	GPC_LANES_NONE, /* there are none, and there will be none */
};

struct gpc_lane {
	struct gpc_session *session;
	struct gp_conn *conn;
	unsigned int number;
	struct gpc_silence_lane silence;
	/* Of the thread that sends, and of the one that receives: room for a compressed chunk, NULL
	 * before the first one. */
	struct gp_pack pack;
	uint8_t *packed_out, *packed_in;
};

/* A copy to the device, until it is sent. */
struct gpc_lane_out {
	struct gpc_lane_out *next;
	const uint8_t *memory;
	uint64_t size, at;  /* at: the next chunk */
	uint64_t step;      /* from one chunk's beginning to the next */
	unsigned int busy;  /* chunks that are being sent */
	unsigned int *wait; /* less one when it is sent; or NULL */
	uint32_t copy;
};

struct gpc_lanes {
	struct gpc_lanes_config config;
	pthread_mutex_t open_lock;
	atomic_int state;
	pthread_mutex_t lock;
	pthread_cond_t work;    /* for who sends */
	pthread_cond_t changed; /* for who waits for sends and receives */
	unsigned int count, connecting;
	struct gpc_lane lanes[GP_LANES_MAX]; /* of those that could not be had conn is NULL */
	bool over;
	struct gpc_lane_out *outgoing; /* in the order of their records */
	atomic_uint unsent;            /* how many */
	uint32_t last_out;             /* under the sender's lock */
	struct gpc_lane_in *incoming;
	uint32_t last_in;
	uint64_t last_posted;
};

/* The connection of a lane is of no use any more, which ends the session. */
void gpc_lane_fail(struct gpc_lane *lane, int r);

/* lane_out.c: the thread that sends; a copy is sent, or nobody wants it to be. */
void *gpc_lane_send_main(void *lane);
void gpc_lane_out_drop_locked(struct gpc_lanes *lanes, struct gpc_lane_out *outgoing)
	GP_LOCKED(lanes->lock);

/* lane_in.c: the next message of the daemon.  0, or why the lane is of no use any more. */
GP_MUST_CHECK int gpc_lane_receive_chunk(struct gpc_lane *lane);

#endif /* GPC_LANE_INSIDE_H */
