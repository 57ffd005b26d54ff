/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker retirement: handles GPU work that continues after its client has left.
 *
 * CUDA has no call that stops a single kernel, and while one runs the driver does not load device
 * code, so new sessions would hang at their first kernel. The worker therefore reports such work at
 * once. The supervisor gives it no new sessions until the work ends; its present sessions continue.
 * When only such work is left, the supervisor requests retirement: the process ends, which stops
 * the work.
 *
 * A worker whose device heap may have leaked reports that whenever it has no session, and is
 * replaced.
 *
 * Threads: any, unless noted. The functions may end the process.
 */
#ifndef GPD_WORKER_RETIREMENT_H
#define GPD_WORKER_RETIREMENT_H

struct gpd_session;

/* Called repeatedly by the executor of a closing session while its work continues. */
void gpd_retirement_work_pending(struct gpd_session *session, unsigned int waited_ms);

/* The session's work is done. */
void gpd_retirement_work_done(struct gpd_session *session);

/* The supervisor gives this worker no more sessions: it ends with the last one. */
void gpd_retirement_start(void);

/* Called after each session has been closed. */
void gpd_retirement_session_closed(void);

#endif /* GPD_WORKER_RETIREMENT_H */
