/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon's processes may do on their machine: as little as they need.
 *
 * Called by the main thread, by the supervisor in the order of the functions.
 */
#ifndef GPD_PRIVILEGE_H
#define GPD_PRIVILEGE_H

#include "base/status.h"

#include <stddef.h>
#include <sys/types.h>

/* The user that a daemon of root's becomes, if there is one of this name. */
#define GPD_PRIVILEGE_USER "gpupool"

/* In each process, early: keys, tokens and tickets are in no core file, and no other process of the
 * same user can read them. */
void gpd_privilege_disable_dumps(void);

/* Whom the next function will make of this process: what it is, if nobody else. */
uid_t gpd_privilege_target_uid(const char *user);

/*
 * Root becomes this user (NULL: GPD_PRIVILEGE_USER, or stays root without one): with its groups,
 * video and render besides, and without capabilities or a way to get some.  For others it says
 * whether they are that user already.  0 or -1 with a text.
 */
GP_MUST_CHECK int gpd_privilege_drop(const char *user, char *error, size_t error_size);

/* 0, or -1: this process may not read the file, which is there, and the text says what would help.
 */
GP_MUST_CHECK int gpd_privilege_require_readable(const char *path, char *error, size_t error_size);
/* Whether this process may still read the file, which it will read again; the log says if not. */
void gpd_privilege_warn_unreadable(const char *path);

#endif /* GPD_PRIVILEGE_H */
