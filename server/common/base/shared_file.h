/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that gpupoolctl changes and the daemon reads again after each change: functions to read
 * and replace it, and struct gpd_shared_file to notice changes.
 *
 * A writer holds an exclusive lock on the file PATH.lock from before it reads the file until it has
 * replaced it by rename(). So no change is lost, and a reader, which needs no lock, sees either the
 * old or the new content, complete. The lock's name is made from the path as given, not from the
 * target of a symbolic link: all writers of a file must use the same path.
 *
 * Threads: any for the functions; a struct gpd_shared_file belongs to the supervisor's main thread.
 * Errors: functions with an error buffer return 0 (gpd_shared_file_lock(): a descriptor) on
 * success, else a negative errno with a text in error that names the file. gpd_shared_file_error()
 * always returns a negative errno.
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
/* Writes all bytes to the descriptor; blocks as write(2), and continues after EINTR. Returns 0 or a
 * negative errno of write(2); part of the data may then have been written. */
GP_MUST_CHECK int gpd_shared_file_write_all(int fd, const char *data, size_t size);

/* Reads the whole file, at most GPD_SHARED_FILE_MAX bytes; follows symbolic links, and does not
 * block on a FIFO. On success returns 0, and the caller frees *text_p, which is not terminated by a
 * zero byte. On failure returns -EISDIR, -EINVAL (not a regular file), -EFBIG, -ENOMEM or an errno
 * of open(2) or read(2) such as -ENOENT; *text_p and *size_p are unchanged. */
GP_MUST_CHECK int gpd_shared_file_read(const char *path, char **text_p, size_t *size_p, char *error,
				       size_t error_size);

/* Waits without limit for the exclusive lock of the file, and creates PATH.lock if it does not
 * exist. Returns its descriptor (close-on-exec), which the caller closes to release the lock;
 * PATH.lock stays. Returns -ENAMETOOLONG, -ELOOP if PATH.lock is a symbolic link, or another
 * negative errno of open(2) or flock(2). */
GP_MUST_CHECK int gpd_shared_file_lock(const char *path, char *error, size_t error_size);
/* Replaces the file's content and waits until it is on disk; the caller holds the lock. If path is
 * a symbolic link, the link stays, and its target is replaced. The content is first written to
 * TARGET.new, so the target's folder must be writable. mode is that of a new file. An existing file
 * keeps its mode and owner; if the caller may not set this owner, the file becomes the caller's
 * with mode 0600. A failure leaves the previous content: returns -ENAMETOOLONG, or a negative errno
 * of open(2), write(2), fsync(2), close(2) or rename(2). */
GP_MUST_CHECK int gpd_shared_file_replace(const char *path, mode_t mode, const void *data,
					  size_t size, char *error, size_t error_size);

/* State of a file that the daemon reads again when it changes: its last stat() and the result of
 * the last attempt to read it. Order of calls: gpd_shared_file_init(), then the user of the struct
 * reads the file; later, periodically, gpd_shared_file_poll(), and if that returns true, the user
 * reads the file again and calls gpd_shared_file_set_result(). All members are read-only for the
 * user, except `why`. */
struct gpd_shared_file {
	char path[GPD_SHARED_PATH_MAX]; /* "": there is no file to watch */
	/* Of the last poll; all zero: the file did not exist; all bytes 0xff: stat() failed. */
	struct stat status;
	bool same; /* result of the last poll: the file did not change, and `outdated` was false */
	/* Error of the last attempt to read it, as passed to gpd_shared_file_set_result(); 0: the
	 * content is valid, or only gpd_shared_file_init() was called. */
	int wrong;
	/* Time of gp_now_ms() (base/clock.h) of the first failed attempt since the file was valid;
	 * only valid while `wrong` is not 0. */
	int64_t wrong_ms;
	/* Error text for `wrong`, which names the file; written by the user of the struct, and by
	 * gpd_shared_file_init() if it fails. */
	char why[512];
};

/* Initializes the state, with a copy of path, and stores the file's current status. path NULL:
 * there is no file to watch. The file need not exist. Returns 0; or -ENAMETOOLONG with a text in
 * why, and there is no file to watch. Nothing has to be freed. */
GP_MUST_CHECK int gpd_shared_file_init(struct gpd_shared_file *file, const char *path);

/* Polls the file's status by stat(2), and so follows symbolic links. Returns whether the caller
 * must read it again: it has changed (or was created or removed), its content was invalid before,
 * or outdated is set. outdated: the content has become outdated for another reason. Returns false
 * if there is no file to watch. */
bool gpd_shared_file_poll(struct gpd_shared_file *file, bool outdated);

/* Result of an attempt to read the file. */
enum gpd_shared_file_change {
	GPD_SHARED_FILE_UNCHANGED, /* not read, or still invalid with the same content as before */
	GPD_SHARED_FILE_CHANGED,   /* the file was read again and is valid */
	GPD_SHARED_FILE_INVALID,   /* it has become invalid, or has changed and is still invalid */
};

/* Stores the result of reading the file after gpd_shared_file_poll() has returned true: wrong is
 * the error, or 0. now_ms: time of gp_now_ms(). Returns how the validity has changed. */
enum gpd_shared_file_change gpd_shared_file_set_result(struct gpd_shared_file *file, int wrong,
						       int64_t now_ms);

#endif /* GPD_SHARED_FILE_H */
