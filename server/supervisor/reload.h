/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reloads the configuration, the certificate, the tokens and the CRL, and applies the parts that
 * can change at run time.
 *
 * Threads: the supervisor's main thread, with the lock of manager->source held. Files are read
 * synchronously.
 * Errors: all are logged; `reloaded` receives the failures and the changes that need a restart, one
 * text each.
 */
#ifndef GPD_RELOAD_H
#define GPD_RELOAD_H

struct gpd_manager;
struct gpd_options;
struct gpd_reload_report;

/* Reloads everything. If the configuration or the certificate is invalid, all settings stay as they
 * were. options: the command line, which takes precedence. *reloaded is an empty report. */
void gpd_reload(const struct gpd_options *options, struct gpd_manager *manager,
		struct gpd_reload_report *reloaded);

#endif /* GPD_RELOAD_H */
