/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parser of the daemon's messages: receives a message and handles its records.
 *
 * Threads: called only by the thread that holds the receiving token (receiver.c).
 */
#ifndef GPC_RECEIVE_H
#define GPC_RECEIVE_H

#include "base/status.h"

#include <cuda.h>
#include <stdint.h>

struct gpc_request;
struct gpc_session;

/*
 * Blocks until the next message arrives and handles its records. Returns 0, GP_E_EOF if the daemon
 * closed the connection, or a negative error if the connection is unusable; gp_conn_error() then
 * gives the reason.
 */
GP_MUST_CHECK int gpc_receive(struct gpc_session *session);

/* Implemented in receiver.c. gpc_receiver_find() returns the outstanding request with this ID, or
 * NULL; gpc_receiver_complete() completes it with this result. */
struct gpc_request *gpc_receiver_find(struct gpc_session *session, uint32_t id);
void gpc_receiver_complete(struct gpc_session *session, struct gpc_request *request,
			   CUresult result);

#endif /* GPC_RECEIVE_H */
