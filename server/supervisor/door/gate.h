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
#define GPD_GATE_GRACE_MS 10000

struct gpd_gate {
	struct gpd_token_store store;
	const char *option; /* the file that the command line names, or NULL */
	bool insecure;
	struct gpd_crl_file revoked;
	const char *crl_option;               /* the file that the command line names, or NULL */
	uint64_t refusals[GPD_AUTH_REFUSALS]; /* so far */
};

/* The tokens are where the option says, else the configuration, else in the usual folder.  0,
 * GP_E_INVALID or a negative errno, with a text. */
GP_MUST_CHECK int gpd_gate_open(struct gpd_gate *gate, const struct gpd_config *config,
				const char *option, bool insecure, char *error, size_t error_size);
/* The configuration may name another file now; if that cannot be read the old one stays, and the
 * log and `reloaded` say why. */
void gpd_gate_reload(struct gpd_gate *gate, const struct gpd_config *config, int64_t now_ms,
		     struct gpd_reloaded *reloaded);
/* The same for the list of revoked certificates, once it is known whose certificates are good. */
GP_MUST_CHECK int gpd_gate_open_revoked(struct gpd_gate *gate, const struct gpd_config *config,
					const char *option, char *error, size_t error_size);
void gpd_gate_reload_revoked(struct gpd_gate *gate, const struct gpd_config *config, int64_t now_ms,
			     struct gpd_reloaded *reloaded);
void gpd_gate_close(struct gpd_gate *gate);

/* Whether the client, of whom Hello has come, is let in; then its pass says how.  GP_E_INVALID:
 * *text_p is what it may be told, and the log has a line that says more. */
GP_MUST_CHECK int gpd_gate_admit(struct gpd_gate *gate, const struct gpd_config *config,
				 struct gpd_peer *peer, int64_t now_ms, const char **text_p);

/* Looks whether the files have changed.  While that of the tokens is there and cannot be read,
 * nobody is let in by a token; while the list of revoked certificates cannot be used, by a
 * certificate. */
void gpd_gate_refresh(struct gpd_gate *gate, int64_t now_ms);
void gpd_gate_refresh_revoked(struct gpd_gate *gate, int64_t now_ms);
/* What the list says of what the client has shown.  *why_p: with UNCHECKED, for the log. */
enum gpd_certificate_state gpd_gate_certificate(const struct gpd_gate *gate,
						const struct gp_conn *conn, const char **why_p);
/* NULL, or why a session that was let in like this must end. */
const char *gpd_gate_check(const struct gpd_gate *gate, const struct gpd_pass *pass,
			   int64_t now_ms);
/* The same of the certificate that the client has shown, which the list may name by now. */
const char *gpd_gate_check_revoked(const struct gpd_gate *gate, const struct gpd_pass *pass,
				   const struct gp_conn *conn, int64_t now_ms);

#endif /* GPD_GATE_H */
