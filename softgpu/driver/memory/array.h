/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA arrays, plain and mipmapped.  Elements lie row after row in the device's range of addresses,
 * where calls do not take them for device memory; a level of a mipmapped array is an array that its
 * owner keeps.  A row of a sparse array is whole tiles of 64 KiB, which memory is mapped for
 * (sparse_array.c).
 */
#ifndef GS_ARRAY_H
#define GS_ARRAY_H

#include "protocol/array_tiles.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/object.h"

struct gs_array {
	struct gs_object object;
	int device;
	struct gp_array_shape shape; /* of a level: its own */
	struct gp_array_extent extent;
	uint8_t *memory;
	size_t pitch, slice;
	struct gs_array *levels; /* of a mipmapped array */
	size_t size;             /* of the whole: bytes that it has in the range of addresses */
};

#define GS_TILE_SIZE ((size_t)64 << 10)

/* As many bytes as a level of this shape has there, or an array without levels. */
size_t gs_array_level_size(const struct gp_array_shape *shape);

/* A new reference, or NULL: there is no such array. */
struct gs_array *gs_array_get(CUarray handle);
struct gs_array *gs_array_get_mipmapped(CUmipmappedArray handle);
void gs_array_put(struct gs_array *array);

/* With the context; texture.c's first, for they keep arrays. */
void gs_texture_destroy_all(void);
void gs_array_destroy_all(void);

#endif /* GS_ARRAY_H */
