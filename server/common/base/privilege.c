/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/base/privilege.h"

#include "server/common/base/log.h"
#include "server/common/base/pool_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUPS_MAX 256

/* Groups that own GPU and RDMA device files, on the distributions that have them. */
static const char *const device_groups[] = { "video", "render", "rdma" };

void
gpd_privilege_disable_dumps(void)
{
	const struct rlimit none = { 0, 0 };

	(void)setrlimit(RLIMIT_CORE, &none);
	(void)prctl(PR_SET_DUMPABLE, 0ul, 0ul, 0ul, 0ul);
}

void
gpd_privilege_raise_oom_score(int value)
{
	int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char text[16] = "";
	int length;

	if (fd < 0)
		return;
	if (read(fd, text, sizeof(text) - 1) > 0 && strtol(text, NULL, 10) < value) {
		length = snprintf(text, sizeof(text), "%d", value);
		(void)!pwrite(fd, text, (size_t)length, 0);
	}
	close(fd);
}

static int
set_groups(const struct passwd *user)
{
	gid_t groups[GROUPS_MAX];
	int count = GROUPS_MAX;

	if (getgrouplist(user->pw_name, user->pw_gid, groups, &count) < 0)
		return -E2BIG;
	for (size_t i = 0; i < sizeof(device_groups) / sizeof(device_groups[0]); i++) {
		const struct group *group = getgrnam(device_groups[i]);

		if (group && count < GROUPS_MAX)
			groups[count++] = group->gr_gid;
	}
	if (setgroups((size_t)count, groups) || setresgid(user->pw_gid, user->pw_gid, user->pw_gid))
		return -errno;
	return 0;
}

/* Without a bounding set no program that the process executes gains a capability, even from file
 * capabilities. */
static void
drop_capabilities(void)
{
	for (unsigned long capability = 0; capability < 64; capability++)
		(void)prctl(PR_CAPBSET_DROP, capability, 0ul, 0ul, 0ul);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0ul, 0ul, 0ul);
}

/* Replaces root's values in the environment. */
static void
environment_set_user(const struct passwd *user)
{
	char folder[4096];

	/* The folder of the daemon's files must not change with the user. */
	if (gpd_folder_default(folder, sizeof(folder)) == 0)
		(void)setenv(GPD_FOLDER_VARIABLE, folder, 1);
	(void)setenv("HOME", user->pw_dir, 1);
	(void)setenv("USER", user->pw_name, 1);
	(void)setenv("LOGNAME", user->pw_name, 1);
	(void)unsetenv("XDG_CONFIG_HOME");
	(void)unsetenv("XDG_CACHE_HOME");
	(void)unsetenv("XDG_RUNTIME_DIR");
}

static int
privileges_drop(const struct passwd *user)
{
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	int r;

	/* Pinned memory exceeds a normal user's RLIMIT_MEMLOCK. */
	(void)setrlimit(RLIMIT_MEMLOCK, &unlimited);
	environment_set_user(user);
	drop_capabilities();
	r = set_groups(user);
	if (r == 0 && setresuid(user->pw_uid, user->pw_uid, user->pw_uid))
		r = -errno;
	/* Even if a step before failed, the process must not continue as root. */
	if (r == 0 && (setuid(0) == 0 || geteuid() == 0))
		r = -EPERM;
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1ul, 0ul, 0ul, 0ul))
		r = -errno;
	return r;
}

uid_t
gpd_privilege_target_uid(const char *name)
{
	const struct passwd *user = getpwnam(name ? name : GPD_PRIVILEGE_USER);

	return geteuid() == 0 && user ? user->pw_uid : geteuid();
}

int
gpd_privilege_drop(const char *name, char *error, size_t error_size)
{
	const struct passwd *user = getpwnam(name ? name : GPD_PRIVILEGE_USER);
	int r;

	/* Files that the daemon creates are private to its user. */
	(void)umask(077);
	if (!user && name) {
		(void)snprintf(error, error_size, "--user: unknown user \"%s\"", name);
		return -1;
	}
	if (geteuid() != 0) {
		if (!name || user->pw_uid == geteuid())
			return 0;
		(void)snprintf(error, error_size, "--user %s: permission denied: start as root",
			       name);
		return -1;
	}
	if (!user || user->pw_uid == 0)
		return 0;
	r = privileges_drop(user);
	if (r) {
		(void)snprintf(error, error_size, "cannot change to user %s: %s", user->pw_name,
			       strerror(-r));
		return -1;
	}
	gpd_privilege_disable_dumps();
	gpd_info("running as user %s", user->pw_name);
	return 0;
}

void
gpd_privilege_warn_unreadable(const char *path)
{
	if (path && path[0] && access(path, R_OK) && errno == EACCES)
		gpd_warning("%s: not readable by the daemon's user: changes are not noticed and a "
			    "reload fails",
			    path);
}

int
gpd_privilege_require_readable(const char *path, char *error, size_t error_size)
{
	const struct passwd *user = getpwuid(geteuid());
	const struct group *group = getgrgid(getegid());

	if (access(path, R_OK) == 0 || errno == ENOENT)
		return 0;
	(void)snprintf(error, error_size,
		       "%s: %s: the daemon's user, %s, needs read access: chgrp %s and chmod g+r "
		       "the file, and g+x its directory",
		       path, strerror(errno), user ? user->pw_name : "which has no name",
		       group ? group->gr_name : "to its group");
	return -1;
}
