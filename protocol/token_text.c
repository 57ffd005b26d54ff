/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/token_text.h"

#include <stdbool.h>
#include <string.h>

#define PREFIX "gpt_"
#define PREFIX_LENGTH 4

static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";

static bool
is_base32(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!text[i] || !strchr(letters, text[i]))
			return false;
	return true;
}

int
gp_token_parse(const void *text, size_t length, struct gp_token *token)
{
	const char *id = (const char *)text + PREFIX_LENGTH;
	const char *secret = id + GP_TOKEN_ID_LENGTH + 1;

	if (length != GP_TOKEN_LENGTH || memcmp(text, PREFIX, PREFIX_LENGTH) != 0 ||
	    !is_base32(id, GP_TOKEN_ID_LENGTH) || secret[-1] != '_' ||
	    !is_base32(secret, GP_TOKEN_SECRET_LENGTH))
		return GP_E_INVALID;
	*token = (struct gp_token){ 0 };
	memcpy(token->text, text, length);
	memcpy(token->id, id, GP_TOKEN_ID_LENGTH);
	memcpy(token->secret, secret, GP_TOKEN_SECRET_LENGTH);
	return 0;
}

int
gp_token_check_id(const char *text)
{
	return strlen(text) == GP_TOKEN_ID_LENGTH && is_base32(text, GP_TOKEN_ID_LENGTH)
		       ? 0
		       : GP_E_INVALID;
}

void
gp_token_create(const uint8_t random[GP_TOKEN_RANDOM], struct gp_token *token)
{
	unsigned int bits = 0, have = 0;
	size_t next = 0, place = PREFIX_LENGTH;

	*token = (struct gp_token){ .text = PREFIX };
	for (size_t i = 0; i < GP_TOKEN_ID_LENGTH + GP_TOKEN_SECRET_LENGTH; i++) {
		if (have < 5) {
			bits = bits << 8 | random[next++];
			have += 8;
		}
		if (i == GP_TOKEN_ID_LENGTH)
			token->text[place++] = '_';
		have -= 5;
		token->text[place++] = letters[bits >> have & 31];
		bits &= (1u << have) - 1;
	}
	memcpy(token->id, token->text + PREFIX_LENGTH, GP_TOKEN_ID_LENGTH);
	memcpy(token->secret, token->text + PREFIX_LENGTH + GP_TOKEN_ID_LENGTH + 1,
	       GP_TOKEN_SECRET_LENGTH);
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

int
gp_token_find(const char *text, size_t size, struct gp_token *token)
{
	const char *end = text + size;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = newline ? newline : end;
		const char *next = newline ? newline + 1 : end;

		while (text < line_end && is_blank(*text))
			text++;
		while (line_end > text && is_blank(line_end[-1]))
			line_end--;
		if (text < line_end && *text != '#')
			return gp_token_parse(text, (size_t)(line_end - text), token);
		text = next;
	}
	return GP_E_EOF;
}
