/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authentication state of the supervisor: the token table, the certificate revocation list (CRL),
 * and the checks of clients and of running sessions against them. authorization.h contains the
 * rules.
 *
 * Order: gpd_authentication_open(), gpd_tls_set() (tls_files.h), gpd_authentication_open_crl();
 * then the others; gpd_authentication_close().
 * Ownership: gpd_authentication_open() initializes the state, gpd_authentication_close() frees it,
 * also after a failure of an open function. Option strings must stay valid; returned texts are
 * static.
 * Threads: the supervisor's main thread. Files are read synchronously.
 * Units: milliseconds of gp_now_ms().
 */
#ifndef GPD_AUTHENTICATION_H
#define GPD_AUTHENTICATION_H

#include "server/common/config/config.h"
#include "server/common/config/reload_report.h"
#include "server/common/config/token_file.h"
#include "server/supervisor/auth/authorization.h"
#include "server/supervisor/auth/connection.h"
#include "server/supervisor/auth/crl_file.h"

#include <stdbool.h>
#include <stdint.h>

/* Grace period in ms: sessions authenticated by a token continue for this time while the token file
 * cannot be read, and those authenticated by a certificate while the CRL cannot be used. */
#define GPD_AUTHENTICATION_GRACE_MS 10000

/* State of the daemon's authentication. */
struct gpd_authentication {
	struct gpd_token_store store; /* the token file */
	const char *option; /* path of the token file on the command line; NULL: not given */
	bool insecure;      /* every client is admitted without credentials */
	struct gpd_crl_file crl_state; /* the CRL file */
	const char *crl_option;        /* path of the CRL on the command line; NULL: not given */
	uint64_t refusals[GPD_AUTH_REFUSALS]; /* number of refusals by reason */
};

/* Initializes the state and loads the token file: the option's path, else the configured one, else
 * the default one. A file that does not exist is an empty table, with a warning in the log if it is
 * not the default one. Returns 0; or GP_E_INVALID or a negative errno with a text in error. */
GP_MUST_CHECK int gpd_authentication_open(struct gpd_authentication *authentication,
					  const struct gpd_config *config, const char *option,
					  bool insecure, char *error, size_t error_size);
/* Applies a new configuration, which may name another token file. If that cannot be read, or does
 * not exist while there are tokens, the previous file and tokens stay in force, and the log and the
 * report contain the reason. The same file is loaded again if it has changed. */
void gpd_authentication_reload(struct gpd_authentication *authentication,
			       const struct gpd_config *config, int64_t now_ms,
			       struct gpd_reload_report *reloaded);
/* Loads the CRL: the option's path, else the configured one, else the default one. Called after
 * gpd_tls_set() (tls_files.h), which sets the authorities of client certificates, and after
 * gpd_authentication_open(). Returns 0; or GP_E_INVALID or a negative errno with a text in
 * error. */
GP_MUST_CHECK int gpd_authentication_open_crl(struct gpd_authentication *authentication,
					      const struct gpd_config *config, const char *option,
					      char *error, size_t error_size);
/* Applies a new configuration, which may name another CRL, after gpd_tls_set() (tls_files.h). If
 * another CRL cannot be used, the previous one stays, and the log and the report contain the
 * reason. */
void gpd_authentication_reload_crl(struct gpd_authentication *authentication,
				   const struct gpd_config *config, int64_t now_ms,
				   struct gpd_reload_report *reloaded);
/* Frees the tokens and the CRL. */
void gpd_authentication_close(struct gpd_authentication *authentication);

/* Authenticates the client by its Hello, connection->hello, after loading changed files. Also needs
 * connection->client_address, has_uid and uid. Returns 0 with connection->principal set. If the
 * client is refused, logs and counts the reason and returns GP_E_INVALID with *text_p set to the
 * static text for the client. The token is wiped from Hello in both cases. config: maps names of
 * certificates to tenants. */
GP_MUST_CHECK int gpd_authentication_authenticate(struct gpd_authentication *authentication,
						  const struct gpd_config *config,
						  struct gpd_connection *connection, int64_t now_ms,
						  const char **text_p);

/* Loads the token file and the CRL again if they have changed, and logs the result. While the token
 * file exists but cannot be read, no client is admitted by a token; while the CRL cannot be used,
 * no client is admitted by a certificate. */
void gpd_authentication_refresh(struct gpd_authentication *authentication, int64_t now_ms);
/* Loads only the CRL again if it has changed. */
void gpd_authentication_refresh_crl(struct gpd_authentication *authentication, int64_t now_ms);
/* Returns the revocation state of the client's certificate; GPD_CERTIFICATE_GOOD if the client has
 * presented none. With GPD_CERTIFICATE_UNCHECKED, *why_p is the reason for the log, a static text;
 * otherwise it is "". */
enum gpd_certificate_state
gpd_authentication_check_certificate(const struct gpd_authentication *authentication,
				     const struct gp_conn *conn, const char **why_p);
/* Returns the reason why a session with this identity must end, a static text: its token was
 * revoked, removed or has expired, its certificate has expired, or the token file has been
 * unreadable for longer than the grace period. Returns NULL if the session may continue. */
const char *gpd_authentication_recheck(const struct gpd_authentication *authentication,
				       const struct gpd_principal *principal, int64_t now_ms);
/* Returns the reason why a session must end because of the certificate that the client has
 * presented, a static text. There are two: the certificate is revoked; or it authenticated the
 * client and cannot be checked. The second one applies at once if the daemon has no CRL of the
 * certificate's authority, and after the grace period if the CRL file is invalid. Returns NULL if
 * the session may continue. */
const char *gpd_authentication_recheck_certificate(const struct gpd_authentication *authentication,
						   const struct gpd_principal *principal,
						   const struct gp_conn *conn, int64_t now_ms);

#endif /* GPD_AUTHENTICATION_H */
