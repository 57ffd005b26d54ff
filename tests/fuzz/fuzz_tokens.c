/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's file of tokens: parsed and written again without a change; and as a client's
 * token, looked up in it. */
#include "server/common/config/token.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool holds)
{
	if (!holds)
		abort();
}

static void
check_again(const struct gpd_tokens *tokens)
{
	char error[GPD_TOKEN_ERROR_MAX], *text = NULL;
	struct gpd_tokens again;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);

	check(file);
	gpd_tokens_write(tokens, file);
	check(fclose(file) == 0);
	check(gpd_tokens_parse(text, size, "again", &again, error, sizeof(error)) == 0);
	check(again.count == tokens->count);
	for (size_t i = 0; i < again.count; i++) {
		const struct gpd_token *a = &again.list[i], *b = &tokens->list[i];

		check(strcmp(a->id, b->id) == 0 && strcmp(a->tenant, b->tenant) == 0 &&
		      memcmp(a->hash, b->hash, sizeof(a->hash)) == 0 &&
		      a->created_s == b->created_s && a->expires_s == b->expires_s &&
		      a->revoked_s == b->revoked_s && strcmp(a->comment, b->comment) == 0);
		check(gpd_tokens_find(&again, a->id) == a);
		check(gpd_tokens_state(&again, a->id, 0) != GPD_TOKEN_UNKNOWN);
	}
	gpd_tokens_free(&again);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char error[GPD_TOKEN_ERROR_MAX] = "";
	const struct gpd_token *found;
	struct gpd_tokens tokens;

	if (gpd_tokens_parse((const char *)data, size, "fuzz", &tokens, error, sizeof(error))) {
		check(strncmp(error, "fuzz:", 5) == 0);
		return 0;
	}
	check_again(&tokens);
	check(gpd_tokens_check(&tokens, data, size, 0, &found) ==
	      (size ? GPD_TOKEN_UNKNOWN : GPD_TOKEN_NONE));
	gpd_tokens_free(&tokens);
	return 0;
}
