/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's TLS configuration: its certificate and key, and the authority of client
 * certificates. It is loaded at the start and at each reload; each new control connection uses the
 * configuration of its time.
 *
 * Ownership: struct gp_tls is reference counted.
 * Threads: any for gpd_tls_get(), which holds a lock for a moment; the main thread for the other
 * functions.
 */
#ifndef GPD_TLS_FILES_H
#define GPD_TLS_FILES_H

#include "server/common/config/config.h"
#include "server/common/config/options.h"
#include "transport/tls/tls.h"

/*
 * Loads the files given by the command line, else by the configuration, else in the default folder;
 * blocks on the file system. Returns 0 with *tls_p set to a reference that the caller owns, or with
 * *tls_p NULL if the daemon uses no TLS: neither an option nor the configuration names a file, and
 * server.pem is missing in the default folder or the daemon listens on no tls:// or rdma://
 * address. On failure returns GP_E_INVALID or -ENOMEM with a text in error, and *tls_p is NULL.
 */
GP_MUST_CHECK int gpd_tls_read(const struct gpd_options *options, const struct gpd_config *config,
			       struct gp_tls **tls_p, char *error, size_t error_size);

/* Calls report() for each error that would make gpd_tls_read() fail, not only the first one. */
void gpd_tls_check_files(const struct gpd_options *options, const struct gpd_config *config,
			 gpd_config_report_func *report, void *arg);

/* Returns whether the daemon listens on an address with the scheme tls or rdma. */
bool gpd_tls_has_address(const struct gpd_options *options);

/* Sets the configuration for new connections (NULL: none; tls:// connections are refused). Takes
 * ownership of the caller's reference and releases the previous one. Logs a warning if its
 * certificate is not valid or expires within GPD_TLS_SOON_S seconds. */
#define GPD_TLS_SOON_S ((int64_t)30 * 86400)
#define GPD_TLS_WARNING_MAX 256 /* size of a warning in bytes, with the terminating zero */
void gpd_tls_set(struct gp_tls *tls);
/* Writes the warning that the configuration's certificate is not valid or expires within
 * GPD_TLS_SOON_S seconds. Returns false, with an empty text, if there is none. tls: not NULL. */
bool gpd_tls_get_warning(const struct gp_tls *tls, char text[GPD_TLS_WARNING_MAX]);
/* Logs the warning about the current certificate, if there is one. */
void gpd_tls_check(void);

/* Returns the current configuration, which the caller releases with gp_tls_unref(); NULL: the
 * daemon has no certificate. */
struct gp_tls *gpd_tls_get(void);

#endif /* GPD_TLS_FILES_H */
