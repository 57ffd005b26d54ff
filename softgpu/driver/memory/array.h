/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA arrays, plain and mipmapped. Elements are stored row by row in the device's address range,
 * but are not accepted as device memory by calls. A level of a mipmapped array is an array that its
 * owner keeps alive. A row of a sparse array consists of whole tiles of 64 KiB, to which memory is
 * mapped (sparse_array.c).
 *
 * Ownership: reference counted.
 * Threads: any.
 */
#ifndef GS_ARRAY_H
#define GS_ARRAY_H

#include "protocol/array_tiles.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/object.h"

struct gs_array {
	struct gs_object object;
	int device;
	struct gp_array_shape shape; /* of a level: the level's own shape */
	struct gp_array_extent extent;
	uint8_t *memory;
	size_t pitch, slice;
	struct gs_array *levels; /* of a mipmapped array */
	size_t size;             /* bytes of the whole array in the address range */
};

#define GS_TILE_SIZE ((size_t)64 << 10)

/* Returns the bytes of a level of this shape, or of an array without levels. */
size_t gs_array_level_size(const struct gp_array_shape *shape);

/* Return a new reference, or NULL: unknown array. */
struct gs_array *gs_array_get(CUarray handle);
struct gs_array *gs_array_get_mipmapped(CUmipmappedArray handle);
void gs_array_put(struct gs_array *array);

/* Called when the context ends; textures first, because they hold references to arrays. */
void gs_texture_destroy_all(void);
void gs_array_destroy_all(void);

#endif /* GS_ARRAY_H */
