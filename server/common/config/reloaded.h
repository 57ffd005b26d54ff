/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a reload, in words: the log has all of it, and whoever asked for it gets what
 * failed and what needs a new start in one text each.  Main thread of the supervisor.
 */
#ifndef GPD_RELOADED_H
#define GPD_RELOADED_H

#include "base/status.h"
#include "server/common/base/log.h"
#include "server/common/config/config.h"

#define GPD_RELOAD_REPORT_TEXT_MAX 2048

struct gpd_reload_report {
	char error[GPD_RELOAD_REPORT_TEXT_MAX];   /* what is not in force; "": all is */
	char warning[GPD_RELOAD_REPORT_TEXT_MAX]; /* what needs a new start; "": nothing does */
};

static_assert(GPD_RELOAD_REPORT_TEXT_MAX >= GPD_CONFIG_ERROR_MAX,
	      "has what is wrong with a configuration");

/* GPD_LOG_ERROR: this part is not in force, while the rest is; GPD_LOG_WARNING: it changes with a
 * new start only. */
void gpd_reload_report_add(struct gpd_reload_report *reloaded, enum gpd_log_level level,
			   const char *format, ...) GP_PRINTF(3, 4);

/* What needs a new start stands behind what is not in force, too, if there is any. */
void gpd_reload_report_merge(struct gpd_reload_report *reloaded);

#endif /* GPD_RELOADED_H */
