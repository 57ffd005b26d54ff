/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/array_geometry.h"

/* Larger than any device's limits, and small enough that no product below overflows. */
#define WIDTH_MAX ((uint64_t)1 << 18)
#define HEIGHT_MAX ((uint64_t)1 << 20)
#define DEPTH_MAX ((uint64_t)1 << 16)

#define FLAGS                                                                                      \
	(CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |                 \
	 CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_SPARSE)
/* Graphics interoperability, and arrays whose memory the application maps itself. */
#define FLAGS_NOT_SUPPORTED                                                                        \
	(CUDA_ARRAY3D_DEPTH_TEXTURE | CUDA_ARRAY3D_COLOR_ATTACHMENT |                              \
	 CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_VIDEO_ENCODE_DECODE)

/* A GPU tile is 64 bytes by 8 rows. Tiles are stacked in blocks of up to 32 tiles in height and 32
 * slices in depth, smaller for smaller arrays; an array occupies whole blocks. */
#define TILE_WIDTH 64
#define TILE_HEIGHT 8
/* Arrays of at least LARGE_MIN have pages of their own; smaller ones occupy multiples of SMALL_PART
 * in a shared page. */
#define LARGE_MIN ((uint64_t)1 << 20)
#define SMALL_PART ((uint64_t)32 << 10)
#define LARGE_PAGE ((uint64_t)2 << 20)
/* A GPU's page tables need 16 bytes for 64 KiB of addresses. */
#define TABLE_RATIO 4096
#define BLOCK_MAX 32

static uint32_t
channel_get_size(uint32_t format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4;
	default:
		return 0;
	}
}

/* The number of channels is part of the normalized formats. */
static uint32_t
normalized_get_element_size(uint32_t format, uint32_t *channels_p)
{
	static const uint8_t channels[] = { 1, 2, 4 };
	uint32_t index = format - CU_AD_FORMAT_UNORM_INT8X1;

	if (format < CU_AD_FORMAT_UNORM_INT8X1 || format > CU_AD_FORMAT_SNORM_INT16X4)
		return 0;
	*channels_p = channels[index % 3];
	return channels[index % 3] * (index / 3 % 2 ? 2 : 1);
}

uint32_t
gp_array_get_element_size(uint32_t format, uint32_t channels)
{
	uint32_t own, size = normalized_get_element_size(format, &own);

	if (size)
		return channels == own ? size : 0;
	return channels == 1 || channels == 2 || channels == 4 ? channels * channel_get_size(format)
							       : 0;
}

static bool
format_is_unsupported(uint32_t format)
{
	return format == CU_AD_FORMAT_UNORM_INT_101010_2 ||
	       (format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_Y410) ||
	       (format >= CU_AD_FORMAT_NV12 && format <= CU_AD_FORMAT_YUV444_16bit_SemiPlanar);
}

static CUresult
cube_check(const struct gp_array_shape *shape)
{
	bool layered = shape->flags & CUDA_ARRAY3D_LAYERED;

	if (shape->width != shape->height || shape->depth % 6 || (!layered && shape->depth != 6))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult
gp_array_check(const struct gp_array_shape *shape)
{
	bool layered = shape->flags & CUDA_ARRAY3D_LAYERED;

	if (shape->width == 0 || shape->width > WIDTH_MAX || shape->height > HEIGHT_MAX ||
	    shape->depth > DEPTH_MAX || (shape->flags & ~(uint32_t)(FLAGS | FLAGS_NOT_SUPPORTED)))
		return CUDA_ERROR_INVALID_VALUE;
	if ((shape->flags & FLAGS_NOT_SUPPORTED) || format_is_unsupported(shape->format))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!gp_array_get_element_size(shape->format, shape->channels) ||
	    shape->levels > gp_array_get_levels_max(shape))
		return CUDA_ERROR_INVALID_VALUE;
	if ((shape->flags & CUDA_ARRAY3D_TEXTURE_GATHER) && (shape->depth || !shape->height))
		return CUDA_ERROR_INVALID_VALUE;
	if (layered && shape->depth == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if ((shape->flags & CUDA_ARRAY3D_SPARSE) &&
	    (!shape->height || (shape->flags & (CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_SURFACE_LDST))))
		return CUDA_ERROR_INVALID_VALUE;
	if (shape->flags & CUDA_ARRAY3D_CUBEMAP)
		return shape->depth ? cube_check(shape) : CUDA_ERROR_INVALID_VALUE;
	return shape->depth && !shape->height && !layered ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static bool
shape_has_layers(const struct gp_array_shape *shape)
{
	return shape->flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
}

uint32_t
gp_array_get_levels_max(const struct gp_array_shape *shape)
{
	uint64_t largest = shape->width > shape->height ? shape->width : shape->height;
	uint32_t levels = 0;

	if (!shape_has_layers(shape) && shape->depth > largest)
		largest = shape->depth;
	for (; largest > 0 && levels < GP_ARRAY_LEVELS_MAX; largest >>= 1)
		levels++;
	return levels;
}

static uint64_t
level_shrink(uint64_t size, uint32_t level)
{
	return size && !(size >> level) ? 1 : size >> level;
}

struct gp_array_shape
gp_array_get_level_shape(const struct gp_array_shape *shape, uint32_t level)
{
	struct gp_array_shape of = *shape;

	of.width = level_shrink(shape->width, level);
	of.height = level_shrink(shape->height, level);
	of.depth = shape_has_layers(shape) ? shape->depth : level_shrink(shape->depth, level);
	of.levels = 0;
	return of;
}

struct gp_array_extent
gp_array_get_level_extent(const struct gp_array_shape *shape, uint32_t level)
{
	struct gp_array_shape of = gp_array_get_level_shape(shape, level);

	return (struct gp_array_extent){
		.width = of.width * gp_array_get_element_size(of.format, of.channels),
		.height = of.height ? of.height : 1,
		.depth = of.depth ? of.depth : 1,
	};
}

static bool
range_is_within(uint64_t at, uint64_t size, uint64_t end)
{
	return size > 0 && at <= end && size <= end - at;
}

bool
gp_array_contains(const struct gp_array_shape *shape, uint32_t level,
		  const struct gp_array_box *box)
{
	uint32_t element = gp_array_get_element_size(shape->format, shape->channels);
	struct gp_array_extent extent = gp_array_get_level_extent(shape, level);

	return box->x % element == 0 && box->width % element == 0 &&
	       range_is_within(box->x, box->width, extent.width) &&
	       range_is_within(box->y, box->height, extent.height) &&
	       range_is_within(box->z, box->depth, extent.depth);
}

static uint64_t
shape_count_levels(const struct gp_array_shape *shape)
{
	return shape->levels ? shape->levels : 1;
}

uint64_t
gp_array_get_bytes(const struct gp_array_shape *shape)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < shape_count_levels(shape); i++) {
		struct gp_array_extent extent = gp_array_get_level_extent(shape, i);

		sum += extent.width * extent.height * extent.depth;
	}
	return sum;
}

static uint64_t
round_up(uint64_t size, uint64_t to)
{
	return (size + to - 1) / to * to;
}

/* Returns the smallest sufficient power of two, at most BLOCK_MAX. */
static uint64_t
block_get_size(uint64_t count)
{
	uint64_t size = 1;

	while (size < count && size < BLOCK_MAX)
		size *= 2;
	return size;
}

uint64_t
gp_array_get_tiled_bytes(const struct gp_array_shape *shape)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < shape_count_levels(shape); i++) {
		struct gp_array_extent extent = gp_array_get_level_extent(shape, i);
		uint64_t tiles = round_up(extent.height, TILE_HEIGHT) / TILE_HEIGHT;
		uint64_t slices = shape_has_layers(shape)
					  ? extent.depth
					  : round_up(extent.depth, block_get_size(extent.depth));

		sum += round_up(extent.width, TILE_WIDTH) * round_up(tiles, block_get_size(tiles)) *
		       TILE_HEIGHT * slices;
	}
	return sum;
}

uint64_t
gp_array_get_footprint(const struct gp_array_shape *shape)
{
	uint64_t size = gp_array_get_tiled_bytes(shape), fit;

	/* A sparse array needs only the GPU's page tables. */
	if (shape->flags & CUDA_ARRAY3D_SPARSE)
		size /= TABLE_RATIO;
	if (size >= LARGE_MIN)
		return round_up(size, LARGE_PAGE);
	/* The rest of a page that is too small for another array is charged evenly to the arrays in
	 * the page. */
	fit = LARGE_PAGE / round_up(size ? size : 1, SMALL_PART);
	return (LARGE_PAGE + fit - 1) / fit;
}
