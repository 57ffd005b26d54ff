/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check of a directory path against tampering: a file at a path can be replaced by any user who
 * owns one of the directories that lead to it, owns a symbolic link on the way, or may write to one
 * of the directories. Directories with the sticky bit may be writable, because users cannot replace
 * files of others there.
 *
 * Threads: any. The result describes the moment of the check. The check reads the file system.
 */
#ifndef GP_PATH_TRUST_H
#define GP_PATH_TRUST_H

#include "base/status.h"

#include <stddef.h>
#include <sys/types.h>

/*
 * Checks the directory at an absolute path, with all symbolic links on the way. also: user ID that
 * may control the path in addition to root and this process's user. Owners that a user namespace
 * does not map are accepted, except for the last component.
 * Returns 0 if no other user controls the path.
 * -ENOENT: a component does not exist, and no other user controls the path up to it; the caller
 * creates it and checks again.
 * -EPERM: another user controls the path; detail (detail_size bytes) then names the directory and
 * the reason.
 * Another negative errno (-ENAMETOOLONG, -ELOOP, of lstat(2)): the path cannot be checked.
 * detail is written only for -EPERM.
 */
GP_MUST_CHECK int gp_path_check_trust(const char *path, uid_t also, char *detail,
				      size_t detail_size);

#endif /* GP_PATH_TRUST_H */
