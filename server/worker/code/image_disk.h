/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder in which device code outlives the worker: a file per image, named by its SHA-256.
 * Several workers may use the same one.  Any thread.  What fails here is only slower.
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

/* The checked bytes, for the caller to free; NULL: not there (any more).  It counts as used now. */
void *gpd_image_disk_read(const struct gpd_image_name *name);

/* Also deletes the files that were used longest ago when there is too much. */
void gpd_image_disk_write(const struct gpd_image_name *name, const void *bytes);

#endif /* GPD_IMAGE_DISK_H */
