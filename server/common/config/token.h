/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access tokens: a table of token IDs with their tenant, validity and a hash of the secret.
 * gpupoolctl creates and revokes tokens, the daemon checks them; token_file.h loads and saves the
 * table.
 *
 * The text form has one line per token, with fields separated by single blanks: ID, tenant, SHA-256
 * of the secret in lower-case hexadecimal digits, then the times of creation, expiry and revocation
 * ("-" for never, not for creation), then a comment, which may contain blanks or be absent. Empty
 * lines and lines that begin with # are ignored.
 *
 * Ownership: a table owns its tokens; gpd_tokens_free() frees them. Returned tokens are borrowed
 * from the table.
 * Threads: any may read a table; the daemon does not change a table after it is parsed. Only
 * gpd_tokens_write() may block, on its stream.
 * Units: times are seconds since 1970-01-01 UTC.
 */
#ifndef GPD_TOKEN_H
#define GPD_TOKEN_H

#include "base/status.h"
#include "protocol/token_text.h"
#include "server/common/ledger/ledger.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Maximum number of tokens in a table. */
#define GPD_TOKENS_MAX 10000
/* Sizes of buffers in bytes: of a hash, and with the terminating zero of a comment and of an error
 * text. */
#define GPD_TOKEN_HASH_SIZE 32
#define GPD_TOKEN_COMMENT_MAX 128
#define GPD_TOKEN_ERROR_MAX 512

/* A token; the secret itself is not stored. */
struct gpd_token {
	char id[GP_TOKEN_ID_LENGTH + 1]; /* not secret */
	char tenant[GPD_TENANT_NAME_MAX];
	uint8_t hash[GPD_TOKEN_HASH_SIZE]; /* SHA-256 of the secret */
	int64_t created_s;                 /* time of creation */
	int64_t expires_s;                 /* end of validity; INT64_MAX: never */
	int64_t revoked_s;                 /* time of revocation; INT64_MAX: not revoked */
	char comment[GPD_TOKEN_COMMENT_MAX];
};

/* A table; all zero: empty. */
struct gpd_tokens {
	struct gpd_token *list;
	size_t count;
};

/* Result of a check. */
enum gpd_token_state {
	GPD_TOKEN_NONE,       /* the client sent no token */
	GPD_TOKEN_GOOD,       /* valid */
	GPD_TOKEN_UNKNOWN,    /* unknown ID, wrong secret, or malformed token */
	GPD_TOKEN_REVOKED,    /* revoked; the secret is correct */
	GPD_TOKEN_EXPIRED,    /* expired; the secret is correct */
	GPD_TOKEN_UNREADABLE, /* the token file cannot be read at the moment */
};

/* Parses a table of size bytes, which need no terminating zero. name: of the file, for errors.
 * Returns 0 with *tokens overwritten: its previous tokens are not freed. Returns GP_E_INVALID with
 * a text that contains name and the line, or -ENOMEM with a text; *tokens is then unchanged. */
GP_MUST_CHECK int gpd_tokens_parse(const char *text, size_t size, const char *name,
				   struct gpd_tokens *tokens, char *error, size_t error_size);
/* Writes the text form with a header of comment lines. Write errors are those of the stream
 * (ferror(3)). */
void gpd_tokens_write(const struct gpd_tokens *tokens, FILE *file);
/* Frees the tokens and makes the table empty. Accepts an empty table. */
void gpd_tokens_free(struct gpd_tokens *tokens);

/* Returns the token with this ID, or NULL if there is none. Only the owner of the table may change
 * the token. */
struct gpd_token *gpd_tokens_find(const struct gpd_tokens *tokens, const char *id);

/* Checks a token sent by a client. shown: its text form (protocol/token_text.h) of size bytes; 0:
 * none. The time that the check takes does not depend on how much of the token is correct. With
 * GPD_TOKEN_GOOD, GPD_TOKEN_REVOKED and GPD_TOKEN_EXPIRED, *found_p is the token in the table, else
 * NULL. */
enum gpd_token_state gpd_tokens_check(const struct gpd_tokens *tokens, const void *shown,
				      size_t size, int64_t now_s, const struct gpd_token **found_p);
/* Returns the current state of the token with this ID, whose secret gpd_tokens_check() has checked
 * before: GPD_TOKEN_GOOD, GPD_TOKEN_UNKNOWN (removed since), GPD_TOKEN_REVOKED or
 * GPD_TOKEN_EXPIRED. */
enum gpd_token_state gpd_tokens_state(const struct gpd_tokens *tokens, const char *id,
				      int64_t now_s);

/* Returns whether the token is neither revoked nor expired. */
bool gpd_token_is_valid(const struct gpd_token *token, int64_t now_s);
/* Returns NULL if the comment is valid, else a static text: the end of an error sentence that
 * begins with the comment. */
const char *gpd_token_check_comment(const char *comment);
/* Computes the SHA-256 of the token's secret. */
void gpd_token_hash(const struct gp_token *token, uint8_t hash[GPD_TOKEN_HASH_SIZE]);

#endif /* GPD_TOKEN_H */
