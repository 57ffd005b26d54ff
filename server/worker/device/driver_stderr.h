/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures what the driver writes to standard error, above all failed device assertions. The text
 * is meant for the client whose kernel caused it as well as for the daemon's log.
 *
 * The worker's standard error becomes a pipe. A thread stores the most recent text and writes each
 * line to the log, which is written to the former standard error (gpd_log_fd). The text may be
 * entirely controlled by a client. A log line therefore names the session whose work is running,
 * and counts against the log budget (log_budget.h) of the tenant that may have caused it.
 *
 * Threads: any that does not hold gpd_sessions.lock, except gpd_driver_stderr_start().
 */
#ifndef GPD_DRIVER_STDERR_H
#define GPD_DRIVER_STDERR_H

#include <stddef.h>
#include <stdint.h>

/* Maximum bytes of captured text. */
#define GPD_DRIVER_STDERR_MAX 4096
/* Size in bytes of the text of gpd_driver_stderr_whose_func. */
#define GPD_DRIVER_STDERR_WHOSE_MAX 320

/* Writes the session whose work is running into text, as "session 3 (host 17 ./program)" or "no
 * session", NUL-terminated within size bytes, and returns the index of its log budget. Called by
 * the capturing thread and by callers of gpd_driver_stderr_flush() and gpd_driver_stderr_read(). */
typedef uint32_t gpd_driver_stderr_whose_func(char *text, size_t size);

/* Redirects standard error and starts the thread. Main thread, before the driver is opened. Returns
 * 0, also if there is no standard error to capture; or a negative errno, and the worker cannot
 * start. */
int gpd_driver_stderr_start(gpd_driver_stderr_whose_func *whose);

/* Writes all captured text to the log now, while the session that caused it is still known. Does
 * not wait for the driver. */
void gpd_driver_stderr_flush(void);

/* Flushes as gpd_driver_stderr_flush(), copies the text of the last seconds, truncated to size and
 * NUL-terminated, and clears it. Returns its length; 0: there is none. */
size_t gpd_driver_stderr_read(char *text, size_t size);

#endif /* GPD_DRIVER_STDERR_H */
