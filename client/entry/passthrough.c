/* SPDX-License-Identifier: Apache-2.0 */
#include "client/entry/passthrough.h"

#include "client/base/log.h"
#include "client/entry/entry.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DRIVER "libcuda.so.1"

/* Where distributions, containers and other systems keep it. */
static const char *const folders[] = {
	"/usr/lib/x86_64-linux-gnu",
	"/usr/lib64",
	"/usr/lib",
	"/usr/local/nvidia/lib64",
	"/usr/local/nvidia/lib",
	"/usr/local/cuda/compat",
	"/run/opengl-driver/lib",
	"/usr/lib/wsl/lib",
};

const CUuuid gpc_passthrough_mark = { "gpupool client\0" };

static bool
is_ourselves(const struct stat *file)
{
	struct stat own;
	Dl_info info;

	return dladdr(gpc_entry, &info) && stat(info.dli_fname, &own) == 0 &&
	       own.st_dev == file->st_dev && own.st_ino == file->st_ino;
}

/* Another copy of this library would lead back to us. */
static bool
is_of_our_kind(void *library)
{
	CUresult (*table)(const void **, const CUuuid *);
	const void *found;

	*(void **)&table = dlsym(library, "cuGetExportTable");
	return table && table(&found, &gpc_passthrough_mark) == CUDA_SUCCESS;
}

static void *
open_driver(const char *path)
{
	struct stat file;
	void *library;

	if (stat(path, &file) != 0 || is_ourselves(&file))
		return NULL;
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		gpc_log(GPC_LOG_ERROR, "%s: %s", path, dlerror());
		return NULL;
	}
	/* Not closed again: its threads, if it has any, would be left without their code. */
	if (is_of_our_kind(library) || !dlsym(library, "cuInit"))
		return NULL;
	gpc_log(GPC_LOG_INFO, "no daemon is named: all calls go to %s", path);
	return library;
}

static void *
open_in(const char *folder, size_t len)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%.*s/" DRIVER, (int)len, folder) >= (int)sizeof(path))
		return NULL;
	return open_driver(path);
}

static void *
open_in_library_path(void)
{
	const char *list = getenv("LD_LIBRARY_PATH");
	void *library = NULL;

	while (list && *list && !library) {
		size_t len = strcspn(list, ":;");

		if (len > 0 && *list == '/')
			library = open_in(list, len);
		list += len;
		list += *list != '\0';
	}
	return library;
}

/* The loader itself cannot be asked: it would answer with the library of that name that it has,
 * which is this one.  Its cache has the paths as plain strings. */
static void *
open_from_cache(void)
{
	static const char name[] = "/" DRIVER;
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
	for (place = cache; !library; place += sizeof(name)) {
		const char *start;

		place = memmem(place, (size_t)(end - place), name, sizeof(name));
		if (!place)
			break;
		for (start = place; start > cache && start[-1] != '\0'; start--)
			;
		if (*start == '/')
			library = open_driver(start);
	}
	(void)munmap((void *)cache, (size_t)file.st_size);
	return library;
}

static void *
find_driver(void)
{
	void *library = open_in_library_path();

	if (!library)
		library = open_from_cache();
	for (size_t i = 0; !library && i < sizeof(folders) / sizeof(folders[0]); i++)
		library = open_in(folders[i], strlen(folders[i]));
	return library;
}

void
gpc_entries_fill(void)
{
	for (size_t i = 0; i < gpc_entry_count; i++)
		gpc_entry[i] = gpc_entries[i].ours;
}

bool
gpc_passthrough_start(void)
{
	void *library = find_driver();

	for (size_t i = 0; library && i < gpc_entry_count; i++) {
		void *function = dlsym(library, gpc_entries[i].name);

		gpc_entry[i] = function ? function : (void *)gpc_absent;
	}
	return library != NULL;
}
