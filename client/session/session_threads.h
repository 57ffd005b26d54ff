/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of a session: starts them and counts those that have not ended.
 *
 * Signals are blocked in these threads, because they belong to the application, except those of
 * faults (base/thread.h).
 * Threads: any thread may call.
 */
#ifndef GPC_SESSION_THREADS_H
#define GPC_SESSION_THREADS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct gpc_session;

/* Starts a detached thread of the session that runs main(arg). main must call gpc_thread_ended() as
 * its last action. name, at most 15 characters, is shown by debuggers. Returns 0, or a negative
 * errno (-EAGAIN, -ENOMEM) if no thread was started. */
GP_MUST_CHECK int gpc_thread_start(struct gpc_session *session, void *(*main)(void *arg), void *arg,
				   const char *name);
/* Called by a thread of the session as its last action, because the session may then be freed. */
void gpc_thread_ended(struct gpc_session *session);
/* Blocks until all threads of the session have ended; not called by one of them. Returns true, or
 * false if the deadline (gp_now_ns(), or GP_FOREVER) passes first. */
bool gpc_threads_wait(struct gpc_session *session, uint64_t deadline);

#endif /* GPC_SESSION_THREADS_H */
