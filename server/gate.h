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

/* So long may sessions that came by a token go on while the tokens cannot be read. */
#define GPD_GATE_GRACE_MS 10000

struct gpd_gate {
	struct gpd_token_store store;
	const char *option; /* the file that the command line names, or NULL */
	bool insecure;
	int64_t unread_ms; /* since when the tokens cannot be read; INT64_MAX: they can */
	uint64_t refusals[GPD_AUTH_REFUSALS]; /* so far */
};

/* The tokens are where the option says, else the configuration, else in the usual folder.  0,
 * GP_E_INVALID or a negative errno, with a text. */
GP_MUST_CHECK int gpd_gate_open(struct gpd_gate *gate, const struct gpd_config *config,
				const char *option, bool insecure, char *error, size_t error_size);
/* The configuration may name another file now; if that cannot be read the old one stays, and the
 * log says why. */
void gpd_gate_reload(struct gpd_gate *gate, const struct gpd_config *config, int64_t now_ms);
void gpd_gate_close(struct gpd_gate *gate);

/* Whether the client, of whom Hello has come, is let in; then its pass says how.  GP_E_INVALID:
 * *text_p is what it may be told, and the log has a line that says more. */
GP_MUST_CHECK int gpd_gate_admit(struct gpd_gate *gate, const struct gpd_config *config,
				 struct gpd_peer *peer, int64_t now_ms, const char **text_p);

/* Looks whether the file of the tokens has changed.  While it is there and cannot be read, nobody
 * is let in by a token. */
void gpd_gate_refresh(struct gpd_gate *gate, int64_t now_ms);
/* NULL, or why a session that was let in like this must end. */
const char *gpd_gate_check(const struct gpd_gate *gate, const struct gpd_pass *pass,
			   int64_t now_ms);

#endif /* GPD_GATE_H */
