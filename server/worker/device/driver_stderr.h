/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures what the driver writes to standard error, above all failed device assertions. The text
 * is meant for the client whose kernel caused it as well as for the daemon's log.
 *
 * The worker's standard error becomes a pipe. A thread stores the first lines of the most recent
 * burst, because its start describes the cause; a burst ends when nothing is written for 3 s. Lines
 * about an assertion ("FILE:LINE: FUNCTION: block: [...") are stored apart from those about other
 * assertions, up to 4 KiB each, as thousands of threads may fail the same one; other lines also up
 * to 4 KiB. The thread also writes each line to the log, which is
 * written to the former standard error (gpd_log_fd). The text may be entirely controlled by a
 * client. A log line therefore names the session whose work is running, and counts against the log
 * budget (log_budget.h) of the tenant that may have caused it.
 *
 * Threads: any that does not hold gpd_sessions.lock, except gpd_driver_stderr_start().
 */
#ifndef GPD_DRIVER_STDERR_H
#define GPD_DRIVER_STDERR_H

#include <stddef.h>
#include <stdint.h>

/* Maximum bytes of stored text, and the number of its parts: one for each assertion, and one for
 * all other lines. Later text is only logged. */
#define GPD_DRIVER_STDERR_MAX (16 * 4096)
#define GPD_DRIVER_STDERR_PARTS 16
/* Size in bytes of the text of gpd_driver_stderr_whose_func. */
#define GPD_DRIVER_STDERR_WHOSE_MAX 320

/* Writes the session whose work is running into text, as "session 3 (host 17 ./program)" or "no
 * session", NUL-terminated within size bytes, and returns the index of its log budget. Called in
 * the capturing thread and in gpd_driver_stderr_read(), with the lock
 * of this module held: it may acquire gpd_sessions.lock, but must not call this module. */
typedef uint32_t gpd_driver_stderr_whose_func(char *text, size_t size);

/* Redirects standard error and starts the thread. whose: called for each line. Main thread, before
 * the driver is opened; a second call does nothing. Returns 0, also if there is no standard error
 * to capture; or a negative errno if there is no pipe or thread, and the worker cannot start. */
int gpd_driver_stderr_start(gpd_driver_stderr_whose_func *whose);

/* Logs all captured text now, including an unfinished line, while the session that caused it is
 * still known; copies the stored text, truncated to size and
 * NUL-terminated, and clears it. The lines about one assertion follow each other. size: at least 1.
 * Returns its length; 0: nothing was written in the last 3 s or since the last read. */
size_t gpd_driver_stderr_read(char *text, size_t size);

#endif /* GPD_DRIVER_STDERR_H */
