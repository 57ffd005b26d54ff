/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder in which device code outlives the worker: a file for each image and tenant, named by
 * the SHA-256 of the image's SHA-256 and the tenant's name.  So a tenant reads only images that it
 * has sent itself.  Several workers may use the same folder.  An error only makes loads slower.
 *
 * Threads: any.
 */
#ifndef GPD_IMAGE_DISK_H
#define GPD_IMAGE_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPD_SHA256_SIZE 32

struct gpd_image_name {
	uint8_t sha256[GPD_SHA256_SIZE];
	uint64_t size;
};

/* Memory for an image, aligned as they must be, and zeros behind it; free() frees it. */
void *gpd_image_bytes_alloc(size_t size);

/* Before there are threads.  dir NULL: as the environment says.  false: no folder can be had, or ""
 * was given; then the others do nothing. */
bool gpd_image_disk_start(const char *dir, uint64_t limit);

/* The checked bytes, for the caller to free; NULL: the folder does not contain them for this
 * tenant. It counts as used now. */
void *gpd_image_disk_read(const struct gpd_image_name *name, const char *tenant);

/* The folder's most files. */
extern unsigned int gpd_image_disk_files_max;

/* Deletes the files that were used longest ago when the folder exceeds its limits or the file
 * system is nearly full; writes nothing while it stays nearly full.  Scans the folder only once in
 * many writes, so it may exceed a limit by a sixteenth of the bytes or a quarter of the files. */
void gpd_image_disk_write(const struct gpd_image_name *name, const char *tenant, const void *bytes);

/* Bytes of a file system that the cache leaves free: a tenth, at most 1 GiB. */
uint64_t gpd_image_disk_reserve(uint64_t file_system_bytes);

#endif /* GPD_IMAGE_DISK_H */
