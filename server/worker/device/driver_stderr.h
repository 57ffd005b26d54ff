/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver writes to standard error: a failed device assertion, above all.  It belongs to
 * the client whose kernel it was, as well as to the daemon's log.
 *
 * The worker's standard error becomes a pipe; a thread remembers the last of what comes, and makes
 * each line of it one of the log, which goes where standard error went before (gpd_log_fd).  The
 * text may be a client's from the first to the last byte, so such a line says whose work was under
 * way, and uses up the log's budget (log_budget.h) of who may have caused it.  Any thread may take.
 */
#ifndef GPD_DRIVER_STDERR_H
#define GPD_DRIVER_STDERR_H

#include <stddef.h>
#include <stdint.h>

#define GPD_DRIVER_STDERR_MAX 4096
#define GPD_DRIVER_STDERR_WHOSE_MAX 320

/* Says whose work is under way, as "session 3 (host 17 ./program)", or "no session", and returns
 * the log's budget for it.  Called by any thread that takes, and by one of the module's own. */
typedef uint32_t gpd_driver_stderr_whose_func(char *text, size_t size);

/* Early in the worker, before the driver is opened.  0 or a negative errno. */
int gpd_driver_stderr_start(gpd_driver_stderr_whose_func *whose);

/* All that was written goes to the log now, while it is known whose work is under way. */
void gpd_driver_stderr_flush(void);

/* What was written in the last seconds, with a NUL; returns its length. */
size_t gpd_driver_stderr_read(char *text, size_t size);

#endif /* GPD_DRIVER_STDERR_H */
