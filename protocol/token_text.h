/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenant token, gpt_ID_SECRET, with which a client authenticates. Also parses the client's token
 * file (GPUPOOL_TOKEN_FILE): lines that are empty or begin with # are skipped, the first other line
 * is the token; certificates of the pool's authority (PEM) may follow.
 *
 * Ownership: plain values, no I/O.
 * Threads: any.
 */
#ifndef GP_TOKEN_H
#define GP_TOKEN_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* The alphabet has 32 letters and digits: 50 bits of ID and 260 bits of secret. */
#define GP_TOKEN_ID_LENGTH 10
#define GP_TOKEN_SECRET_LENGTH 52
#define GP_TOKEN_LENGTH (4 + GP_TOKEN_ID_LENGTH + 1 + GP_TOKEN_SECRET_LENGTH)
/* Maximum size of a token file. */
#define GP_TOKEN_FILE_MAX ((size_t)1 << 20)

struct gp_token {
	char text[GP_TOKEN_LENGTH + 1];
	char id[GP_TOKEN_ID_LENGTH + 1];
	char secret[GP_TOKEN_SECRET_LENGTH + 1];
};

/* Parses a token. GP_E_INVALID: not in the form of a token. */
GP_MUST_CHECK int gp_token_parse(const void *text, size_t length, struct gp_token *token);

/* Checks the form of a token ID. GP_E_INVALID: not in the form of an ID. */
GP_MUST_CHECK int gp_token_parse_id(const char *text);

/* Creates a token from random bytes, all of which are used. */
#define GP_TOKEN_RANDOM 39
void gp_token_create(const uint8_t random[GP_TOKEN_RANDOM], struct gp_token *token);

/* Finds the token in the text of a token file. GP_E_EOF: no candidate line; GP_E_INVALID: the first
 * candidate line is not a token. */
GP_MUST_CHECK int gp_token_find(const char *text, size_t size, struct gp_token *token);

#endif /* GP_TOKEN_H */
