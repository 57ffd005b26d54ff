/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host functions: code that the client's process runs between two operations of a stream.
 *
 * When a marker after the stream's earlier work is reached, the client is notified. The stream's
 * later work is not given to the GPU before the client reports that the function has returned
 * (deferred_queue.h). A client that never reports it therefore delays only itself, and one that
 * dies leaves nothing on the GPU.
 *
 * Ownership: the session, through its handle table, under names chosen by the client. The executor
 * frees a function when the client reports its end, which can happen as soon as the responder has
 * used it for the last time, or at the session's end after the responder has ended.
 * Threads: executor only.
 */
#ifndef GPD_HOST_FUNCTION_H
#define GPD_HOST_FUNCTION_H

struct gpd_session;

/* Frees all functions and the deferred queue at the session's end, after the responder has
 * ended. */
void gpd_host_functions_destroy(struct gpd_session *session);

#endif /* GPD_HOST_FUNCTION_H */
