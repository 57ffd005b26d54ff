/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data lanes of a session (protocol/wire.md, 7): connections that carry the bytes of large copies,
 * while their records stay in the call stream.  Each lane has two threads: one receives chunks
 * straight into staging, for the executor to give to the GPU; one sends what the responder hands
 * over.  So only the executor gives work to streams, as everywhere.  A lane is freed when
 * its threads have been joined, all of them when the responder has ended, too.
 */
#ifndef GPD_LANE_H
#define GPD_LANE_H

#include "base/status.h"
#include "server/worker/copy/staging.h"
#include "server/worker/session/sessions.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gp_chunk;
struct gp_conn;
struct gpd_session;

/* Sets session->copies->lanes, without a lane, of a session that has staging.  0 or -ENOMEM. */
GP_MUST_CHECK int gpd_lanes_create(struct gpd_session *session);

/*
 * The session gets this lane, 1 and up, and takes the connection over.
 * NULL; or why it does not, and the connection is still the caller's.
 */
const char *gpd_lanes_add(struct gpd_session *session, unsigned int number, struct gp_conn *conn)
	GP_LOCKED(gpd_sessions.lock);

/* A chunk that has come. */
struct gpd_arrival {
	uint64_t offset;
	size_t size;
	struct gpd_piece piece; /* the taker's to give back; no memory: it is where it belongs */
};

/* Any thread: whether all lanes are of the RDMA device that lane 0 is of. */
bool gpd_lanes_are_uniform(struct gpd_session *session);

/*
 * Executor: the next copy to the device is this one.  0; -EPROTO: the session must end.  Then it
 * takes its chunks until there are none: 1 and a chunk, 0, or negative: the session is over.
 * straight: address of device memory, kept for the lanes (peer_memory.h), to which chunks go that
 * come from now on; 0: through staging, until gpd_gpudirect_in_poll() says otherwise.
 */
GP_MUST_CHECK int gpd_lanes_expect(struct gpd_session *session, uint32_t copy, uint64_t size,
				   uint64_t gpudirect);
GP_MUST_CHECK int gpd_lanes_pop(struct gpd_session *session, struct gpd_arrival *arrival);

/* Any thread: a chunk for the client; the piece goes back when it is sent.  0 or a negative errno:
 * the session is over. */
GP_MUST_CHECK int gpd_lanes_send(struct gpd_session *session, uint32_t copy, uint64_t offset,
				 size_t size, struct gpd_piece *piece);

/* The same from memory that is kept for the lanes, until sent() is called: by the lane's thread, or
 * when the session goes.  If adding failed it is not. */
typedef void gpd_lanes_sent(struct gpd_session *session, void *arg, int r);
GP_MUST_CHECK int gpd_lanes_send_registered(struct gpd_session *session,
					    const struct gp_chunk *chunk, uint64_t address,
					    gpd_lanes_sent *sent, void *arg);

/* Any thread: whether there is none on its way to the client. */
bool gpd_lanes_sent_all(struct gpd_session *session);

/* Of a session that is closing: ends the lanes and their threads; no other can be added. */
void gpd_lanes_stop(struct gpd_session *session);
/* When the responder is gone, too: gives back what was not taken or sent.  Frees. */
void gpd_lanes_destroy(struct gpd_session *session);

#endif /* GPD_LANE_H */
