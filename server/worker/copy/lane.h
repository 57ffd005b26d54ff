/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data lanes of a session (protocol/wire.md, 7): connections that carry the bytes of large copies
 * in chunks, while the copies' records stay in the call stream.
 *
 * Each lane has two threads. The receiver receives chunks directly into staging memory (staging.h),
 * and the executor enqueues their copies. The sender sends the chunks that the responder hands
 * over. Only the executor enqueues work on streams. A chunk is a part of a copy, at most 1 MiB
 * (struct gp_chunk, protocol/frame.h).
 *
 * Ownership: the session owns its lanes. A lane is freed after its threads have been joined; the
 * shared state is freed after the responder has ended.
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

/* Main thread: creates session->copies->lanes, without a lane; freed by gpd_lanes_destroy().
 * Returns 0 or -ENOMEM. */
GP_MUST_CHECK int gpd_lanes_create(struct gpd_session *session);

/*
 * Any thread: adds data lane `number`, from the network, unchecked, and starts its threads. The
 * session has lane 0 (session->conn). Returns NULL, and the session owns conn; or the reason for
 * the refusal, a static text, and the caller still owns conn. Refused are numbers outside of 1 to
 * GP_LANES_MAX - 1 and numbers that are in use.
 */
const char *gpd_lanes_add(struct gpd_session *session, unsigned int number, struct gp_conn *conn)
	GP_LOCKED(gpd_sessions.lock);

/* A chunk that has been received. */
struct gpd_arrival {
	uint64_t offset; /* in the bytes of the copy */
	size_t size;     /* bytes */
	/* Staging memory, which the caller releases by gpd_staging_release(); memory NULL: the
	 * bytes are in device memory already. */
	struct gpd_piece piece;
};

/* Any thread: returns whether all lanes use the same RDMA device as lane 0. Returns false without
 * RDMA; true without data lanes if lane 0 uses RDMA. */
bool gpd_lanes_are_uniform(struct gpd_session *session);

/*
 * Executor only: starts the next copy to the device. All chunks of the previous one must have been
 * consumed. copy: the client's number of the copy, unchecked, which must be the previous number
 * plus 1; the first copy has number 1. size: bytes, not 0. gpudirect: address of registered device
 * memory (gpudirect_memory.h) to which chunks are written directly; 0: chunks go through staging
 * until gpd_gpudirect_in_poll() sets an address. Returns 0; or -EPROTO if the number is another one
 * or memory is exhausted: the reason is recorded, and the session ends.
 */
GP_MUST_CHECK int gpd_lanes_expect(struct gpd_session *session, uint32_t copy, uint64_t size,
				   uint64_t gpudirect);
/* Executor only: blocks until a further chunk of the copy that gpd_lanes_expect() has started is
 * received; chunks arrive in any order. Meanwhile continues copies to the client
 * (gpd_copy_continue(), copy.h), which may change the current device. Returns 1 with *arrival set;
 * or 0 if all chunks have been consumed. After an error the copy cannot be continued:
 * -EPROTO: a chunk was invalid; the reason is recorded, and the session ends.
 * -ESHUTDOWN: the session is closing or has a sticky error; or the function has ended the session,
 * because no chunk has arrived for the session's timeout, or for 0.2 s after a lane or the client's
 * connection has ended. */
GP_MUST_CHECK int gpd_lanes_pop(struct gpd_session *session, struct gpd_arrival *arrival);

/* Any thread: queues a chunk for the client without waiting. Takes ownership of *piece, staging
 * memory with the size bytes: its slot is released when the chunk is sent, or at once on failure.
 * The caller must not use *piece afterwards. Returns 0; -ENOMEM; or -ESHUTDOWN if the session is
 * closing. */
GP_MUST_CHECK int gpd_lanes_send(struct gpd_session *session, uint32_t copy, uint64_t offset,
				 size_t size, struct gpd_piece *piece);

/* Called once, without a lock: by the lane's sender when the chunk has been sent or sending has
 * failed, or by gpd_lanes_destroy(), with r -ESHUTDOWN. r: 0 or a negative errno. */
typedef void gpd_lanes_sent(struct gpd_session *session, void *arg, int r);
/* Any thread: queues a chunk that the lane sends directly from registered memory at this address,
 * without waiting. *chunk is copied. The memory must stay registered until sent() is called.
 * Returns 0; -ENOMEM; or -ESHUTDOWN if the session is closing. On failure sent() is not called. */
GP_MUST_CHECK int gpd_lanes_send_registered(struct gpd_session *session,
					    const struct gp_chunk *chunk, uint64_t address,
					    gpd_lanes_sent *sent, void *arg);

/* Any thread: returns whether no chunk for the client is waiting or being sent. */
bool gpd_lanes_sent_all(struct gpd_session *session);

/* Executor, when the session closes, after session->closing is set: closes the lanes and blocks
 * until their threads have ended. The caller ensures that no lane is added afterwards. Does nothing
 * if session->copies->lanes is NULL. */
void gpd_lanes_stop(struct gpd_session *session);
/* Called after gpd_lanes_stop() and after the responder has ended: releases chunks that were not
 * consumed or sent, and frees session->copies->lanes. Does nothing if it is NULL. */
void gpd_lanes_destroy(struct gpd_session *session);

#endif /* GPD_LANE_H */
