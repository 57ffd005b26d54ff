/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's doorkeeper: knows the tokens, and decides with auth.h who is let in.
 *
 * Main thread only.
 */
#ifndef GPD_GATE_H
#define GPD_GATE_H

#include "server/auth.h"
#include "server/config.h"
#include "server/peer.h"
#include "server/token_file.h"

#include <stdbool.h>
#include <stdint.h>

struct gpd_gate {
	struct gpd_token_store store;
	const char *option; /* the file that the command line names, or NULL */
	bool insecure;
	uint64_t refusals[GPD_AUTH_REFUSALS]; /* so far */
};

/* The tokens are where the option says, else the configuration, else in the usual folder.  0,
 * GP_E_INVALID or a negative errno, with a text. */
GP_MUST_CHECK int gpd_gate_open(struct gpd_gate *gate, const struct gpd_config *config,
				const char *option, bool insecure, char *error, size_t error_size);
/* The configuration may name another file now; if that cannot be read the old one stays, and the
 * log says why. */
void gpd_gate_reload(struct gpd_gate *gate, const struct gpd_config *config);
void gpd_gate_close(struct gpd_gate *gate);

/* Whether the client, of whom Hello has come, is let in; then its pass says how.  GP_E_INVALID:
 * *text_p is what it may be told, and the log has a line that says more. */
GP_MUST_CHECK int gpd_gate_admit(struct gpd_gate *gate, const struct gpd_config *config,
				 struct gpd_peer *peer, const char **text_p);

/* Looks whether the file of the tokens has changed. */
void gpd_gate_refresh(struct gpd_gate *gate);
/* NULL, or why a session that was let in like this must end. */
const char *gpd_gate_check(const struct gpd_gate *gate, const struct gpd_pass *pass);

#endif /* GPD_GATE_H */
