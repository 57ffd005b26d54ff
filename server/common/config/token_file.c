/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/config/token_file.h"

#include "server/common/base/pool_folder.h"
#include "server/common/config/config_value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* Load. */

int
gpd_tokens_load(const char *path, struct gpd_tokens *tokens, char *error, size_t error_size)
{
	size_t size = 0;
	char *text = NULL;
	int r = gpd_shared_file_read(path, &text, &size, error, error_size);

	if (r == -ENOENT) {
		*tokens = (struct gpd_tokens){ 0 };
		return 0;
	}
	if (r == 0)
		r = gpd_tokens_parse(text, size, path, tokens, error, error_size);
	free(text);
	return r;
}

/* Change. */

/* The caller holds the lock. */
static int
tokens_replace(const char *path, const struct gpd_tokens *tokens, char *error, size_t error_size)
{
	size_t size = 0;
	char *text = NULL;
	FILE *file = open_memstream(&text, &size);
	int r;

	if (!file)
		return gpd_shared_file_error(ENOMEM, path, error, error_size);
	gpd_tokens_write(tokens, file);
	r = fclose(file) ? gpd_shared_file_error(ENOMEM, path, error, error_size)
			 : gpd_shared_file_replace(path, gpd_folder_secret_mode(path), text, size,
						   error, error_size);
	free(text);
	return r;
}

/* Removes tokens whose retention time after revocation or expiry is over. */
static void
tokens_drop_expired(struct gpd_tokens *tokens, int64_t now_s)
{
	size_t kept = 0;

	for (size_t i = 0; i < tokens->count; i++) {
		const struct gpd_token *token = &tokens->list[i];
		int64_t end =
			token->revoked_s < token->expires_s ? token->revoked_s : token->expires_s;

		if (end > now_s - GPD_TOKEN_RETENTION_S)
			tokens->list[kept++] = *token;
	}
	tokens->count = kept;
}

static int
tokens_append(struct gpd_tokens *tokens, const struct gpd_token *token, const char *path,
	      char *error, size_t error_size)
{
	struct gpd_token *grown;

	if (tokens->count >= GPD_TOKENS_MAX) {
		snprintf(error, error_size, "%s: there are %d tokens already", path,
			 GPD_TOKENS_MAX);
		return GP_E_INVALID;
	}
	grown = realloc(tokens->list, (tokens->count + 1) * sizeof(*grown));
	if (!grown)
		return gpd_shared_file_error(ENOMEM, path, error, error_size);
	tokens->list = grown;
	tokens->list[tokens->count++] = *token;
	return 0;
}

static int
token_generate(struct gp_token *token, char *error, size_t error_size)
{
	uint8_t bytes[GP_TOKEN_RANDOM];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
		snprintf(error, error_size, "no random numbers for a token");
		return -EIO;
	}
	gp_token_create(bytes, token);
	explicit_bzero(bytes, sizeof(bytes));
	return 0;
}

int
gpd_tokens_create(const char *path, const char *tenant, int64_t expires_s, const char *comment,
		  struct gp_token *token, char *error, size_t error_size)
{
	struct gpd_token entry = { .created_s = time(NULL),
				   .expires_s = expires_s,
				   .revoked_s = INT64_MAX };
	struct gpd_tokens tokens = { 0 };
	const char *wrong = gpd_value_parse_name(tenant, entry.tenant);
	int fd, r;

	if (wrong) {
		snprintf(error, error_size, "\"%.200s\" %s", tenant, wrong);
		return GP_E_INVALID;
	}
	wrong = gpd_token_check_comment(comment);
	if (wrong) {
		snprintf(error, error_size, "the comment %s", wrong);
		return GP_E_INVALID;
	}
	fd = gpd_shared_file_lock(path, error, error_size);
	if (fd < 0)
		return fd;
	r = gpd_tokens_load(path, &tokens, error, error_size);
	do
		r = r ? r : token_generate(token, error, error_size);
	while (r == 0 && gpd_tokens_find(&tokens, token->id));
	if (r == 0) {
		memcpy(entry.id, token->id, sizeof(entry.id));
		gpd_token_hash(token, entry.hash);
		snprintf(entry.comment, sizeof(entry.comment), "%s", comment);
		tokens_drop_expired(&tokens, entry.created_s);
		r = tokens_append(&tokens, &entry, path, error, error_size);
	}
	if (r == 0)
		r = tokens_replace(path, &tokens, error, error_size);
	gpd_tokens_free(&tokens);
	close(fd);
	return r;
}

static int
tokens_revoke(struct gpd_tokens *tokens, const char *path, const char *id, char *error,
	      size_t error_size)
{
	struct gpd_token *token = gpd_tokens_find(tokens, id);

	if (!token) {
		snprintf(error, error_size, "%s: unknown token ID \"%.20s\"", path, id);
		return GP_E_INVALID;
	}
	if (token->revoked_s != INT64_MAX) {
		snprintf(error, error_size, "the token %s is already revoked", id);
		return GP_E_INVALID;
	}
	token->revoked_s = time(NULL);
	tokens_drop_expired(tokens, token->revoked_s);
	return tokens_replace(path, tokens, error, error_size);
}

int
gpd_tokens_revoke(const char *path, const char *id, char *error, size_t error_size)
{
	struct gpd_tokens tokens = { 0 };
	int fd = gpd_shared_file_lock(path, error, error_size), r;

	if (fd < 0)
		return fd;
	r = gpd_tokens_load(path, &tokens, error, error_size);
	if (r == 0)
		r = tokens_revoke(&tokens, path, id, error, error_size);
	gpd_tokens_free(&tokens);
	close(fd);
	return r;
}

/* The daemon's copy. */

static int
store_read(struct gpd_token_store *store)
{
	struct gpd_shared_file *file = &store->file;
	struct gpd_tokens tokens;
	int r = gpd_tokens_load(file->path, &tokens, file->why, sizeof(file->why));

	if (r)
		return r;
	gpd_tokens_free(&store->tokens);
	store->tokens = tokens;
	return 0;
}

int
gpd_token_store_open(struct gpd_token_store *store, const char *path)
{
	int r = gpd_shared_file_init(&store->file, path);

	store->tokens = (struct gpd_tokens){ 0 };
	return r || !path ? r : store_read(store);
}

enum gpd_shared_file_change
gpd_token_store_refresh(struct gpd_token_store *store, int64_t now_ms)
{
	if (!gpd_shared_file_poll(&store->file, false))
		return GPD_SHARED_FILE_UNCHANGED;
	return gpd_shared_file_set_result(&store->file, store_read(store), now_ms);
}
