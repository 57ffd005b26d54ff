/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder in which device code outlives the worker: a file per image, named by its SHA-256.
 * Several workers may use the same one.  Any thread.  What fails here is only slower.
 */
#ifndef GPD_IMAGE_DISK_H
#define GPD_IMAGE_DISK_H

#include <stddef.h>
#include <stdint.h>

struct gpd_image_disk;

/* dir NULL: as the environment says.  NULL: no folder can be had, or "" was given. */
struct gpd_image_disk *gpd_image_disk_open(const char *dir, uint64_t limit);
/* Accepts NULL. */
void gpd_image_disk_close(struct gpd_image_disk *disk);

/* The checked bytes, for the caller to free; NULL: not there (any more). */
void *gpd_image_disk_read(struct gpd_image_disk *disk, const uint8_t sha256[32], size_t size);

/* Also deletes the files that were used longest ago when there is too much. */
void gpd_image_disk_write(struct gpd_image_disk *disk, const uint8_t sha256[32], const void *bytes,
			  size_t size);

#endif /* GPD_IMAGE_DISK_H */
