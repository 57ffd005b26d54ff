/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/image_cache/image_disk.h"

#include "image/fatbin.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define NAME_SIZE (2 * GPD_SHA256_SIZE + 1)
/* Prefix of a file that is being written. A worker that ended may have left one; it is deleted
 * after this time. */
#define UNFINISHED ".new-"
#define UNFINISHED_SECONDS 3600
#define RESERVE_MAX ((uint64_t)1 << 30)
/* The folder is scanned again after this fraction of the byte limit, or of its files, has been
 * written, because other workers write too. A scan that deletes files deletes another LIMIT_PART of
 * the limit, so that the next scan is not due at once. */
#define LIMIT_PART 16
#define FILES_PART 4
#define FILES_PART_MIN 16

/* However small it is, a file takes at least a block and an inode. */
unsigned int gpd_image_disk_files_max = 65536;

/* One file of the folder. */
struct entry {
	char name[NAME_SIZE];
	uint64_t size;
	int64_t used_ns;
};

static struct {
	int dir;
	uint64_t limit;
	/* Bytes and files that may be written before the next scan is due. */
	_Atomic int64_t bytes_left, files_left;
	_Atomic bool scanning;
} disk = { .dir = -1 };

void *
gpd_image_bytes_alloc(size_t size)
{
	void *bytes;

	if (size > SIZE_MAX - GP_IMAGE_ALIGN ||
	    posix_memalign(&bytes, GP_IMAGE_ALIGN, size + GP_IMAGE_ALIGN))
		return NULL;
	/* The driver may search for the end of text that has none, as written by fatbinary of CUDA
	 * 8. */
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
folder_choose(const char *dir, char *path, size_t size)
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
	/* An empty path means no folder. */
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
	/* The first write scans the folder. */
	atomic_store(&disk.bytes_left, 0);
	atomic_store(&disk.files_left, 0);
	if (folder_choose(dir, path, sizeof(path)) == 0 && make_dirs(path) == 0)
		disk.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return disk.dir >= 0;
}

static bool
get_file(const struct gpd_image_key *key, const char *tenant, char file[NAME_SIZE])
{
	EVP_MD_CTX *digest = EVP_MD_CTX_new();
	uint8_t found[EVP_MAX_MD_SIZE];
	bool good = digest && EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1 &&
		    EVP_DigestUpdate(digest, key->sha256, GPD_SHA256_SIZE) == 1 &&
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
has_hash(const void *bytes, const struct gpd_image_key *key)
{
	uint8_t found[EVP_MAX_MD_SIZE];

	return EVP_Digest(bytes, key->size, found, NULL, EVP_sha256(), NULL) == 1 &&
	       !memcmp(found, key->sha256, GPD_SHA256_SIZE);
}

void *
gpd_image_disk_read(const struct gpd_image_key *key, const char *tenant)
{
	char file[NAME_SIZE];
	struct stat status;
	void *bytes = NULL;
	int fd;

	if (disk.dir < 0 || !get_file(key, tenant, file))
		return NULL;
	fd = openat(disk.dir, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return NULL;
	/* A file of another size stays: the client's size may be the wrong one. */
	if (fstat(fd, &status) == 0 && (uint64_t)status.st_size == key->size)
		bytes = gpd_image_bytes_alloc(key->size);
	if (bytes && (move_all(fd, bytes, key->size, true) || !has_hash(bytes, key))) {
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
folder_open(void)
{
	int fd = openat(disk.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static void
remove_unfinished(const char *name, const struct stat *status)
{
	if (!strncmp(name, UNFINISHED, strlen(UNFINISHED)) &&
	    time(NULL) - status->st_mtime > UNFINISHED_SECONDS)
		unlinkat(disk.dir, name, 0);
}

static bool
add_entry(struct entry **entries, size_t *count, const char *name, const struct stat *status)
{
	struct entry *entry = *entries;

	/* The array doubles when count is a power of two. */
	if ((*count & (*count - 1)) == 0)
		entry = realloc(entry, (*count ? 2 * *count : 1) * sizeof(*entry));
	if (!entry)
		return false;
	*entries = entry;
	entry += (*count)++;
	memcpy(entry->name, name, NAME_SIZE);
	entry->size = (uint64_t)status->st_size;
	entry->used_ns = status->st_mtim.tv_sec * INT64_C(1000000000) + status->st_mtim.tv_nsec;
	return true;
}

/* Returns all images, for the caller to free. Deletes old unfinished files. */
static struct entry *
read_folder(size_t *count)
{
	struct entry *entries = NULL;
	struct dirent *found;
	struct stat status;
	DIR *dir = folder_open();

	*count = 0;
	while (dir && (found = readdir(dir))) {
		if (fstatat(disk.dir, found->d_name, &status, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(status.st_mode))
			continue;
		remove_unfinished(found->d_name, &status);
		if (strlen(found->d_name) == NAME_SIZE - 1 &&
		    !add_entry(&entries, count, found->d_name, &status))
			break;
	}
	if (dir)
		closedir(dir);
	return entries;
}

static int
compare_age(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

	return left->used_ns < right->used_ns ? -1 : left->used_ns > right->used_ns;
}

/* Renames the complete file into place, so that readers see all of it or none. */
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

/* Whether the reserve of the file system stays free if size more bytes are written. */
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

/* Deletes the least recently used images until the folder is within its limits and size more bytes
 * fit. Bytes and files that others write during the scan are subtracted from what it leaves. */
static void
make_room(uint64_t size)
{
	int64_t bytes_before = atomic_load(&disk.bytes_left);
	int64_t files_before = atomic_load(&disk.files_left);
	int64_t bytes_after, files_after;
	size_t count, left;
	struct entry *entries = read_folder(&count);
	uint64_t bytes = 0, most = disk.limit, files = gpd_image_disk_files_max;

	for (size_t i = 0; i < count; i++)
		bytes += entries[i].size;
	if (count)
		qsort(entries, count, sizeof(*entries), compare_age);
	if (bytes > most)
		most -= most / LIMIT_PART;
	if (count > files)
		files -= files / LIMIT_PART;
	left = count;
	while (left && (bytes > most || left > files || !has_room(size))) {
		const struct entry *oldest = &entries[count - left--];

		unlinkat(disk.dir, oldest->name, 0);
		bytes -= oldest->size;
	}
	free(entries);
	/* At least 1, so that another scan needs another write. */
	bytes_after =
		(int64_t)(disk.limit - bytes < disk.limit / LIMIT_PART ? disk.limit - bytes
								       : disk.limit / LIMIT_PART);
	if (bytes_after < 1)
		bytes_after = 1;
	files_after =
		left / FILES_PART > FILES_PART_MIN ? (int64_t)(left / FILES_PART) : FILES_PART_MIN;
	atomic_fetch_add(&disk.bytes_left, bytes_after - bytes_before);
	atomic_fetch_add(&disk.files_left, files_after - files_before);
}

/* One thread at a time scans the folder; the others do not wait for it. If what they have written
 * meanwhile makes another scan due, it scans again. */
static void
try_make_room(uint64_t size)
{
	do {
		if (atomic_exchange(&disk.scanning, true))
			return;
		make_room(size);
		atomic_store(&disk.scanning, false);
	} while (atomic_load(&disk.bytes_left) <= 0 || atomic_load(&disk.files_left) <= 0);
}

void
gpd_image_disk_write(const struct gpd_image_key *key, const char *tenant, const void *bytes)
{
	char file[NAME_SIZE];
	bool due;

	if (disk.dir < 0 || key->size > disk.limit || !get_file(key, tenant, file))
		return;
	if (!has_room(key->size))
		try_make_room(key->size);
	if (!has_room(key->size))
		return;
	put_file(file, bytes, key->size);
	due = atomic_fetch_sub(&disk.bytes_left, (int64_t)key->size) <= (int64_t)key->size;
	due = atomic_fetch_sub(&disk.files_left, 1) <= 1 || due;
	/* Other writers may have used the same room. */
	if (due || !has_room(0))
		try_make_room(0);
}
