/* SPDX-License-Identifier: Apache-2.0 */
/* login: a token for a pool, stored for its user alone. */
#include "cli/command.h"
#include "cli/pools.h"
#include "ctl/pool_file.h"
#include "protocol/token_text.h"
#include "transport/url.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

static volatile sig_atomic_t caught;

static void
take_signal(int number)
{
	caught = number;
}

static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP };

/* The next line that is typed; 0 at the end, and when a signal comes, which may only come here. */
static size_t
read_line(char *text, size_t size, const sigset_t *open)
{
	struct pollfd typed = { .fd = STDIN_FILENO, .events = POLLIN };
	ssize_t count = 0;

	if (!caught && ppoll(&typed, 1, NULL, open) > 0)
		count = read(STDIN_FILENO, text, size);
	return count < 0 ? 0 : (size_t)count;
}

/* What is typed at a terminal is not shown, and ends with an empty line or Ctrl-D.  A signal ends
 * it, too: the terminal shows what is typed again before it has its usual effect. */
static size_t
read_terminal(char *text, size_t size)
{
	const struct sigaction catches = { .sa_handler = take_signal };
	struct sigaction before_signals[sizeof(signals) / sizeof(signals[0])];
	struct termios before, quiet;
	bool changed = tcgetattr(STDIN_FILENO, &before) == 0;
	size_t used = 0, count;
	sigset_t blocked, open;

	quiet = before;
	quiet.c_lflag &= ~(tcflag_t)ECHO;
	fprintf(stderr, "The token's file (not shown; an empty line ends it): ");
	(void)sigemptyset(&blocked);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaddset(&blocked, signals[i]);
	(void)sigprocmask(SIG_BLOCK, &blocked, &open);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaction(signals[i], &catches, &before_signals[i]);
	if (changed)
		changed = tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet) == 0;
	while (used + 1 < size && (count = read_line(text + used, size - used - 1, &open)) &&
	       !(count == 1 && text[used] == '\n'))
		used += count;
	if (changed)
		(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
	fprintf(stderr, "\n");
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaction(signals[i], &before_signals[i], NULL);
	(void)sigprocmask(SIG_SETMASK, &open, NULL);
	if (caught) {
		explicit_bzero(text, size);
		(void)raise(caught);
	}
	return used;
}

static int
read_token(char *text, size_t *size_p, struct gp_token *token)
{
	int r;

	if (isatty(STDIN_FILENO))
		*size_p = read_terminal(text, GP_TOKEN_FILE_MAX + 1);
	else
		*size_p = fread(text, 1, GP_TOKEN_FILE_MAX + 1, stdin);
	if (caught)
		return cli_fail("nothing is stored: it was interrupted");
	if (ferror(stdin))
		return cli_fail("standard input: %s", strerror(errno));
	if (*size_p > GP_TOKEN_FILE_MAX)
		return cli_fail(
			"standard input is larger than 1 MiB, so this is no file of a token");
	r = gp_token_find(text, *size_p, token);
	if (r == GP_E_EOF)
		return cli_fail(
			"there is no token on standard input: gpupool login POOL < TOKEN_FILE");
	if (r)
		return cli_fail(
			"the first line of standard input is no token (gpt_..., as gpupoolctl "
			"token create makes it)");
	return 0;
}

/* Adds a section to the user's file, which need not be there yet: all of it, or nothing. */
static int
add_pool(const char *folder, const char *name, const char *url)
{
	char path[CLI_PATH_MAX];
	FILE *file;
	long before;
	int r;

	(void)snprintf(path, sizeof(path), "%s/pools.conf", folder);
	file = fopen(path, "ae");
	if (!file)
		return cli_fail("%s: %s", path, strerror(errno));
	before = ftell(file);
	r = fprintf(file, "%s[pool %s]\nurl = %s\n", before > 0 ? "\n" : "", name, url) < 0;
	if (fclose(file) || r) {
		(void)cli_fail("%s: %s; the pool is not in it", path, strerror(errno));
		if (before >= 0 && truncate(path, before))
			(void)cli_fail("%s: %s", path, strerror(errno));
		return CLI_WRONG;
	}
	fprintf(stderr, "gpupool: pool %s is in %s\n", name, path);
	return 0;
}

/* Before anything is read or written. */
static int
check_pool(const char *name, const char *url, const struct cli_pools *pools)
{
	const struct cli_pool *pool = cli_pools_find(pools, name);
	struct gp_url urls[8];
	char error[CLI_ERROR_MAX];
	int count;

	if (!cli_is_name(name))
		return cli_fail("\"%s\" is no name of a pool: letters, digits, \".\", \"_\", \"-\"",
				name);
	if (!pool && !url) {
		cli_pools_explain(pools, name, error, sizeof(error));
		return cli_fail("%s%s", error,
				pools->count ? "; with an address, login adds one" : "");
	}
	if (pool && url && strcmp(pool->url, url) != 0)
		return cli_fail("pool %s is there already, with another address: %s (%s:%d); "
				"change it there, or take another name",
				name, pool->url, pool->file, pool->line);
	if (url && gp_url_list_parse(url, urls, 8, &count, error, sizeof(error)))
		return cli_fail("%s", error);
	return 0;
}

static int
store(const char *name, const char *url, const struct cli_pools *pools)
{
	const struct cli_pool *pool = cli_pools_find(pools, name);
	char folder[CLI_PATH_MAX - CLI_NAME_MAX - 16], path[CLI_PATH_MAX];
	char *text = calloc(1, GP_TOKEN_FILE_MAX + 2);
	struct gp_token token = { .text = "" };
	size_t size = 0;
	int r;

	if (!text)
		return cli_fail("out of memory");
	r = read_token(text, &size, &token);
	if (r == 0 && !cli_user_folder(folder, sizeof(folder)))
		r = cli_fail("where are your files? HOME is not set");
	if (r == 0)
		(void)snprintf(path, sizeof(path), "%s/%s.token", folder, name);
	/* The one that would be used in its place. */
	if (r == 0 && pool && *pool->token && strcmp(pool->token, path) != 0)
		r = cli_fail(
			"%s:%d: [pool %s] names another file of a token: %s; take that line out, "
			"or store the token there yourself",
			pool->file, pool->line, name, pool->token);
	if (r == 0 && (ctl_make_folder(folder) || ctl_write_file(path, text, size, 0600, true)))
		r = CLI_WRONG;
	if (r == 0)
		fprintf(stderr, "gpupool: token %s of pool %s is in %s\n", token.id, name, path);
	if (r == 0 && !pool)
		r = add_pool(folder, name, url);
	explicit_bzero(text, GP_TOKEN_FILE_MAX + 2);
	explicit_bzero(&token, sizeof(token));
	free(text);
	return r;
}

int
cli_login(int count, char **words)
{
	static const struct option none[] = { { NULL, 0, NULL, 0 } };
	char error[CLI_ERROR_MAX];
	struct cli_pools pools;
	const char *url;
	int r;

	if (cli_option_anywhere(count, words, "", none) != -1)
		return CLI_WRONG;
	if (optind >= count || count - optind > 2)
		return cli_fail("usage: gpupool login POOL [ADDRESS] < TOKEN_FILE");
	url = optind + 1 < count ? words[optind + 1] : NULL;
	if (strncmp(words[optind], "gpt_", 4) == 0 || (url && strncmp(url, "gpt_", 4) == 0))
		return cli_fail(
			"a token on the command line can be seen by everybody on this machine: "
			"gpupool login POOL < TOKEN_FILE");
	r = cli_pools_read(&pools, error, sizeof(error));
	if (r)
		r = cli_fail("%s", error);
	if (r == 0)
		r = check_pool(words[optind], url, &pools);
	if (r == 0)
		r = store(words[optind], url, &pools);
	cli_pools_free(&pools);
	return r;
}
