/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue of host functions: runs functions of the application (cuLaunchHostFunc,
 * cuStreamAddCallback) between two operations of a stream.
 *
 * The daemon notifies the client when the stream reaches a function, and continues with the
 * stream's later work after the client has reported that the function has returned. Functions run
 * one at a time, on a thread of the session that is started when the first function is posted. When
 * the session ends with an error, functions of cuStreamAddCallback are called with that error and
 * the others are not called, as with NVIDIA's driver; at the program's exit none is called.
 *
 * A function is work of its stream: until the function has returned, the session is not idle, and
 * freed memory is not reused. Host memory that a function has written is published before the
 * daemon learns that the function has returned, so all later work sees the data.
 *
 * The library's own functions (late copies, client/host/late_copy.h) run on a second thread,
 * because a function of the program may wait for work that comes after such a copy on another
 * stream.
 * Ownership: the session owns the queue. The caller owns *data of a function and keeps it valid
 * until the function has returned or is dropped without a call, which is not reported. Functions
 * with `library` set are always called.
 * Threads: any thread may post; functions.lock of the session guards the queue.
 */
#ifndef GPC_HOST_QUEUE_H
#define GPC_HOST_QUEUE_H

#include "client/session/call.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* A host function; exactly one of `function` and `callback` is set. */
struct gpc_host_call {
	CUhostFn function; /* called with `data`, unless the daemon refuses it or the session is
			      over; NULL: none */
	CUstreamCallback callback; /* called with `stream`, the result and `data`, also after an
				      error; NULL: none */
	CUstream stream;           /* argument of `callback`, as passed by the application */
	void *data;                /* argument, borrowed */
	bool library; /* `callback` is the library's own, which never waits for the program; called
			 with stream NULL, and also at the program's exit */
};

/* Queues a host function after the work posted so far to the stream with this wire ID. *wanted is
 * copied; scope must stay valid as long as the session. Blocks as gpc_post_X() does (call.h). After
 * CUDA_SUCCESS the function may run before this returns. Errors: CUDA_ERROR_OUT_OF_MEMORY, and
 * those of call.h; the function is then not called. Exception: if the session ended during the
 * call, a callback may have been called with the session's error. */
CUresult gpc_host_queue_post(const struct gpc_scope *scope, uint32_t stream,
			     const struct gpc_host_call *wanted);

/* Runs wanted(data) on the thread of the program's functions, after those that are already due; it
 * is not work of a stream. It also runs if the session is lost in the meantime, but not at the
 * program's exit. Does not wait for it. scope must stay valid as long as the session. Returns
 * CUDA_SUCCESS. Errors: CUDA_ERROR_OUT_OF_MEMORY, and the session's error; the function is then not
 * called. */
CUresult gpc_host_queue_run(const struct gpc_scope *scope, CUhostFn wanted, void *data);

/* Handles the daemon's note (a message that is not a reply) that the function with this ID is due.
 * result: CUDA_SUCCESS, or the error for which the daemon refuses the function; it is passed to a
 * callback. Called by the thread that reads the connection. Returns true, or false without any
 * effect if the session has no such function or it is due already, which is a protocol error. */
bool gpc_host_queue_due(struct gpc_session *session, uint32_t id, CUresult result);

/* Initializes the queue. Called by session.c. */
void gpc_host_queue_init(struct gpc_session *session);
/* Frees the queue and its remaining functions, without calling them. Called by session.c when the
 * threads that run functions have ended. */
void gpc_host_queue_fini(struct gpc_session *session);
/* Called by session.c when the session is over: wakes the threads that run functions. They then
 * call or drop the remaining functions, as described above, and end. Does not wait for them. */
void gpc_host_queue_stop(struct gpc_session *session);

#endif /* GPC_HOST_QUEUE_H */
