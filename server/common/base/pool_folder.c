/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/base/pool_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int
gpd_folder_default(char *path, size_t size)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	const char *given = getenv(GPD_FOLDER_VARIABLE);
	int length;

	if (given && given[0] == '/' && !strchr(given, ':'))
		length = snprintf(path, size, "%s", given);
	else if (geteuid() == 0)
		length = snprintf(path, size, GPD_FOLDER_SYSTEM);
	else if (config && config[0] == '/')
		length = snprintf(path, size, "%s/gpupool", config);
	else if (home && home[0] == '/')
		length = snprintf(path, size, "%s/.config/gpupool", home);
	else
		return -ENOENT;
	return length >= 0 && (size_t)length < size ? 0 : -ENOENT;
}

int
gpd_folder_file(const char *name, char *path, size_t size)
{
	char folder[4096];
	int length, r = gpd_folder_default(folder, sizeof(folder));

	if (r)
		return r;
	length = snprintf(path, size, "%s/%s", folder, name);
	return length >= 0 && (size_t)length < size ? 0 : -ENOENT;
}

const char *
gpd_folder_select_path(const char *option, const char *configured, const char *name, char *buffer,
		       size_t size)
{
	if (option)
		return option;
	if (configured[0])
		return configured;
	return gpd_folder_file(name, buffer, size) == 0 ? buffer : NULL;
}

mode_t
gpd_folder_secret_mode(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct stat status;
	char folder[4096];

	(void)snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1,
		       slash ? path : ".");
	if (stat(folder[0] ? folder : "/", &status))
		return 0600;
	return status.st_mode & S_ISGID ? 0640 : 0600;
}
