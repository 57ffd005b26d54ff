/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file with the tokens that a daemon knows (token.h).
 *
 * gpupoolctl changes it (shared_file.h).  The daemon has a struct gpd_token_store and reads the
 * file again when it has changed.  0, GP_E_INVALID or a negative errno, with a text.
 */
#ifndef GPD_TOKEN_FILE_H
#define GPD_TOKEN_FILE_H

#include "server/common/base/shared_file.h"
#include "server/common/config/token.h"

/* Kept so long after it has been revoked or has expired, so that who shows it is told why. */
#define GPD_TOKEN_RETENTION_S ((int64_t)90 * 86400)

/* A file that is not there has no tokens. */
GP_MUST_CHECK int gpd_tokens_load(const char *path, struct gpd_tokens *tokens, char *error,
				  size_t error_size);

/* Another token of this tenant, with a secret that only *token has.  expires_s: INT64_MAX for
 * never.  GP_E_INVALID: not the name of a tenant, or no such comment. */
GP_MUST_CHECK int gpd_tokens_create(const char *path, const char *tenant, int64_t expires_s,
				    const char *comment, struct gp_token *token, char *error,
				    size_t error_size);
/* GP_E_INVALID: there is none of this ID, or it is revoked already. */
GP_MUST_CHECK int gpd_tokens_revoke(const char *path, const char *id, char *error,
				    size_t error_size);

/* Main thread of the supervisor. */
struct gpd_token_store {
	struct gpd_shared_file file;
	struct gpd_tokens tokens; /* what it said when it could be used last; to be freed */
};

/* As shared_file.h has it; NULL: there can be none. */
GP_MUST_CHECK int gpd_token_store_open(struct gpd_token_store *store, const char *path);
/* What cannot be read leaves the tokens of before. */
enum gpd_shared_file_change gpd_token_store_refresh(struct gpd_token_store *store, int64_t now_ms);

#endif /* GPD_TOKEN_FILE_H */
