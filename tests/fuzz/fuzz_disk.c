/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of images as an earlier worker, or somebody else, has left it: an image's file.  The
 * first byte says whether its hash is made right: else nothing would be read.
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

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char image[] = "an image";
	struct gpd_image_name wanted = { .size = size - 1 };
	char name[NAME_SIZE];
	bool right;
	void *bytes;

	if (size == 0)
		return 0;
	if (folder < 0) {
		check(mkdtemp(path) && gpd_image_disk_start(path, 1 << 20));
		folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		atexit(clean_up);
	}
	right = *data & 2;
	data++;
	size--;
	if (right)
		hash_of(data, size, wanted.sha256, name);
	else
		hash_of(image, sizeof(image), wanted.sha256, name);
	write_file(name, data, size);
	bytes = gpd_image_disk_read(&wanted);
	check(!bytes == !(right || (size == sizeof(image) && !memcmp(data, image, size))));
	free(bytes);
	(void)unlinkat(folder, name, 0);
	return 0;
}
