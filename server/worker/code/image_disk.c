/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/code/image_disk.h"

#include "image/fatbin.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define NAME_SIZE (2 * GPD_SHA256_SIZE + 1)
/* A file that a worker left half-written when it ended; older ones are deleted. */
#define UNFINISHED ".new-"
#define UNFINISHED_SECONDS 3600
#define RESERVE_MAX ((uint64_t)1 << 30)

static struct {
	int dir;
	uint64_t limit;
} disk = { .dir = -1 };

void *
gpd_image_bytes_alloc(size_t size)
{
	void *bytes;

	if (size > SIZE_MAX - GP_IMAGE_ALIGN ||
	    posix_memalign(&bytes, GP_IMAGE_ALIGN, size + GP_IMAGE_ALIGN))
		return NULL;
	/* The driver may look for the end of text that has none, as fatbinary of CUDA 8 wrote it.
	 */
	memset((char *)bytes + size, 0, GP_IMAGE_ALIGN);
	return bytes;
}

static int
make_dirs(char *path)
{
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		if (mkdir(path, 0700) && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
}

static int
choose(const char *dir, char *path, size_t size)
{
	const char *base;
	int length;

	if (!dir)
		dir = getenv("GPUPOOL_CACHE_DIR");
	if (dir)
		length = snprintf(path, size, "%s", dir);
	else if ((base = getenv("XDG_CACHE_HOME")) && *base)
		length = snprintf(path, size, "%s/gpupool", base);
	else if ((base = getenv("HOME")) && *base)
		length = snprintf(path, size, "%s/.cache/gpupool", base);
	else
		return -ENOENT;
	/* "" asks for none. */
	return length > 0 && (size_t)length < size ? 0 : -ENOENT;
}

bool
gpd_image_disk_start(const char *dir, uint64_t limit)
{
	char path[PATH_MAX];

	if (disk.dir >= 0)
		close(disk.dir);
	disk.dir = -1;
	disk.limit = limit;
	if (choose(dir, path, sizeof(path)) == 0 && make_dirs(path) == 0)
		disk.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return disk.dir >= 0;
}

static bool
get_file(const struct gpd_image_name *name, const char *tenant, char file[NAME_SIZE])
{
	EVP_MD_CTX *digest = EVP_MD_CTX_new();
	uint8_t found[EVP_MAX_MD_SIZE];
	bool good = digest && EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1 &&
		    EVP_DigestUpdate(digest, name->sha256, GPD_SHA256_SIZE) == 1 &&
		    EVP_DigestUpdate(digest, tenant, strlen(tenant)) == 1 &&
		    EVP_DigestFinal_ex(digest, found, NULL) == 1;

	EVP_MD_CTX_free(digest);
	for (int i = 0; good && i < GPD_SHA256_SIZE; i++)
		snprintf(file + 2 * i, 3, "%02x", found[i]);
	return good;
}

static int
move_all(int fd, uint8_t *bytes, size_t size, bool in)
{
	while (size) {
		ssize_t n = in ? read(fd, bytes, size) : write(fd, bytes, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EIO;
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

static bool
has_hash(const void *bytes, const struct gpd_image_name *name)
{
	uint8_t found[EVP_MAX_MD_SIZE];

	return EVP_Digest(bytes, name->size, found, NULL, EVP_sha256(), NULL) == 1 &&
	       !memcmp(found, name->sha256, GPD_SHA256_SIZE);
}

void *
gpd_image_disk_read(const struct gpd_image_name *name, const char *tenant)
{
	char file[NAME_SIZE];
	struct stat status;
	void *bytes = NULL;
	int fd;

	if (disk.dir < 0 || !get_file(name, tenant, file))
		return NULL;
	fd = openat(disk.dir, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return NULL;
	/* Of another size it stays: the client's idea of that may be what is wrong. */
	if (fstat(fd, &status) == 0 && (uint64_t)status.st_size == name->size)
		bytes = gpd_image_bytes_alloc(name->size);
	if (bytes && (move_all(fd, bytes, name->size, true) || !has_hash(bytes, name))) {
		unlinkat(disk.dir, file, 0);
		free(bytes);
		bytes = NULL;
	}
	if (bytes)
		(void)futimens(fd, NULL);
	close(fd);
	return bytes;
}

static DIR *
list(void)
{
	int fd = openat(disk.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

/* The bytes of all images, and which was used longest ago ("": there is none).  Deletes what was
 * not finished. */
static uint64_t
look_through(char oldest[NAME_SIZE])
{
	DIR *dir = list();
	struct dirent *found;
	struct stat status;
	uint64_t total = 0;
	int64_t used_ns, oldest_ns = INT64_MAX;

	oldest[0] = 0;
	while (dir && (found = readdir(dir))) {
		if (fstatat(disk.dir, found->d_name, &status, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(status.st_mode))
			continue;
		if (!strncmp(found->d_name, UNFINISHED, strlen(UNFINISHED)) &&
		    time(NULL) - status.st_mtime > UNFINISHED_SECONDS)
			unlinkat(disk.dir, found->d_name, 0);
		if (strlen(found->d_name) != NAME_SIZE - 1)
			continue;
		total += (uint64_t)status.st_size;
		used_ns = status.st_mtim.tv_sec * INT64_C(1000000000) + status.st_mtim.tv_nsec;
		if (used_ns < oldest_ns) {
			oldest_ns = used_ns;
			memcpy(oldest, found->d_name, NAME_SIZE);
		}
	}
	if (dir)
		closedir(dir);
	return total;
}

/* Whoever reads it sees all of it or nothing. */
static void
put_file(const char *file, const void *bytes, size_t size)
{
	static _Atomic unsigned int count;
	char unfinished[64];
	int fd, r;

	snprintf(unfinished, sizeof(unfinished), UNFINISHED "%d-%u", (int)getpid(), count++);
	fd = openat(disk.dir, unfinished, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd < 0)
		return;
	r = move_all(fd, (uint8_t *)bytes, size, false);
	if (close(fd) || r || renameat(disk.dir, unfinished, disk.dir, file))
		unlinkat(disk.dir, unfinished, 0);
}

uint64_t
gpd_image_disk_reserve(uint64_t file_system_bytes)
{
	const uint64_t tenth = file_system_bytes / 10;

	return tenth < RESERVE_MAX ? tenth : RESERVE_MAX;
}

/* Whether the file system keeps its reserve when size bytes are written. */
static bool
has_room(uint64_t size)
{
	struct statvfs status;
	uint64_t available, reserve;

	if (fstatvfs(disk.dir, &status))
		return false;
	available = (uint64_t)status.f_bavail * status.f_frsize;
	reserve = gpd_image_disk_reserve((uint64_t)status.f_blocks * status.f_frsize);
	return available >= reserve && available - reserve >= size;
}

void
gpd_image_disk_write(const struct gpd_image_name *name, const char *tenant, const void *bytes)
{
	char file[NAME_SIZE], oldest[NAME_SIZE];

	if (disk.dir < 0 || name->size > disk.limit || !get_file(name, tenant, file))
		return;
	while (!has_room(name->size)) {
		if (!look_through(oldest) || unlinkat(disk.dir, oldest, 0))
			return;
	}
	put_file(file, bytes, name->size);
	/* Other writers may have used the same room. */
	while ((look_through(oldest) > disk.limit || !has_room(0)) &&
	       unlinkat(disk.dir, oldest, 0) == 0)
		;
}
