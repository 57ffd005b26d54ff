/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that gpupoolctl changes and the daemon reads again after each change.
 *
 * A writer holds an exclusive lock on the file PATH.lock and replaces the file by rename(), so a
 * reader sees either the old or the new content, complete.
 *
 * Threads: any for the functions; a struct gpd_shared_file belongs to the supervisor's main thread.
 * Errors: functions with an error buffer return 0 (gpd_shared_file_lock(): a descriptor) on
 * success, else a negative errno with a text in error that names the file.
 */
#ifndef GPD_SHARED_FILE_H
#define GPD_SHARED_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Maximum sizes in bytes: of a file, and of its path with the terminating zero. */
#define GPD_SHARED_FILE_MAX ((size_t)8 << 20)
#define GPD_SHARED_PATH_MAX 4096

/* Writes "PATH: text of the error" to error. code: a positive errno. Returns -code. */
int gpd_shared_file_error(int code, const char *path, char *error, size_t error_size);
/* Writes all bytes to the descriptor. */
GP_MUST_CHECK int gpd_shared_file_write_all(int fd, const char *data, size_t size);

/* Reads the whole file, at most GPD_SHARED_FILE_MAX bytes. On success returns 0, and the caller
 * frees *text_p, which is not terminated by a zero byte. On failure returns -EISDIR, -EINVAL (not a
 * regular file), -EFBIG, -ENOMEM or an errno of open(2) or read(2) such as -ENOENT; *text_p and
 * *size_p are unchanged. */
GP_MUST_CHECK int gpd_shared_file_read(const char *path, char **text_p, size_t *size_p, char *error,
				       size_t error_size);

/* Waits without limit for the exclusive lock of the file, and creates PATH.lock if it does not
 * exist. Returns its descriptor, which the caller closes to release the lock, or a negative
 * errno. */
GP_MUST_CHECK int gpd_shared_file_lock(const char *path, char *error, size_t error_size);
/* Replaces the file's content and waits until it is on disk; the caller holds the lock. mode is
 * that of a new file; an existing file keeps its mode and owner. A failure leaves the previous
 * content. */
GP_MUST_CHECK int gpd_shared_file_replace(const char *path, mode_t mode, const void *data,
					  size_t size, char *error, size_t error_size);

/* State of a file that the daemon reads again when it changes: its last stat() and the result of
 * the last attempt to read it. */
struct gpd_shared_file {
	char path[GPD_SHARED_PATH_MAX]; /* "": there is no file to watch */
	/* Of the last poll; all zero: the file did not exist; all bytes 0xff: stat() failed. */
	struct stat status;
	bool same; /* the file did not change between the last two polls */
	/* Error of the last attempt to read it, as passed to gpd_shared_file_set_result(); 0: the
	 * content is valid. */
	int wrong;
	/* Time of gp_now_ms() of the first failed attempt since the file was valid. */
	int64_t wrong_ms;
	/* Error text for `wrong`, which names the file; written by the user of the struct. */
	char why[512];
};

/* Initializes the state, with a copy of path, and stores the file's current status. path NULL:
 * there is no file to watch. Returns 0, or -ENAMETOOLONG with a text in why. Nothing has to be
 * freed. */
GP_MUST_CHECK int gpd_shared_file_init(struct gpd_shared_file *file, const char *path);

/* Polls the file's status. Returns whether the caller must read it again: it has changed, its
 * content was invalid before, or outdated is set because the content has become outdated for
 * another reason. Returns false if there is no file to watch. */
bool gpd_shared_file_poll(struct gpd_shared_file *file, bool outdated);

/* Result of an attempt to read the file. */
enum gpd_shared_file_change {
	GPD_SHARED_FILE_UNCHANGED, /* not read, or still invalid with the same content as before */
	GPD_SHARED_FILE_CHANGED,   /* the file was read again and is valid */
	GPD_SHARED_FILE_INVALID,   /* it has become invalid, or has changed and is still invalid */
};

/* Stores the result of reading the file after gpd_shared_file_poll() has returned true: wrong is
 * the error, or 0. Returns how the validity has changed. */
enum gpd_shared_file_change gpd_shared_file_set_result(struct gpd_shared_file *file, int wrong,
						       int64_t now_ms);

#endif /* GPD_SHARED_FILE_H */
