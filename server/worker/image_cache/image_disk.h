/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disk cache of device code: a folder in which images outlive the worker. It contains one file per
 * image and tenant, named by the SHA-256 of the image's SHA-256 and the tenant's name. A tenant
 * therefore reads only images that it has sent itself. Several workers may share the folder.
 *
 * Threads: any, after gpd_image_disk_start(). Reads and writes block on the disk.
 * Errors: not reported; a failed read or write only makes loads slower.
 */
#ifndef GPD_IMAGE_DISK_H
#define GPD_IMAGE_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Size of a SHA-256 hash in bytes. */
#define GPD_SHA256_SIZE 32

/* Identity of an image: hash and size in bytes of its content. */
struct gpd_image_key {
	uint8_t sha256[GPD_SHA256_SIZE];
	uint64_t size;
};

/* Allocates memory for an image of size bytes, aligned to GP_IMAGE_ALIGN (image/fatbin.h) and with
 * GP_IMAGE_ALIGN zeros after the image. Returns NULL if out of memory. The caller frees it with
 * free(). */
void *gpd_image_bytes_alloc(size_t size);

/* Opens or creates the folder. Main thread, before other threads exist. limit: maximum total size
 * of the files in bytes. dir: path; NULL: chosen by the environment (image_cache.h). Returns true.
 * Returns false if there is no usable folder or dir is ""; reads then find nothing, and writes do
 * nothing. */
bool gpd_image_disk_start(const char *dir, uint64_t limit);

/* Reads an image of this tenant and marks its file as used now. tenant: its name; "": no tenant.
 * Returns the bytes, which have been checked against the hash, as gpd_image_bytes_alloc() does; the
 * caller frees them with free(). NULL: the folder does not contain the image for this tenant, the
 * file cannot be read, or memory is exhausted. A file of the right size that cannot be read or has
 * other bytes is deleted. */
void *gpd_image_disk_read(const struct gpd_image_key *key, const char *tenant);

/* Maximum number of files in the folder; changed only by tests. */
extern unsigned int gpd_image_disk_files_max;

/* Writes the image, of key->size bytes, unless it is larger than the limit. The file appears
 * complete, by a rename, or not at all. tenant: as for gpd_image_disk_read(). Deletes the least
 * recently used files when the folder exceeds its limits or the file system is nearly full; writes
 * nothing while it stays nearly full. The folder is scanned only once in many writes, so it may
 * meanwhile exceed a limit, by about a sixteenth of the bytes or a quarter of the files. */
void gpd_image_disk_write(const struct gpd_image_key *key, const char *tenant, const void *bytes);

/* Returns the bytes of a file system of this size that the cache leaves free: a tenth, at most 1
 * GiB. */
uint64_t gpd_image_disk_reserve(uint64_t file_system_bytes);

#endif /* GPD_IMAGE_DISK_H */
