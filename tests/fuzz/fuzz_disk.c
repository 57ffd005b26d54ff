/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the image folder, as an earlier worker or another program has left it: the file of a
 * tenant's image.
 *
 * The first byte selects whether the file's hash is corrected. With a wrong hash nothing else is
 * read.
 */
#include "server/worker/image_cache/image_cache.h"
#include "server/worker/image_cache/image_disk.h"

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
static const char tenant[] = "tester";

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

/* The name by image_disk.h: the SHA-256 of the image's own and the tenant's name. */
static void
name_file(const uint8_t sha256[GPD_SHA256_SIZE], char name[NAME_SIZE])
{
	uint8_t both[GPD_SHA256_SIZE + sizeof(tenant) - 1], found[GPD_SHA256_SIZE];

	memcpy(both, sha256, GPD_SHA256_SIZE);
	memcpy(both + GPD_SHA256_SIZE, tenant, sizeof(tenant) - 1);
	check(EVP_Digest(both, sizeof(both), found, NULL, EVP_sha256(), NULL) == 1);
	for (int i = 0; i < GPD_SHA256_SIZE; i++)
		snprintf(name + 2 * i, 3, "%02x", found[i]);
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
	struct gpd_image_key wanted = { .size = size - 1 };
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
	check(EVP_Digest(right ? data : (const uint8_t *)image, right ? size : sizeof(image),
			 wanted.sha256, NULL, EVP_sha256(), NULL) == 1);
	name_file(wanted.sha256, name);
	write_file(name, data, size);
	bytes = gpd_image_disk_read(&wanted, tenant);
	check(!bytes == !(right || (size == sizeof(image) && !memcmp(data, image, size))));
	free(bytes);
	check(!gpd_image_disk_read(&wanted, "another tenant"));
	(void)unlinkat(folder, name, 0);
	return 0;
}
