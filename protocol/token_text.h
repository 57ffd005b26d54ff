/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenant token, gpt_ID_SECRET, with which a client authenticates: its form and its creation. Also
 * parses the client's token file (GPUPOOL_TOKEN_FILE). Lines that are empty or begin with # are
 * skipped, and the first other line is the token; certificates of the pool's authority (PEM) may
 * follow. Blanks around a line are ignored.
 *
 * Ownership: plain values; a struct gp_token contains the secret, and the caller erases it.
 * Threads: any; no I/O.
 * Errors: *token is written only on success.
 */
#ifndef GP_TOKEN_TEXT_H
#define GP_TOKEN_TEXT_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Lengths of a token's ID, its secret and the token, without a NUL. The alphabet has 32 letters and
 * digits (a-z, 2-7), so the ID has 50 bits and the secret 260 bits. */
#define GP_TOKEN_ID_LENGTH 10
#define GP_TOKEN_SECRET_LENGTH 52
#define GP_TOKEN_LENGTH (4 + GP_TOKEN_ID_LENGTH + 1 + GP_TOKEN_SECRET_LENGTH)
/* Maximum size of a token file, in bytes; the reader of the file checks it. */
#define GP_TOKEN_FILE_MAX ((size_t)1 << 20)

/* A token and its parts, NUL-terminated. */
struct gp_token {
	char text[GP_TOKEN_LENGTH + 1];
	char id[GP_TOKEN_ID_LENGTH + 1];
	char secret[GP_TOKEN_SECRET_LENGTH + 1];
};

/* Parses a token of `length` bytes. Returns 0, or GP_E_INVALID if it is not in the form of a
 * token. */
GP_MUST_CHECK int gp_token_parse(const void *text, size_t length, struct gp_token *token);

/* Checks the form of a token ID. Returns 0, or GP_E_INVALID if it is not in the form of an ID. */
GP_MUST_CHECK int gp_token_check_id(const char *text);

/* Number of random bytes that gp_token_create() needs: 310 bits in whole bytes. */
#define GP_TOKEN_RANDOM 39
/* Creates a token from cryptographically random bytes, all of which are used. */
void gp_token_create(const uint8_t random[GP_TOKEN_RANDOM], struct gp_token *token);

/* Finds the token in the text of a token file of `size` bytes. Returns 0; GP_E_EOF: all lines are
 * empty or comments; GP_E_INVALID: the first other line is not a token. */
GP_MUST_CHECK int gp_token_find(const char *text, size_t size, struct gp_token *token);

#endif /* GP_TOKEN_TEXT_H */
