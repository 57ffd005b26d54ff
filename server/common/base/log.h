/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's log: one line per event on stderr, "gpupoold[pid]: level: text", in printable ASCII
 * (protocol/printable.h).  Any thread; a line is written in one piece.  Nothing waits for a log
 * that is not read: lines that find no room are left out, and a later line has their number.
 */
#ifndef GPD_LOG_H
#define GPD_LOG_H

#include "base/status.h"

#include <stdbool.h>

enum gpd_log_level {
	GPD_LOG_ERROR,
	GPD_LOG_WARNING,
	GPD_LOG_INFO,
	GPD_LOG_DEBUG,
};

/* Set once, before there are threads. */
extern enum gpd_log_level gpd_log_level;
extern int gpd_log_fd; /* standard error; a worker moves it (driver_stderr.h) */

/* Once, before there are threads, and before standard error is another one: from now on lines begin
 * with the time, "2026-11-26 14:35:02.123 ", unless they go to the journal, which has its own. */
void gpd_log_start(void);

/* false: no such level. */
bool gpd_log_level_parse(const char *text, enum gpd_log_level *level_p);
const char *gpd_log_level_name(enum gpd_log_level level);

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
