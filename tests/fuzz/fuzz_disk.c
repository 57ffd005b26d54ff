/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of images as an earlier worker, or somebody else, has left it: an image's file and
 * the note about it.  The first byte says which of the two the rest is, and whether its hash is
 * made right: else nothing would be read.
 */
#include "server/worker/code/image_cache.h"
#include "server/worker/code/image_disk.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_SIZE (2 * GPD_SHA256_SIZE + 1)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct gpd_image_disk *disk;
static int folder = -1;
static char path[] = "/tmp/gpupool-disk-XXXXXX";

static void
check(bool holds)
{
	if (!holds)
		abort();
}

static void
clean_up(void)
{
	(void)rmdir(path);
}

static void
hash_of(const void *bytes, size_t size, uint8_t hash[GPD_SHA256_SIZE], char name[NAME_SIZE])
{
	check(EVP_Digest(bytes, size, hash, NULL, EVP_sha256(), NULL) == 1);
	for (int i = 0; i < GPD_SHA256_SIZE; i++)
		snprintf(name + 2 * i, 3, "%02x", hash[i]);
}

static void
write_file(const char *name, const void *bytes, size_t size)
{
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	check(fd >= 0);
	check(write(fd, bytes, size) == (ssize_t)size);
	close(fd);
}

static void
read_note(const uint8_t *sha256, const char *name, const uint8_t *data, size_t size)
{
	char note[NAME_SIZE + 5];
	struct gpd_image_name recent[2];
	size_t found = 0;
	void *bytes;

	snprintf(note, sizeof(note), "%s.note", name);
	write_file(note, data, size);
	check(gpd_image_disk_recent(disk, recent, 2) == 1);
	check(memcmp(recent[0].sha256, sha256, GPD_SHA256_SIZE) == 0);
	bytes = gpd_image_disk_read_note(disk, sha256, &found);
	check(!bytes == (size == 0 || size > GPD_NOTE_MAX));
	check(!bytes || (found == size && memcmp(bytes, data, size) == 0));
	free(bytes);
	(void)unlinkat(folder, note, 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char image[] = "an image";
	uint8_t sha256[GPD_SHA256_SIZE];
	char name[NAME_SIZE];
	bool note, right;
	void *bytes;

	if (size == 0)
		return 0;
	if (!disk) {
		check(mkdtemp(path) && (disk = gpd_image_disk_open(path, 1 << 20)));
		folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		atexit(clean_up);
	}
	note = *data & 1;
	right = *data & 2;
	data++;
	size--;
	if (note || !right)
		hash_of(image, sizeof(image), sha256, name);
	else
		hash_of(data, size, sha256, name);
	if (note)
		write_file(name, image, sizeof(image));
	else
		write_file(name, data, size);
	if (note)
		read_note(sha256, name, data, size);
	bytes = gpd_image_disk_read(disk, sha256, note ? sizeof(image) : size, true);
	check(!bytes == !(note || right || (size == sizeof(image) && !memcmp(data, image, size))));
	free(bytes);
	(void)unlinkat(folder, name, 0);
	return 0;
}
