/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/base/shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

int
gpd_shared_file_error(int code, const char *path, char *error, size_t error_size)
{
	snprintf(error, error_size, "%s: %s", path, strerror(code));
	return -code;
}

/* Read. */

static int
file_read_all(int fd, char **text_p, size_t *size_p)
{
	char *text = malloc(GPD_SHARED_FILE_MAX + 1);
	size_t size = 0;
	ssize_t got = 1;

	if (!text)
		return ENOMEM;
	while (got && size <= GPD_SHARED_FILE_MAX) {
		got = read(fd, text + size, GPD_SHARED_FILE_MAX + 1 - size);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			break;
		size += (size_t)got;
	}
	if (got < 0 || size > GPD_SHARED_FILE_MAX) {
		int code = got < 0 ? errno : EFBIG;

		free(text);
		return code;
	}
	*text_p = text;
	*size_p = size;
	return 0;
}

int
gpd_shared_file_read(const char *path, char **text_p, size_t *size_p, char *error,
		     size_t error_size)
{
	/* O_NONBLOCK: opening a FIFO without a writer would block the daemon. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), code = EINVAL;
	struct stat status = { 0 };

	if (fd < 0)
		return gpd_shared_file_error(errno, path, error, error_size);
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
		code = file_read_all(fd, text_p, size_p);
	else if (S_ISDIR(status.st_mode))
		code = EISDIR;
	close(fd);
	return code ? gpd_shared_file_error(code, path, error, error_size) : 0;
}

/* Change. */

int
gpd_shared_file_lock(const char *path, char *error, size_t error_size)
{
	char name[GPD_SHARED_PATH_MAX];
	int fd;

	if (snprintf(name, sizeof(name), "%s.lock", path) >= (int)sizeof(name))
		return gpd_shared_file_error(ENAMETOOLONG, path, error, error_size);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return gpd_shared_file_error(errno, name, error, error_size);
	while (flock(fd, LOCK_EX)) {
		if (errno == EINTR)
			continue;
		close(fd);
		return gpd_shared_file_error(errno, name, error, error_size);
	}
	return fd;
}

/* The daemon may run as another user, to which the owner of the existing file gave access. */
static void
file_copy_owner(const char *path, mode_t mode, int fd)
{
	struct stat status;

	if (stat(path, &status)) {
		(void)fchmod(fd, mode);
		return;
	}
	if (fchown(fd, status.st_uid, status.st_gid) == 0)
		(void)fchmod(fd, status.st_mode & 0777);
}

static void
sync_folder(const char *path)
{
	char folder[GPD_SHARED_PATH_MAX];
	const char *slash = strrchr(path, '/');
	int fd;

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1,
		 slash ? path : ".");
	fd = open(folder[0] ? folder : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)fsync(fd);
	close(fd);
}

int
gpd_shared_file_write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t done = write(fd, data, size);

		if (done < 0 && errno != EINTR)
			return -errno;
		if (done < 0)
			continue;
		data += done;
		size -= (size_t)done;
	}
	return 0;
}

int
gpd_shared_file_replace(const char *path, mode_t mode, const void *data, size_t size, char *error,
			size_t error_size)
{
	char name[GPD_SHARED_PATH_MAX], real[PATH_MAX];
	int fd, code;

	/* Resolve symbolic links: the link itself stays, and other links to the file see the new
	 * content. */
	if (realpath(path, real))
		path = real;
	if (snprintf(name, sizeof(name), "%s.new", path) >= (int)sizeof(name))
		return gpd_shared_file_error(ENAMETOOLONG, path, error, error_size);
	(void)unlink(name);
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return gpd_shared_file_error(errno, name, error, error_size);
	file_copy_owner(path, mode, fd);
	code = -gpd_shared_file_write_all(fd, data, size);
	if (!code && fsync(fd))
		code = errno;
	if (close(fd) && !code)
		code = errno;
	if (!code && rename(name, path))
		code = errno;
	if (code) {
		(void)unlink(name);
		return gpd_shared_file_error(code, path, error, error_size);
	}
	sync_folder(path);
	return 0;
}

/* Detect changes. */

/* Stats the file. All zero: it does not exist; 0xff in every byte: its status is not available. */
static void
file_stat(const char *path, struct stat *status)
{
	memset(status, 0, sizeof(*status));
	if (stat(path, status))
		memset(status, errno == ENOENT ? 0 : 0xff, sizeof(*status));
}

static bool
file_is_unchanged(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

int
gpd_shared_file_init(struct gpd_shared_file *file, const char *path)
{
	*file = (struct gpd_shared_file){ .wrong = 0 };
	if (!path)
		return 0;
	if (strlen(path) >= sizeof(file->path)) {
		(void)snprintf(file->why, sizeof(file->why), "%.200s...: %s", path,
			       strerror(ENAMETOOLONG));
		return -ENAMETOOLONG;
	}
	memcpy(file->path, path, strlen(path) + 1);
	file_stat(path, &file->status);
	return 0;
}

bool
gpd_shared_file_poll(struct gpd_shared_file *file, bool outdated)
{
	struct stat before = file->status;

	if (!file->path[0])
		return false;
	file_stat(file->path, &file->status);
	file->same = !outdated && file_is_unchanged(&before, &file->status);
	return !file->same || file->wrong;
}

enum gpd_shared_file_change
gpd_shared_file_set_result(struct gpd_shared_file *file, int wrong, int64_t now_ms)
{
	bool known = file->same && file->wrong;

	if (!file->wrong)
		file->wrong_ms = now_ms;
	file->wrong = wrong;
	if (!wrong)
		return GPD_SHARED_FILE_CHANGED;
	return known ? GPD_SHARED_FILE_UNCHANGED : GPD_SHARED_FILE_INVALID;
}
