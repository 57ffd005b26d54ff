/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/library.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Relative to the folder of gpupool. */
static const char *const search_paths[] = {
	"../" CLI_LIBDIR "/gpupool", "../lib/gpupool", "../lib64/gpupool", "../client", ".",
};

/* A string that only gpupool's client library contains, by which the library recognizes itself as
 * well. */
static const char signature[] = "gpupool client";

enum cli_library_kind
cli_library_kind(const char *path)
{
	enum cli_library_kind kind = CLI_LIBRARY_NONE;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	void *bytes = MAP_FAILED;
	struct stat status;

	if (fd < 0)
		return kind;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
		bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	(void)close(fd);
	if (bytes == MAP_FAILED)
		return kind;
	kind = memmem(bytes, (size_t)status.st_size, signature, sizeof(signature))
		       ? CLI_LIBRARY_OURS
		       : CLI_LIBRARY_OTHER;
	(void)munmap(bytes, (size_t)status.st_size);
	return kind;
}

bool
cli_library_find(char *folder, size_t size, char *error, size_t error_size)
{
	char own[PATH_MAX], path[2 * PATH_MAX], *slash;
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

	own[length > 0 ? length : 0] = '\0';
	slash = strrchr(own, '/');
	if (slash)
		*slash = '\0';
	(void)snprintf(error, error_size, CLI_LIBRARY " of gpupool is in none of");
	for (size_t i = 0; slash && i < sizeof(search_paths) / sizeof(search_paths[0]); i++) {
		char *real;

		(void)snprintf(path, sizeof(path), "%s/%s/" CLI_LIBRARY, own, search_paths[i]);
		(void)snprintf(error + strlen(error), error_size - strlen(error), " %s/%s", own,
			       search_paths[i]);
		if (cli_library_kind(path) != CLI_LIBRARY_OURS)
			continue;
		path[strlen(path) - strlen("/" CLI_LIBRARY)] = '\0';
		real = realpath(path, NULL);
		if (!real || strlen(real) >= size) {
			free(real);
			continue;
		}
		(void)snprintf(folder, size, "%s", real);
		free(real);
		return true;
	}
	folder[0] = '\0';
	return false;
}
