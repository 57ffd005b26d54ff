/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check of a directory path against tampering: a file at a path can be replaced by any user who
 * owns one of the directories that lead to it or a symbolic link on the way, or who may write to
 * one of them.
 *
 * Threads: any.
 */
#ifndef GP_PATH_TRUST_H
#define GP_PATH_TRUST_H

#include "base/status.h"

#include <stddef.h>
#include <sys/types.h>

/* Checks the directory at an absolute path. Returns 0 if only root, this process's user and the
 * user `also` control the path; -ENOENT if this holds up to a component that does not exist (to be
 * checked again after it was created); otherwise a negative errno, and detail names the directory
 * and the reason. */
GP_MUST_CHECK int gp_path_check_trust(const char *path, uid_t also, char *detail,
				      size_t detail_size);

#endif /* GP_PATH_TRUST_H */
