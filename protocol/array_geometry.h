/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Geometry of CUDA arrays, as client, daemon and software device reckon with it: which descriptions
 * are none, how large levels are, what lies inside them, and how much memory they take.  Pure
 * functions; sizes in bytes unless they say elements.
 */
#ifndef GP_ARRAY_H
#define GP_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

/* Who defines these functions means them to be seen outside, whatever it includes first. */
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#define GP_ARRAY_LEVELS_MAX 21
/* How many a session has. */
#define GP_ARRAYS_MAX 65536
/* Of a row of a shape that passes. */
#define GP_ARRAY_ROW_MAX ((uint64_t)4 << 20)

/* Without padding: it is compared as bytes. */
struct gp_array_shape {
	uint64_t width, height,
		depth;   /* elements, as CUDA describes them: 0 for what is not there */
	uint32_t format; /* CUarray_format */
	uint32_t channels;
	uint32_t flags;  /* CUDA_ARRAY3D_* */
	uint32_t levels; /* of a mipmapped array; 0: it is a plain one */
};

/* Its members as an initializer: of another shape, or of a message that has these fields, into
 * either (gpArrayCreate, gpArrayMake). */
#define GP_ARRAY_SHAPE(of)                                                                         \
	.width = (of)->width, .height = (of)->height, .depth = (of)->depth,                        \
	.format = (of)->format, .channels = (of)->channels, .flags = (of)->flags,                  \
	.levels = (of)->levels

/* A level, or a box in one: bytes, rows, slices (layers and faces are slices); none of them 0. */
struct gp_array_extent {
	uint64_t width, height, depth;
};

struct gp_array_box {
	uint64_t x, y, z; /* bytes, rows, slices */
	uint64_t width, height, depth;
};

/* CUDA_ERROR_INVALID_VALUE: CUDA has no such array; CUDA_ERROR_NOT_SUPPORTED: gpupool has not
 * (compressed and planar formats).  A shape that passes has sizes far from overflow;
 * the device may still refuse it. */
CUresult gp_array_check(const struct gp_array_shape *shape);

/* Of an element; 0: there is no such format. */
uint32_t gp_array_get_element_size(uint32_t format, uint32_t channels);

/* As many levels as make sense of such an array. */
uint32_t gp_array_get_levels_max(const struct gp_array_shape *shape);

/* These are of shapes that have passed; level is less than levels (0 of a plain array). */
struct gp_array_extent gp_array_get_level_extent(const struct gp_array_shape *shape,
						 uint32_t level);
/* What a level would be as an array of its own. */
struct gp_array_shape gp_array_get_level_shape(const struct gp_array_shape *shape, uint32_t level);
/* Whether the box has whole elements and lies in the level; an empty box does not. */
bool gp_array_contains(const struct gp_array_shape *shape, uint32_t level,
		       const struct gp_array_box *box);
/* All elements of all levels, without padding. */
uint64_t gp_array_get_bytes(const struct gp_array_shape *shape);
/* An upper bound of the memory that a GPU needs for it: whole tiles. */
uint64_t gp_array_get_tiled_bytes(const struct gp_array_shape *shape);

/*
 * What the driver takes for such an array.  It pads arrays to its tiles and gives them whole pages,
 * and says of no array that it has made how much that was (cuArrayGetMemoryRequirements is for
 * arrays whose memory the application maps).  So this is reckoned from the tiles, as a bound: on an
 * H200, 1000 by 1000 floats take 4 MiB, as they do here; small ones share pages, 64 of 16 by 16
 * floats 2 MiB, which is what they are charged.
 */
uint64_t gp_array_get_footprint(const struct gp_array_shape *shape);

#endif /* GP_ARRAY_H */
