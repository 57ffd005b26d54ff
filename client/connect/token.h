/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Token that authenticates this user to a daemon. The file is read anew in each call.
 *
 * Ownership: the token is copied to the caller, which erases it after use.
 * Threads: any thread may call.
 */
#ifndef GPC_TOKEN_H
#define GPC_TOKEN_H

#include "client/connect/credentials.h"
#include "protocol/token_text.h"

#include <stdbool.h>

/* Reads the token. Returns 0 and sets *found_p to whether a token file is configured; if it is,
 * *token contains the token. Returns GP_E_INVALID if the file is invalid or unreadable, or if out
 * of memory; `error` then contains the reason, and *token must not be used. Warns by gpc_log_warn()
 * (client/base/log.h) if all users of this machine can read the file. */
GP_MUST_CHECK int gpc_token_read(const struct gpc_credentials *credentials, struct gp_token *token,
				 bool *found_p, char *error, size_t error_size);

#endif /* GPC_TOKEN_H */
