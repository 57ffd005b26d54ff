/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/pool_file.h"

#include "ctl/request.h"
#include "server/common/base/pool_folder.h"
#include "server/common/base/privilege.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Finds the option; *inline_p: value after "=", or NULL. */
static const struct ctl_option *
find_option(const struct ctl_option *options, size_t count, const char *arg, const char **inline_p)
{
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(options[i].name);

		*inline_p = NULL;
		if (strcmp(arg, options[i].name) == 0 ||
		    (options[i].letter && strcmp(arg, options[i].letter) == 0))
			return &options[i];
		if (strncmp(arg, options[i].name, length) == 0 && arg[length] == '=') {
			*inline_p = arg + length + 1;
			return &options[i];
		}
	}
	return NULL;
}

int
ctl_parse_options(const struct ctl_option *options, size_t option_count, int *count, char **argv)
{
	int count_left = 0;

	for (int i = 0; i < *count; i++) {
		const struct ctl_option *option;
		const char *value;

		/* After "--" everything is a plain argument. */
		if (strcmp(argv[i], "--") == 0) {
			while (++i < *count)
				argv[count_left++] = argv[i];
			break;
		}
		option = find_option(options, option_count, argv[i], &value);
		if (!option && argv[i][0] == '-' && argv[i][1])
			return ctl_fail("unknown option %s", argv[i]);
		if (!option) {
			argv[count_left++] = argv[i];
			continue;
		}
		if (!option->value) {
			if (value)
				return ctl_fail("%s takes no value", option->name);
			*option->is_given = true;
			continue;
		}
		if (!value && i + 1 < *count)
			value = argv[++i];
		if (!value)
			return ctl_fail("%s: its value is missing", option->name);
		*option->value = value;
	}
	*count = count_left;
	return 0;
}

int
ctl_pool_folder(const char *is_given, char *path, size_t size)
{
	if (!is_given) {
		if (gpd_folder_default(path, size) == 0)
			return 0;
		return ctl_fail("HOME is not set; use --directory");
	}
	if (!*is_given || (size_t)snprintf(path, size, "%s", is_given) >= size)
		return ctl_fail("\"%s\" is not a valid directory", is_given);
	return 0;
}

void
ctl_warn_own_folder(const char *is_given, const char *path)
{
	if (!is_given && geteuid() != 0 && !getenv(GPD_FOLDER_VARIABLE) &&
	    access(GPD_FOLDER_SYSTEM, F_OK) == 0)
		ctl_warn("%s is for a daemon of your own; that of this machine "
			 "has " GPD_FOLDER_SYSTEM ": sudo gpupoolctl ...",
			 path);
}

int
ctl_pool_file(const char *folder, const char *name, char *path, size_t size)
{
	if ((size_t)snprintf(path, size, "%s/%s", folder, name) >= size)
		return ctl_fail("%s/%s: %s", folder, name, strerror(ENAMETOOLONG));
	return 0;
}

/* A daemon that switches to its user must be able to read files that root creates there; the mode
 * is that of scripts/gpupoold.tmpfiles.in. */
static int
folder_set_daemon_group(const char *path)
{
	const struct group *group = getgrnam(GPD_PRIVILEGE_USER);
	char usual[CTL_PATH_MAX];

	if (geteuid() != 0 || !group || gpd_folder_default(usual, sizeof(usual)) ||
	    strcmp(path, usual) != 0)
		return 0;
	if (chown(path, 0, group->gr_gid) || chmod(path, 02750))
		return ctl_fail("cannot change the group of %s to %s: %s", path, group->gr_name,
				strerror(errno));
	return 0;
}

int
ctl_make_folder(const char *path)
{
	mode_t mode = geteuid() == 0 ? 0755 : 0700;
	char part[CTL_PATH_MAX];
	size_t length = strlen(path);

	if (length >= sizeof(part))
		return ctl_fail("%s: %s", path, strerror(ENAMETOOLONG));
	for (size_t i = 1; i <= length; i++) {
		if (path[i] != '/' && path[i] != 0)
			continue;
		memcpy(part, path, i);
		part[i] = 0;
		if (mkdir(part, mode) == 0) {
			if (folder_set_daemon_group(part))
				return -1;
		} else if (errno != EEXIST) {
			return ctl_fail("%s cannot be made: %s", part, strerror(errno));
		}
	}
	return 0;
}

static int
file_write_new(const char *name, const void *data, size_t size, mode_t mode)
{
	const char *at = data;
	int fd, r = 0;

	(void)unlink(name);
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	while (size && r == 0) {
		ssize_t done = write(fd, at, size);

		if (done < 0 && errno != EINTR)
			r = -errno;
		if (done < 0)
			continue;
		at += done;
		size -= (size_t)done;
	}
	if (r == 0 && fsync(fd))
		r = -errno;
	if (close(fd) && r == 0)
		r = -errno;
	return r;
}

/* Renames the prepared file. Without `force` an existing file is not replaced. */
static int
file_publish(const char *name, const char *path, bool force)
{
	if (force)
		return rename(name, path) ? -errno : 0;
	if (link(name, path) == 0)
		return 0;
	/* Some file systems have no hard links; there, a file created concurrently is
	 * overwritten. */
	if (errno != EPERM && errno != EOPNOTSUPP)
		return -errno;
	if (access(path, F_OK) == 0)
		return -EEXIST;
	return rename(name, path) ? -errno : 0;
}

static int
format_new_path(const char *path, char name[CTL_PATH_MAX])
{
	if ((size_t)snprintf(name, CTL_PATH_MAX, "%s" CTL_NEW_SUFFIX, path) >= CTL_PATH_MAX)
		return ctl_fail("%s: %s", path, strerror(ENAMETOOLONG));
	return 0;
}

int
ctl_prepare_file(const char *path, const void *data, size_t size, mode_t mode)
{
	char name[CTL_PATH_MAX];
	int r;

	if (format_new_path(path, name))
		return -1;
	r = file_write_new(name, data, size, mode);
	if (r == 0)
		return 0;
	(void)unlink(name);
	return ctl_fail("%s: %s", name, strerror(-r));
}

int
ctl_commit_file(const char *path, bool force)
{
	char name[CTL_PATH_MAX];
	int r;

	if (format_new_path(path, name))
		return -1;
	r = file_publish(name, path, force);
	(void)unlink(name);
	if (r == -EEXIST)
		return ctl_fail("%s already exists; use --force to replace it", path);
	return r ? ctl_fail("%s: %s", path, strerror(-r)) : 0;
}

void
ctl_drop_file(const char *path)
{
	char name[CTL_PATH_MAX];

	if (format_new_path(path, name) == 0)
		(void)unlink(name);
}

int
ctl_write_file(const char *path, const void *data, size_t size, mode_t mode, bool force)
{
	return ctl_prepare_file(path, data, size, mode) ? -1 : ctl_commit_file(path, force);
}

bool
ctl_parse_duration(const char *text, int64_t *seconds_p)
{
	static const struct {
		char unit;
		int64_t seconds;
	} units[] = { { 's', 1 },     { 'm', 60 },        { 'h', 3600 },
		      { 'd', 86400 }, { 'w', 7 * 86400 }, { 'y', 365 * 86400 } };
	int64_t value = 0;
	const char *at = text;

	if (strcmp(text, "never") == 0) {
		*seconds_p = INT64_MAX;
		return true;
	}
	for (; *at >= '0' && *at <= '9' && value < 1000000; at++)
		value = value * 10 + (*at - '0');
	if (at == text || value == 0 || value >= 1000000)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (at[0] != units[i].unit || at[1])
			continue;
		*seconds_p = value * units[i].seconds;
		return true;
	}
	return false;
}
