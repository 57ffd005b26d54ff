/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host functions: code that the client's process runs between two operations of a stream
 * (cuLaunchHostFunc()).
 *
 * When the stream's earlier work is done, the client is notified (GP_NOTE_FUNCTION). The stream's
 * later work is not enqueued on the GPU before the client reports that the function has returned
 * (deferred_queue.h). A client that never reports it therefore delays only itself, and a client
 * that dies leaves nothing on the GPU. If the function cannot be enqueued, the client is notified
 * of the error at once.
 *
 * The hooks gpd_gpHostFunction() and gpd_gpHostFunctionDone() are declared in gpd_calls.h. After
 * the latter, the records that waited for the function are ready (gpd_executor_run_deferred(),
 * executor/record.h).
 *
 * Ownership: the session's handle table refers to the functions, under IDs chosen by the client.
 * The executor frees a function when the client reports its end, or at the session's end.
 * Threads: executor only.
 */
#ifndef GPD_HOST_FUNCTION_H
#define GPD_HOST_FUNCTION_H

struct gpd_session;

/* Frees all functions and the deferred queue at the session's end. The responder must have ended,
 * and the queue's gates must have been destroyed (gpd_deferred_gates_destroy(),
 * deferred_gate.h). */
void gpd_host_functions_destroy(struct gpd_session *session);

#endif /* GPD_HOST_FUNCTION_H */
