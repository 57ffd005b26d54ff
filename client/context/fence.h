/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences: calls to which the daemon replies when all work that the session has posted before is
 * done. The reply advances gpc_session_work_done() (client/session/session.h), so the client learns
 * that work is done without a wait for it.
 *
 * Ownership: struct gpc_fence is in the caller's memory, which must stay valid while a fence is in
 * flight. There is no function to destroy it.
 * Threads: any thread may call; gpc_fence_wait() must not be called in a function that the receiver
 * runs (done() of struct gpc_request, client/session/call.h, or the handler of a note).
 */
#ifndef GPC_FENCE_H
#define GPC_FENCE_H

#include "client/session/call.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct gpc_context;

/* State of the asynchronous fences of one session, of which at most one is in flight. request and
 * count are written by the thread that has `lock`, while no fence is in flight. */
struct gpc_fence {
	pthread_mutex_t lock; /* held by the thread that starts or polls the fence; no thread waits
				 for it */
	struct gpc_request request;
	uint64_t count;          /* gpc_session_work_posted() when the fence was sent */
	atomic_bool outstanding; /* the fence is in flight */
};

/* Registers a function that returns whether the client knows, without a query to the daemon, that
 * all work of a session is done. Called once by client/entry/init.c while the library is loaded.
 * Without it, only replies show that work is done. */
void gpc_fence_set_idle_check(bool (*knows_done)(const struct gpc_session *session));

/* Initializes the state; no fence is in flight. */
void gpc_fence_init(struct gpc_fence *fence);

/* Returns whether all work that the session has posted so far is known to be done, so that no fence
 * is needed. If so, advances gpc_session_work_done(). Does not query the daemon. */
bool gpc_fence_is_redundant(struct gpc_session *session);

/* Sends a fence in the context's session, unless a fence is in flight, another thread is starting
 * or polling one, or gpc_fence_is_redundant(). Does not wait for the reply, which gpc_fence_poll()
 * or any thread that reads the connection processes, but may block as gpc_start_X() does
 * (client/session/call.h). Reports no error: if the fence cannot be sent, none is in flight
 * afterwards. */
void gpc_fence_start(struct gpc_fence *fence, struct gpc_context *context);
/* Processes the reply if it has arrived; does not block. Has no effect if no fence is in flight or
 * another thread is starting or polling one. */
void gpc_fence_poll(struct gpc_fence *fence);

/* Blocks, without limit, until all work that the session has posted so far is done. Sends a fence
 * of its own; needs no struct gpc_fence. Returns CUDA_SUCCESS, the error of an earlier posted call,
 * the session's error, or another error of gpc_wait_X() (client/session/call.h). */
CUresult gpc_fence_wait(struct gpc_context *context);

#endif /* GPC_FENCE_H */
