/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a worker in which the work of a client that is gone goes on.
 *
 * CUDA has no call that stops one kernel, and while one runs the driver loads no device code: new
 * sessions would hang at their first kernel.  So the worker says at once that such work goes on;
 * the supervisor keeps new sessions waiting for a moment, and if it does not end, starts another
 * worker and retires this one: its sessions go on, and when only such work is left in it the
 * process ends, which stops it.  If the work ends before that, the supervisor may take this worker
 * again when the other one is in the same place.
 *
 * A worker whose device heap is no longer as it was is replaced in the same way, once nobody uses
 * it; until there is another one it goes on to serve.
 */
#ifndef GPD_RETIRE_H
#define GPD_RETIRE_H

#include <stdbool.h>

struct gpd_session;

/* Executor of a session that is closing, again and again while its work goes on. */
void gpd_retire_waits(struct gpd_session *session, unsigned int waited_ms);

/* The work is done. */
void gpd_retire_done(struct gpd_session *session);

/* The supervisor gives this worker no more sessions: it ends with the last one. */
void gpd_retire(void);

/* It does again. */
void gpd_retire_undo(void);

/* A session has closed. */
void gpd_retire_closed(void);

/* A kernel that may allocate memory on the device is launched: what such kernels do not free stays
 * in the context, so when there are no sessions the supervisor is told to replace the worker. */
void gpd_retire_uses_heap(void);

/*
 * Around calls of the driver that wait for everything in the context, at a quiet moment (quiet.h)
 * of the device, which is current.  false: the session is closing, and the call must not be made.
 * Either way gpd_retire_leave() follows.
 */
bool gpd_retire_enter(struct gpd_session *session, int device);
void gpd_retire_leave(struct gpd_session *session, int device);

#endif /* GPD_RETIRE_H */
