/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of a session.
 *
 * All signals are blocked in these threads, because signals belong to the application.
 * Threads: any.
 */
#ifndef GPC_SESSION_THREADS_H
#define GPC_SESSION_THREADS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct gpc_session;

/* Starts a detached thread, which must call gpc_thread_ended() last. Returns 0 or a negative
 * errno. */
GP_MUST_CHECK int gpc_thread_start(struct gpc_session *session, void *(*main)(void *arg), void *arg,
				   const char *name);
void gpc_thread_ended(struct gpc_session *session);
/* Waits until all threads have ended. Returns false if the deadline (gp_now_ns()) passes first. */
bool gpc_threads_wait(struct gpc_session *session, uint64_t deadline);

#endif /* GPC_SESSION_THREADS_H */
