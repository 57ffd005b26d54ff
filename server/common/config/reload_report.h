/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Report of a configuration reload. Each message is written to the log at once; the report collects
 * the failures and the changes that need a restart, one text each, for the client that requested
 * the reload.
 *
 * Initialized to zeros: an empty report. Texts that do not fit are truncated.
 *
 * Threads: the supervisor's main thread.
 */
#ifndef GPD_RELOAD_REPORT_H
#define GPD_RELOAD_REPORT_H

#include "base/status.h"
#include "server/common/base/log.h"
#include "server/common/config/config.h"

/* Size of a text in bytes, including the terminating zero. */
#define GPD_RELOAD_REPORT_TEXT_MAX 2048

/* The report. */
struct gpd_reload_report {
	/* Settings that failed to take effect, or the reason why the reload failed; "": none. */
	char error[GPD_RELOAD_REPORT_TEXT_MAX];
	/* Settings that take effect after a restart; "": none. */
	char warning[GPD_RELOAD_REPORT_TEXT_MAX];
};

static_assert(GPD_RELOAD_REPORT_TEXT_MAX >= GPD_CONFIG_ERROR_MAX,
	      "has what is wrong with a configuration");

/* Logs a message and appends it to the report's error or warning, separated by "; ". level
 * GPD_LOG_ERROR: this setting failed, and the other settings are in force. GPD_LOG_WARNING: the
 * setting takes effect after a restart. */
void gpd_reload_report_add(struct gpd_reload_report *reloaded, enum gpd_log_level level,
			   const char *format, ...) GP_PRINTF(3, 4);

/* Appends the warnings to the errors if the report contains both, because a failed reload returns
 * only its error text. */
void gpd_reload_report_merge(struct gpd_reload_report *reloaded);

#endif /* GPD_RELOAD_REPORT_H */
