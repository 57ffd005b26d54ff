/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's doorkeeper: knows the tokens and the revoked certificates, and decides with
 * auth.h who is let in.
 *
 * Main thread only.
 */
#ifndef GPD_GATE_H
#define GPD_GATE_H

#include "server/common/config/config.h"
#include "server/common/config/reloaded.h"
#include "server/common/config/token_file.h"
#include "server/supervisor/door/auth.h"
#include "server/supervisor/door/crl_file.h"
#include "server/supervisor/door/peer.h"

#include <stdbool.h>
#include <stdint.h>

/* So long may sessions that came by a token go on while the tokens cannot be read, and those that
 * came by a certificate while the list of revoked ones cannot be used. */
#define GPD_AUTHENTICATION_GRACE_MS 10000

struct gpd_authentication {
	struct gpd_token_store store;
	const char *option; /* the file that the command line names, or NULL */
	bool insecure;
	struct gpd_crl_file crl_state;
	const char *crl_option;               /* the file that the command line names, or NULL */
	uint64_t refusals[GPD_AUTH_REFUSALS]; /* so far */
};

/* The tokens are where the option says, else the configuration, else in the usual folder.  0,
 * GP_E_INVALID or a negative errno, with a text. */
GP_MUST_CHECK int gpd_authentication_open(struct gpd_authentication *authentication,
					  const struct gpd_config *config, const char *option,
					  bool insecure, char *error, size_t error_size);
/* The configuration may name another file now; if that cannot be read the old one stays, and the
 * log and `reloaded` say why. */
void gpd_authentication_reload(struct gpd_authentication *authentication,
			       const struct gpd_config *config, int64_t now_ms,
			       struct gpd_reload_report *reloaded);
/* The same for the list of revoked certificates, once it is known whose certificates are good. */
GP_MUST_CHECK int gpd_authentication_open_crl(struct gpd_authentication *authentication,
					      const struct gpd_config *config, const char *option,
					      char *error, size_t error_size);
void gpd_authentication_reload_crl(struct gpd_authentication *authentication,
				   const struct gpd_config *config, int64_t now_ms,
				   struct gpd_reload_report *reloaded);
void gpd_authentication_close(struct gpd_authentication *authentication);

/* Whether the client, of whom Hello has come, is let in; then its pass says how.  GP_E_INVALID:
 * *text_p is what it may be told, and the log has a line that says more. */
GP_MUST_CHECK int gpd_authentication_authenticate(struct gpd_authentication *authentication,
						  const struct gpd_config *config,
						  struct gpd_connection *peer, int64_t now_ms,
						  const char **text_p);

/* Looks whether the files have changed.  While that of the tokens is there and cannot be read,
 * nobody is let in by a token; while the list of revoked certificates cannot be used, by a
 * certificate. */
void gpd_authentication_refresh(struct gpd_authentication *authentication, int64_t now_ms);
void gpd_authentication_refresh_crl(struct gpd_authentication *authentication, int64_t now_ms);
/* What the list says of what the client has shown.  *why_p: with UNCHECKED, for the log. */
enum gpd_certificate_state
gpd_authentication_check_certificate(const struct gpd_authentication *authentication,
				     const struct gp_conn *conn, const char **why_p);
/* NULL, or why a session that was let in like this must end. */
const char *gpd_authentication_recheck(const struct gpd_authentication *authentication,
				       const struct gpd_principal *principal, int64_t now_ms);
/* The same of the certificate that the client has shown, which the list may name by now. */
const char *gpd_authentication_recheck_certificate(const struct gpd_authentication *authentication,
						   const struct gpd_principal *principal,
						   const struct gp_conn *conn, int64_t now_ms);

#endif /* GPD_GATE_H */
