/* SPDX-License-Identifier: Apache-2.0 */
#include "client/connect/token.h"

#include "client/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Formats the path for messages: "GPUPOOL_TOKEN_FILE=PATH", or "PATH, the token of pool lab". */
static void
token_format_path(const struct gpc_credentials *credentials, char *text, size_t size)
{
	if (*credentials->pool)
		(void)snprintf(text, size, "%s, the token of pool %s", credentials->token,
			       credentials->pool);
	else
		(void)snprintf(text, size, "GPUPOOL_TOKEN_FILE=%s", credentials->token);
}

static int
token_fail(const struct gpc_credentials *credentials, const char *what, char *error,
	   size_t error_size)
{
	char name[512];

	token_format_path(credentials, name, sizeof(name));
	(void)snprintf(error, error_size, "%s: %s", name, what);
	return GP_E_INVALID;
}

/* Returns the open file, or NULL with errno set. */
static FILE *
token_open(const struct gpc_credentials *credentials)
{
	/* O_NONBLOCK: opening a pipe could block forever. */
	int fd = open(credentials->token, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat status;
	char name[512];
	FILE *file;
	int failed = 0;

	if (fd < 0)
		return NULL;
	token_format_path(credentials, name, sizeof(name));
	if (fstat(fd, &status))
		failed = errno;
	else if (!S_ISREG(status.st_mode))
		failed = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
	else if (status.st_mode & S_IROTH)
		gpc_log_warn("%s: others can read this file, and any user who has the token can "
			     "use the pool as you; run chmod 600",
			     name);
	file = failed ? NULL : fdopen(fd, "r");
	if (file)
		return file;
	failed = failed ? failed : errno;
	close(fd);
	errno = failed;
	return NULL;
}

static int
token_read_text(const struct gpc_credentials *credentials, char *text, size_t *size_p, char *error,
		size_t error_size)
{
	FILE *file = token_open(credentials);
	int r = 0;

	if (!file)
		return token_fail(credentials, strerror(errno), error, error_size);
	errno = 0;
	*size_p = fread(text, 1, GP_TOKEN_FILE_MAX + 1, file);
	if (ferror(file))
		r = token_fail(credentials, strerror(errno), error, error_size);
	else if (*size_p > GP_TOKEN_FILE_MAX)
		r = token_fail(credentials, "larger than 1 MiB, so this is not a token file", error,
			       error_size);
	(void)fclose(file);
	return r;
}

int
gpc_token_read(const struct gpc_credentials *credentials, struct gp_token *token, bool *found_p,
	       char *error, size_t error_size)
{
	size_t size = 0;
	char *text;
	int r;

	*found_p = credentials->token != NULL;
	if (!*found_p)
		return 0;
	text = malloc(GP_TOKEN_FILE_MAX + 1);
	if (!text)
		return token_fail(credentials, strerror(ENOMEM), error, error_size);
	r = token_read_text(credentials, text, &size, error, error_size);
	if (r == 0) {
		r = gp_token_find(text, size, token);
		explicit_bzero(text, size);
		if (r == GP_E_EOF)
			r = token_fail(credentials, "the file is empty: it contains no token",
				       error, error_size);
		else if (r)
			r = token_fail(credentials,
				       "its first line is not a token (gpt_..., created by "
				       "gpupoolctl token create)",
				       error, error_size);
	}
	free(text);
	return r;
}
