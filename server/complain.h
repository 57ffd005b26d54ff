/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver writes to standard error: a failed device assertion, above all.  It belongs to
 * the client whose kernel it was, as well as to the daemon's log.
 *
 * The worker's standard error becomes a pipe; a thread passes everything on to where it went before
 * and remembers the last of it.  The log goes there directly (gpd_log_fd).  Any thread may take.
 */
#ifndef GPD_COMPLAIN_H
#define GPD_COMPLAIN_H

#include <stddef.h>

#define GPD_COMPLAINT_MAX 4096

/* Early in the worker, before the driver is opened.  0 or a negative errno. */
int gpd_complain_start(void);

/* What was written in the last seconds, whole lines, with a NUL; returns its length. */
size_t gpd_complain_take(char *text, size_t size);

#endif /* GPD_COMPLAIN_H */
