/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folder in which device code outlives the worker: one file per image and tenant, named by the
 * SHA-256 of the image's SHA-256 and the tenant's name. A tenant therefore reads only images that
 * it has sent itself. Several workers may share the folder.
 *
 * Threads: any, after gpd_image_disk_start().
 * Errors: not reported; a failed read or write only makes loads slower.
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

/* Allocates memory for an image, aligned to GP_IMAGE_ALIGN and with GP_IMAGE_ALIGN zeros after the
 * image. NULL: out of memory. Freed by free(). */
void *gpd_image_bytes_alloc(size_t size);

/* Opens or creates the folder; limit is in bytes. To be called before there are threads. dir NULL:
 * chosen by the environment (image_cache.h). Returns false if there is no usable folder or dir is
 * ""; the other functions then do nothing. */
bool gpd_image_disk_start(const char *dir, uint64_t limit);

/* Returns the bytes, which have been checked against the hash, for the caller to free. NULL: the
 * folder does not contain the image for this tenant. Marks the file as used now. */
void *gpd_image_disk_read(const struct gpd_image_name *name, const char *tenant);

/* Maximum number of files in the folder. */
extern unsigned int gpd_image_disk_files_max;

/* Writes the image. Deletes the least recently used files when the folder exceeds its limits or the
 * file system is nearly full; writes nothing while it stays nearly full. The folder is scanned only
 * once in many writes, so it may exceed a limit by a sixteenth of the bytes or a quarter of the
 * files. */
void gpd_image_disk_write(const struct gpd_image_name *name, const char *tenant, const void *bytes);

/* Bytes of a file system that the cache leaves free: a tenth, at most 1 GiB. */
uint64_t gpd_image_disk_reserve(uint64_t file_system_bytes);

#endif /* GPD_IMAGE_DISK_H */
