/* SPDX-License-Identifier: Apache-2.0 */
#include "client/connect/credentials.h"

#include "base/environment.h"
#include "client/base/config.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define MACHINE_FILE "/etc/gpupool/pools.conf"

struct reader {
	const struct gp_url *url;
	const char *file, *home;
	const char *user_folder; /* "": there is none */
	bool matches;            /* the section that is open has the address */
	struct gpc_credentials found;
};

/* Set and not empty, or NULL. */
static const char *
value_of(const char *name)
{
	const char *text = gp_environment_get(name);

	return text && *text ? text : NULL;
}

static char *
copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

static void
replace(char **path_p, char *path)
{
	free(*path_p);
	*path_p = path;
}

/* As "gpupool run" reads it: absolute, ~/..., or seen from the file's folder. */
static char *
resolve(const struct reader *reader, const char *value)
{
	const char *slash = strrchr(reader->file, '/');
	bool in_home = strncmp(value, "~/", 2) == 0;
	char *path = NULL;

	if (*value == '/')
		return strdup(value);
	if (in_home && !reader->home)
		return NULL;
	if (asprintf(&path, "%.*s/%s",
		     in_home ? (int)strlen(reader->home) : (int)(slash - reader->file),
		     in_home ? reader->home : reader->file, in_home ? value + 2 : value) < 0)
		return NULL;
	return path;
}

static bool
is_same_daemon(const struct gp_url *one, const struct gp_url *other)
{
	bool is_path = strcmp(one->scheme, "unix") == 0;

	return strcmp(one->scheme, other->scheme) == 0 && one->port == other->port &&
	       (is_path ? strcmp : strcasecmp)(one->host, other->host) == 0;
}

static bool
has_address(const struct reader *reader, char *list)
{
	char *element, error[256];
	struct gp_url url;

	while ((element = strsep(&list, ",")))
		if (gp_url_parse(element, &url, error, sizeof(error)) == 0 &&
		    is_same_daemon(&url, reader->url))
			return true;
	return false;
}

static void
parse_key(struct reader *reader, const char *name, char *value)
{
	struct gpc_credentials *found = &reader->found;

	if (strcmp(name, "url") == 0)
		reader->matches = has_address(reader, value);
	else if (strcmp(name, "token") == 0)
		replace(&found->token, resolve(reader, value));
	else if (strcmp(name, "authority") == 0)
		replace(&found->authority, resolve(reader, value));
	else if (strcmp(name, "certificate") == 0)
		replace(&found->certificate, resolve(reader, value));
	else if (strcmp(name, "key") == 0)
		replace(&found->key, resolve(reader, value));
	else if (strcmp(name, "crl") == 0)
		replace(&found->crl, resolve(reader, value));
}

static char *
trim(char *text)
{
	size_t length;

	text += strspn(text, " \t\r\n");
	length = strlen(text);
	while (length > 0 && strchr(" \t\r\n", text[length - 1]))
		text[--length] = '\0';
	return text;
}

/* Whether the section that was open is the one; otherwise another one may begin. */
static bool
close_section(struct reader *reader)
{
	struct gpc_credentials *found = &reader->found;
	char *path = NULL;

	if (!reader->matches || !*found->pool) {
		gpc_credentials_fini(found);
		reader->matches = false;
		return false;
	}
	/* Where "gpupool login" stores it. */
	if (!found->token && *reader->user_folder &&
	    asprintf(&path, "%s/%s.token", reader->user_folder, found->pool) >= 0) {
		if (access(path, F_OK) == 0)
			found->token = path;
		else
			free(path);
	}
	return true;
}

/* true: the section before this line is the one. */
static bool
parse_line(struct reader *reader, char *line)
{
	char *value, *end;

	for (char *at = line; *at; at++)
		if ((*at == '#' || *at == ';') && (at == line || isspace((unsigned char)at[-1])))
			*at = '\0';
	line = trim(line);
	if (*line == '[') {
		if (close_section(reader))
			return true;
		end = strchr(line, ']');
		if (end)
			*end = '\0';
		line = trim(line + 1);
		if (end && strncmp(line, "pool", 4) == 0 && isspace((unsigned char)line[4]))
			(void)snprintf(reader->found.pool, sizeof(reader->found.pool), "%s",
				       trim(line + 4));
		return false;
	}
	value = strchr(line, '=');
	if (value) {
		*value++ = '\0';
		parse_key(reader, trim(line), trim(value));
	}
	return false;
}

static bool
read_file(struct reader *reader, const char *path)
{
	/* What no program writes into is not waited for. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	FILE *file = NULL;
	struct stat status;
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
		file = fdopen(fd, "r");
	if (!file) {
		if (fd >= 0)
			(void)close(fd);
		return false;
	}
	reader->file = path;
	while (!found && getline(&line, &size, file) >= 0)
		found = parse_line(reader, line);
	found = found || close_section(reader);
	free(line);
	(void)fclose(file);
	return found;
}

static void
find_pool(const struct gp_url *url, struct gpc_credentials *credentials)
{
	const char *config = value_of("XDG_CONFIG_HOME"), *home = value_of("HOME");
	struct reader reader = { .url = url, .home = home && *home == '/' ? home : NULL };
	char folder[4096] = "", path[4096 + 16];
	int length = 0;

	if (config && *config == '/')
		length = snprintf(folder, sizeof(folder), "%s/gpupool", config);
	else if (reader.home)
		length = snprintf(folder, sizeof(folder), "%s/.config/gpupool", home);
	if (length < 0 || (size_t)length >= sizeof(folder))
		folder[0] = '\0';
	reader.user_folder = folder;
	(void)snprintf(path, sizeof(path), "%s/pools.conf", folder);
	if ((*folder && read_file(&reader, path)) || read_file(&reader, MACHINE_FILE))
		*credentials = reader.found;
}

void
gpc_credentials_find(const struct gp_url *url, struct gpc_credentials *credentials)
{
	*credentials = (struct gpc_credentials){ .pool = "" };
	if (!gpc_config_tls()) {
		if (url)
			find_pool(url, credentials);
		return;
	}
	credentials->token = copy(value_of("GPUPOOL_TOKEN_FILE"));
	credentials->authority = copy(value_of("GPUPOOL_TLS_CA"));
	credentials->certificate = copy(value_of("GPUPOOL_TLS_CERT"));
	credentials->key = copy(value_of("GPUPOOL_TLS_KEY"));
	credentials->crl = copy(value_of("GPUPOOL_TLS_CRL"));
}

void
gpc_credentials_fini(struct gpc_credentials *credentials)
{
	free(credentials->token);
	free(credentials->authority);
	free(credentials->certificate);
	free(credentials->key);
	free(credentials->crl);
	*credentials = (struct gpc_credentials){ .pool = "" };
}

bool
gpc_credentials_any(const struct gpc_credentials *credentials)
{
	return credentials->token || credentials->authority || credentials->certificate ||
	       credentials->key || credentials->crl;
}

const char *
gpc_credentials_name(const struct gpc_credentials *credentials, const char *variable,
		     const char *key, char *text, size_t size)
{
	if (*credentials->pool)
		(void)snprintf(text, size, "%s of pool %s", key, credentials->pool);
	else
		(void)snprintf(text, size, "%s", variable);
	return text;
}
