/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal state of a session's data lanes, for lane.c, lane_out.c and lane_in.c only.
 *
 * Ownership: the session owns it.
 * Threads: guarded by lanes.lock unless noted otherwise; functions whose names end in _locked are
 * called with that lock held.
 */
#ifndef GPC_LANE_INTERNAL_H
#define GPC_LANE_INTERNAL_H

#include "base/lock.h"
#include "client/session/lane.h"
#include "client/session/session_internal.h"
#include "protocol/frame.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* State of the data lanes of a session. */
enum gpc_lanes_state {
	GPC_LANES_CLOSED,
	GPC_LANES_OPENING, /* the lanes' threads are connecting */
	GPC_LANES_OPEN,
	GPC_LANES_NONE, /* there are no data lanes, and none will be opened */
};

/* One data lane. */
struct gpc_lane {
	struct gpc_session *session;
	struct gp_conn *conn;
	unsigned int number;
	struct gpc_silence_lane silence;
	/* pack and packed_out belong to the sending thread, packed_in to the receiving thread; the
	 * buffers for compressed chunks are allocated with the first chunk. */
	struct gp_pack pack;
	uint8_t *packed_out, *packed_in;
};

/* A copy to the device, until it is sent. */
struct gpc_lane_out {
	struct gpc_lane_out *next;
	const uint8_t *memory;
	uint64_t size, at;  /* at: offset of the next chunk */
	uint64_t step;      /* distance between the starts of two chunks */
	unsigned int busy;  /* number of chunks being sent */
	unsigned int *wait; /* counter to decrement when the copy is sent; or NULL */
	uint32_t copy;
};

/* The data lanes of a session. */
struct gpc_lanes {
	struct gpc_lanes_config config;
	pthread_mutex_t open_lock;
	atomic_int state;
	pthread_mutex_t lock;
	pthread_cond_t work;    /* signaled for the sending threads */
	pthread_cond_t changed; /* signaled when data was sent or received */
	unsigned int count, connecting;
	struct gpc_lane lanes[GP_LANES_MAX]; /* conn is NULL if a lane could not be opened */
	bool over;
	struct gpc_lane_out *outgoing; /* in the order of their records */
	atomic_uint unsent;            /* length of `outgoing` */
	uint32_t last_out;             /* guarded by the sender's lock */
	struct gpc_lane_in *incoming;
	uint32_t last_in;
	uint64_t last_posted;
};

/* Ends the session because the lane's connection failed with r. */
void gpc_lane_fail(struct gpc_lane *lane, int r);

/* lane_out.c: main function of the sending thread; and removal of a copy that is sent or
 * abandoned. */
void *gpc_lane_send_main(void *lane);
void gpc_lane_out_drop_locked(struct gpc_lanes *lanes, struct gpc_lane_out *outgoing)
	GP_LOCKED(lanes->lock);

/* lane_in.c: receives the next chunk. Returns 0 or a negative error if the lane is unusable. */
GP_MUST_CHECK int gpc_lane_receive_chunk(struct gpc_lane *lane);

#endif /* GPC_LANE_INTERNAL_H */
