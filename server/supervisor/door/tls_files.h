/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's certificate and whom it believes: read when it starts and when it is told to reload,
 * taken by the thread of each new control connection.  Connections that there are keep what they
 * have.
 */
#ifndef GPD_TLS_H
#define GPD_TLS_H

#include "server/common/config/config.h"
#include "server/common/config/options.h"
#include "transport/tls/tls.h"

/*
 * Reads the files that the command line, else the configuration, else the usual folder names.
 * *tls_p is NULL where none is named, and none lies in the folder or no address is TLS's.  0; or
 * GP_E_INVALID or -ENOMEM, and error says why.
 */
GP_MUST_CHECK int gpd_tls_read(const struct gpd_options *options, const struct gpd_config *config,
			       struct gp_tls **tls_p, char *error, size_t error_size);

/* Reports all that keeps gpd_tls_read() from using the files, not the first error alone. */
void gpd_tls_check_files(const struct gpd_options *options, const struct gpd_config *config,
			 gpd_config_report_func *report, void *arg);

/* Whether the daemon listens where TLS is spoken, or may be. */
bool gpd_tls_has_address(const struct gpd_options *options);

/* Main thread: from now on new connections use this (NULL: none can), which is taken over.  The log
 * says if its certificate does not hold, or will not in so many seconds. */
#define GPD_TLS_SOON_S ((int64_t)30 * 86400)
#define GPD_TLS_WARNING_MAX 256
void gpd_tls_set(struct gp_tls *tls);
/* What it says, if there is something to say. */
bool gpd_tls_get_warning(const struct gp_tls *tls, char text[GPD_TLS_WARNING_MAX]);
/* The log says that again, if it is so. */
void gpd_tls_check(void);

/* Any thread: to be given back with gp_tls_unref(); NULL: the daemon has no certificate. */
struct gp_tls *gpd_tls_get(void);

#endif /* GPD_TLS_H */
