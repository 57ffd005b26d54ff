/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue of host functions: runs functions of the application (cuLaunchHostFunc,
 * cuStreamAddCallback) between two operations of a stream.
 *
 * The daemon notifies the client when the stream reaches a function, and continues with the
 * stream's later work after the client has reported that the function has returned. Functions run
 * one at a time, on a thread of the session that is started with the first function. When the
 * session ends with an error, functions of cuStreamAddCallback are called with that error and the
 * others are not called, as with NVIDIA's driver; at the program's exit none is called.
 *
 * A function is work of its stream: until it has returned, the session is not idle, and freed
 * memory is not reused. Host memory that a function has written is published before the daemon
 * learns that the function has returned, so all later work sees the data.
 *
 * The library's own functions (late copies, client/host/late_copy.h) run on a second thread,
 * because a function of the program may wait for work that comes after such a copy on another
 * stream.
 * Ownership: the session owns the queue. The caller owns *data of a function and keeps it valid
 * until the function has been called or dropped.
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
	CUhostFn function;         /* called with `data`, only on success; NULL: none */
	CUstreamCallback callback; /* called with `stream`, the result and `data`, also after an
				      error; NULL: none */
	CUstream stream;           /* argument of `callback`, as passed by the application */
	void *data;                /* argument, borrowed */
	bool library; /* callback of the library itself, which never waits for the program; called
			 with stream NULL, and also at the program's exit */
};

/* Queues a call after the work posted so far to the stream with this wire ID. *wanted is copied;
 * scope must stay valid as long as the session. Any thread. Returns CUDA_SUCCESS; the function may
 * then run before this returns. Returns CUDA_ERROR_OUT_OF_MEMORY or the session's error on failure;
 * the function is then not called, unless the session ended during the call: a callback may then
 * have been called with the session's error. */
CUresult gpc_host_queue_post(const struct gpc_scope *scope, uint32_t stream,
			     const struct gpc_host_call *wanted);

/* Runs a function on the thread of the program's functions, after those that are already due, also
 * if the session is lost in the meantime. Does not wait for it. scope must stay valid as long as
 * the session. Any thread. Returns CUDA_SUCCESS. Returns CUDA_ERROR_OUT_OF_MEMORY or the session's
 * error on failure; the function is then not called. */
CUresult gpc_host_queue_run(const struct gpc_scope *scope, CUhostFn function, void *data);

/* Handles the daemon's note (a message that is not a reply) that the function with this ID is due;
 * result is passed to the function. Called by the thread that reads the connection. Returns true,
 * or false without any effect if there is no such function or it is due already. */
bool gpc_host_queue_due(struct gpc_session *session, uint32_t id, CUresult result);

/* Initializes the queue. Called by session.c, as are the following functions. */
void gpc_host_queue_init(struct gpc_session *session);
/* Frees the queue and its remaining functions, without calling them. Called when the threads that
 * run functions have ended. */
void gpc_host_queue_fini(struct gpc_session *session);
/* Wakes the threads that run functions after the end of the session. They then call or drop the
 * remaining functions, as described above, and end. Does not wait for them. */
void gpc_host_queue_stop(struct gpc_session *session);

#endif /* GPC_HOST_QUEUE_H */
