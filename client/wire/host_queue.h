/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the application that run between two operations of a stream.
 *
 * They run in this process, one at a time, on a thread of the session that is started with the
 * first one, when the daemon says that their turn has come; it carries out what is behind them when
 * it has been told that they have returned.  When the session is over those of cuStreamAddCallback
 * are called with its error, the others are not called, as with NVIDIA's driver.
 *
 * A function is work of its stream: until it has returned, the session is not idle, and memory that
 * is freed is not used again.
 *
 * What a function has written to host memory is published before the daemon learns that the
 * function has returned, so all work after it finds the bytes.
 *
 * The library's own functions (late copies, client/host/late_copy.h) run on a second thread,
 * because a function of the program may wait for work that comes after such a copy on another
 * stream.
 */
#ifndef GPC_HOST_QUEUE_H
#define GPC_HOST_QUEUE_H

#include "client/wire/call.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* One of the two functions. */
struct gpc_host_call {
	CUhostFn function;
	CUstreamCallback callback;
	CUstream stream; /* as the application named it */
	void *data;
	bool library; /* a callback of the library's own: it never waits for the program */
};

/* Behind what was posted to the stream (its name on the wire).  Any thread. */
CUresult gpc_host_queue_post(const struct gpc_scope *scope, uint32_t stream,
			     const struct gpc_host_call *wanted);

/* As soon as those are done whose turn has come; it runs too when the session is lost.  Any thread.
 * CUDA_ERROR_OUT_OF_MEMORY, or why the session is over: it does not run. */
CUresult gpc_host_queue_run(const struct gpc_scope *scope, CUhostFn function, void *data);

/* The daemon's note; by who reads the connection.  false: there is no such function. */
bool gpc_host_queue_due(struct gpc_session *session, uint32_t id, CUresult result);

/* session.c */
void gpc_host_queue_init(struct gpc_session *session);
/* The thread that runs them has ended. */
void gpc_host_queue_fini(struct gpc_session *session);
/* The session is over: those that are left will have no turn. */
void gpc_host_queue_stop(struct gpc_session *session);

#endif /* GPC_HOST_QUEUE_H */
