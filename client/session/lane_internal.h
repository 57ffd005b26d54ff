/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal state of a session's data lanes, for lane.c, lane_out.c, lane_in.c, silence.c and their
 * tests only.
 *
 * struct gpc_lanes_config and struct gpc_incoming_copy are in lane.h, struct gpc_silence_lane is in
 * silence.h.
 *
 * Ownership: struct gpc_session owns struct gpc_lanes, from gpc_lanes_init() to gpc_lanes_fini().
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

/* State of the data lanes of a session; GPC_LANES_CLOSED until the first large copy. */
enum gpc_lanes_state {
	GPC_LANES_CLOSED,
	GPC_LANES_OPENING, /* the lanes' threads are connecting */
	GPC_LANES_OPEN,
	GPC_LANES_NONE, /* there are none, and none will be opened */
};

/* One data lane: a connection with a sending and a receiving thread. */
struct gpc_lane {
	struct gpc_session *session;
	struct gp_conn *conn; /* owned; set once; NULL: not connected, or the session was over */
	unsigned int number;  /* from 1; lane 0 carries the calls */
	struct gpc_silence_lane silence;
	/* pack and packed_out are used only by the sending thread, packed_in only by the receiving
	 * thread. The buffers have GP_CHUNK_MAX bytes and are allocated with the first compressed
	 * chunk; NULL before. */
	struct gp_pack pack; /* state of the compression (protocol/pack.h) */
	uint8_t *packed_out, *packed_in;
};

/* A copy to the device, until all of its data is sent. Allocated by gpc_lanes_send() and freed by
 * gpc_outgoing_copy_drop_locked(). */
struct gpc_outgoing_copy {
	struct gpc_outgoing_copy *next;
	const uint8_t *memory; /* source, borrowed from the caller of gpc_lanes_send() */
	uint64_t size, at;     /* size in bytes, and offset of the next chunk to send */
	uint64_t step;         /* size of every chunk but the last, in bytes */
	unsigned int busy;     /* number of chunks being sent */
	unsigned int *wait;    /* counter to decrement when the copy is dropped (gpc_lanes_send());
				  NULL: none */
	uint32_t copy;         /* ID of the copy on the wire */
};

/* The data lanes of a session. `lock` guards the members that are not atomic, unless noted
 * otherwise. */
struct gpc_lanes {
	struct gpc_lanes_config config; /* constant after gpc_lanes_configure() */
	pthread_mutex_t open_lock;      /* held by the thread that opens the lanes */
	atomic_int state;               /* enum gpc_lanes_state */
	pthread_mutex_t lock;
	pthread_cond_t work; /* signaled for the sending threads when there is data to send or the
				session is over */
	pthread_cond_t changed; /* broadcast when a copy is dropped or a chunk was received, when
				   all lanes have connected, and at the end of the session */
	unsigned int count,
		connecting; /* length of `lanes`, and number of lanes that are still connecting */
	struct gpc_lane lanes[GP_LANES_MAX]; /* conn is NULL if a lane could not be opened */
	bool over;                           /* gpc_lanes_stop() was called */
	struct gpc_outgoing_copy *
		outgoing; /* copies to the device with unsent data, in the order of their records */
	atomic_uint unsent; /* length of `outgoing` */
	uint32_t last_out;  /* ID of the last copy to the device; guarded by the sender's lock */
	struct gpc_incoming_copy *incoming; /* copies from the device whose data is expected */
	uint32_t last_in;                   /* ID of the last copy from the device */
	/* Number that gpc_lanes_posted() assigned last, to a copy from the device whose record has
	 * been posted; 0: none yet. An ordered copy waits for the copies of its stream that had
	 * numbers when it was registered. */
	uint64_t last_posted;
};

/* Ends the session because the lane's connection failed with r, an error of gp_conn_recv() or
 * gp_conn_send(). Blocks as gpc_session_lost_on() does. Called without a lock. */
void gpc_lane_fail(struct gpc_lane *lane, int r);

/* Implemented in lane_out.c. Main function of the lane's sending thread; returns NULL when the
 * session is over. */
void *gpc_lane_send_main(void *lane);
/* Removes a copy that is sent or abandoned from the list, decrements its wait counter, wakes the
 * waiting threads and frees it. No lane may be sending a chunk of it (`busy` 0). */
void gpc_outgoing_copy_drop_locked(struct gpc_lanes *lanes, struct gpc_outgoing_copy *outgoing_copy)
	GP_LOCKED(lanes->lock);

/* Implemented in lane_in.c; called by the lane's receiving thread. Blocks until the next chunk has
 * been received into the memory of its copy. Returns 0. Returns GP_E_EOF or a negative errno if the
 * lane is unusable or the chunk is malformed or was not requested; the caller then ends the session
 * with gpc_lane_fail(). */
GP_MUST_CHECK int gpc_lane_receive_chunk(struct gpc_lane *lane);

#endif /* GPC_LANE_INTERNAL_H */
