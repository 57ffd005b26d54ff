/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/socket/folder_trust.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As many as the kernel follows. */
#define LINKS_MAX 40

/* The path is followed by hand, so that links on the way are seen, too: what was passed, which is
 * a folder and has been looked at, and what is still to come. */
struct walk {
	char passed[PATH_MAX];
	char rest[PATH_MAX];
	int links;
	uid_t also;
	uid_t nobody; /* (uid_t)-1: every owner has a name here */
	char *detail;
	size_t detail_size;
};

/* In a user namespace every user that has no number there looks like this one.  Mostly that is the
 * machine's root, to whom / and the like belong in a container without privileges.  A namespace
 * that has the number for a user of its own does not tell them apart, and gets (uid_t)-1. */
static uid_t
nobody_of_namespace(void)
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
is_trusted(const struct walk *walk, uid_t uid, bool last)
{
	if (uid == 0 || uid == geteuid() || uid == walk->also)
		return true;
	/* A namespace sees no more of whoever made it.  If its folders were refused, nothing would
	 * work in it; the socket's own folder is made inside, and has an owner. */
	return uid == walk->nobody && !last;
}

/* Of what has been passed. */
static int
check_passed(const struct walk *walk, const struct stat *status, bool last)
{
	const char *path = walk->passed[0] ? walk->passed : "/";
	const char *whose = S_ISLNK(status->st_mode) ? "link" : "folder";

	if (!is_trusted(walk, status->st_uid, last)) {
		(void)snprintf(walk->detail, walk->detail_size,
			       "the %s %s belongs to user %u, who could put another socket there",
			       whose, path, (unsigned int)status->st_uid);
		return -EPERM;
	}
	/* Where it has the sticky bit, nobody takes away what is somebody else's. */
	if (S_ISLNK(status->st_mode) || status->st_mode & S_ISVTX)
		return 0;
	if (status->st_mode & (S_IWGRP | S_IWOTH)) {
		(void)snprintf(walk->detail, walk->detail_size,
			       "%s may write to the folder %s, and could put another socket there",
			       status->st_mode & S_IWOTH ? "everybody" : "its group", path);
		return -EPERM;
	}
	return 0;
}

/* Takes the next name off the rest; empty: there is none. */
static void
next_name(struct walk *walk, char name[PATH_MAX])
{
	char *at = walk->rest + strspn(walk->rest, "/");
	size_t length = strcspn(at, "/");

	(void)snprintf(name, PATH_MAX, "%.*s", (int)length, at);
	at += length;
	at += strspn(at, "/");
	memmove(walk->rest, at, strlen(at) + 1);
}

static void
leave(struct walk *walk)
{
	char *slash = strrchr(walk->passed, '/');

	if (slash)
		*slash = 0;
}

/* What was passed last is a link: where it points to is still to come. */
static int
follow(struct walk *walk)
{
	char target[PATH_MAX], rest[PATH_MAX];
	ssize_t length = readlink(walk->passed, target, sizeof(target) - 1);
	int size;

	if (length < 0)
		return -errno;
	target[length] = 0;
	if (++walk->links > LINKS_MAX)
		return -ELOOP;
	size = snprintf(rest, sizeof(rest), "%s/%s", target, walk->rest);
	if (size < 0 || (size_t)size >= sizeof(rest))
		return -ENAMETOOLONG;
	memcpy(walk->rest, rest, (size_t)size + 1);
	if (target[0] == '/')
		walk->passed[0] = 0;
	else
		leave(walk);
	return 0;
}

static int
step(struct walk *walk, const char *name)
{
	size_t length = strlen(walk->passed);
	struct stat status;
	int r;

	if (strcmp(name, ".") == 0)
		return 0;
	if (strcmp(name, "..") == 0) {
		leave(walk);
		return 0;
	}
	r = snprintf(walk->passed + length, sizeof(walk->passed) - length, "/%s", name);
	if (r < 0 || (size_t)r >= sizeof(walk->passed) - length)
		return -ENAMETOOLONG;
	if (lstat(walk->passed, &status))
		return -errno;
	r = check_passed(walk, &status, !walk->rest[0]);
	return r == 0 && S_ISLNK(status.st_mode) ? follow(walk) : r;
}

int
gp_folder_check(const char *path, uid_t also, char *detail, size_t detail_size)
{
	struct walk walk = { .also = also,
			     .nobody = nobody_of_namespace(),
			     .detail = detail,
			     .detail_size = detail_size };
	char name[PATH_MAX];
	struct stat root;
	int r;

	if (strlen(path) >= sizeof(walk.rest))
		return -ENAMETOOLONG;
	memcpy(walk.rest, path, strlen(path) + 1);
	r = stat("/", &root) ? -errno : check_passed(&walk, &root, !path[strspn(path, "/")]);
	while (r == 0 && (next_name(&walk, name), name[0]))
		r = step(&walk, name);
	return r;
}
