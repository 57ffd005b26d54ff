/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a worker in which the work of a client that is gone goes on.
 *
 * CUDA has no call that stops one kernel, and while one runs the driver loads no device code: new
 * sessions would hang at their first kernel.  So the worker says at once that such work goes on.
 * The supervisor gives it no new sessions until the work ends; its sessions go on.  When only such
 * work is left the supervisor tells the worker to retire: the process ends, which stops the work.
 *
 * A worker in which kernels may have left memory allocated says so whenever it has no session, and
 * is replaced.
 */
#ifndef GPD_RETIRE_H
#define GPD_RETIRE_H

struct gpd_session;

/* Executor of a session that is closing, again and again while its work goes on. */
void gpd_retirement_work_pending(struct gpd_session *session, unsigned int waited_ms);

/* The work is done. */
void gpd_retirement_work_done(struct gpd_session *session);

/* The supervisor gives this worker no more sessions: it ends with the last one. */
void gpd_retirement_start(void);

/* A session has closed. */
void gpd_retirement_session_closed(void);

#endif /* GPD_RETIRE_H */
