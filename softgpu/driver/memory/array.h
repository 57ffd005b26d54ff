/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA arrays, plain and mipmapped.
 *
 * Elements are stored row by row in the device's address range, but calls do not accept this
 * address as device memory. A level of a mipmapped array is an array whose owner (object.h) is the
 * mipmapped array. A row of a sparse array consists of whole tiles of 64 KiB, to which memory is
 * mapped (sparse_array.c).
 * Ownership: reference counted (object.h).
 * Threads: any; arrays do not change after creation, except for the mapped tiles.
 */
#ifndef GS_ARRAY_H
#define GS_ARRAY_H

#include "protocol/array_tiles.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/object.h"

struct gs_array {
	struct gs_object object;
	int device;
	/* Of a level: its own shape, not that of the mipmapped array. */
	struct gp_array_shape shape;
	struct gp_array_extent extent; /* size in elements */
	uint8_t *memory;               /* device address of the first element */
	/* Bytes from one row to the next, and from one slice or layer to the next. */
	size_t pitch, slice;
	/* Of a mipmapped array: one per level, owned by it; otherwise NULL. */
	struct gs_array *levels;
	size_t size; /* bytes of the whole array in the address range */
};

#define GS_TILE_SIZE ((size_t)64 << 10)

/* Returns the bytes of a level of this shape, or of an array without levels. */
size_t gs_array_level_size(const struct gp_array_shape *shape);

/* gs_array_get() and gs_array_get_mipmapped() return a new reference, which gs_array_put() drops.
 * NULL: unknown handle. */
struct gs_array *gs_array_get(CUarray handle);
struct gs_array *gs_array_get_mipmapped(CUmipmappedArray handle);
void gs_array_put(struct gs_array *array);

/* Destroys all texture and surface objects when the context ends. Called before
 * gs_array_destroy_all(), because they have references to arrays. */
void gs_texture_destroy_all(void);
/* Destroys all arrays when the context ends. */
void gs_array_destroy_all(void);

#endif /* GS_ARRAY_H */
