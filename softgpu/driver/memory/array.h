/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA arrays, plain and mipmapped.  Elements lie row after row in the device's range of addresses,
 * where calls do not take them for device memory; a level of a mipmapped array is an array that its
 * owner keeps.
 */
#ifndef GS_ARRAY_H
#define GS_ARRAY_H

#include "protocol/array_geometry.h"
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
};

/* A new reference, or NULL: there is no such array. */
struct gs_array *gs_array_get(CUarray handle);
struct gs_array *gs_array_get_mipmapped(CUmipmappedArray handle);
void gs_array_put(struct gs_array *array);

/* With the context; texture.c's first, for they keep arrays. */
void gs_texture_destroy_all(void);
void gs_array_destroy_all(void);

#endif /* GS_ARRAY_H */
