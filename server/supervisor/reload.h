/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the configuration and the certificate again, and puts into force what can be used.
 *
 * Main thread of the supervisor.  The log has all of it; whoever asked for it gets what failed and
 * what needs a new start in one text each.
 */
#ifndef GPD_RELOAD_H
#define GPD_RELOAD_H

#include "protocol/status.h"
#include "server/common/config/config.h"

struct gpd_manager;
struct gpd_options;

#define GPD_RELOAD_TEXT_MAX 2048

struct gpd_reloaded {
	char error[GPD_RELOAD_TEXT_MAX];   /* what is not in force; "": all is */
	char warning[GPD_RELOAD_TEXT_MAX]; /* what needs a new start; "": nothing does */
};

static_assert(GPD_RELOAD_TEXT_MAX >= GPD_CONFIG_ERROR_MAX,
	      "has what is wrong with a configuration");

/* If the configuration or the certificate cannot be used, all stays as it was. */
void gpd_reload(const struct gpd_options *options, struct gpd_manager *manager,
		struct gpd_reloaded *reloaded);

/* For the parts: this one is not in force, while the rest is; the same, where the log has been told
 * already; and, this one changes with a new start only. */
void gpd_reload_failed(struct gpd_reloaded *reloaded, const char *format, ...) GP_PRINTF(2, 3);
void gpd_reload_note(struct gpd_reloaded *reloaded, const char *format, ...) GP_PRINTF(2, 3);
void gpd_reload_later(struct gpd_reloaded *reloaded, const char *format, ...) GP_PRINTF(2, 3);

#endif /* GPD_RELOAD_H */
