/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of a session.  They take no signals: those are the application's.
 */
#ifndef GPC_SESSION_THREADS_H
#define GPC_SESSION_THREADS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct gpc_session;

/* Nobody joins them; each calls gpc_thread_ended() last.  0 or a negative errno. */
GP_MUST_CHECK int gpc_thread_start(struct gpc_session *session, void *(*main)(void *arg), void *arg,
				   const char *name);
void gpc_thread_ended(struct gpc_session *session);
/* Whether all have ended before the deadline (gp_now_ns()). */
bool gpc_threads_wait(struct gpc_session *session, uint64_t deadline);

#endif /* GPC_SESSION_THREADS_H */
