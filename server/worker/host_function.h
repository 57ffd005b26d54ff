/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host functions: what the client's process runs between two operations of a stream.
 *
 * When a marker behind the stream's earlier work is reached the client is told; nothing of the
 * stream's later work is given to the GPU before it says that the function has returned
 * (backlog.h), so a client that never does keeps only itself waiting, and one that dies leaves
 * nothing behind. Functions have names of the client's choice, in the session's table.  The
 * executor frees one when the client says that it is done, which it may say as soon as the
 * responder has used it for the last time; or at the session's end, when the responder has ended.
 */
#ifndef GPD_HOST_FUNCTION_H
#define GPD_HOST_FUNCTION_H

struct gpd_session;

/* At the session's end, when the responder has ended. */
void gpd_host_functions_destroy(struct gpd_session *session);

#endif /* GPD_HOST_FUNCTION_H */
