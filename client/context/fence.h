/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences: how the client learns that work it posted is done, without having waited for it.  An
 * answered fence moves gpc_session_work_done() on.  Any thread may call.
 */
#ifndef GPC_FENCE_H
#define GPC_FENCE_H

#include "client/wire/call.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct gpc_context;
struct gpc_session;

/* At most one fence is under way without anybody waiting for it. */
struct gpc_fence {
	pthread_mutex_t lock;
	struct gpc_request request;
	uint64_t count; /* work posted before it */
	atomic_bool outstanding;
};

/* Who knows whether all work of a session is done, without asking.  By entry, as the library is
 * loaded. */
void gpc_fence_set_idle_check(bool (*knows_done)(const struct gpc_session *session));

void gpc_fence_init(struct gpc_fence *fence);

/* Whether all work posted so far is known to be done; gpc_session_work_done() says so, too, then.
 */
bool gpc_fence_is_redundant(struct gpc_session *session);

/* Asks for one unless one is under way, or needless; the answer is looked at by gpc_fence_poll() or
 * by whoever reads the connection. */
void gpc_fence_start(struct gpc_fence *fence, struct gpc_context *context);
void gpc_fence_poll(struct gpc_fence *fence);

/* Blocks until all work posted so far is done. */
CUresult gpc_fence_wait(struct gpc_context *context);

#endif /* GPC_FENCE_H */
