/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker retirement: ends a worker process whose GPU work continues after the client has left
 * (orphaned work), or that cannot serve later sessions as it served the first.
 *
 * CUDA cannot stop a single kernel, and while one runs the driver does not load device code, so new
 * sessions would hang at their first kernel. The worker therefore reports orphaned work to the
 * supervisor after 100 ms. The supervisor assigns no new sessions to the worker until the work
 * ends; its present sessions continue. When the worker has only orphaned work left, the supervisor
 * requests retirement: the process ends, which stops the work.
 *
 * A worker that has no range of device addresses left, or from which a session has taken something
 * that cannot be returned (gpd_devices.worn, device/device.h), reports this whenever it has no
 * session, and the supervisor replaces it.
 *
 * Threads: any that does not hold gpd_sessions.lock, unless noted. The functions do not wait; all
 * but gpd_retirement_work_done() may end the process.
 */
#ifndef GPD_WORKER_RETIREMENT_H
#define GPD_WORKER_RETIREMENT_H

struct gpd_session;

/* Reports the session's work as orphaned once waited_ms is at least 100. Then also ends the process
 * if the worker is retiring and no session is usable (sessions.h); closing ones are not. From 2500
 * ms on, reports the GPU contexts as lost (gpd_session_poison()) if another session has been
 * waiting for a nearly idle device for 5 s. Called repeatedly by the executor of a closing session
 * while its work continues. waited_ms: time in milliseconds for which the executor has waited for
 * the work. */
void gpd_retirement_work_pending(struct gpd_session *session, unsigned int waited_ms);

/* Withdraws the report of orphaned work, if there was one. To be called by the session's executor
 * when the work is done. */
void gpd_retirement_work_done(struct gpd_session *session);

/* Starts retirement on request of the supervisor, which assigns no more sessions to this worker:
 * the process ends with its last session, or at once if it has none. If only closing sessions with
 * orphaned work are left, it ends at the next gpd_retirement_work_pending(). */
void gpd_retirement_start(void);

/* Ends a retiring process without sessions; if it is not retiring, reports why the worker must be
 * replaced, if there is a reason. Does nothing while sessions have threads. To be called after each
 * session has been freed, and when a reason may have come up without a session. */
void gpd_retirement_check_idle(void);

#endif /* GPD_WORKER_RETIREMENT_H */
