/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a message of the daemon means.  For who holds the receiving token (receiver.c).
 */
#ifndef GPC_RECEIVE_H
#define GPC_RECEIVE_H

#include "base/status.h"

#include <cuda.h>
#include <stdint.h>

struct gpc_request;
struct gpc_session;

/*
 * Blocks for the next message and carries out what its records say.  GP_E_EOF: there will be none;
 * a negative errno: the connection is dead, gp_conn_error() says why.
 */
GP_MUST_CHECK int gpc_receive(struct gpc_session *session);

/* receiver.c: the request of that name that waits for an answer, or NULL; and it has come. */
struct gpc_request *gpc_receiver_find(struct gpc_session *session, uint32_t id);
void gpc_receiver_complete(struct gpc_session *session, struct gpc_request *request,
			   CUresult result);

#endif /* GPC_RECEIVE_H */
