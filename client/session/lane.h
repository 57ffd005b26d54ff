/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data lanes: additional connections of a session, which carry the data of large copies in chunks
 * (protocol/wire.md, section 7). Lane 0 is the connection that carries the calls.
 *
 * The data lanes are opened by the first copy that is large enough. Each has a thread that sends
 * directly from the application's memory and a thread that receives directly into it.
 * Threads: any.
 * Errors: a data lane that fails ends the session.
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

/* Parameters for opening the lanes, from the configuration and the Welcome. */
struct gpc_lanes_config {
	struct gp_url url;              /* address of the daemon */
	uint8_t ticket[GP_TICKET_SIZE]; /* secret that binds the lanes to the session */
	unsigned int max; /* maximum number of lanes of the session, including lane 0, at most
			     GP_LANES_MAX; less than 2: no data lanes */
	bool exact; /* open exactly `max` lanes; link and number of processors are not considered */
	enum gp_pack_mode compression; /* compression of outgoing data, if the daemon supports it */
	uint64_t round_trip_ns; /* round-trip time of the link when the session was opened; 0:
				   unknown */
};

/* Called by session.c: allocates session->lanes. Returns 0, or -ENOMEM with session->lanes
 * unchanged. Undone by gpc_lanes_fini(). */
GP_MUST_CHECK int gpc_lanes_init(struct gpc_session *session);
/* Called by session.c when no thread of the session is left: closes the lanes' connections and
 * frees session->lanes. Has no effect if it is NULL. */
void gpc_lanes_fini(struct gpc_session *session);
/* Sets the parameters. Called once, by cuInit(), before the first copy. Without this call the
 * session has no data lanes. *config is copied; the caller has checked its limits.
 * config->round_trip_ns becomes the session's first measured value. */
void gpc_lanes_configure(struct gpc_session *session, const struct gpc_lanes_config *config);
/* Called by session.c: blocks until all queued data is sent or the lanes are stopped. Returns true,
 * or false if the deadline (gp_now_ns()) passes first. */
bool gpc_lanes_drain(struct gpc_session *session, uint64_t deadline);
/* Called by session.c at the end of the session: stops sending and receiving, and wakes all waiting
 * threads. Does not wait for the lanes' threads. */
void gpc_lanes_stop(struct gpc_session *session);
/* Called by session.c in the child of a fork: closes the descriptors of the connections, without
 * sending anything. */
void gpc_lanes_abandon(struct gpc_session *session);

/*
 * Returns whether a copy of `size` bytes is to use the data lanes. The first copy that is large
 * enough opens all of them at once; it and copies of other threads meanwhile block until each lane
 * is connected or has failed. Returns false, and the copy uses lane 0, if the copy is too small or
 * no data lane is open. later: the caller may return before the data is sent.
 */
bool gpc_lanes_open_for_copy(struct gpc_session *session, uint64_t size, bool later);

/*
 * Copies `size` bytes, not 0, from memory to the device address dst, as one record, in the order of
 * the stream with this wire ID. Called after gpc_lanes_open_for_copy() has returned true. flags:
 * GP_COPY_* of protocol/frame.h.
 *
 * Blocks while two or more copies of the session are unsent, and as gpc_post_X() does (call.h);
 * then queues the data and posts the record. The memory must stay valid and unchanged until the
 * data is sent. If wait is not NULL, *wait (initially 0) is incremented when the copy is queued,
 * and decremented when the data is sent or the session is over; it must stay valid until then. It
 * is guarded by the lanes' lock, so the caller only passes it to gpc_lanes_wait_sent(). If wait is
 * NULL, the caller waits for the data with gpc_lanes_settle().
 *
 * Errors: CUDA_ERROR_NOT_READY: host functions or streams' waits for values are outstanding, and
 * flags does not contain GP_COPY_LATE (a copy that its stream's host function has started);
 * CUDA_ERROR_OUT_OF_MEMORY; those of call.h. After CUDA_ERROR_NOT_READY and
 * CUDA_ERROR_OUT_OF_MEMORY nothing is queued and *wait is unchanged. After another error the data
 * may be queued, and the memory in use until *wait is 0.
 */
CUresult gpc_lanes_send(const struct gpc_scope *scope, uint32_t stream, uint64_t dst,
			const void *memory, uint64_t size, unsigned int flags, unsigned int *wait);
/* Blocks, without limit, until *wait is 0, that is, until the data of all copies that were queued
 * with it is sent or the session is over. Afterwards no lane uses the copies' memory. Returns
 * CUDA_SUCCESS or the session's error. */
CUresult gpc_lanes_wait_sent(struct gpc_session *session, const unsigned int *wait);
/* Blocks, without limit, until no session is sending data of the `size` bytes at base, or has such
 * data queued. Called before the memory is freed or changed. */
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
 * Ownership: the caller owns the struct and the destination; both must stay valid from
 * gpc_lanes_expect() until gpc_lanes_finish() returns.
 * Threads: the lanes' lock guards the members between these calls.
 */
struct gpc_incoming_copy {
	struct gpc_incoming_copy *next;
	uint32_t copy;           /* ID of the copy on the wire, assigned by gpc_lanes_expect() */
	uint8_t *memory;         /* destination */
	uint64_t size, received; /* bytes of the copy, and bytes stored so far */
	unsigned int busy; /* number of lanes that are writing to the memory, or wait to do so */
	uint64_t stream;   /* gpc_stream.number (client/stream/stream.h) */
	bool ordered;      /* store after earlier copies of the same stream */
	uint64_t posted;   /* number of this copy in the order of gpc_lanes_posted(), from 1; 0: not
			      called yet */
	uint64_t after;    /* chunks wait for copies whose `posted` is at most this; 0: for none */
};

/* Registers the copy before its record is posted, and assigns its ID (in->copy), which the record
 * contains. memory, size, stream and ordered must be set, and the rest must be zero.
 * gpc_lanes_finish() must follow, also if the record cannot be posted. */
void gpc_lanes_expect(struct gpc_session *session, struct gpc_incoming_copy *in);
/* Called after the copy's record has been posted: ordered copies of the same stream that are
 * registered later are stored after this one. */
void gpc_lanes_posted(struct gpc_session *session, struct gpc_incoming_copy *in);
/* Blocks until `sent` bytes of the copy have arrived or the session is over, and no lane writes to
 * its memory; then unregisters the copy. The caller may free the struct and the memory afterwards.
 * sent: the number of bytes that the daemon's reply reports as sent over lanes, checked by the
 * caller to be at most in->size; 0 if the copy was not started. */
void gpc_lanes_finish(struct gpc_session *session, struct gpc_incoming_copy *in, uint64_t sent);

#endif /* GPC_LANE_H */
