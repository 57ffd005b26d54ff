/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authentication state of the supervisor: the token table, the certificate revocation list, and the
 * checks of new and running sessions against them; authorization.h decides.
 *
 * Threads: the supervisor's main thread.
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

struct gpd_authentication {
	struct gpd_token_store store;
	const char *option; /* path of the token file on the command line, or NULL */
	bool insecure;
	struct gpd_crl_file crl_state;
	const char *crl_option;               /* path of the CRL on the command line, or NULL */
	uint64_t refusals[GPD_AUTH_REFUSALS]; /* number of refusals by reason */
};

/* Loads the token file: the option's path, else the configured one, else the default one. Returns
 * 0, GP_E_INVALID or a negative errno, with a text in error. */
GP_MUST_CHECK int gpd_authentication_open(struct gpd_authentication *authentication,
					  const struct gpd_config *config, const char *option,
					  bool insecure, char *error, size_t error_size);
/* Applies a new configuration, which may name another token file. If that cannot be read, the
 * previous tokens stay in force, and the log and the report contain the reason. */
void gpd_authentication_reload(struct gpd_authentication *authentication,
			       const struct gpd_config *config, int64_t now_ms,
			       struct gpd_reload_report *reloaded);
/* The same for the CRL. Called after gpd_tls_set(), which sets the authorities of client
 * certificates. */
GP_MUST_CHECK int gpd_authentication_open_crl(struct gpd_authentication *authentication,
					      const struct gpd_config *config, const char *option,
					      char *error, size_t error_size);
void gpd_authentication_reload_crl(struct gpd_authentication *authentication,
				   const struct gpd_config *config, int64_t now_ms,
				   struct gpd_reload_report *reloaded);
void gpd_authentication_close(struct gpd_authentication *authentication);

/* Authenticates the client after its Hello. Returns 0 with peer->principal set; or GP_E_INVALID
 * with *text_p, the text for the client, after logging the details. The token is wiped from Hello
 * in either case. */
GP_MUST_CHECK int gpd_authentication_authenticate(struct gpd_authentication *authentication,
						  const struct gpd_config *config,
						  struct gpd_connection *peer, int64_t now_ms,
						  const char **text_p);

/* Loads the files again if they have changed. While the token file exists but cannot be read, no
 * client is admitted by a token; while the CRL cannot be used, none by a certificate. */
void gpd_authentication_refresh(struct gpd_authentication *authentication, int64_t now_ms);
void gpd_authentication_refresh_crl(struct gpd_authentication *authentication, int64_t now_ms);
/* Returns the revocation state of the client's certificate. *why_p: with UNCHECKED, the reason for
 * the log, else "". */
enum gpd_certificate_state
gpd_authentication_check_certificate(const struct gpd_authentication *authentication,
				     const struct gp_conn *conn, const char **why_p);
/* Returns NULL, or the reason why a session with this identity must end: its token was revoked or
 * has expired, its certificate has expired, or the token file has been unreadable for longer than
 * the grace period. */
const char *gpd_authentication_recheck(const struct gpd_authentication *authentication,
				       const struct gpd_principal *principal, int64_t now_ms);
/* The same for the revocation of the certificate that the client has presented. */
const char *gpd_authentication_recheck_certificate(const struct gpd_authentication *authentication,
						   const struct gpd_principal *principal,
						   const struct gp_conn *conn, int64_t now_ms);

#endif /* GPD_AUTHENTICATION_H */
