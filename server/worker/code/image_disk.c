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
#include <unistd.h>

#define NAME_SIZE (2 * GPD_SHA256_SIZE + 1)
/* A file that a worker left half-written when it ended; older ones are deleted. */
#define UNFINISHED ".new-"
#define UNFINISHED_SECONDS 3600

struct gpd_image_disk {
	int dir;
	uint64_t limit;
};

struct entry {
	char name[NAME_SIZE];
	uint64_t size;
	int64_t used_ns;
};

void *
gpd_image_bytes_alloc(size_t size)
{
	void *bytes;

	return posix_memalign(&bytes, GP_IMAGE_ALIGN, size ? size : 1) ? NULL : bytes;
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

struct gpd_image_disk *
gpd_image_disk_open(const char *dir, uint64_t limit)
{
	struct gpd_image_disk *disk;
	char path[PATH_MAX];

	if (choose(dir, path, sizeof(path)) || make_dirs(path))
		return NULL;
	disk = calloc(1, sizeof(*disk));
	if (!disk)
		return NULL;
	disk->limit = limit;
	disk->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (disk->dir < 0) {
		free(disk);
		return NULL;
	}
	return disk;
}

void
gpd_image_disk_close(struct gpd_image_disk *disk)
{
	if (!disk)
		return;
	close(disk->dir);
	free(disk);
}

static void
name_of(const uint8_t *sha256, char *name)
{
	for (int i = 0; i < GPD_SHA256_SIZE; i++)
		snprintf(name + 2 * i, 3, "%02x", sha256[i]);
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

static int
has_hash(const void *bytes, size_t size, const uint8_t *sha256)
{
	uint8_t found[EVP_MAX_MD_SIZE];

	return EVP_Digest(bytes, size, found, NULL, EVP_sha256(), NULL) == 1 &&
	       !memcmp(found, sha256, GPD_SHA256_SIZE);
}

void *
gpd_image_disk_read(struct gpd_image_disk *disk, const uint8_t sha256[32], size_t size)
{
	char name[NAME_SIZE];
	struct stat status;
	void *bytes;
	int fd;

	name_of(sha256, name);
	fd = openat(disk->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return NULL;
	if (fstat(fd, &status) || (uint64_t)status.st_size != size) {
		/* The client's idea of the size may be what is wrong: the file stays. */
		close(fd);
		return NULL;
	}
	bytes = gpd_image_bytes_alloc(size);
	if (bytes && (move_all(fd, bytes, size, true) || !has_hash(bytes, size, sha256))) {
		unlinkat(disk->dir, name, 0);
		free(bytes);
		bytes = NULL;
	}
	if (bytes)
		(void)futimens(fd, NULL);
	close(fd);
	return bytes;
}

static int
older_first(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

	return (left->used_ns > right->used_ns) - (left->used_ns < right->used_ns);
}

static DIR *
list(const struct gpd_image_disk *disk)
{
	int fd = openat(disk->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static size_t
collect(const struct gpd_image_disk *disk, struct entry **entries_p, uint64_t *total)
{
	DIR *dir = list(disk);
	struct entry *entries = NULL;
	struct dirent *found;
	struct stat status;
	size_t count = 0, room = 0;

	*total = 0;
	while (dir && (found = readdir(dir))) {
		if (fstatat(disk->dir, found->d_name, &status, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(status.st_mode))
			continue;
		if (!strncmp(found->d_name, UNFINISHED, strlen(UNFINISHED)) &&
		    time(NULL) - status.st_mtime > UNFINISHED_SECONDS)
			unlinkat(disk->dir, found->d_name, 0);
		if (strlen(found->d_name) != NAME_SIZE - 1)
			continue;
		if (count == room) {
			struct entry *grown = reallocarray(entries, room + 256, sizeof(*grown));

			if (!grown)
				break;
			entries = grown;
			room += 256;
		}
		memcpy(entries[count].name, found->d_name, NAME_SIZE);
		entries[count].size = (uint64_t)status.st_size;
		entries[count].used_ns =
			status.st_mtim.tv_sec * INT64_C(1000000000) + status.st_mtim.tv_nsec;
		*total += entries[count++].size;
	}
	if (dir)
		closedir(dir);
	*entries_p = entries;
	return count;
}

static void
trim(struct gpd_image_disk *disk)
{
	struct entry *entries;
	uint64_t total;
	size_t count = collect(disk, &entries, &total);

	if (total > disk->limit)
		qsort(entries, count, sizeof(*entries), older_first);
	for (size_t i = 0; i < count && total > disk->limit; i++) {
		unlinkat(disk->dir, entries[i].name, 0);
		total -= entries[i].size;
	}
	free(entries);
}

/* Whoever reads it sees all of it or nothing. */
static void
put_file(struct gpd_image_disk *disk, const char *name, const void *bytes, size_t size)
{
	static _Atomic unsigned int count;
	char unfinished[64];
	int fd, r;

	snprintf(unfinished, sizeof(unfinished), UNFINISHED "%d-%u", (int)getpid(), count++);
	fd = openat(disk->dir, unfinished, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd < 0)
		return;
	r = move_all(fd, (uint8_t *)bytes, size, false);
	if (close(fd) || r || renameat(disk->dir, unfinished, disk->dir, name))
		unlinkat(disk->dir, unfinished, 0);
}

void
gpd_image_disk_write(struct gpd_image_disk *disk, const uint8_t sha256[32], const void *bytes,
		     size_t size)
{
	char name[NAME_SIZE];

	if (size > disk->limit)
		return;
	name_of(sha256, name);
	put_file(disk, name, bytes, size);
	trim(disk);
}
