/* SPDX-License-Identifier: Apache-2.0 */
/* token create, list, revoke: manages the file of the daemon's tokens; needs no daemon. */
#include "ctl/command.h"
#include "ctl/pool_file.h"
#include "ctl/value.h"
#include "server/common/base/pool_folder.h"
#include "server/common/config/config_lint.h"
#include "server/common/config/token_file.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The pool's folder and its token file. */
struct token_paths {
	char folder[CTL_PATH_MAX];
	char tokens[CTL_PATH_MAX];
};

static int
find_token_paths(const char *folder, const char *tokens, struct token_paths *token_paths)
{
	if (ctl_pool_folder(folder, token_paths->folder, sizeof(token_paths->folder)))
		return -1;
	if (!tokens)
		return ctl_pool_file(token_paths->folder, GPD_FILE_TOKENS, token_paths->tokens,
				     sizeof(token_paths->tokens));
	if ((size_t)snprintf(token_paths->tokens, sizeof(token_paths->tokens), "%s", tokens) >=
	    sizeof(token_paths->tokens))
		return ctl_fail("%s: too long for a path", tokens);
	return 0;
}

/* Create. */

/* Returns the certificate of the pool's authority, so that a client needs only one file; "":
 * none. */
static char *
read_authority(const char *folder)
{
	char path[CTL_PATH_MAX];
	char *text = calloc(1, GP_TOKEN_FILE_MAX / 2);
	FILE *file = NULL;
	size_t size = 0;

	if (text && ctl_pool_file(folder, GPD_FILE_AUTHORITY, path, sizeof(path)) == 0)
		file = fopen(path, "re");
	if (file) {
		size = fread(text, 1, GP_TOKEN_FILE_MAX / 2 - 1, file);
		(void)fclose(file);
		text[size] = 0;
	}
	return text;
}

/* Returns the content of the client's file, which the caller frees. */
static char *
format_token_file(const struct gp_token *token, const char *tenant, int64_t expires_s,
		  const char *authority)
{
	char until[CTL_VALUE_MAX] = "", *text;

	if (expires_s != INT64_MAX)
		(void)ctl_format_utc(expires_s, " until %Y-%m-%d %H:%M UTC", until);
	if (asprintf(&text,
		     "# Token of tenant %s%s. Keep it secret: GPUPOOL_TOKEN_FILE names this file.\n"
		     "%s\n%s",
		     tenant, until, token->text, authority) < 0)
		return NULL;
	return text;
}

/* "-" is standard output, as with most programs; a file of that name is "./-". */
static bool
path_is_stdout(const char *path)
{
	return !path || strcmp(path, "-") == 0;
}

/* text NULL: it was written to the file. */
static void
print_created(const struct ctl *ctl, const char *text, const struct gp_token *token,
	      const char *tenant, const char *path)
{
	static const struct ctl_column columns[] = { { "ID", "id", CTL_TEXT },
						     { "tenant", "tenant", CTL_TEXT },
						     { "file", "file", CTL_TEXT },
						     { "text", "text", CTL_TEXT } };
	struct ctl_table table;

	if (ctl->format == CTL_FORMAT_TABLE && text) {
		fputs(text, stdout);
	} else if (ctl->format == CTL_FORMAT_TABLE) {
		printf("%s: token %s of tenant %s\n", path, token->id, tenant);
	} else {
		ctl_table_init(&table, columns, COUNT(columns));
		ctl_table_text(&table, token->id);
		ctl_table_text(&table, tenant);
		ctl_table_text(&table, text ? NULL : path);
		ctl_table_text(&table, text);
		ctl_table_print_records(&table, (enum ctl_format)ctl->format, stdout);
		ctl_table_fini(&table);
	}
}

static int
token_output(const struct ctl *ctl, const char *text, const struct gp_token *token,
	     const char *tenant, const char *path, bool force)
{
	bool here = path_is_stdout(path);

	if (!here && ctl_write_file(path, text, strlen(text), 0600, force))
		return -1;
	print_created(ctl, here ? text : NULL, token, tenant, path);
	/* If the token could not be printed; main() reports that. */
	return here && (fflush(stdout) || ferror(stdout)) ? -1 : 0;
}

/* A name that the configuration does not contain is usually misspelled. */
static void
check_tenant(const char *folder, const char *tenant)
{
	char path[CTL_PATH_MAX], error[GPD_CONFIG_ERROR_MAX], warning[GPD_CONFIG_ERROR_MAX];
	struct gpd_config *config;

	if (ctl_pool_file(folder, GPD_FILE_CONFIG, path, sizeof(path)) || access(path, F_OK))
		return;
	if (gpd_config_load(path, &config, error, sizeof(error))) {
		ctl_warn("cannot check whether tenant %s exists: %s", tenant, error);
		return;
	}
	if (gpd_lint_tenant(config, tenant, warning))
		ctl_warn("%s", warning);
	gpd_config_free(config);
}

static int
token_create(const struct ctl *ctl, const struct token_paths *token_paths, const char *tenant,
	     int64_t expires_s, const char *comment, const char *path, bool force)
{
	char error[GPD_TOKEN_ERROR_MAX];
	struct gp_token token;
	char *authority, *text;
	int r = -1;

	if (!path_is_stdout(path) && !force && access(path, F_OK) == 0)
		return ctl_fail("%s already exists; use --force to replace it", path);
	if (ctl_make_folder(token_paths->folder))
		return -1;
	if (gpd_tokens_create(token_paths->tokens, tenant, expires_s, comment, &token, error,
			      sizeof(error)))
		return ctl_fail("%s", error);
	check_tenant(token_paths->folder, tenant);
	authority = read_authority(token_paths->folder);
	text = authority ? format_token_file(&token, tenant, expires_s, authority) : NULL;
	if (text)
		r = token_output(ctl, text, &token, tenant, path, force);
	else
		ctl_fail("out of memory");
	/* The token was not delivered, so it is revoked. */
	if (r)
		(void)!gpd_tokens_revoke(token_paths->tokens, token.id, error, sizeof(error));
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
	free(authority);
	explicit_bzero(&token, sizeof(token));
	return r;
}

static int
create_command(const struct ctl *ctl, int count, char **argv)
{
	const char *folder = NULL, *tokens = NULL, *expires = "never", *comment = "", *path = NULL;
	bool force = false;
	const struct ctl_option options[] = {
		{ "--directory", "-D", &folder, NULL }, { "--tokens", NULL, &tokens, NULL },
		{ "--expires", "-e", &expires, NULL },  { "--comment", "-c", &comment, NULL },
		{ "--output", "-o", &path, NULL },      { "--force", NULL, NULL, &force },
	};
	struct token_paths token_paths;
	int64_t seconds, until = INT64_MAX;

	if (ctl_parse_options(options, COUNT(options), &count, argv))
		return -1;
	if (count != 1)
		return ctl_usage_error(
			"token create TENANT [--expires 30d] [--comment TEXT] [-o FILE]");
	if (!ctl_parse_duration(expires, &seconds))
		return ctl_fail("--expires %s: invalid duration (12h, 30d, 1y, at most 999999 of "
				"one; or never)",
				expires);
	if (seconds != INT64_MAX)
		until = (int64_t)time(NULL) + seconds;
	if (find_token_paths(folder, tokens, &token_paths))
		return -1;
	ctl_warn_own_folder(folder ? folder : tokens, token_paths.folder);
	return token_create(ctl, &token_paths, argv[0], until, comment, path, force);
}

/* List. */

static uint64_t
time_or_none(int64_t time)
{
	return time == INT64_MAX ? UINT64_MAX : (uint64_t)time;
}

static void
add_token(struct ctl_table *table, const struct gpd_token *token, int64_t now)
{
	ctl_table_text(table, token->id);
	ctl_table_text(table, token->tenant);
	ctl_table_text(table, token->revoked_s != INT64_MAX ? "revoked"
			      : token->expires_s <= now     ? "expired"
							    : "good");
	ctl_table_number(table, time_or_none(token->created_s));
	ctl_table_number(table, time_or_none(token->expires_s));
	ctl_table_number(table, time_or_none(token->revoked_s));
	ctl_table_text(table, token->comment);
}

static int
list_command(const struct ctl *ctl, int count, char **argv)
{
	static const struct ctl_column columns[] = {
		{ "ID", "id", CTL_TEXT },           { "TENANT", "tenant", CTL_TEXT },
		{ "STATE", "state", CTL_TEXT },     { "CREATED", "created", CTL_DATE },
		{ "EXPIRES", "expires", CTL_DATE }, { "REVOKED", "revoked", CTL_DATE },
		{ "COMMENT", "comment", CTL_TEXT },
	};
	const char *folder = NULL, *file = NULL;
	const struct ctl_option options[] = { { "--directory", "-D", &folder, NULL },
					      { "--tokens", NULL, &file, NULL } };
	char error[GPD_TOKEN_ERROR_MAX];
	struct gpd_tokens tokens;
	struct ctl_table table;
	struct token_paths token_paths;

	if (ctl_parse_options(options, COUNT(options), &count, argv))
		return -1;
	if (count)
		return ctl_usage_error("token list");
	if (find_token_paths(folder, file, &token_paths))
		return -1;
	if (gpd_tokens_load(token_paths.tokens, &tokens, error, sizeof(error)))
		return ctl_fail("%s", error);
	ctl_table_init(&table, columns, COUNT(columns));
	for (size_t i = 0; i < tokens.count; i++)
		add_token(&table, &tokens.list[i], (int64_t)time(NULL));
	ctl_table_print(&table, (enum ctl_format)ctl->format, stdout);
	ctl_table_fini(&table);
	gpd_tokens_free(&tokens);
	return 0;
}

/* Revoke. */

static int
revoke_command(int count, char **argv)
{
	const char *folder = NULL, *file = NULL;
	const struct ctl_option options[] = { { "--directory", "-D", &folder, NULL },
					      { "--tokens", NULL, &file, NULL } };
	char error[GPD_TOKEN_ERROR_MAX];
	struct token_paths token_paths;

	if (ctl_parse_options(options, COUNT(options), &count, argv))
		return -1;
	if (count != 1)
		return ctl_usage_error("token revoke ID");
	if (gp_token_check_id(argv[0]))
		return ctl_fail("\"%.20s\" is not a token ID: see gpupoolctl token list", argv[0]);
	if (find_token_paths(folder, file, &token_paths))
		return -1;
	return gpd_tokens_revoke(token_paths.tokens, argv[0], error, sizeof(error))
		       ? ctl_fail("%s", error)
		       : 0;
}

int
ctl_token(const struct ctl *ctl, int count, char **argv)
{
	if (count && strcmp(argv[0], "create") == 0)
		return create_command(ctl, count - 1, argv + 1);
	if (count && strcmp(argv[0], "list") == 0)
		return list_command(ctl, count - 1, argv + 1);
	if (count && strcmp(argv[0], "revoke") == 0)
		return revoke_command(count - 1, argv + 1);
	return ctl_unknown("token", count, argv,
			   "token create TENANT | token list | token revoke ID");
}
