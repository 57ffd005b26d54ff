/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a worker in which the work of a client that is gone goes on.
 *
 * CUDA has no call that stops one kernel, and while one runs the driver loads no device code: new
 * sessions would hang at their first kernel.  So the worker says at once that such work goes on;
 * the supervisor keeps new sessions waiting for a moment, and if it does not end, starts another
 * worker and retires this one: its sessions go on, and when only such work is left in it the
 * process ends, which stops it.
 */
#ifndef GPD_RETIRE_H
#define GPD_RETIRE_H

struct gpd_session;

/* Executor of a session that is closing, again and again while its work goes on. */
void gpd_retire_waits(struct gpd_session *session, unsigned int waited_ms);

/* The work is done. */
void gpd_retire_done(struct gpd_session *session);

/* The supervisor gives this worker no more sessions: it ends with the last one. */
void gpd_retire(void);

/* A session has closed. */
void gpd_retire_closed(void);

/* Around calls of the driver that may wait for everything in the context. */
void gpd_retire_enter(struct gpd_session *session);
void gpd_retire_leave(struct gpd_session *session);

#endif /* GPD_RETIRE_H */
