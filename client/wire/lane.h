/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data lanes: connections of a session besides its lane, which carry the bytes of large copies in
 * chunks (protocol/wire.md, 7).  They are opened by the first copy that is large enough; each has a
 * thread that sends, straight from the application's memory, and one that receives, straight into
 * it.  Any thread may call.
 */
#ifndef GPC_LANE_H
#define GPC_LANE_H

#include "client/wire/call.h"
#include "client/wire/lane_plan.h"
#include "client/wire/session.h"
#include "protocol/pack.h"
#include "protocol/preamble.h"
#include "transport/url.h"

#include <stdbool.h>
#include <stdint.h>

/* What it takes to open them. */
struct gpc_lanes_config {
	struct gp_url url;
	uint8_t ticket[GP_TICKET_SIZE];
	unsigned int max;              /* lanes of the session, the call stream's included */
	bool exact;                    /* so many in any case */
	enum gp_pack_mode compression; /* of what is sent, if the daemon can */
	uint64_t round_trip_ns;        /* of the link, as far as that is known; 0: it is not */
};

/* session.c: sets session->lanes, and at the end, when no thread is left.  0 or -ENOMEM. */
GP_MUST_CHECK int gpc_lanes_init(struct gpc_session *session);
void gpc_lanes_fini(struct gpc_session *session);
/* Before the first copy: they may be opened. */
void gpc_lanes_configure(struct gpc_session *session, const struct gpc_lanes_config *config);
/* Whether all that was given to them is sent before the deadline (gp_now_ns()). */
bool gpc_lanes_drain(struct gpc_session *session, uint64_t deadline);
/* The session is over: nothing more is sent or received, and nobody waits. */
void gpc_lanes_stop(struct gpc_session *session);
/* In the child of a fork. */
void gpc_lanes_abandon(struct gpc_session *session);

/*
 * Whether a copy of this size goes over them.  The first such copy has them opened, all at once,
 * and waits for them.  later: the caller may go on before the bytes are sent.
 */
bool gpc_lanes_open_for_copy(struct gpc_session *session, uint64_t size, bool later);

/*
 * To the device in the order of a stream (its name on the wire), in one record: returns when all
 * but the last few have gone out, if wait is NULL; else *wait counts what gpc_lanes_wait_sent() is
 * to wait for.  CUDA_ERROR_NOT_READY: there are host functions that are not done, the copy is
 * not due (GP_COPY_LATE), and nothing has happened.
 */
CUresult gpc_lanes_send(const struct gpc_scope *scope, uint32_t stream, uint64_t dst,
			const void *memory, uint64_t size, unsigned int flags, unsigned int *wait);
CUresult gpc_lanes_wait_sent(struct gpc_session *session, const unsigned int *wait);
/* Waits until nothing of this memory, which is about to go, is being sent. */
void gpc_lanes_settle(const void *base, uint64_t size);

/*
 * From the device: what comes for a copy, from its start until its request is complete.
 *
 * Chunks of two copies to the same memory arrive on different lanes, in any order.  If `ordered` is
 * set, a chunk is stored after all bytes of the copies of the same stream to the chunk's memory
 * whose records were posted before.  The lane reads nothing meanwhile.  This does not deadlock:
 * - The daemon has copies of one stream in the order of their records, gives their chunks to the
 *   lanes in that order, and each lane sends in that order.  So no missing chunk of the earlier
 *   copy is on a lane after the chunk that waits.
 * - An earlier copy that failed lacks bytes until the reader of lane 0 has its reply.  The daemon
 *   sends that reply, and each reply before it, before it gives the waiting chunk to a lane.  So
 *   the chunks for which the reader may have to wait are not after the waiting chunk, either.
 * Copies of different streams have no such order on the lanes, so none waits for the other here.
 */
struct gpc_lane_in {
	struct gpc_lane_in *next;
	uint32_t copy;
	uint8_t *memory;
	uint64_t size, received;
	unsigned int busy; /* lanes that are writing to the memory, or wait to do so */
	uint64_t stream;   /* its number (stream.h) */
	bool ordered;
	uint64_t posted; /* order of the records; 0: it is not known yet */
	uint64_t after;  /* waits for copies up to this record */
};

/* Names the copy: memory, size, stream and ordered are set. */
void gpc_lanes_expect(struct gpc_session *session, struct gpc_lane_in *in);
/* Its record has been posted. */
void gpc_lanes_posted(struct gpc_session *session, struct gpc_lane_in *in);
/* Waits until so many bytes of it are there, or the session is over; then none will come. */
void gpc_lanes_finish(struct gpc_session *session, struct gpc_lane_in *in, uint64_t sent);

#endif /* GPC_LANE_H */
