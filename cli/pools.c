/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pools.h"

#include "base/similar.h"
#include "client/base/config.h"
#include "ctl/value.h"
#include "protocol/token_text.h"
#include "transport/url.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "pools.conf"
#define FILE_BYTES_MAX (256 << 10)
#define LINE_MAX_SIZE 4400
#define URLS_MAX 64
#define GPUS_MAX 64

struct reader {
	struct cli_pools *pools;
	struct cli_pool *open; /* the section that the lines are of */
	const char *file;
	int line;
	unsigned int given; /* bit: key */
	char *error;
	size_t error_size;
};

const char *
cli_check_gpus(const char *text)
{
	uint64_t value;

	return ctl_parse_number(text, 1, GPUS_MAX, &value) ? NULL
							   : "is no number of devices from 1 to 64";
}

const char *
cli_check_memory(const char *text)
{
	uint64_t bytes;

	return ctl_parse_bytes(text, &bytes) && bytes >= 1 << 20
		       ? NULL
		       : "is no size of 1M and more: 10G, 1.5G and 512M are";
}

const char *
cli_check_sm(const char *text)
{
	uint32_t hundredths;

	return ctl_parse_percent(text, &hundredths)
		       ? NULL
		       : "is no part of the multiprocessors up to 100%: 50% is";
}

const char *
cli_check_wait(const char *text)
{
	unsigned int seconds;

	return gpc_config_parse_wait(text, &seconds)
		       ? NULL
		       : "is no time up to a week: 90s, 10m and 2h are";
}

/* What is said names the part of the list that is wrong. */
static const char *
check_url(const char *text)
{
	static struct gp_url urls[URLS_MAX];
	static char why[320];
	int count;

	return gp_url_list_parse(text, urls, URLS_MAX, &count, why, sizeof(why)) ? why : NULL;
}

static const char *
check_tenant(const char *text)
{
	return cli_is_name(text) ? NULL : "is no name of a tenant";
}

#define KEY(member) offsetof(struct cli_pool, member), sizeof(((struct cli_pool *)NULL)->member)

static const struct key {
	const char *name;
	size_t offset, size;
	const char *(*check)(const char *text); /* NULL: it is a path */
} keys[] = {
	{ "url", KEY(url), check_url },
	{ "token", KEY(token), NULL },
	{ "authority", KEY(authority), NULL },
	{ "certificate", KEY(certificate), NULL },
	{ "key", KEY(key), NULL },
	{ "crl", KEY(crl), NULL },
	{ "tenant", KEY(tenant), check_tenant },
	{ "gpus", KEY(gpus), cli_check_gpus },
	{ "memory", KEY(memory), cli_check_memory },
	{ "sm", KEY(sm), cli_check_sm },
	{ "wait", KEY(wait), cli_check_wait },
};
#define KEYS ((int)(sizeof(keys) / sizeof(keys[0])))

static int __attribute__((format(printf, 2, 3)))
complain(struct reader *reader, const char *format, ...)
{
	int used =
		snprintf(reader->error, reader->error_size, "%s:%d: ", reader->file, reader->line);
	va_list arguments;

	if (used < 0 || (size_t)used >= reader->error_size)
		return -1;
	va_start(arguments, format);
	(void)vsnprintf(reader->error + used, reader->error_size - (size_t)used, format, arguments);
	va_end(arguments);
	return -1;
}

static char *
trim(char *text)
{
	size_t length;

	text += strspn(text, " \t\r");
	length = strlen(text);
	while (length > 0 && strchr(" \t\r", text[length - 1]))
		text[--length] = '\0';
	return text;
}

/* Behind a blank, or first. */
static void
cut_comment(char *line)
{
	for (char *at = line; *at; at++) {
		if ((*at == '#' || *at == ';') && (at == line || isspace((unsigned char)at[-1]))) {
			*at = '\0';
			return;
		}
	}
}

bool
cli_is_name(const char *text)
{
	size_t length = strlen(text);

	if (length == 0 || length >= CLI_NAME_MAX || *text == '.' || *text == '-')
		return false;
	for (; *text; text++) {
		if (!isalnum((unsigned char)*text) && !strchr("._-", *text))
			return false;
	}
	return true;
}

/* The section before has all that it needs. */
static int
close_section(struct reader *reader)
{
	if (!reader->open || *reader->open->url)
		return 0;
	reader->line = reader->open->line;
	return complain(reader, "[pool %s] has no url: \"url = tls://HOST\" says where it is",
			reader->open->name);
}

static int
open_section(struct reader *reader, char *line)
{
	char *end = strchr(line, ']'), *name;
	struct cli_pool *list;

	if (close_section(reader))
		return -1;
	if (!end || *trim(end + 1))
		return complain(reader, "\"%s\": a section is a line \"[pool NAME]\"", line);
	*end = '\0';
	name = trim(line + 1);
	if (strncmp(name, "pool", 4) != 0 || !isspace((unsigned char)name[4]))
		return complain(reader,
				"[%s]: there is no such section; a pool's is \"[pool NAME]\"",
				name);
	name = trim(name + 4);
	if (!cli_is_name(name))
		return complain(reader,
				"\"%s\" is no name of a pool: letters, digits, \".\", \"_\", \"-\"",
				name);
	for (int i = 0; i < reader->pools->count; i++) {
		const struct cli_pool *other = &reader->pools->list[i];

		if (strcmp(other->name, name) == 0 && strcmp(other->file, reader->file) == 0)
			return complain(reader, "[pool %s] is there already, in line %d", name,
					other->line);
	}
	if (reader->pools->count == CLI_POOLS_MAX)
		return complain(reader, "more than %d pools", CLI_POOLS_MAX);
	list = realloc(reader->pools->list, (size_t)(reader->pools->count + 1) * sizeof(*list));
	if (!list)
		return complain(reader, "out of memory");
	reader->pools->list = list;
	reader->open = &list[reader->pools->count++];
	*reader->open = (struct cli_pool){ .line = reader->line };
	(void)snprintf(reader->open->name, sizeof(reader->open->name), "%s", name);
	(void)snprintf(reader->open->file, sizeof(reader->open->file), "%s", reader->file);
	reader->given = 0;
	return 0;
}

/* "~/..." is the user's, any other that does not begin with / beside the file. */
static int
take_path(struct reader *reader, const struct key *key, const char *value)
{
	char *into = (char *)reader->open + key->offset;
	const char *home = getenv("HOME"), *slash = strrchr(reader->file, '/');
	int length;

	if (strncmp(value, "~/", 2) == 0 && (!home || *home != '/'))
		return complain(reader, "%s = %s: HOME does not say where that is", key->name,
				value);
	if (strncmp(value, "~/", 2) == 0)
		length = snprintf(into, key->size, "%s/%s", home, value + 2);
	else if (*value == '/' || !slash)
		length = snprintf(into, key->size, "%s", value);
	else
		length = snprintf(into, key->size, "%.*s/%s", (int)(slash - reader->file),
				  reader->file, value);
	if (length < 0 || (size_t)length >= key->size)
		return complain(reader, "%s = ...: too long for a path", key->name);
	return 0;
}

static int
fail_key(struct reader *reader, const char *name)
{
	const char *names[KEYS], *meant;
	char known[160] = "";

	for (int i = 0; i < KEYS; i++) {
		names[i] = keys[i].name;
		(void)snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			       i ? ", " : "", names[i]);
	}
	meant = gp_most_similar(name, names, KEYS);
	if (meant)
		return complain(reader, "[pool %s] %s: there is no such key; did you mean %s?",
				reader->open->name, name, meant);
	return complain(reader, "[pool %s] %s: there is no such key here (%s)", reader->open->name,
			name, known);
}

static int
take_value(struct reader *reader, const char *name, const char *value)
{
	const struct key *key = NULL;
	const char *wrong;

	if (!reader->open)
		return complain(reader, "\"%s = ...\" stands before the first \"[pool NAME]\"",
				name);
	for (int i = 0; !key && i < KEYS; i++) {
		if (strcmp(keys[i].name, name) == 0)
			key = &keys[i];
	}
	if (!key)
		return fail_key(reader, name);
	if (reader->given >> (key - keys) & 1)
		return complain(reader, "[pool %s] %s: is there already", reader->open->name, name);
	reader->given |= 1u << (key - keys);
	if (!*value)
		return complain(reader, "[pool %s] %s: its value is missing", reader->open->name,
				name);
	if (!key->check)
		return take_path(reader, key, value);
	wrong = key->check(value);
	if (wrong && key->check == check_url)
		return complain(reader, "[pool %s] %s: %s", reader->open->name, name, wrong);
	if (!wrong && strlen(value) >= key->size)
		wrong = "is too long";
	if (wrong)
		return complain(reader, "[pool %s] %s: \"%s\" %s", reader->open->name, name, value,
				wrong);
	(void)snprintf((char *)reader->open + key->offset, key->size, "%s", value);
	return 0;
}

/* What somebody has put here by mistake is not for a terminal, or a log. */
static bool
has_token(const char *line)
{
	const char *at = line;

	while ((at = strstr(at, "gpt_"))) {
		at += 4;
		if (strspn(at, "abcdefghijklmnopqrstuvwxyz234567_") >= GP_TOKEN_SECRET_LENGTH)
			return true;
	}
	return false;
}

static int
take_line(struct reader *reader, const char *text, size_t length)
{
	char room[LINE_MAX_SIZE], *line, *value;

	reader->line++;
	if (length >= sizeof(room) || memchr(text, '\0', length))
		return complain(reader, "longer than %zu bytes", sizeof(room) - 1);
	(void)snprintf(room, sizeof(room), "%.*s", (int)length, text);
	cut_comment(room);
	line = trim(room);
	if (!*line)
		return 0;
	if (*line == '[')
		return open_section(reader, line);
	if (has_token(line))
		return complain(reader,
				"a token does not belong here: \"gpupool login POOL\" stores "
				"it in a file of its own, which \"token =\" may name");
	value = strchr(line, '=');
	if (!value)
		return complain(reader, "\"%s\" is neither KEY = VALUE nor [pool NAME]", line);
	*value++ = '\0';
	return take_value(reader, trim(line), trim(value));
}

int
cli_pools_parse(struct cli_pools *pools, const char *text, const char *file, char *error,
		size_t error_size)
{
	struct reader reader = {
		.pools = pools, .file = file, .error = error, .error_size = error_size
	};

	if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
		text += 3;
	while (*text) {
		size_t length = strcspn(text, "\n");

		if (take_line(&reader, text, length))
			return -1;
		text += length + (text[length] == '\n');
	}
	return close_section(&reader);
}

static int
read_file(struct cli_pools *pools, const char *path, char *error, size_t error_size)
{
	/* What no program writes into is not waited for. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
	char *text = NULL;
	struct stat status;
	size_t size = 0;
	int r = -1;

	if (!file && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (file && fstat(fd, &status) == 0 &&
	    (S_ISDIR(status.st_mode) || S_ISFIFO(status.st_mode))) {
		(void)snprintf(error, error_size, "%s: is a %s, not a file", path,
			       S_ISDIR(status.st_mode) ? "folder" : "pipe");
		(void)fclose(file);
		return -1;
	}
	text = file ? malloc(FILE_BYTES_MAX + 1) : NULL;
	if (text)
		size = fread(text, 1, FILE_BYTES_MAX, file);
	if (!text || ferror(file)) {
		(void)snprintf(error, error_size, "%s: %s", path, strerror(errno));
	} else if (size == FILE_BYTES_MAX || memchr(text, '\0', size)) {
		(void)snprintf(error, error_size, "%s: is no file of pools: too large, or no text",
			       path);
	} else {
		text[size] = '\0';
		r = cli_pools_parse(pools, text, path, error, error_size);
	}
	free(text);
	if (file)
		(void)fclose(file);
	return r;
}

bool
cli_user_folder(char *path, size_t size)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int length;

	if (config && *config == '/')
		length = snprintf(path, size, "%s/gpupool", config);
	else if (home && *home == '/')
		length = snprintf(path, size, "%s/.config/gpupool", home);
	else
		return false;
	return length > 0 && (size_t)length < size;
}

int
cli_pools_read(struct cli_pools *pools, char *error, size_t error_size)
{
	char folder[CLI_PATH_MAX - 16], path[CLI_PATH_MAX];

	*pools = (struct cli_pools){ 0 };
	if (cli_user_folder(folder, sizeof(folder))) {
		(void)snprintf(path, sizeof(path), "%s/" FILE_NAME, folder);
		if (read_file(pools, path, error, error_size))
			return -1;
	}
	/* On a node the folder is the daemon's, and closed to other users. */
	if (access(CLI_MACHINE_FOLDER "/" FILE_NAME, R_OK) && errno == EACCES)
		return 0;
	return read_file(pools, CLI_MACHINE_FOLDER "/" FILE_NAME, error, error_size);
}

void
cli_pools_free(struct cli_pools *pools)
{
	free(pools->list);
	*pools = (struct cli_pools){ 0 };
}

const struct cli_pool *
cli_pools_find(const struct cli_pools *pools, const char *name)
{
	for (int i = 0; i < pools->count; i++) {
		if (strcmp(pools->list[i].name, name) == 0)
			return &pools->list[i];
	}
	return NULL;
}

void
cli_pools_find_token(struct cli_pool *pool)
{
	char folder[CLI_PATH_MAX - CLI_NAME_MAX - 16];

	if (*pool->token || !cli_user_folder(folder, sizeof(folder)))
		return;
	(void)snprintf(pool->token, sizeof(pool->token), "%s/%s.token", folder, pool->name);
	if (access(pool->token, F_OK))
		pool->token[0] = '\0';
}

void
cli_pools_explain(const struct cli_pools *pools, const char *name, char *error, size_t error_size)
{
	const char *names[CLI_POOLS_MAX], *meant;
	char known[512] = "";

	for (int i = 0; i < pools->count; i++) {
		names[i] = pools->list[i].name;
		(void)snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			       i ? ", " : "", names[i]);
	}
	meant = gp_most_similar(name, names, pools->count);
	if (pools->count == 0)
		(void)snprintf(error, error_size,
			       "there is no pool \"%s\": no pools.conf names any; \"gpupool login "
			       "%s tls://HOST\" makes one",
			       name, name);
	else if (meant)
		(void)snprintf(error, error_size, "there is no pool \"%s\"; did you mean %s?", name,
			       meant);
	else
		(void)snprintf(error, error_size,
			       "there is no pool \"%s\" (%s); an address begins with its scheme: "
			       "tls://%s",
			       name, known, *name ? name : "HOST");
}
