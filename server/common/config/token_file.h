/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of access tokens (token.h): loading, changing under the file's lock (shared_file.h), and
 * the daemon's copy, which is loaded again after the file has changed.
 *
 * Ownership: tables are freed with gpd_tokens_free().
 * Threads: any for the functions that take a path; a struct gpd_token_store belongs to the
 * supervisor's main thread.
 * Errors: functions with an error buffer return 0 on success. On failure they return GP_E_INVALID
 * for invalid content or arguments, or a negative errno of shared_file.h, with a text in error; if
 * the file is the cause, the text names it. A failed change leaves the file as it was.
 */
#ifndef GPD_TOKEN_FILE_H
#define GPD_TOKEN_FILE_H

#include "server/common/base/shared_file.h"
#include "server/common/config/token.h"

/* A revoked or expired token stays in the file for this time, so that its user gets the exact
 * reason for the refusal. Each change of the file removes older ones. */
#define GPD_TOKEN_RETENTION_S ((int64_t)90 * 86400)

/* Loads the table into *tokens, whose previous tokens are not freed. A file that does not exist is
 * an empty table. On failure *tokens is unchanged. */
GP_MUST_CHECK int gpd_tokens_load(const char *path, struct gpd_tokens *tokens, char *error,
				  size_t error_size);

/* Creates a token for this tenant and adds it to the file; waits for the file's lock. *token
 * receives the secret, which is stored nowhere else, and which the caller erases; it is undefined
 * on failure. expires_s: end of validity, INT64_MAX for never. comment: "" for none. Returns
 * GP_E_INVALID also if the name of the tenant or the comment is invalid, or the table is full; -EIO
 * if there are no random numbers. */
GP_MUST_CHECK int gpd_tokens_create(const char *path, const char *tenant, int64_t expires_s,
				    const char *comment, struct gp_token *token, char *error,
				    size_t error_size);
/* Revokes the token; waits for the file's lock. The daemon notices it at its next
 * gpd_token_store_refresh(). Returns GP_E_INVALID also if no token has this ID or it is already
 * revoked. */
GP_MUST_CHECK int gpd_tokens_revoke(const char *path, const char *id, char *error,
				    size_t error_size);

/* The daemon's copy of the token file. */
struct gpd_token_store {
	struct gpd_shared_file file;
	struct gpd_tokens tokens; /* from the last valid content of the file; owned by the store */
};

/* Initializes the store, overwriting its members, and loads the file. path NULL: there is no token
 * file, and the table is empty. Returns 0; or, with the text in store->file.why and an empty table,
 * -ENAMETOOLONG or an error of gpd_tokens_load(). The store keeps a copy of path.
 * gpd_tokens_free(&store->tokens) frees the table. */
GP_MUST_CHECK int gpd_token_store_open(struct gpd_token_store *store, const char *path);
/* Loads the file again if it has changed or was invalid. now_ms: time of gp_now_ms(). Returns
 * GPD_SHARED_FILE_CHANGED if the table was replaced; pointers to tokens of the previous table are
 * then invalid. With GPD_SHARED_FILE_UNCHANGED and GPD_SHARED_FILE_INVALID (shared_file.h) the
 * table is unchanged; store->file.wrong is not 0 if the file is invalid now, and store->file.why
 * contains the reason. */
enum gpd_shared_file_change gpd_token_store_refresh(struct gpd_token_store *store, int64_t now_ms);

#endif /* GPD_TOKEN_FILE_H */
