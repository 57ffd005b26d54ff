/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file with the tokens that a daemon knows (token.h).
 *
 * gpupoolctl changes it (shared_file.h).  The daemon has a struct gpd_token_store and reads the
 * file again when it has changed.  0, GP_E_INVALID or a negative errno, with a text.
 */
#ifndef GPD_TOKEN_FILE_H
#define GPD_TOKEN_FILE_H

#include "server/common/config/token.h"

#include <sys/stat.h>

/* Kept so long after it has been revoked or has expired, so that who shows it is told why. */
#define GPD_TOKEN_KEPT_S ((int64_t)90 * 86400)

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
	char path[4096]; /* "": there can be none */
	struct gpd_tokens tokens;
	struct stat status; /* of the file that was read last; all zero: there was none */
	int wrong;          /* why that could not be read; 0: `tokens` are what it says */
};

/* Reads it for the first time. */
GP_MUST_CHECK int gpd_token_store_open(struct gpd_token_store *store, const char *path, char *error,
				       size_t error_size);
/* Reads it again if it is another one than before, or could not be opened then.  What cannot be
 * read leaves the tokens of before, with store->wrong, and the text says so once.  *changed_p: it
 * is another one, or can be read again. */
GP_MUST_CHECK int gpd_token_store_refresh(struct gpd_token_store *store, bool *changed_p,
					  char *error, size_t error_size);
void gpd_token_store_close(struct gpd_token_store *store);

#endif /* GPD_TOKEN_FILE_H */
