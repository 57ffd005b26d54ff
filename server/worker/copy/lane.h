/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data lanes of a session (protocol/wire.md, 7): connections that carry the bytes of large copies,
 * while the copies' records stay in the call stream.
 *
 * Each lane has two threads. One receives chunks directly into staging memory, and the executor
 * gives them to the GPU. The other sends the chunks that the responder hands over. So only the
 * executor gives work to streams, as everywhere.
 *
 * Ownership: the session owns its lanes. A lane is freed after its threads have been joined; the
 * shared state after the responder has ended, too.
 * Threads: as noted for each function.
 * Errors: 0 or a negative errno, unless noted.
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
 * Adds data lane `number` (1 and up) and starts its threads. Returns NULL and owns the connection,
 * or returns the reason for the refusal, and the caller keeps the connection.
 */
const char *gpd_lanes_add(struct gpd_session *session, unsigned int number, struct gp_conn *conn)
	GP_LOCKED(gpd_sessions.lock);

/* A chunk that has been received. */
struct gpd_arrival {
	uint64_t offset;
	size_t size;
	struct gpd_piece piece; /* the caller's; memory NULL: bytes are in device memory */
};

/* Any thread: whether all lanes use the same RDMA device as lane 0; false without RDMA. */
bool gpd_lanes_are_uniform(struct gpd_session *session);

/*
 * Executor: gpd_lanes_expect() starts the next copy to the device. 0, or -EPROTO: the session must
 * end. gpd_lanes_pop() then waits for its next chunk: 1 and a chunk, 0 after the last one, or a
 * negative errno if the session is over.
 *
 * gpudirect: address of registered device memory (gpudirect_memory.h) to which the chunks that
 * arrive from now on are written directly. 0: through staging, until gpd_gpudirect_in_poll() sets
 * an address.
 */
GP_MUST_CHECK int gpd_lanes_expect(struct gpd_session *session, uint32_t copy, uint64_t size,
				   uint64_t gpudirect);
GP_MUST_CHECK int gpd_lanes_pop(struct gpd_session *session, struct gpd_arrival *arrival);

/* Any thread: queues a chunk for the client. The piece is released when the chunk is sent, or on
 * failure. A negative errno means that the session is over. */
GP_MUST_CHECK int gpd_lanes_send(struct gpd_session *session, uint32_t copy, uint64_t offset,
				 size_t size, struct gpd_piece *piece);

/* Queues a chunk that the lane sends directly from registered memory. The memory must stay
 * registered until sent() is called, by the lane's thread or at the session's end. On failure
 * sent() is not called. */
typedef void gpd_lanes_sent(struct gpd_session *session, void *arg, int r);
GP_MUST_CHECK int gpd_lanes_send_registered(struct gpd_session *session,
					    const struct gp_chunk *chunk, uint64_t address,
					    gpd_lanes_sent *sent, void *arg);

/* Any thread: whether no chunk for the client is waiting or being sent. */
bool gpd_lanes_sent_all(struct gpd_session *session);

/* For a closing session: closes the lanes and joins their threads. No lane can be added
 * afterwards. */
void gpd_lanes_stop(struct gpd_session *session);
/* After the responder has ended: releases chunks that were not consumed or sent, and frees
 * session->lanes. */
void gpd_lanes_destroy(struct gpd_session *session);

#endif /* GPD_LANE_H */
