/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tokens that a daemon knows, as values: whose each is, how long it holds, and a hash of its
 * secret.  gpupoolctl makes and revokes them, the daemon looks at them; token_file.h has the file.
 *
 * Made in one piece and never changed by the daemon; any thread may read them.  A text is one line
 * for each, of words between single blanks: ID, tenant, SHA-256 of the secret, and in seconds since
 * 1970 when it was made, until when it holds and when it was revoked, - for never; then a comment.
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

#define GPD_TOKENS_MAX 10000
#define GPD_TOKEN_HASH_SIZE 32
#define GPD_TOKEN_COMMENT_MAX 128
#define GPD_TOKEN_ERROR_MAX 512

struct gpd_token {
	char id[GP_TOKEN_ID_LENGTH + 1];
	char tenant[GPD_TENANT_NAME_MAX];
	uint8_t hash[GPD_TOKEN_HASH_SIZE];
	int64_t created_s;
	int64_t expires_s; /* INT64_MAX: never */
	int64_t revoked_s; /* INT64_MAX: it is not */
	char comment[GPD_TOKEN_COMMENT_MAX];
};

struct gpd_tokens {
	struct gpd_token *list;
	size_t count;
};

enum gpd_token_state {
	GPD_TOKEN_NONE,       /* none was shown */
	GPD_TOKEN_GOOD,       /* the token is the tenant's */
	GPD_TOKEN_UNKNOWN,    /* no such ID, or not its secret, or no token at all */
	GPD_TOKEN_REVOKED,    /* the secret is right */
	GPD_TOKEN_EXPIRED,    /* the secret is right */
	GPD_TOKEN_UNREADABLE, /* nobody knows: the tokens cannot be read at the moment */
};

/* Of bytes that need no zero at their end.  GP_E_INVALID or -ENOMEM: the text names file and line.
 */
GP_MUST_CHECK int gpd_tokens_parse(const char *text, size_t size, const char *name,
				   struct gpd_tokens *tokens, char *error, size_t error_size);
void gpd_tokens_write(const struct gpd_tokens *tokens, FILE *file);
void gpd_tokens_free(struct gpd_tokens *tokens);

/* NULL: there is none. */
struct gpd_token *gpd_tokens_find(const struct gpd_tokens *tokens, const char *id);

/* What a client has shown; how long it takes does not tell how much of it is right.  With GOOD,
 * REVOKED and EXPIRED, *found_p is the token. */
enum gpd_token_state gpd_tokens_check(const struct gpd_tokens *tokens, const void *shown,
				      size_t size, int64_t now_s, const struct gpd_token **found_p);
/* Of one that was good once: GOOD, UNKNOWN (it is there no more), REVOKED, EXPIRED. */
enum gpd_token_state gpd_tokens_state(const struct gpd_tokens *tokens, const char *id,
				      int64_t now_s);

/* Whether it is neither revoked nor expired. */
bool gpd_token_is_valid(const struct gpd_token *token, int64_t now_s);
/* NULL, or what is wrong with it as the end of a sentence that begins with the text. */
const char *gpd_token_check_comment(const char *comment);
void gpd_token_hash(const struct gp_token *token, uint8_t hash[GPD_TOKEN_HASH_SIZE]);

#endif /* GPD_TOKEN_H */
