/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's log: one line per event on standard error, with time, process ID, level and text.
 * Other characters than printable ASCII are replaced (protocol/printable.h).
 *
 * Writing does not wait for the reader of the log: if a pipe or the journal is full, the line is
 * dropped, and a later line reports the number of dropped lines. There are no error codes; errno
 * may change.
 *
 * Threads: any; each line is written by one system call.
 */
#ifndef GPD_LOG_H
#define GPD_LOG_H

#include "base/status.h"

#include <stdbool.h>

/* Severity of a line, most severe first. */
enum gpd_log_level {
	GPD_LOG_ERROR,
	GPD_LOG_WARNING,
	GPD_LOG_INFO,
	GPD_LOG_DEBUG,
};

/* The least severe level that is written; initially GPD_LOG_INFO. Set before the first thread
 * starts. */
extern enum gpd_log_level gpd_log_level;
extern int gpd_log_fd; /* descriptor of the log: standard error; a worker sets its own
			  (worker/device/driver_stderr.h) */

/* Chooses the prefix of the lines: the local time, "2026-11-26 14:35:02.123 ", unless standard
 * error is the systemd journal, which adds its own. Called once in each process, before the first
 * thread starts and before standard error is redirected. Lines written before it have no time. */
void gpd_log_start(void);

/* Parses the name of a level. Returns false, and leaves *level_p unchanged, if there is no such
 * level. */
bool gpd_log_level_parse(const char *text, enum gpd_log_level *level_p);
/* Returns the name of the level, a static text. */
const char *gpd_log_level_name(enum gpd_log_level level);

/* Writes one line if gpd_log_level includes the level. format: without a newline at the end. The
 * text is truncated to 1023 bytes. */
void gpd_log(enum gpd_log_level level, const char *format, ...) GP_PRINTF(2, 3);

#define gpd_error(...) gpd_log(GPD_LOG_ERROR, __VA_ARGS__)
#define gpd_warning(...) gpd_log(GPD_LOG_WARNING, __VA_ARGS__)
#define gpd_info(...) gpd_log(GPD_LOG_INFO, __VA_ARGS__)
#define gpd_debug(...)                                                                             \
	do {                                                                                       \
		if (gpd_log_level >= GPD_LOG_DEBUG)                                                \
			gpd_log(GPD_LOG_DEBUG, __VA_ARGS__);                                       \
	} while (0)

#endif /* GPD_LOG_H */
