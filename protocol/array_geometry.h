/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Geometry of CUDA arrays, shared by the client, the daemon and the software device: validation of
 * array descriptions, dimensions of mipmap levels, bounds checks, and memory sizes. The client and
 * the daemon must compute the same values, because both validate copies.
 *
 * Threads: any; pure functions.
 * Units: bytes, unless elements are specified.
 */
#ifndef GP_ARRAY_GEOMETRY_H
#define GP_ARRAY_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

/* Some libraries of gpupool define functions that cuda.h declares, and must export them although
 * they are compiled with hidden visibility. The pragma declares them visible, also where this
 * header is the first to include cuda.h. */
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

/* Maximum number of mipmap levels. */
#define GP_ARRAY_LEVELS_MAX 21
/* Maximum number of arrays that a session may have. */
#define GP_ARRAYS_MAX 65536
/* Maximum size of a row of a valid shape, in bytes. */
#define GP_ARRAY_ROW_MAX ((uint64_t)4 << 20)

/* Description of an array. Has no padding, so that shapes can be compared with memcmp(). */
struct gp_array_shape {
	uint64_t width, height, depth; /* in elements, as in CUDA's array descriptor; 0: the array
					  lacks the dimension */
	uint32_t format;               /* CUarray_format */
	uint32_t channels;
	uint32_t flags;  /* CUDA_ARRAY3D_* */
	uint32_t levels; /* number of levels of a mipmapped array; 0: not mipmapped */
};

/* Initializers for the members of a struct gp_array_shape from the struct that `of` points to:
 * another shape, or a message with fields of these names (gpArrayCreate, gpArrayMake). Also
 * initializes such a message from a shape. */
#define GP_ARRAY_SHAPE(of)                                                                         \
	.width = (of)->width, .height = (of)->height, .depth = (of)->depth,                        \
	.format = (of)->format, .channels = (of)->channels, .flags = (of)->flags,                  \
	.levels = (of)->levels

/* Size of a level. Layers and cube map faces count as slices. No member is 0. */
struct gp_array_extent {
	uint64_t width, height, depth; /* bytes, rows, slices */
};

/* A box within a level: position and size. */
struct gp_array_box {
	uint64_t x, y, z;              /* bytes, rows, slices */
	uint64_t width, height, depth; /* bytes, rows, slices */
};

/* Validates a shape. Returns CUDA_SUCCESS; CUDA_ERROR_INVALID_VALUE: CUDA has no such array;
 * CUDA_ERROR_NOT_SUPPORTED: gpupool does not support it (compressed and planar formats, arrays for
 * graphics or video, deferred mapping). Sizes computed from a valid shape do not overflow; the
 * device may still reject it. */
CUresult gp_array_check(const struct gp_array_shape *shape);

/* Returns the bytes of an element; 0: invalid or unsupported format, or invalid number of
 * channels. */
uint32_t gp_array_get_element_size(uint32_t format, uint32_t channels);

/* Returns the maximum number of mipmap levels of an array of this size. Any shape is accepted;
 * `levels` is ignored. */
uint32_t gp_array_get_levels_max(const struct gp_array_shape *shape);

/* The functions below need a shape that gp_array_check() accepts, and a level below its `levels`,
 * or level 0 if it is not mipmapped. */

/* Returns the size of a mipmap level. */
struct gp_array_extent gp_array_get_level_extent(const struct gp_array_shape *shape,
						 uint32_t level);
/* Returns the shape that a level would have as an array of its own. */
struct gp_array_shape gp_array_get_level_shape(const struct gp_array_shape *shape, uint32_t level);
/* Returns whether the box consists of whole elements and lies within the level; false for an empty
 * box. */
bool gp_array_contains(const struct gp_array_shape *shape, uint32_t level,
		       const struct gp_array_box *box);
/* Returns the bytes of all elements of all levels, without the driver's padding. */
uint64_t gp_array_get_bytes(const struct gp_array_shape *shape);
/* Part of gp_array_get_footprint(), declared for tests: returns the bytes of all levels, rounded to
 * whole tiles of the driver, without the rounding to pages. Ignores CUDA_ARRAY3D_SPARSE. */
uint64_t gp_array_get_tiled_bytes(const struct gp_array_shape *shape);

/*
 * Returns the estimated device memory of an array in bytes, which counts against quotas; for a
 * sparse array that of its page tables. The driver pads arrays to its tiles and rounds to whole
 * pages, but does not report the size of an array that it has created (cuArrayGetMemoryRequirements
 * is for arrays whose memory the application maps), so the size is derived from the tiles as an
 * upper bound. Measured on an H200: 1000 by 1000 floats occupy 4 MiB, as estimated; small arrays
 * share pages: 64 arrays of 16 by 16 floats occupy 2 MiB, as estimated.
 */
uint64_t gp_array_get_footprint(const struct gp_array_shape *shape);

#endif /* GP_ARRAY_GEOMETRY_H */
