/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data lanes: additional connections of a session, which carry the data of large copies in chunks
 * (protocol/wire.md, 7).
 *
 * The lanes are opened by the first copy that is large enough. Each has a thread that sends
 * directly from the application's memory and one that receives directly into it.
 * Threads: any.
 * Errors: a lane that fails ends the session.
 */
#ifndef GPC_LANE_H
#define GPC_LANE_H

#include "client/session/call.h"
#include "client/session/lane_plan.h"
#include "client/session/session.h"
#include "protocol/pack.h"
#include "protocol/preamble.h"
#include "transport/url.h"

#include <stdbool.h>
#include <stdint.h>

/* Parameters for opening the lanes. */
struct gpc_lanes_config {
	struct gp_url url;
	uint8_t ticket[GP_TICKET_SIZE];
	unsigned int max; /* maximum number of lanes of the session, including lane 0 */
	bool exact;       /* open exactly `max` lanes */
	enum gp_pack_mode compression; /* compression of outgoing data, if the daemon supports it */
	uint64_t round_trip_ns;        /* round-trip time of the link; 0: unknown */
};

/* Called by session.c: creates session->lanes, and frees it when no thread is left.
 * gpc_lanes_init() returns 0 or -ENOMEM. */
GP_MUST_CHECK int gpc_lanes_init(struct gpc_session *session);
void gpc_lanes_fini(struct gpc_session *session);
/* Sets the parameters, before the first copy; until then no lanes are opened. *config is copied. */
void gpc_lanes_configure(struct gpc_session *session, const struct gpc_lanes_config *config);
/* Waits until all queued data is sent. Returns false if the deadline (gp_now_ns()) passes first. */
bool gpc_lanes_drain(struct gpc_session *session, uint64_t deadline);
/* Stops sending and receiving at the end of the session, and wakes all waiting threads. */
void gpc_lanes_stop(struct gpc_session *session);
/* Closes the connections in the child of a fork, without sending anything. */
void gpc_lanes_abandon(struct gpc_session *session);

/*
 * Returns whether a copy of this size is to use the lanes. The first such copy opens all of them at
 * once and waits for them. later: the caller may return before the data is sent.
 */
bool gpc_lanes_open_for_copy(struct gpc_session *session, uint64_t size, bool later);

/*
 * Copies to the device, as one record, in the order of the stream with this wire ID.
 *
 * Waits while too many copies are unsent, queues the data and posts the record. The memory must
 * stay valid until the data is sent. Unless wait is NULL, *wait is incremented, and decremented
 * when the data is sent or the session is over; gpc_lanes_wait_sent() waits until it is 0. Returns
 * CUDA_ERROR_NOT_READY, without any effect, if host functions are outstanding and flags does not
 * contain GP_COPY_LATE.
 */
CUresult gpc_lanes_send(const struct gpc_scope *scope, uint32_t stream, uint64_t dst,
			const void *memory, uint64_t size, unsigned int flags, unsigned int *wait);
CUresult gpc_lanes_wait_sent(struct gpc_session *session, const unsigned int *wait);
/* Waits until no data of this memory, which is about to be freed, is being sent by any session. */
void gpc_lanes_settle(const void *base, uint64_t size);

/*
 * A copy from the device: the destination of incoming chunks, from the start of the copy until its
 * request is complete.
 *
 * Chunks of two copies to the same memory arrive on different lanes, in any order. If `ordered` is
 * set, a chunk is stored after all bytes of earlier copies of the same stream to the chunk's
 * memory, and the lane reads nothing until then. This does not deadlock:
 *
 *   - The daemon has copies of one stream in the order of their records, gives their chunks to the
 *     lanes in that order, and each lane sends in that order. So no missing chunk of the earlier
 *     copy is on a lane after the chunk that waits.
 *   - A failed earlier copy lacks bytes until the reader of lane 0 has its reply. The daemon sends
 *     that reply, and each reply before it, before it gives the waiting chunk to a lane. So the
 *     chunks for which the reader may have to wait are not after the waiting chunk, either.
 *
 * Copies of different streams have no such order on the lanes, so neither waits for the other here.
 * Ownership: the caller's memory; linked from gpc_lanes_expect() to gpc_lanes_finish().
 */
struct gpc_lane_in {
	struct gpc_lane_in *next;
	uint32_t copy;
	uint8_t *memory;
	uint64_t size, received;
	unsigned int busy; /* number of lanes that are writing to the memory, or wait to do so */
	uint64_t stream;   /* number of the stream (stream.h) */
	bool ordered;
	uint64_t posted; /* position in the order of the records; 0: not yet known */
	uint64_t after;  /* wait for copies up to this position */
};

/* Registers the copy and assigns its ID (copy). memory, size, stream and ordered must be set. */
void gpc_lanes_expect(struct gpc_session *session, struct gpc_lane_in *in);
/* Called after the copy's record has been posted. */
void gpc_lanes_posted(struct gpc_session *session, struct gpc_lane_in *in);
/* Waits until `sent` bytes of the copy have arrived or the session is over, and unregisters the
 * copy. No chunk is written to its memory afterwards. */
void gpc_lanes_finish(struct gpc_session *session, struct gpc_lane_in *in, uint64_t sent);

#endif /* GPC_LANE_H */
