/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Privileges of the daemon's processes: functions that drop root and capabilities, disable core
 * dumps, and check access to files.
 *
 * Threads: the main thread only, while the process starts. Another thread, the metrics server's
 * (metrics.h), may exist when gpd_privilege_drop() is called: the user, the groups and the umask
 * change for all threads, but the bounding set of capabilities and "no new privileges" only for the
 * calling thread and threads that it starts later.
 * Errors: functions with an error buffer return 0, or -1 with a text in error.
 */
#ifndef GPD_PRIVILEGE_H
#define GPD_PRIVILEGE_H

#include "base/status.h"

#include <stddef.h>
#include <sys/types.h>

/* The user that a daemon started by root switches to if this user exists. */
#define GPD_PRIVILEGE_USER "gpupool"

/* Disables core dumps and ptrace for this process, so that keys, tokens and tickets neither reach a
 * core file nor can be read by another process of the same user. Called early in each process. */
void gpd_privilege_disable_dumps(void);

/* Makes the kernel prefer this process, a worker, to the supervisor when it kills one for lack of
 * memory: oom_score_adj becomes at least this value. Called before gpd_privilege_disable_dumps(),
 * after which the file belongs to root. On failure the value stays. */
void gpd_privilege_raise_oom_score(int value);

/* Returns the user ID that gpd_privilege_drop() will switch to, for files that are created earlier:
 * that of the user `name` (NULL: GPD_PRIVILEGE_USER) if the process is root and the user exists,
 * else the current one. */
uid_t gpd_privilege_target_uid(const char *name);

/*
 * Switches from root to the user `name` (NULL: GPD_PRIVILEGE_USER) with the user's groups plus
 * video, render and rdma, and without capabilities or a way to regain them. Stays root, with all
 * capabilities, and returns 0 if GPD_PRIVILEGE_USER does not exist or the user has UID 0.
 * Removes the limit of pinned memory (RLIMIT_MEMLOCK), and disables dumps again, as
 * the change of the user may enable them. Sets HOME, USER and LOGNAME, removes the XDG folders from
 * the environment, and sets GPD_FOLDER_VARIABLE (pool_folder.h), so that the default folder stays
 * root's. If the process is not root, only checks that it runs as this user already (NULL: any
 * user). Sets the umask to 077 in any case. Returns 0; or -1 with a text in error if the named user
 * does not exist, or is another one and the process is not root, or a step fails. After -1 the
 * process must exit, because it may have dropped a part of its privileges.
 */
GP_MUST_CHECK int gpd_privilege_drop(const char *name, char *error, size_t error_size);

/* Called after gpd_privilege_drop(). Returns 0 if the process can read the file or the file does
 * not exist; else -1 with a text in error that contains the remedy. */
GP_MUST_CHECK int gpd_privilege_require_readable(const char *path, char *error, size_t error_size);
/* Logs a warning if the process has no permission to read the file, which a reload reads again.
 * path: NULL or "" for none. */
void gpd_privilege_warn_unreadable(const char *path);

#endif /* GPD_PRIVILEGE_H */
