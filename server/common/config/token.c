/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/config/token.h"

#include "server/common/config/config_value.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_SIZE 512
#define HEADER                                                                                     \
	"# Tokens of gpupoold, by gpupoolctl token, which removes all other lines:\n"              \
	"# ID TENANT SHA-256 CREATED EXPIRES REVOKED COMMENT\n"

void
gpd_token_hash(const struct gp_token *token, uint8_t hash[GPD_TOKEN_HASH_SIZE])
{
	(void)SHA256((const uint8_t *)token->secret, GP_TOKEN_SECRET_LENGTH, hash);
}

const char *
gpd_token_check_comment(const char *comment)
{
	if (strlen(comment) >= GPD_TOKEN_COMMENT_MAX)
		return "is longer than 127 bytes";
	for (const char *c = comment; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return "has characters that cannot be printed";
	return NULL;
}

/* Parse. */

/* Returns the next field, terminated by a zero, or NULL. */
static char *
next_field(char **rest_p)
{
	char *field = *rest_p, *blank = strchr(field, ' ');

	if (!*field)
		return NULL;
	*rest_p = blank ? blank + 1 : field + strlen(field);
	if (blank)
		*blank = 0;
	return field;
}

static bool
read_hash(const char *text, uint8_t hash[GPD_TOKEN_HASH_SIZE])
{
	static const char digits[] = "0123456789abcdef";

	if (strlen(text) != 2 * GPD_TOKEN_HASH_SIZE)
		return false;
	for (size_t i = 0; i < 2 * GPD_TOKEN_HASH_SIZE; i++) {
		const char *digit = strchr(digits, text[i]);

		if (!digit)
			return false;
		hash[i / 2] = (uint8_t)(hash[i / 2] << 4 | (digit - digits));
	}
	return true;
}

static bool
read_time(const char *text, bool may_be_never, int64_t *time_p)
{
	uint64_t number;

	*time_p = INT64_MAX;
	if (may_be_never && strcmp(text, "-") == 0)
		return true;
	if (!gpd_value_parse_number(text, 0, INT64_MAX - 1, &number))
		return false;
	*time_p = (int64_t)number;
	return true;
}

/* Returns NULL, or which field of the line is invalid. */
static const char *
read_token(char *line, struct gpd_token *token)
{
	char *rest = line, *fields[6];

	*token = (struct gpd_token){ 0 };
	for (int i = 0; i < 6; i++) {
		fields[i] = next_field(&rest);
		if (!fields[i])
			return "fewer than six fields";
	}
	if (gp_token_check_id(fields[0]))
		return "field 1 is not a token ID";
	memcpy(token->id, fields[0], sizeof(token->id));
	if (gpd_value_parse_name(fields[1], token->tenant))
		return "field 2 is not a tenant name";
	if (!read_hash(fields[2], token->hash))
		return "field 3 is not a SHA-256 hash in hexadecimal digits";
	if (!read_time(fields[3], false, &token->created_s) ||
	    !read_time(fields[4], true, &token->expires_s) ||
	    !read_time(fields[5], true, &token->revoked_s))
		return "fields 4 to 6 are not seconds since 1970";
	if (gpd_token_check_comment(rest))
		return "the comment is longer than 127 bytes, or cannot be printed";
	memcpy(token->comment, rest, strlen(rest) + 1);
	return NULL;
}

static const char *
line_parse(const char *text, size_t length, struct gpd_tokens *tokens)
{
	char line[LINE_MAX_SIZE];
	struct gpd_token token;
	const char *wrong;

	if (length == 0 || *text == '#')
		return NULL;
	if (length >= sizeof(line))
		return "it is too long";
	if (memchr(text, 0, length))
		return "not a text file: contains a zero byte";
	memcpy(line, text, length);
	line[length] = 0;
	wrong = read_token(line, &token);
	if (wrong)
		return wrong;
	if (gpd_tokens_find(tokens, token.id))
		return "duplicate ID";
	if (tokens->count == GPD_TOKENS_MAX)
		return "more than 10000 tokens";
	tokens->list[tokens->count++] = token;
	return NULL;
}

static size_t
count_lines(const char *text, size_t size)
{
	size_t count = 1;

	for (size_t i = 0; i < size; i++)
		count += text[i] == '\n';
	return count < GPD_TOKENS_MAX ? count : GPD_TOKENS_MAX;
}

int
gpd_tokens_parse(const char *text, size_t size, const char *name, struct gpd_tokens *tokens,
		 char *error, size_t error_size)
{
	struct gpd_tokens read = {
		.list = calloc(count_lines(text, size), sizeof(*read.list)),
	};
	const char *end = text + size;

	if (!read.list) {
		snprintf(error, error_size, "%s: no memory", name);
		return -ENOMEM;
	}
	for (int line = 1; text < end; line++) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = newline ? newline : end;
		const char *wrong = line_parse(text, (size_t)(line_end - text), &read);

		if (wrong) {
			snprintf(error, error_size, "%s:%d: %s", name, line, wrong);
			gpd_tokens_free(&read);
			return GP_E_INVALID;
		}
		text = newline ? newline + 1 : end;
	}
	*tokens = read;
	return 0;
}

void
gpd_tokens_free(struct gpd_tokens *tokens)
{
	free(tokens->list);
	*tokens = (struct gpd_tokens){ 0 };
}

/* Write. */

static void
write_time(int64_t time, FILE *file)
{
	if (time == INT64_MAX)
		fprintf(file, " -");
	else
		fprintf(file, " %lld", (long long)time);
}

void
gpd_tokens_write(const struct gpd_tokens *tokens, FILE *file)
{
	fputs(HEADER, file);
	for (size_t i = 0; i < tokens->count; i++) {
		const struct gpd_token *token = &tokens->list[i];

		fprintf(file, "%s %s ", token->id, token->tenant);
		for (size_t k = 0; k < GPD_TOKEN_HASH_SIZE; k++)
			fprintf(file, "%02x", token->hash[k]);
		write_time(token->created_s, file);
		write_time(token->expires_s, file);
		write_time(token->revoked_s, file);
		fprintf(file, "%s%s\n", token->comment[0] ? " " : "", token->comment);
	}
}

/* Search. */

struct gpd_token *
gpd_tokens_find(const struct gpd_tokens *tokens, const char *id)
{
	for (size_t i = 0; i < tokens->count; i++)
		if (strcmp(tokens->list[i].id, id) == 0)
			return &tokens->list[i];
	return NULL;
}

/* As gpd_tokens_find(), but in constant time. */
static const struct gpd_token *
find_constant_time(const struct gpd_tokens *tokens, const char *id)
{
	const struct gpd_token *found = NULL;

	for (size_t i = 0; i < tokens->count; i++)
		if (CRYPTO_memcmp(tokens->list[i].id, id, GP_TOKEN_ID_LENGTH) == 0)
			found = &tokens->list[i];
	return found;
}

static enum gpd_token_state
token_get_state(const struct gpd_token *token, int64_t now_s)
{
	/* Revocation takes precedence over expiry. */
	if (token->revoked_s != INT64_MAX)
		return GPD_TOKEN_REVOKED;
	return token->expires_s <= now_s ? GPD_TOKEN_EXPIRED : GPD_TOKEN_GOOD;
}

bool
gpd_token_is_valid(const struct gpd_token *token, int64_t now_s)
{
	return token_get_state(token, now_s) == GPD_TOKEN_GOOD;
}

enum gpd_token_state
gpd_tokens_check(const struct gpd_tokens *tokens, const void *shown, size_t size, int64_t now_s,
		 const struct gpd_token **found_p)
{
	static const struct gpd_token nobody;
	const struct gpd_token *found;
	uint8_t hash[GPD_TOKEN_HASH_SIZE];
	struct gp_token token;
	bool same;

	*found_p = NULL;
	if (size == 0)
		return GPD_TOKEN_NONE;
	if (gp_token_parse(shown, size, &token))
		return GPD_TOKEN_UNKNOWN;
	found = find_constant_time(tokens, token.id);
	gpd_token_hash(&token, hash);
	same = CRYPTO_memcmp(hash, found ? found->hash : nobody.hash, sizeof(hash)) == 0;
	OPENSSL_cleanse(&token, sizeof(token));
	if (!found || !same)
		return GPD_TOKEN_UNKNOWN;
	*found_p = found;
	return token_get_state(found, now_s);
}

enum gpd_token_state
gpd_tokens_state(const struct gpd_tokens *tokens, const char *id, int64_t now_s)
{
	const struct gpd_token *found = gpd_tokens_find(tokens, id);

	return found ? token_get_state(found, now_s) : GPD_TOKEN_UNKNOWN;
}
