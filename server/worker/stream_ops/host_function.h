/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host functions: code that the client's process runs between two operations of a stream
 * (cuLaunchHostFunc()).
 *
 * When the stream's earlier work is done, the client is notified (GP_NOTE_FUNCTION). The stream's
 * later work is not enqueued on the GPU before the client reports that the function has returned
 * (deferred_queue.h). A client that never reports it therefore delays only itself, and one that
 * dies leaves nothing on the GPU.
 *
 * Ownership: the session's handle table refers to the functions, under IDs chosen by the client.
 * The executor frees a function when the client reports its end, which can be as soon as the client
 * was notified, or at the session's end.
 * Threads: executor only.
 */
#ifndef GPD_HOST_FUNCTION_H
#define GPD_HOST_FUNCTION_H

struct gpd_session;

/* Frees all functions and the deferred queue at the session's end. The responder must have ended,
 * and the queue's gates must have been destroyed. */
void gpd_host_functions_destroy(struct gpd_session *session);

#endif /* GPD_HOST_FUNCTION_H */
