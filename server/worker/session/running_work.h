/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose work a worker's GPUs may be at, for the log: sessions that have given kernels which are not
 * known to be done, those among them whose clients have gone.  Any thread.
 */
#ifndef GPD_RUNNING_WORK_H
#define GPD_RUNNING_WORK_H

#include "base/lock.h"
#include "server/worker/session/sessions.h"

#include <stddef.h>
#include <stdint.h>

struct gpd_session;

/* Names them, "session 3 (host 17 ./program), last kernel k, session 4 ...", or "" if there are
 * none.  The only one that there is, or NULL. */
struct gpd_session *gpd_running_work_find(char *text, size_t size) GP_LOCKED(gpd_sessions.lock);

/* The same for a line of the log, without the lock: "no session" if there are none.  The budget of
 * the session that such a line can only be about: the one that is named, or the only one that the
 * worker has; if there may be others, one budget for all such lines of all workers. */
uint32_t gpd_running_work_tell(char *text, size_t size);

#endif /* GPD_RUNNING_WORK_H */
