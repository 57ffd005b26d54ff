/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that gpupoolctl changes and the daemon reads again when it is another one: changed under a
 * lock (a file of its name with .lock behind it), and by a new file that takes the place of the old
 * one, so a reader finds one or the other, whole.
 *
 * No state; any thread.  0 or a negative errno, with a text that names the file.
 */
#ifndef GPD_SHARED_FILE_H
#define GPD_SHARED_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#define GPD_SHARED_FILE_MAX ((size_t)8 << 20)
#define GPD_SHARED_PATH_MAX 4096

/* *text_p is to be freed; *status_p is the file's, all zero if there is none, which is -ENOENT.
 * -EINVAL: no regular file; -EFBIG. */
GP_MUST_CHECK int gpd_shared_file_read(const char *path, char **text_p, size_t *size_p,
				       struct stat *status_p, char *error, size_t error_size);

/* The descriptor of the lock, which its close gives back, or a negative errno. */
GP_MUST_CHECK int gpd_shared_file_lock(const char *path, char *error, size_t error_size);
/* With the lock held.  mode: of a file that was not there before; another keeps mode and owner. */
GP_MUST_CHECK int gpd_shared_file_replace(const char *path, mode_t mode, const void *data,
					  size_t size, char *error, size_t error_size);

/* What is at the path now: all zero: nothing; 0xff everywhere: it cannot be known. */
void gpd_shared_file_look(const char *path, struct stat *status_p);
/* Whether both are of one file that has not changed in between. */
bool gpd_shared_file_is_same(const struct stat *a, const struct stat *b);

#endif /* GPD_SHARED_FILE_H */
