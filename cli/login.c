/* SPDX-License-Identifier: Apache-2.0 */
/* login, logout, pools: stores a token for a pool, readable by its user only, removes it, and lists
 * the known pools. */
#include "cli/command.h"
#include "cli/pools.h"
#include "client/base/config.h"
#include "client/connect/connect.h"
#include "client/connect/token.h"
#include "ctl/pool_file.h"
#include "protocol/printable.h"
#include "protocol/token_text.h"
#include "transport/url.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#define POOL_URLS_MAX 64
/* Section that login writes: name, address. */
#define SECTION "[pool %s]\nurl = %s\n"

static volatile sig_atomic_t caught;

static void
signal_handle(int number)
{
	caught = number;
}

static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP };

/* Reads a line that is typed; returns 0 at the end of input or after a signal, which can only be
 * delivered here. */
static size_t
read_line(char *text, size_t size, const sigset_t *open)
{
	struct pollfd typed = { .fd = STDIN_FILENO, .events = POLLIN };
	ssize_t count = 0;

	if (!caught && ppoll(&typed, 1, NULL, open) > 0)
		count = read(STDIN_FILENO, text, size);
	return count < 0 ? 0 : (size_t)count;
}

/* Reads from a terminal without echo, until an empty line or Ctrl-D. A signal ends the input as
 * well, and takes its usual effect after the echo has been restored. */
static size_t
read_terminal(char *text, size_t size)
{
	const struct sigaction catches = { .sa_handler = signal_handle };
	struct sigaction before_signals[sizeof(signals) / sizeof(signals[0])];
	struct termios before, no_echo;
	bool changed = tcgetattr(STDIN_FILENO, &before) == 0;
	size_t used = 0, count;
	sigset_t blocked, open;

	no_echo = before;
	no_echo.c_lflag &= ~(tcflag_t)ECHO;
	fprintf(stderr, "The token's file (not shown; an empty line ends it): ");
	(void)sigemptyset(&blocked);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaddset(&blocked, signals[i]);
	(void)sigprocmask(SIG_BLOCK, &blocked, &open);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaction(signals[i], &catches, &before_signals[i]);
	if (changed)
		changed = tcsetattr(STDIN_FILENO, TCSAFLUSH, &no_echo) == 0;
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
		return cli_fail("interrupted: nothing is stored");
	if (ferror(stdin))
		return cli_fail("standard input: %s", strerror(errno));
	if (*size_p > GP_TOKEN_FILE_MAX)
		return cli_fail("standard input is larger than 1 MiB, so it is not a token file");
	r = gp_token_find(text, *size_p, token);
	if (r == GP_E_EOF)
		return cli_fail("no token on standard input: gpupool login POOL < TOKEN_FILE");
	if (r)
		return cli_fail("the first line of standard input is not a token (gpt_..., created "
				"by gpupoolctl token create)");
	return 0;
}

/* Adds a section to the user's file, which may not exist yet; a partial write is undone. *before_p:
 * the file's previous size. */
static int
add_pool(const char *path, const char *name, const char *url, long *before_p)
{
	FILE *file = fopen(path, "ae");
	long before;
	int r;

	if (!file)
		return cli_fail("%s: %s; nothing is stored", path, strerror(errno));
	before = ftell(file);
	*before_p = before;
	r = fprintf(file, "%s" SECTION, before > 0 ? "\n" : "", name, url) < 0;
	if (fclose(file) || r) {
		(void)cli_fail("%s: %s; nothing is stored", path, strerror(errno));
		if (before >= 0 && truncate(path, before))
			(void)cli_fail("%s: %s", path, strerror(errno));
		return CLI_FAILED;
	}
	return 0;
}

/* Checks the arguments before anything is read or written. */
static int
check_pool(const char *name, const char *url, const struct gpc_pools_config *pools)
{
	const struct gpc_pool_config *pool = cli_pools_find(pools, name);
	struct gp_url urls[8];
	char error[CLI_ERROR_MAX];
	int count;

	if (!gpc_pool_config_is_name(name))
		return cli_fail(
			"\"%s\" is not a valid pool name: use letters, digits, \".\", \"_\", \"-\"",
			name);
	if (!pool && !url) {
		cli_pools_explain(pools, name, error, sizeof(error));
		return cli_fail("%s%s", error,
				pools->count ? "; with an address, login adds one" : "");
	}
	if (pool && url && strcmp(pool->url, url) != 0)
		return cli_fail("pool %s already exists with another address: %s (%s:%d); change "
				"it there, take another name, or \"gpupool logout %s\" first",
				name, pool->url, pool->file, pool->line, name);
	if (url && gp_url_list_parse(url, urls, 8, &count, error, sizeof(error)))
		return cli_fail("%s", error);
	return 0;
}

/* Returns 0 if all daemons of the pool accept the token in this file. */
static int
token_try_file(const char *path, const char *url, const struct gpc_pool_config *pool)
{
	const struct {
		const char *name, *value;
	} variables[] = {
		{ "REMOTE_GPU", url },
		{ "GPUPOOL_TOKEN_FILE", path },
		{ "GPUPOOL_TLS_CA", pool ? pool->authority : "" },
		{ "GPUPOOL_TLS_CERT", pool ? pool->certificate : "" },
		{ "GPUPOOL_TLS_KEY", pool ? pool->key : "" },
		{ "GPUPOOL_TLS_CRL", pool ? pool->crl : "" },
		{ "GPUPOOL_TENANT", pool ? pool->tenant : "" },
	};
	struct gp_url urls[POOL_URLS_MAX];
	char error[768], address[GP_URL_TEXT_MAX], tenant[80];
	Gpupool__ControlMessage *message;
	int count = 0;

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		(void)setenv(variables[i].name, variables[i].value, 1);
	if (gpc_config_daemons(urls, POOL_URLS_MAX, &count, error, sizeof(error)))
		return cli_fail("%s", error);
	for (int i = 0; i < count; i++) {
		if (gpc_link_probe(&urls[i], &message, error, sizeof(error)))
			return cli_fail(
				"%s; nothing is stored (--no-check stores the token without "
				"a connection)",
				error);
		gp_url_format(&urls[i], address, sizeof(address));
		(void)gp_printable_text(tenant, sizeof(tenant), message->account->tenant);
		fprintf(stderr, "gpupool: %s accepts the token: tenant %s\n", address, tenant);
		gp_control_free(message);
	}
	return 0;
}

/* Tries the token before it is written to a disk, where an interrupted login would leave it. */
static int
token_try_text(const char *text, size_t size, const char *url, const struct gpc_pool_config *pool)
{
	int fd = memfd_create("token", MFD_CLOEXEC), r;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd < 0 || fchmod(fd, 0600) || write(fd, text, size) != (ssize_t)size)
		r = cli_fail("memory for the token: %s", strerror(errno));
	else
		r = token_try_file(path, url, pool);
	if (fd >= 0)
		(void)close(fd);
	return r;
}

/* Resolves a symbolic link, so that the file it points to is replaced; without a file, target is
 * the path. */
static int
resolve_link(const char *path, char *target, size_t size)
{
	char *real = realpath(path, NULL);
	struct stat status;
	int r = 0;

	if (!real && (errno != ENOENT || lstat(path, &status) == 0))
		return cli_fail("%s: %s", path, strerror(errno));
	if ((size_t)snprintf(target, size, "%s", real ? real : path) >= size)
		r = cli_fail("%s: %s", path, strerror(ENAMETOOLONG));
	free(real);
	return r;
}

/* Stores both the token and the section, or neither. The token is renamed last, as that rarely
 * fails. */
static int
store_token(const char *folder, const char *name, const char *text, size_t size, const char *url)
{
	char path[GPC_POOL_PATH_MAX], conf[GPC_POOL_PATH_MAX], target[GPC_POOL_PATH_MAX];
	long before = -1;
	int r;

	(void)snprintf(path, sizeof(path), "%s/%s.token", folder, name);
	(void)snprintf(conf, sizeof(conf), "%s/" GPC_POOLS_FILE, folder);
	if (ctl_make_folder(folder) || resolve_link(path, target, sizeof(target)) ||
	    ctl_prepare_file(target, text, size, 0600))
		return CLI_FAILED;
	r = url ? add_pool(conf, name, url, &before) : 0;
	if (r) {
		ctl_drop_file(target);
		return r;
	}
	if (ctl_commit_file(target, true)) {
		if (before >= 0 && truncate(conf, before))
			(void)cli_fail("%s: %s", conf, strerror(errno));
		return CLI_FAILED;
	}
	return 0;
}

static int
login_store(const char *name, const char *url, bool check, const struct gpc_pools_config *pools)
{
	const struct gpc_pool_config *pool = cli_pools_find(pools, name);
	char folder[GPC_POOL_PATH_MAX - GPC_POOL_NAME_MAX - 16], path[GPC_POOL_PATH_MAX];
	char *text = calloc(1, GP_TOKEN_FILE_MAX + 2);
	struct gp_token token = { .text = "" };
	size_t size = 0;
	int r;

	if (!text)
		return cli_fail("out of memory");
	r = read_token(text, &size, &token);
	if (r == 0 && !gpc_user_folder(folder, sizeof(folder)))
		r = cli_fail("HOME is not set");
	if (r == 0)
		(void)snprintf(path, sizeof(path), "%s/%s.token", folder, name);
	/* A token file that the pool's section names would be used instead. */
	if (r == 0 && pool && *pool->token && strcmp(pool->token, path) != 0)
		r = cli_fail("%s:%d: [pool %s] names another file of a token: %s; remove that "
			     "line, or store the token there yourself",
			     pool->file, pool->line, name, pool->token);
	if (r == 0 && check)
		r = token_try_text(text, size, pool ? pool->url : url, pool);
	if (r == 0)
		r = store_token(folder, name, text, size, pool ? NULL : url);
	if (r == 0)
		fprintf(stderr, "gpupool: token %s of pool %s is in %s\n", token.id, name, path);
	if (r == 0 && !pool)
		fprintf(stderr, "gpupool: pool %s is in %s/" GPC_POOLS_FILE "\n", name, folder);
	explicit_bzero(text, GP_TOKEN_FILE_MAX + 2);
	explicit_bzero(&token, sizeof(token));
	free(text);
	return r;
}

int
cli_login(int count, char **argv)
{
	static const struct option options[] = { { "no-check", no_argument, NULL, 'n' },
						 { NULL, 0, NULL, 0 } };
	struct gpc_pools_config pools;
	bool check = true;
	const char *url;
	int r;

	while ((r = cli_option(count, argv, "", options, "")) != -1) {
		if (r == '?')
			return CLI_FAILED;
		check = false;
	}
	if (optind >= count || count - optind > 2)
		return cli_fail("usage: gpupool login [--no-check] POOL [ADDRESS] < TOKEN_FILE");
	url = optind + 1 < count ? argv[optind + 1] : NULL;
	if (strncmp(argv[optind], "gpt_", 4) == 0 || (url && strncmp(url, "gpt_", 4) == 0))
		return cli_fail("a token on the command line is visible to all users: use gpupool "
				"login POOL < TOKEN_FILE");
	r = cli_pools_read(&pools);
	if (r == 0)
		r = check_pool(argv[optind], url, &pools);
	if (r == 0)
		r = login_store(argv[optind], url, check, &pools);
	gpc_pools_config_free(&pools);
	return r;
}

/* Returns the text without the section that login wrote, and without empty lines before it; NULL if
 * the section was not written by login, or has been extended. */
static char *
cut_section(const char *text, const struct gpc_pool_config *pool)
{
	char section[GPC_POOL_NAME_MAX + GPC_POOL_URL_MAX + 32], *text_left;
	const char *begin = text, *rest, *next;
	size_t length;

	(void)snprintf(section, sizeof(section), SECTION, pool->name, pool->url);
	length = strlen(section);
	for (int line = 1; line < pool->line && begin; line++) {
		begin = strchr(begin, '\n');
		begin = begin ? begin + 1 : NULL;
	}
	if (!begin || strncmp(begin, section, length) != 0)
		return NULL;
	rest = begin + length;
	/* Only comments may follow up to the next section, as they may belong to that. */
	for (next = rest; *(next += strspn(next, " \t\r\n")); next += strcspn(next, "\n")) {
		if (*next == '[')
			break;
		if (*next != '#' && *next != ';')
			return NULL;
	}
	while (begin - text >= 2 && begin[-1] == '\n' && begin[-2] == '\n')
		begin--;
	if (begin == text)
		rest += strspn(rest, "\n");
	text_left = calloc(1, strlen(text) + 1);
	if (text_left)
		(void)sprintf(text_left, "%.*s%s", (int)(begin - text), text, rest);
	return text_left;
}

/* Returns 0; 1 if the section stays because it was not written by login alone; or CLI_FAILED. */
static int
remove_section(const struct gpc_pool_config *pool)
{
	char target[GPC_POOL_PATH_MAX], *text = NULL, *text_left = NULL;
	FILE *file = fopen(pool->file, "re");
	struct stat status;
	size_t size = 0;
	int r = CLI_FAILED;

	if (!file || fstat(fileno(file), &status) || getdelim(&text, &size, '\0', file) < 0) {
		(void)cli_fail("%s: %s", pool->file, strerror(errno));
	} else if (!(text_left = cut_section(text, pool))) {
		r = 1;
	} else if (resolve_link(pool->file, target, sizeof(target)) == 0 &&
		   ctl_write_file(target, text_left, strlen(text_left), status.st_mode & 0777,
				  true) == 0) {
		r = 0;
	}
	free(text_left);
	free(text);
	if (file)
		(void)fclose(file);
	return r;
}

/* Returns NULL after an error message. */
static const struct gpc_pool_config *
pool_find_known(const char *name, const struct gpc_pools_config *pools)
{
	const struct gpc_pool_config *pool = cli_pools_find(pools, name), *same[2];
	char error[CLI_ERROR_MAX];
	int count;

	if (pool)
		return pool;
	count = cli_pools_with_address(pools, name, same);
	if (count == 1 && (strcmp(same[0]->url, name) == 0 || !strchr(same[0]->url, ',')))
		return same[0];
	if (count == 1) {
		(void)cli_fail("%s is one of the addresses of pool %s (%s), which has one token "
			       "for all: \"gpupool logout %s\" removes it",
			       name, same[0]->name, same[0]->url, same[0]->name);
	} else if (count) {
		(void)cli_fail("%s is an address of pool %s (%s:%d) and of pool %s (%s:%d): "
			       "\"gpupool logout %s\" or \"gpupool logout %s\"",
			       name, same[0]->name, same[0]->file, same[0]->line, same[1]->name,
			       same[1]->file, same[1]->line, same[0]->name, same[1]->name);
	} else {
		cli_pools_explain(pools, name, error, sizeof(error));
		(void)cli_fail("%s", error);
	}
	return NULL;
}

/* Removes a symbolic link only; the file that it points to stays. */
static int
remove_token(const char *path)
{
	char target[GPC_POOL_PATH_MAX];
	ssize_t length = readlink(path, target, sizeof(target) - 1);

	if (unlink(path))
		return errno == ENOENT ? 0 : cli_fail("%s: %s", path, strerror(errno));
	fprintf(stderr, "gpupool: removed %s\n", path);
	if (length >= 0)
		cli_warn("the token is still in %.*s, the target of a symbolic link", (int)length,
			 target);
	return 0;
}

static int
logout_pool(const char *name, const struct gpc_pools_config *pools)
{
	const struct gpc_pool_config *pool = pool_find_known(name, pools);
	char folder[GPC_POOL_PATH_MAX - GPC_POOL_NAME_MAX - 16], path[GPC_POOL_PATH_MAX],
		conf[GPC_POOL_PATH_MAX];
	int r;

	if (!pool)
		return CLI_FAILED;
	if (!gpc_user_folder(folder, sizeof(folder)))
		return cli_fail("HOME is not set");
	(void)snprintf(conf, sizeof(conf), "%s/" GPC_POOLS_FILE, folder);
	(void)snprintf(path, sizeof(path), "%s/%s.token", folder, pool->name);
	r = remove_token(path);
	if (r)
		return r;
	r = strcmp(pool->file, conf) == 0 ? remove_section(pool) : 1;
	if (r == 0)
		fprintf(stderr, "gpupool: pool %s is no longer in %s\n", pool->name, pool->file);
	if (r != 1)
		return r;
	if (*pool->token && strcmp(pool->token, path) != 0)
		fprintf(stderr, "gpupool: the token %s is kept: %s:%d names it\n", pool->token,
			pool->file, pool->line);
	fprintf(stderr,
		"gpupool: pool %s is kept in %s:%d, which has settings that login did not write\n",
		pool->name, pool->file, pool->line);
	return 0;
}

int
cli_logout(int count, char **argv)
{
	static const struct option none[] = { { NULL, 0, NULL, 0 } };
	struct gpc_pools_config pools;
	int r;

	if (cli_option(count, argv, "", none, "") != -1)
		return CLI_FAILED;
	if (count - optind != 1)
		return cli_fail("usage: gpupool logout POOL");
	r = cli_pools_read(&pools);
	if (r == 0)
		r = logout_pool(argv[optind], &pools);
	gpc_pools_config_free(&pools);
	return r;
}

/* Describes the pool's credentials: "token abcdefghij", "certificate" or "no token". */
static void
name_credentials(struct gpc_pool_config *pool, char *text, size_t size)
{
	struct gpc_credentials credentials = { .token = pool->token };
	struct gp_token token;
	char error[768];
	bool given;

	gpc_pool_config_find_token(pool);
	if (!*pool->token)
		(void)snprintf(text, size, *pool->certificate ? "certificate" : "no token");
	else if (gpc_token_read(&credentials, &token, &given, error, sizeof(error)))
		(void)snprintf(text, size, "unusable token");
	else
		(void)snprintf(text, size, "token %s", token.id);
	explicit_bzero(&token, sizeof(token));
}

int
cli_list_pools(int count, char **argv)
{
	static const struct option none[] = { { NULL, 0, NULL, 0 } };
	int widths[2] = { 4, 7 };
	char entered[64];
	struct gpc_pools_config pools;
	int r;

	if (cli_option(count, argv, "", none, "") != -1)
		return CLI_FAILED;
	if (optind < count)
		return cli_fail("usage: gpupool pools");
	r = cli_pools_read(&pools);
	for (int i = 0; i < pools.count; i++) {
		int name = (int)strlen(pools.list[i].name), url = (int)strlen(pools.list[i].url);

		widths[0] = name > widths[0] ? name : widths[0];
		widths[1] = url > widths[1] ? url : widths[1];
	}
	if (r == 0 && pools.count == 0)
		fprintf(stderr, "gpupool: no pools: add one with \"gpupool login NAME tls://HOST < "
				"TOKEN_FILE\"\n");
	else if (r == 0)
		printf("%-*s  %-*s  %-16s  %s\n", widths[0], "POOL", widths[1], "ADDRESS",
		       "CREDENTIALS", "FILE");
	for (int i = 0; r == 0 && i < pools.count; i++) {
		struct gpc_pool_config *pool = &pools.list[i];

		if (gpc_pool_config_is_hidden(&pools, pool))
			continue;
		name_credentials(pool, entered, sizeof(entered));
		printf("%-*s  %-*s  %-16s  %s:%d\n", widths[0], pool->name, widths[1], pool->url,
		       entered, pool->file, pool->line);
	}
	gpc_pools_config_free(&pools);
	return r;
}
