/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Report of a configuration reload: one text with the failures and one with the changes that need a
 * restart, for gpupoolctl if it has requested the reload. gpd_reload_report_add() also writes each
 * message to the log at once.
 *
 * Initialized to zeros it is empty. Texts that do not fit are truncated. reload.h defines the order
 * of calls; gpd_reload_report_merge() is the last one.
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
	/* Settings that failed to take effect (then it begins with "partly applied: "), or the
	 * reason why the whole reload failed, written by gpd_reload(); "": none. */
	char error[GPD_RELOAD_REPORT_TEXT_MAX];
	/* Settings that take effect after a restart; "": none. */
	char warning[GPD_RELOAD_REPORT_TEXT_MAX];
};

static_assert(GPD_RELOAD_REPORT_TEXT_MAX >= GPD_CONFIG_ERROR_MAX,
	      "has what is wrong with a configuration");

/* Logs a message and appends it to the report's error or warning, separated by "; ". level:
 * GPD_LOG_ERROR (this setting failed, and the other settings are in force) or GPD_LOG_WARNING (the
 * setting takes effect after a restart, or a finding of config_lint.h). */
void gpd_reload_report_add(struct gpd_reload_report *reloaded, enum gpd_log_level level,
			   const char *format, ...) GP_PRINTF(3, 4);

/* Appends the warnings to the errors if the report contains both, because a failed reload returns
 * only its error text. */
void gpd_reload_report_merge(struct gpd_reload_report *reloaded);

#endif /* GPD_RELOAD_REPORT_H */
