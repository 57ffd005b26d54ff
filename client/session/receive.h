/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parser of the daemon's messages: receives a message and handles its records (replies and notes; a
 * note is a message that is not a reply).
 *
 * Threads: called only by the thread that has set receiver.reading (receiver.c), without a lock of
 * the session.
 */
#ifndef GPC_RECEIVE_H
#define GPC_RECEIVE_H

#include "base/status.h"

#include <cuda.h>
#include <stdint.h>

struct gpc_request;
struct gpc_session;

/*
 * Blocks until the next message arrives, and handles its records, which may complete requests and
 * run their functions. Returns 0. Returns GP_E_EOF if the daemon closed the connection, or a
 * negative errno if the connection is unusable, which includes a malformed message (-EPROTO); the
 * caller then ends the session, and gp_conn_error() of lane 0 returns the reason.
 */
GP_MUST_CHECK int gpc_receive(struct gpc_session *session);

/* Implemented in receiver.c. Returns the outstanding request with this ID, borrowed, or NULL; any
 * number is allowed. The request stays valid until the calling thread completes it. */
struct gpc_request *gpc_receiver_find(struct gpc_session *session, uint32_t id);
/* Implemented in receiver.c. Completes the request with this result: calls before(), wakes the
 * threads that wait for it, and calls done() (call.h). Afterwards the request may have been
 * freed. */
void gpc_receiver_complete(struct gpc_session *session, struct gpc_request *request,
			   CUresult result);

#endif /* GPC_RECEIVE_H */
