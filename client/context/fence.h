/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences: calls by which the client learns that posted work is done, without waiting for it. The
 * reply to a fence advances gpc_session_work_done().
 *
 * Threads: any thread may call.
 */
#ifndef GPC_FENCE_H
#define GPC_FENCE_H

#include "client/session/call.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct gpc_context;

/* At most one asynchronous fence is in flight. */
struct gpc_fence {
	pthread_mutex_t lock;
	struct gpc_request request;
	uint64_t count; /* count of the work posted before it */
	atomic_bool outstanding;
};

/* Registers a function that returns whether all work of a session is known to be done without a
 * query. Called by entry/ while the library is loaded. */
void gpc_fence_set_idle_check(bool (*knows_done)(const struct gpc_session *session));

void gpc_fence_init(struct gpc_fence *fence);

/* Returns whether all work posted so far is known to be done, and if so advances
 * gpc_session_work_done(). */
bool gpc_fence_is_redundant(struct gpc_session *session);

/* start() sends a fence unless one is in flight or it is redundant. The reply is processed by
 * gpc_fence_poll(), or by any thread that reads the connection. */
void gpc_fence_start(struct gpc_fence *fence, struct gpc_context *context);
void gpc_fence_poll(struct gpc_fence *fence);

/* Waits until all work posted so far is done. Returns the result of the call. */
CUresult gpc_fence_wait(struct gpc_context *context);

#endif /* GPC_FENCE_H */
