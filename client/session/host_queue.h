/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue of host functions: runs functions of the application (cuLaunchHostFunc,
 * cuStreamAddCallback) between two operations of a stream.
 *
 * The daemon notifies the client when the stream reaches a function, and continues with the
 * stream's later work after the client has reported that the function has returned. Functions run
 * one at a time, on a thread of the session that is started with the first one. When the session
 * ends, functions of cuStreamAddCallback are called with its error and the others are not called,
 * as with NVIDIA's driver.
 *
 * A function is work of its stream: until it has returned, the session is not idle, and freed
 * memory is not reused. Host memory that a function has written is published before the daemon
 * learns that the function has returned, so all later work sees the data.
 *
 * The library's own functions (late copies, client/host/late_copy.h) run on a second thread,
 * because a function of the program may wait for work that comes after such a copy on another
 * stream.
 */
#ifndef GPC_HOST_QUEUE_H
#define GPC_HOST_QUEUE_H

#include "client/session/call.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* A host function; exactly one of function and callback is set. */
struct gpc_host_call {
	CUhostFn function;
	CUstreamCallback callback;
	CUstream stream; /* as passed by the application */
	void *data;
	bool library; /* callback of the library itself; it never waits for the program */
};

/* Queues a call after the work posted so far to the stream with this wire ID. *wanted is copied.
 * Any thread. Returns CUDA_ERROR_OUT_OF_MEMORY or the session's error on failure; the function is
 * then not called. */
CUresult gpc_host_queue_post(const struct gpc_scope *scope, uint32_t stream,
			     const struct gpc_host_call *wanted);

/* Runs a function on the thread of the program's functions, after those that are already due, also
 * if the session is lost in the meantime. Any thread. Returns CUDA_ERROR_OUT_OF_MEMORY or the
 * session's error on failure; the function is then not called. */
CUresult gpc_host_queue_run(const struct gpc_scope *scope, CUhostFn function, void *data);

/* Handles the daemon's note that a function is due; result is passed to the function. Called by the
 * reader of the connection. Returns false if there is no such function. */
bool gpc_host_queue_due(struct gpc_session *session, uint32_t id, CUresult result);

/* Called by session.c. */
void gpc_host_queue_init(struct gpc_session *session);
/* Called when the threads that run functions have ended. */
void gpc_host_queue_fini(struct gpc_session *session);
/* Wakes the threads after the end of the session; the remaining functions are dropped. */
void gpc_host_queue_stop(struct gpc_session *session);

#endif /* GPC_HOST_QUEUE_H */
