/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reloads the configuration, the certificate, the tokens and the CRL, and applies the parts that
 * can change at run time.
 *
 * Threads: the supervisor's main thread, with the lock of manager->source held. Files are read
 * synchronously.
 * Errors: all are logged, and *reloaded receives the texts (reload_report.h): the failures in its
 * error, the changes that need a restart in its warning.
 */
#ifndef GPD_RELOAD_H
#define GPD_RELOAD_H

struct gpd_manager;
struct gpd_options;
struct gpd_reload_report;

/* Reloads everything, on SIGHUP or by a request of the administrator. If the configuration or the
 * certificate is invalid or no longer exists, or there is neither, all settings stay as they were.
 * Invalid tokens and an invalid CRL do not prevent the other changes. options: the command line,
 * which takes precedence. *reloaded is overwritten. Notifies the service manager of the begin and
 * the end (notify.h). */
void gpd_reload(const struct gpd_options *options, struct gpd_manager *manager,
		struct gpd_reload_report *reloaded);

#endif /* GPD_RELOAD_H */
