/* SPDX-License-Identifier: Apache-2.0 */
#include "client/connect/token.h"

#include "base/environment.h"
#include "client/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char variable[] = "GPUPOOL_TOKEN_FILE";

static int
complain(const char *path, const char *what, char *error, size_t error_size)
{
	(void)snprintf(error, error_size, "%s=%s: %s", variable, path, what);
	return GP_E_INVALID;
}

/* The open file, or NULL: errno says why. */
static FILE *
open_file(const char *path)
{
	/* Who waits at a pipe does not get on. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat status;
	FILE *file;
	int failed = 0;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &status))
		failed = errno;
	else if (!S_ISREG(status.st_mode))
		failed = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
	else if (status.st_mode & S_IROTH)
		gpc_warn("%s=%s: others can read this file, and whoever has the token uses the "
			 "pool in your name; chmod 600 keeps it yours",
			 variable, path);
	file = failed ? NULL : fdopen(fd, "r");
	if (file)
		return file;
	failed = failed ? failed : errno;
	close(fd);
	errno = failed;
	return NULL;
}

static int
read_text(const char *path, char *text, size_t *size_p, char *error, size_t error_size)
{
	FILE *file = open_file(path);
	int r = 0;

	if (!file)
		return complain(path, strerror(errno), error, error_size);
	errno = 0;
	*size_p = fread(text, 1, GP_TOKEN_FILE_MAX + 1, file);
	if (ferror(file))
		r = complain(path, strerror(errno), error, error_size);
	else if (*size_p > GP_TOKEN_FILE_MAX)
		r = complain(path, "larger than 1 MiB, so this is no file of a token", error,
			     error_size);
	(void)fclose(file);
	return r;
}

int
gpc_token_read(struct gp_token *token, bool *given_p, char *error, size_t error_size)
{
	const char *path = gp_environment_get(variable);
	size_t size = 0;
	char *text;
	int r;

	*given_p = path && *path;
	if (!*given_p)
		return 0;
	text = malloc(GP_TOKEN_FILE_MAX + 1);
	if (!text)
		return complain(path, strerror(ENOMEM), error, error_size);
	r = read_text(path, text, &size, error, error_size);
	if (r == 0) {
		r = gp_token_find(text, size, token);
		explicit_bzero(text, size);
		if (r == GP_E_EOF)
			r = complain(path, "the file is empty: there is no token in it", error,
				     error_size);
		else if (r)
			r = complain(path,
				     "its first line is no token (gpt_..., as gpupoolctl token "
				     "create makes it)",
				     error, error_size);
	}
	free(text);
	return r;
}
