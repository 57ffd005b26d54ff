/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/socket/path_trust.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The kernel's limit. */
#define LINKS_MAX 40

/* State of a manual path walk, which also sees symbolic links: `passed` is the checked part of the
 * path, `rest` the remaining one. */
struct path_walk {
	char passed[PATH_MAX];
	char rest[PATH_MAX];
	int links;
	uid_t trusted_uid;
	uid_t overflow_uid; /* (uid_t)-1: all owners are mapped in this namespace */
	char *detail;
	size_t detail_size;
};

/* Returns the overflow user ID, which represents all users that are not mapped in a user namespace.
 * In an unprivileged container it usually stands for the host's root, who owns / and similar
 * directories. Returns (uid_t)-1 in a namespace that maps this ID to a user of its own, because the
 * two cannot be distinguished. */
static uid_t
namespace_get_overflow_uid(void)
{
	FILE *map = fopen("/proc/self/uid_map", "re"), *number = NULL;
	unsigned long long first, outside, count;
	unsigned int nobody = (unsigned int)-1;

	if (map)
		number = fopen("/proc/sys/kernel/overflowuid", "re");
	if (number) {
		if (fscanf(number, "%u", &nobody) != 1)
			nobody = (unsigned int)-1;
		(void)fclose(number);
	}
	while (map && fscanf(map, "%llu %llu %llu", &first, &outside, &count) == 3) {
		if (nobody >= first && nobody - first < count)
			nobody = (unsigned int)-1;
	}
	if (map)
		(void)fclose(map);
	return nobody;
}

static bool
owner_is_trusted(const struct path_walk *path_walk, uid_t uid, bool last)
{
	if (uid == 0 || uid == geteuid() || uid == path_walk->trusted_uid)
		return true;
	/* Unmapped owners of directories outside of the namespace's control. Rejecting them would
	 * make every path unusable in the namespace; the socket's own directory is created inside
	 * and has a mapped owner. */
	return uid == path_walk->overflow_uid && !last;
}

/* Checks the part of the path that has been passed. */
static int
walk_check(const struct path_walk *path_walk, const struct stat *status, bool last)
{
	const char *path = path_walk->passed[0] ? path_walk->passed : "/";
	const char *whose = S_ISLNK(status->st_mode) ? "link" : "directory";

	if (!owner_is_trusted(path_walk, status->st_uid, last)) {
		(void)snprintf(path_walk->detail, path_walk->detail_size,
			       "the %s %s belongs to user %u, which could replace the socket",
			       whose, path, (unsigned int)status->st_uid);
		return -EPERM;
	}
	/* In a directory with the sticky bit, users cannot remove or rename files of others. */
	if (S_ISLNK(status->st_mode) || status->st_mode & S_ISVTX)
		return 0;
	if (status->st_mode & (S_IWGRP | S_IWOTH)) {
		(void)snprintf(path_walk->detail, path_walk->detail_size,
			       "%s may write to the directory %s and could replace the socket",
			       status->st_mode & S_IWOTH ? "all users" : "its group", path);
		return -EPERM;
	}
	return 0;
}

/* Removes the next component from the rest; empty: there is none. */
static void
walk_next_name(struct path_walk *path_walk, char name[PATH_MAX])
{
	char *at = path_walk->rest + strspn(path_walk->rest, "/");
	size_t length = strcspn(at, "/");

	(void)snprintf(name, PATH_MAX, "%.*s", (int)length, at);
	at += length;
	at += strspn(at, "/");
	memmove(path_walk->rest, at, strlen(at) + 1);
}

static void
walk_up(struct path_walk *path_walk)
{
	char *slash = strrchr(path_walk->passed, '/');

	if (slash)
		*slash = 0;
}

/* The last component is a link: prepends its target to the rest. */
static int
walk_follow_link(struct path_walk *path_walk)
{
	char target[PATH_MAX], rest[PATH_MAX];
	ssize_t length = readlink(path_walk->passed, target, sizeof(target) - 1);
	int size;

	if (length < 0)
		return -errno;
	target[length] = 0;
	if (++path_walk->links > LINKS_MAX)
		return -ELOOP;
	size = snprintf(rest, sizeof(rest), "%s/%s", target, path_walk->rest);
	if (size < 0 || (size_t)size >= sizeof(rest))
		return -ENAMETOOLONG;
	memcpy(path_walk->rest, rest, (size_t)size + 1);
	if (target[0] == '/')
		path_walk->passed[0] = 0;
	else
		walk_up(path_walk);
	return 0;
}

static int
walk_step(struct path_walk *path_walk, const char *name)
{
	size_t length = strlen(path_walk->passed);
	struct stat status;
	int r;

	if (strcmp(name, ".") == 0)
		return 0;
	if (strcmp(name, "..") == 0) {
		walk_up(path_walk);
		return 0;
	}
	r = snprintf(path_walk->passed + length, sizeof(path_walk->passed) - length, "/%s", name);
	if (r < 0 || (size_t)r >= sizeof(path_walk->passed) - length)
		return -ENAMETOOLONG;
	if (lstat(path_walk->passed, &status))
		return -errno;
	r = walk_check(path_walk, &status, !path_walk->rest[0]);
	return r == 0 && S_ISLNK(status.st_mode) ? walk_follow_link(path_walk) : r;
}

int
gp_path_check_trust(const char *path, uid_t also, char *detail, size_t detail_size)
{
	struct path_walk path_walk = { .trusted_uid = also,
				       .overflow_uid = namespace_get_overflow_uid(),
				       .detail = detail,
				       .detail_size = detail_size };
	char name[PATH_MAX];
	struct stat root;
	int r;

	if (strlen(path) >= sizeof(path_walk.rest))
		return -ENAMETOOLONG;
	memcpy(path_walk.rest, path, strlen(path) + 1);
	r = stat("/", &root) ? -errno : walk_check(&path_walk, &root, !path[strspn(path, "/")]);
	while (r == 0 && (walk_next_name(&path_walk, name), name[0]))
		r = walk_step(&path_walk, name);
	return r;
}
