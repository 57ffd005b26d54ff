/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The token that this user has for the daemon.  Read anew at each call, from any thread.
 */
#ifndef GPC_TOKEN_H
#define GPC_TOKEN_H

#include "client/connect/credentials.h"
#include "protocol/token_text.h"

#include <stdbool.h>

/* *found_p: there is a file of a token.  GP_E_INVALID: error says what is wrong with it. */
GP_MUST_CHECK int gpc_token_read(const struct gpc_credentials *credentials, struct gp_token *token,
				 bool *found_p, char *error, size_t error_size);

#endif /* GPC_TOKEN_H */
