/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/pools.h"

#include "base/edit_distance.h"
#include "base/environment.h"
#include "client/base/log.h"
#include "protocol/token_text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX (256 << 10)
#define LINE_MAX_SIZE 4400
#define URLS_MAX 64

struct reader {
	struct gpc_pools_config *pools;
	struct gpc_pool_config *open; /* section of the current line; NULL: none */
	const char *file;
	int line;
	unsigned int keys_set; /* bit mask over keys[] */
	char *error;           /* NULL: invalid lines are skipped */
	size_t error_size;
};

#define KEY(member)                                                                                \
	offsetof(struct gpc_pool_config, member), sizeof(((struct gpc_pool_config *)NULL)->member)

static const struct key {
	const char *name;
	size_t offset, size;
	bool is_path;
} keys[] = {
	{ "url", KEY(url), false },
	{ "token", KEY(token), true },
	{ "authority", KEY(authority), true },
	{ "certificate", KEY(certificate), true },
	{ "key", KEY(key), true },
	{ "crl", KEY(crl), true },
	{ "tenant", KEY(tenant), false },
	{ "gpus", KEY(gpus), false },
	{ "memory", KEY(memory), false },
	{ "sm", KEY(sm), false },
	{ "wait", KEY(wait), false },
};
#define KEYS ((int)(sizeof(keys) / sizeof(keys[0])))

/* Reports an invalid line. Returns 0 if invalid lines are skipped, else -1. */
static int __attribute__((format(printf, 2, 3)))
reader_fail(struct reader *reader, const char *format, ...)
{
	char *text = reader->error ? reader->error : reader->pools->fault;
	size_t size = reader->error ? reader->error_size : sizeof(reader->pools->fault);
	int r = reader->error ? -1 : 0, used;
	va_list arguments;

	if (!reader->error && *text)
		return 0;
	used = snprintf(text, size, "%s:%d: ", reader->file, reader->line);
	if (used < 0 || (size_t)used >= size)
		return r;
	va_start(arguments, format);
	(void)vsnprintf(text + used, size - (size_t)used, format, arguments);
	va_end(arguments);
	return r;
}

/* Returns NULL if the variable is not set or is not an absolute path. */
static const char *
folder_get(const char *name)
{
	const char *text = gp_environment_get(name);

	return text && *text == '/' ? text : NULL;
}

static char *
text_trim(char *text)
{
	size_t length;

	text += strspn(text, " \t\r");
	length = strlen(text);
	while (length > 0 && strchr(" \t\r", text[length - 1]))
		text[--length] = '\0';
	return text;
}

/* '#' or ';' starts a comment at the beginning of a line or after a blank. */
static void
comment_cut(char *line)
{
	for (char *at = line; *at; at++) {
		if ((*at == '#' || *at == ';') && (at == line || isspace((unsigned char)at[-1]))) {
			*at = '\0';
			return;
		}
	}
}

bool
gpc_pool_config_is_name(const char *text)
{
	size_t length = strlen(text);

	if (length == 0 || length >= GPC_POOL_NAME_MAX || *text == '.' || *text == '-')
		return false;
	for (; *text; text++) {
		if (!isalnum((unsigned char)*text) && !strchr("._-", *text))
			return false;
	}
	return true;
}

/* *bare_p: the matching address has no scheme. */
static bool
address_find(const struct gpc_pool_config *pool, const struct gp_url *url, bool *bare_p)
{
	for (const char *item = pool->url, *end; *item; item = *end ? end + 1 : end) {
		char text[GP_URL_TEXT_MAX], error[256];
		struct gp_url other;
		bool is_path;

		end = item + strcspn(item, ",");
		(void)snprintf(text, sizeof(text), "%.*s", (int)(end - item), item);
		if ((size_t)(end - item) >= sizeof(text) ||
		    gp_url_parse(text, &other, error, sizeof(error)))
			continue;
		*bare_p = strcmp(other.scheme, GP_URL_DEFAULT_SCHEME) == 0 && !strstr(text, "://");
		is_path = strcmp(other.scheme, "unix") == 0;
		if ((strcmp(other.scheme, url->scheme) == 0 ||
		     (*bare_p && strcmp(url->scheme, "tls") == 0)) &&
		    other.port == url->port &&
		    (is_path ? strcmp : strcasecmp)(other.host, url->host) == 0)
			return true;
	}
	return false;
}

bool
gpc_pool_config_has_address(const struct gpc_pool_config *pool, const struct gp_url *url)
{
	bool bare;

	return address_find(pool, url, &bare);
}

static int
section_close(struct reader *reader)
{
	struct gpc_pool_config *pool = reader->open;

	reader->open = NULL;
	if (!pool)
		return 0;
	if (!*pool->url) {
		reader->line = pool->line;
		if (reader_fail(reader, "[pool %s] has no url: add \"url = tls://HOST\"",
				pool->name))
			return -1;
	}
	return 0;
}

static int
section_check(struct reader *reader, const char *name)
{
	const struct gpc_pools_config *pools = reader->pools;

	if (!gpc_pool_config_is_name(name))
		return reader_fail(
			reader,
			"\"%s\" is not a valid pool name: use letters, digits, \".\", \"_\", \"-\"",
			name);
	for (int i = 0; i < pools->count; i++) {
		const struct gpc_pool_config *other = &pools->list[i];

		if (strcmp(other->name, name) == 0 && strcmp(other->file, reader->file) == 0)
			return reader_fail(reader, "[pool %s]: duplicate of line %d", name,
					   other->line);
	}
	return 0;
}

static int
section_open(struct reader *reader, char *line)
{
	struct gpc_pools_config *pools = reader->pools;
	char *end = strchr(line, ']'), *name;
	struct gpc_pool_config *list;

	if (section_close(reader))
		return -1;
	if ((!end || *text_trim(end + 1)) &&
	    reader_fail(reader, "\"%s\": a section is a line \"[pool NAME]\"", line))
		return -1;
	if (!end)
		return 0;
	*end = '\0';
	name = text_trim(line + 1);
	if (strncmp(name, "pool", 4) != 0 || !isspace((unsigned char)name[4]))
		return reader_fail(reader, "[%s]: unknown section; use \"[pool NAME]\"", name);
	name = text_trim(name + 4);
	if (section_check(reader, name))
		return -1;
	if (pools->count == GPC_POOLS_MAX)
		return reader_fail(reader, "more than %d pools", GPC_POOLS_MAX);
	list = realloc(pools->list, (size_t)(pools->count + 1) * sizeof(*list));
	if (!list)
		return reader_fail(reader, "out of memory");
	pools->list = list;
	reader->open = &list[pools->count++];
	*reader->open = (struct gpc_pool_config){ .line = reader->line };
	(void)snprintf(reader->open->name, sizeof(reader->open->name), "%s", name);
	(void)snprintf(reader->open->file, sizeof(reader->open->file), "%s", reader->file);
	reader->keys_set = 0;
	return 0;
}

/* "~/..." is relative to the user's home, any other relative path to the folder of the file. */
static int
path_store(struct reader *reader, const struct key *key, char *into, const char *value)
{
	const char *home = folder_get("HOME"), *slash = strrchr(reader->file, '/');
	bool in_home = strncmp(value, "~/", 2) == 0;
	int length;

	if (in_home && !home)
		return reader_fail(reader, "%s = %s: HOME is not set", key->name, value);
	if (in_home)
		length = snprintf(into, key->size, "%s/%s", home, value + 2);
	else if (*value == '/' || !slash)
		length = snprintf(into, key->size, "%s", value);
	else
		length = snprintf(into, key->size, "%.*s/%s", (int)(slash - reader->file),
				  reader->file, value);
	if (length >= 0 && (size_t)length < key->size)
		return 0;
	*into = '\0';
	return reader_fail(reader, "%s = ...: too long for a path", key->name);
}

static int
key_fail(struct reader *reader, const char *name)
{
	const char *names[KEYS], *meant;
	char known[160] = "";

	for (int i = 0; i < KEYS; i++) {
		names[i] = keys[i].name;
		(void)snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			       i ? ", " : "", names[i]);
	}
	meant = gp_suggest(name, names, KEYS);
	if (meant)
		return reader_fail(reader, "[pool %s] %s: unknown key; did you mean %s?",
				   reader->open->name, name, meant);
	return reader_fail(reader, "[pool %s] %s: unknown key (%s)", reader->open->name, name,
			   known);
}

/* Returns NULL, or the reason why the value is invalid, stored in buffer. */
static const char *
value_check(const struct gpc_pools_config *pools, const char *name, const char *value, char *buffer,
	    size_t size)
{
	struct gp_url *urls;
	int count, r;

	if (strcmp(name, "url") != 0)
		return pools->check ? pools->check(name, value) : NULL;
	urls = calloc(URLS_MAX, sizeof(*urls));
	if (!urls)
		return "out of memory";
	/* The error names the invalid item of the list. */
	r = gp_url_list_parse(value, urls, URLS_MAX, &count, buffer, size);
	free(urls);
	return r ? buffer : NULL;
}

static int
value_store(struct reader *reader, const char *name, const char *value)
{
	char buffer[GPC_POOL_URL_MAX];
	const char *wrong, *pool;
	const struct key *key = NULL;
	char *into;

	if (!reader->open)
		return reader_fail(reader, "\"%s = ...\" is before the first \"[pool NAME]\"",
				   name);
	for (int i = 0; !key && i < KEYS; i++) {
		if (strcmp(keys[i].name, name) == 0)
			key = &keys[i];
	}
	if (!key)
		return key_fail(reader, name);
	pool = reader->open->name;
	into = (char *)reader->open + key->offset;
	if (reader->keys_set >> (key - keys) & 1 &&
	    reader_fail(reader, "[pool %s] %s: already set", pool, name))
		return -1;
	reader->keys_set |= 1u << (key - keys);
	if (!*value)
		return reader_fail(reader, "[pool %s] %s: its value is missing", pool, name);
	if (key->is_path)
		return path_store(reader, key, into, value);
	wrong = value_check(reader->pools, name, value, buffer, sizeof(buffer));
	/* The other addresses of a list remain valid. */
	if (wrong && (reader_fail(reader, "[pool %s] %s: %s", pool, name, wrong) ||
		      strcmp(name, "url") != 0))
		return reader->error ? -1 : 0;
	if (strlen(value) >= key->size)
		return reader_fail(reader, "[pool %s] %s: \"%s\" is too long", pool, name, value);
	(void)snprintf(into, key->size, "%s", value);
	return 0;
}

/* A secret pasted here by mistake must not be printed on a terminal or in a log. */
static bool
line_has_token(const char *line)
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
line_parse(struct reader *reader, const char *text, size_t length)
{
	char buffer[LINE_MAX_SIZE], *line, *value;

	reader->line++;
	if (length >= sizeof(buffer))
		return reader_fail(reader, "longer than %zu bytes", sizeof(buffer) - 1);
	if (memchr(text, '\0', length))
		return reader_fail(reader, "contains a zero byte: this is not a text file");
	(void)snprintf(buffer, sizeof(buffer), "%.*s", (int)length, text);
	comment_cut(buffer);
	line = text_trim(buffer);
	if (!*line)
		return 0;
	if (*line == '[')
		return section_open(reader, line);
	if (line_has_token(line))
		return reader_fail(reader,
				   "a token does not belong here: \"gpupool login POOL\" stores "
				   "it in a file of its own, which \"token =\" may name");
	value = strchr(line, '=');
	if (!value)
		return reader_fail(reader, "\"%s\" is neither KEY = VALUE nor [pool NAME]", line);
	*value++ = '\0';
	return value_store(reader, text_trim(line), text_trim(value));
}

int
gpc_pools_config_parse(struct gpc_pools_config *pools, const char *text, size_t size,
		       const char *file, char *error, size_t error_size)
{
	static const char byte_order_mark[3] = "\xef\xbb\xbf";
	struct reader reader = {
		.pools = pools, .file = file, .error = error, .error_size = error_size
	};
	const char *end = text + size, *next;

	if (size >= sizeof(byte_order_mark) &&
	    memcmp(text, byte_order_mark, sizeof(byte_order_mark)) == 0)
		text += sizeof(byte_order_mark);
	for (; text < end; text = next + (next < end)) {
		next = memchr(text, '\n', (size_t)(end - text));
		next = next ? next : end;
		if (line_parse(&reader, text, (size_t)(next - text)))
			return -1;
	}
	return section_close(&reader);
}

int
gpc_pools_config_read_file(struct gpc_pools_config *pools, const char *path, char *error,
			   size_t error_size)
{
	/* O_NONBLOCK: opening a pipe without a writer would block. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
	char what[128] = "", *text = NULL;
	struct stat status;
	size_t size = 0;
	int r = 0;

	if (!file && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (file && fstat(fd, &status) == 0 &&
	    (S_ISDIR(status.st_mode) || S_ISFIFO(status.st_mode))) {
		(void)snprintf(what, sizeof(what), "is a %s, not a file",
			       S_ISDIR(status.st_mode) ? "folder" : "pipe");
	} else {
		text = file ? malloc(FILE_BYTES_MAX) : NULL;
		if (text)
			size = fread(text, 1, FILE_BYTES_MAX, file);
		if (!text || ferror(file))
			(void)snprintf(what, sizeof(what), "%s", strerror(errno));
		else if (size == FILE_BYTES_MAX)
			(void)snprintf(what, sizeof(what),
				       "too large for a pools.conf: at most 256 KiB");
		else
			r = gpc_pools_config_parse(pools, text, size, path, error, error_size);
	}
	free(text);
	if (file)
		(void)fclose(file);
	if (!*what)
		return r;
	if (error)
		(void)snprintf(error, error_size, "%s: %s", path, what);
	else if (!*pools->fault)
		(void)snprintf(pools->fault, sizeof(pools->fault), "%s: %s", path, what);
	return error ? -1 : 0;
}

bool
gpc_user_folder(char *path, size_t size)
{
	const char *config = folder_get("XDG_CONFIG_HOME"), *home = folder_get("HOME");
	int length = 0;

	if (config)
		length = snprintf(path, size, "%s/gpupool", config);
	else if (home)
		length = snprintf(path, size, "%s/.config/gpupool", home);
	return length > 0 && (size_t)length < size;
}

int
gpc_pools_config_read(struct gpc_pools_config *pools, char *error, size_t error_size)
{
	static const char machine[] = GPC_MACHINE_FOLDER "/" GPC_POOLS_FILE;
	char folder[GPC_POOL_PATH_MAX - 16], path[GPC_POOL_PATH_MAX];

	if (gpc_user_folder(folder, sizeof(folder))) {
		(void)snprintf(path, sizeof(path), "%s/" GPC_POOLS_FILE, folder);
		/* HOME may belong to another user; that is not the program's fault. */
		if (!error && access(folder, X_OK) && errno == EACCES)
			path[0] = '\0';
		if (*path && gpc_pools_config_read_file(pools, path, error, error_size))
			return -1;
	}
	/* On a GPU node the folder belongs to the daemon and is closed to other users. */
	if (access(machine, R_OK) && errno == EACCES)
		return 0;
	return gpc_pools_config_read_file(pools, machine, error, error_size);
}

void
gpc_pools_config_free(struct gpc_pools_config *pools)
{
	free(pools->list);
	pools->list = NULL;
	pools->count = 0;
}

void
gpc_pool_config_find_token(struct gpc_pool_config *pool)
{
	char folder[GPC_POOL_PATH_MAX - GPC_POOL_NAME_MAX - 16];

	if (*pool->token || !gpc_user_folder(folder, sizeof(folder)))
		return;
	(void)snprintf(pool->token, sizeof(pool->token), "%s/%s.token", folder, pool->name);
	if (access(pool->token, F_OK))
		pool->token[0] = '\0';
}

/* Reads both files for a program, which continues even if they are invalid. */
static void
pools_read_lenient(struct gpc_pools_config *pools)
{
	static atomic_flag reported = ATOMIC_FLAG_INIT;

	*pools = (struct gpc_pools_config){ 0 };
	(void)gpc_pools_config_read(pools, NULL, 0);
	if (*pools->fault && !atomic_flag_test_and_set(&reported))
		gpc_log_warn("%s; skipped", pools->fault);
}

bool
gpc_pool_config_is_hidden(const struct gpc_pools_config *pools, const struct gpc_pool_config *pool)
{
	for (const struct gpc_pool_config *other = pools->list; other < pool; other++) {
		if (strcmp(other->name, pool->name) == 0)
			return true;
	}
	return false;
}

/* Returns whether both pools present the same credentials and trust the same authority. */
static bool
credentials_equal(const struct gpc_pool_config *a, const struct gpc_pool_config *b)
{
	return strcmp(a->token, b->token) == 0 && strcmp(a->certificate, b->certificate) == 0 &&
	       strcmp(a->key, b->key) == 0 && strcmp(a->authority, b->authority) == 0 &&
	       strcmp(a->crl, b->crl) == 0;
}

int
gpc_pools_config_select(struct gpc_pools_config *pools, const struct gp_url *url,
			const struct gpc_pool_config **pool_p, char *error, size_t error_size)
{
	const struct gpc_pool_config *first = NULL, *found = NULL;
	char address[GP_URL_TEXT_MAX];

	pools_read_lenient(pools);
	*pool_p = NULL;
	for (int i = 0; i < pools->count; i++) {
		struct gpc_pool_config *pool = &pools->list[i];

		if (!gpc_pool_config_has_address(pool, url) ||
		    gpc_pool_config_is_hidden(pools, pool))
			continue;
		gpc_pool_config_find_token(pool);
		first = first ? first : pool;
		if (!*pool->token && !*pool->certificate)
			continue;
		if (found && !credentials_equal(found, pool)) {
			gp_url_format(url, address, sizeof(address));
			(void)snprintf(
				error, error_size,
				"%s: pool %s (%s:%d) and pool %s (%s:%d) both have this "
				"address, each with credentials of its own: \"gpupool run -p "
				"%s\" uses the first, GPUPOOL_TOKEN_FILE any other",
				address, found->name, found->file, found->line, pool->name,
				pool->file, pool->line, found->name);
			return GP_E_INVALID;
		}
		found = found ? found : pool;
	}
	*pool_p = found ? found : first;
	return 0;
}

bool
gpc_pools_config_want_tls(const struct gp_url *url)
{
	struct gp_url wanted = *url;
	struct gpc_pools_config pools;
	bool bare, tls = false;

	(void)snprintf(wanted.scheme, sizeof(wanted.scheme), "tls");
	pools_read_lenient(&pools);
	for (int i = 0; i < pools.count && !tls; i++) {
		struct gpc_pool_config *pool = &pools.list[i];

		if (!address_find(pool, &wanted, &bare) || gpc_pool_config_is_hidden(&pools, pool))
			continue;
		gpc_pool_config_find_token(pool);
		tls = !bare || *pool->token || *pool->authority || *pool->certificate ||
		      *pool->key || *pool->crl;
	}
	gpc_pools_config_free(&pools);
	return tls;
}
