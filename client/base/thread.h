/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of a session, and time.  The threads take no signals: those are the application's.
 */
#ifndef GPC_THREAD_H
#define GPC_THREAD_H

#include "protocol/status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct gpc_session;

/* CLOCK_MONOTONIC */
int64_t gpc_now_ns(void);
struct timespec gpc_deadline(int timeout_ms);

/* A condition whose timed waits take a gpc_deadline(). */
void gpc_cond_init(pthread_cond_t *cond);

/* Nobody joins them; each calls gpc_thread_ended() last.  0 or a negative errno. */
GP_MUST_CHECK int gpc_thread_start(struct gpc_session *session, void *(*main)(void *arg), void *arg,
				   const char *name);
void gpc_thread_ended(struct gpc_session *session);
/* Whether all have ended before the deadline. */
bool gpc_threads_wait(struct gpc_session *session, const struct timespec *deadline);

#endif /* GPC_THREAD_H */
