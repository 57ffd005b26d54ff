/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The token that this user has for the daemon (GPUPOOL_TOKEN_FILE).  Read anew at each call, from
 * any thread.
 */
#ifndef GPC_TOKEN_H
#define GPC_TOKEN_H

#include "protocol/token_text.h"

#include <stdbool.h>

/* *given_p: the variable is set.  GP_E_INVALID: error says what is wrong with the file. */
GP_MUST_CHECK int gpc_token_read(struct gp_token *token, bool *given_p, char *error,
				 size_t error_size);

#endif /* GPC_TOKEN_H */
