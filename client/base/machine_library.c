/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/machine_library.h"

#include "client/base/log.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The library to find. */
struct wanted {
	const char *name;
	const void *ours;
	bool (*is_it)(void *library);
};

/* Folders that distributions, containers and other systems use. */
static const char *const folders[] = {
	"/usr/lib/x86_64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu",
	"/usr/lib64",
	"/usr/lib",
	"/usr/local/nvidia/lib64",
	"/usr/local/nvidia/lib",
	"/usr/local/cuda/compat",
	"/run/opengl-driver/lib",
	"/usr/lib/wsl/lib",
};

static bool
library_is_ours(const void *ours, const struct stat *file)
{
	struct stat own;
	Dl_info info;

	return dladdr(ours, &info) && stat(info.dli_fname, &own) == 0 &&
	       own.st_dev == file->st_dev && own.st_ino == file->st_ino;
}

static void *
library_open(const struct wanted *wanted, const char *path)
{
	struct stat file;
	void *library;

	if (stat(path, &file) != 0 || library_is_ours(wanted->ours, &file))
		return NULL;
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		gpc_log(GPC_LOG_ERROR, "%s: %s", path, dlerror());
		return NULL;
	}
	/* Not closed: threads that it may have started would lose their code. */
	if (!wanted->is_it(library))
		return NULL;
	gpc_log(GPC_LOG_INFO, "no daemon configured: all calls go to %s", path);
	return library;
}

static void *
library_open_in(const struct wanted *wanted, const char *folder, size_t len)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%.*s/%s", (int)len, folder, wanted->name) >=
	    (int)sizeof(path))
		return NULL;
	return library_open(wanted, path);
}

static void *
library_open_in_path(const struct wanted *wanted)
{
	const char *list = getenv("LD_LIBRARY_PATH");
	void *library = NULL;

	while (list && *list && !library) {
		size_t len = strcspn(list, ":;");

		if (len > 0 && *list == '/')
			library = library_open_in(wanted, list, len);
		list += len;
		list += *list != '\0';
	}
	return library;
}

/* dlopen() by name would return the library that is already loaded under it, which is this one. The
 * loader's cache contains the paths as plain strings. */
static void *
library_open_from_cache(const struct wanted *wanted)
{
	size_t size = strlen(wanted->name) + 1; /* including its NUL */
	int fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
	const char *cache, *place, *end;
	void *library = NULL;
	struct stat file;

	if (fd < 0)
		return NULL;
	cache = fstat(fd, &file) == 0 && file.st_size > 0
			? mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
			: MAP_FAILED;
	(void)close(fd);
	if (cache == MAP_FAILED)
		return NULL;
	end = cache + file.st_size;
	for (place = cache; !library; place += size) {
		const char *start;

		place = memmem(place, (size_t)(end - place), wanted->name, size);
		if (!place)
			break;
		if (place == cache || place[-1] != '/')
			continue;
		for (start = place; start > cache && start[-1] != '\0'; start--)
			;
		if (*start == '/')
			library = library_open(wanted, start);
	}
	(void)munmap((void *)cache, (size_t)file.st_size);
	return library;
}

void *
gpc_machine_library_open(const char *name, const void *ours, bool (*is_it)(void *library))
{
	const struct wanted wanted = { name, ours, is_it };
	void *library = library_open_in_path(&wanted);

	if (!library)
		library = library_open_from_cache(&wanted);
	for (size_t i = 0; !library && i < sizeof(folders) / sizeof(folders[0]); i++)
		library = library_open_in(&wanted, folders[i], strlen(folders[i]));
	return library;
}
