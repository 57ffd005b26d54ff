/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token, by which a client shows whose it is: gpt_ID_SECRET.  And the file that a client has it
 * in (GPUPOOL_TOKEN_FILE): lines that are empty or begin with # are skipped, the first other one is
 * the token; certificates of the pool's authority (PEM) may follow.
 *
 * Plain values and no I/O; any thread.
 */
#ifndef GP_TOKEN_H
#define GP_TOKEN_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Of 32 letters and digits each: 50 bits that name it, 260 that nobody can guess. */
#define GP_TOKEN_ID_LENGTH 10
#define GP_TOKEN_SECRET_LENGTH 52
#define GP_TOKEN_LENGTH (4 + GP_TOKEN_ID_LENGTH + 1 + GP_TOKEN_SECRET_LENGTH)
/* A file of one is never larger. */
#define GP_TOKEN_FILE_MAX ((size_t)1 << 20)

struct gp_token {
	char text[GP_TOKEN_LENGTH + 1];
	char id[GP_TOKEN_ID_LENGTH + 1];
	char secret[GP_TOKEN_SECRET_LENGTH + 1];
};

/* GP_E_INVALID: it has not the form of a token. */
GP_MUST_CHECK int gp_token_parse(const void *text, size_t length, struct gp_token *token);

/* Only the form of an ID. */
GP_MUST_CHECK int gp_token_parse_id(const char *text);

/* Makes one out of random bytes, of which all count. */
#define GP_TOKEN_RANDOM 39
void gp_token_create(const uint8_t random[GP_TOKEN_RANDOM], struct gp_token *token);

/* The token in the text of such a file.  GP_E_EOF: there is no line that could be one;
 * GP_E_INVALID: the first such line is none. */
GP_MUST_CHECK int gp_token_find(const char *text, size_t size, struct gp_token *token);

#endif /* GP_TOKEN_H */
