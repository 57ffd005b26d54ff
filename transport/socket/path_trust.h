/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check of a directory path against tampering: a file at a path can be replaced by any user who
 * owns one of the directories that lead to it or a symbolic link on the way, or who may write to
 * one of them.
 *
 * Threads: any. The result describes the moment of the check.
 */
#ifndef GP_PATH_TRUST_H
#define GP_PATH_TRUST_H

#include "base/status.h"

#include <stddef.h>
#include <sys/types.h>

/*
 * Checks the directory at an absolute path. also: user ID that may control the path in addition to
 * root and this process's user.
 * Returns 0 if no other user controls the path. -ENOENT: the same holds up to a component that does
 * not exist; the caller creates it and checks again. -ENAMETOOLONG, or another negative errno if
 * another user controls the path or it cannot be read; detail (detail_size bytes) then names the
 * directory and the reason, or is unchanged if the errno suffices.
 */
GP_MUST_CHECK int gp_path_check_trust(const char *path, uid_t also, char *detail,
				      size_t detail_size);

#endif /* GP_PATH_TRUST_H */
