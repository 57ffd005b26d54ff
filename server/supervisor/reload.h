/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the configuration and the certificate again, and puts into force what can be used.
 *
 * Main thread of the supervisor, under the lock of the manager's source.  The log has all of it;
 * whoever asked for it gets what failed and what needs a new start in one text each.
 */
#ifndef GPD_RELOAD_H
#define GPD_RELOAD_H

struct gpd_manager;
struct gpd_options;
struct gpd_reload_report;

/* If the configuration or the certificate cannot be used, all stays as it was. */
void gpd_reload(const struct gpd_options *options, struct gpd_manager *manager,
		struct gpd_reload_report *reloaded);

#endif /* GPD_RELOAD_H */
