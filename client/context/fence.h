/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences: requests to which the daemon replies when all work that was posted before is done. By a
 * fence the client learns that work is done without waiting for it: the reply advances
 * gpc_session_work_done().
 *
 * Ownership: struct gpc_fence is in the caller's memory, which must stay valid while a fence is in
 * flight; it is never destroyed.
 * Threads: any thread may call.
 */
#ifndef GPC_FENCE_H
#define GPC_FENCE_H

#include "client/session/call.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct gpc_context;

/* State of asynchronous fences, of which at most one is in flight. */
struct gpc_fence {
	pthread_mutex_t lock; /* held by the thread that starts or polls the fence */
	struct gpc_request request;
	uint64_t count;          /* gpc_session_work_posted() when the fence was sent */
	atomic_bool outstanding; /* the fence is in flight */
};

/* Registers a function that returns whether all work of a session is known to be done without a
 * query to the daemon. Called once by entry/ while the library is loaded. Until then no work is
 * known to be done. */
void gpc_fence_set_idle_check(bool (*knows_done)(const struct gpc_session *session));

/* Initializes the state; no fence is in flight. */
void gpc_fence_init(struct gpc_fence *fence);

/* Returns whether all work posted so far is known to be done, so that no fence is needed; if so,
 * advances gpc_session_work_done(). Does not query the daemon. */
bool gpc_fence_is_redundant(struct gpc_session *session);

/* Sends a fence on the context, unless a fence is in flight or gpc_fence_is_redundant(). Does not
 * wait for the reply, which gpc_fence_poll() or any thread that reads the connection processes. If
 * the fence cannot be sent, it is not in flight afterwards; no error is reported. */
void gpc_fence_start(struct gpc_fence *fence, struct gpc_context *context);
/* Processes the reply if it has arrived; does not block. Has no effect if no fence is in flight
 * or another thread is polling. */
void gpc_fence_poll(struct gpc_fence *fence);

/* Blocks, without limit, until all work posted so far is done. Returns CUDA_SUCCESS, the error of
 * an earlier posted call, or the session's error. */
CUresult gpc_fence_wait(struct gpc_context *context);

#endif /* GPC_FENCE_H */
