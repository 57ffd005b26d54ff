/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that gpupoolctl changes and the daemon reads again when it is another one: changed under a
 * lock (a file of its name with .lock behind it), and by a new file that takes the place of the old
 * one, so a reader finds one or the other, whole.
 *
 * 0 or a negative errno, with a text that names the file.  Any thread, unless it says otherwise.
 */
#ifndef GPD_SHARED_FILE_H
#define GPD_SHARED_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define GPD_SHARED_FILE_MAX ((size_t)8 << 20)
#define GPD_SHARED_PATH_MAX 4096

/* *text_p is to be freed.  -ENOENT: there is none; -EISDIR, -EINVAL: no regular file; -EFBIG. */
GP_MUST_CHECK int gpd_shared_file_read(const char *path, char **text_p, size_t *size_p, char *error,
				       size_t error_size);

/* The descriptor of the lock, which its close gives back, or a negative errno. */
GP_MUST_CHECK int gpd_shared_file_lock(const char *path, char *error, size_t error_size);
/* With the lock held.  mode: of a file that was not there before; another keeps mode and owner. */
GP_MUST_CHECK int gpd_shared_file_replace(const char *path, mode_t mode, const void *data,
					  size_t size, char *error, size_t error_size);

/* A file as the daemon has read it last, with what it has made of it.  Main thread of the
 * supervisor. */
struct gpd_shared_file {
	char path[GPD_SHARED_PATH_MAX]; /* "": there can be none */
	struct stat status;             /* when it was looked at last; all zero: there was none */
	bool same;                      /* it was the same file then as the time before */
	int wrong;                      /* why it cannot be used; 0: it can */
	int64_t wrong_ms;               /* since when */
	char why[512];                  /* in words that name it; its owner's to write */
};

/* Looks at it for the first time; NULL: there can be none.  0, or -ENAMETOOLONG: `why` says it. */
GP_MUST_CHECK int gpd_shared_file_init(struct gpd_shared_file *file, const char *path);

/* Whether it is to be read again: it is another file, could not be used, or what was read is
 * outdated. */
bool gpd_shared_file_poll(struct gpd_shared_file *file, bool outdated);

enum gpd_shared_file_change {
	GPD_SHARED_FILE_UNCHANGED, /* or as wrong as before */
	GPD_SHARED_FILE_CHANGED,   /* it can be used */
	GPD_SHARED_FILE_INVALID,   /* from now on, or in another way */
};

/* After that, when it was read: wrong: why it cannot be used, or 0. */
enum gpd_shared_file_change gpd_shared_file_set_result(struct gpd_shared_file *file, int wrong,
						       int64_t now_ms);

#endif /* GPD_SHARED_FILE_H */
