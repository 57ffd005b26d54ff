/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/array_tiles.h"

/* Larger than a tile of any device, and small enough that no product below overflows. */
#define TILE_SIDE_MAX ((uint32_t)1 << 16)
#define TILE_BYTES_MAX ((uint64_t)1 << 24)

uint64_t
gp_array_tile_get_bytes(const struct gp_array_shape *shape, const struct gp_array_tiling *tiling)
{
	uint64_t bytes;

	if (tiling->width > TILE_SIDE_MAX || tiling->height > TILE_SIDE_MAX ||
	    tiling->depth > TILE_SIDE_MAX)
		return 0;
	bytes = (uint64_t)tiling->width * tiling->height;
	if (bytes > TILE_BYTES_MAX)
		return 0;
	bytes *=
		(uint64_t)tiling->depth * gp_array_get_element_size(shape->format, shape->channels);
	return bytes <= TILE_BYTES_MAX ? bytes : 0;
}

/* Returns the number of tiles of a part of an axis; 0: the part is invalid. The last tile of the
 * axis may be incomplete. */
static uint64_t
axis_count_tiles(uint64_t at, uint64_t count, uint64_t size, uint64_t tile)
{
	const uint64_t all = (size + tile - 1) / tile * tile;

	if (at % tile || count == 0 || at >= size || count > all - at)
		return 0;
	return count % tile == 0 || at + count == size ? (count + tile - 1) / tile : 0;
}

static uint64_t
tail_get_bytes(const struct gp_array_shape *shape, const struct gp_array_tiling *tiling,
	       const struct gp_array_tiles *tiles, uint64_t tile)
{
	bool single = tiling->flags & CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL;
	uint64_t layers = shape->flags & CUDA_ARRAY3D_LAYERED && !single ? shape->depth : 1;

	if (tiles->layer >= layers || tiles->tail_offset % tile || tiles->tail_size % tile ||
	    tiles->tail_offset > tiling->tail_size ||
	    tiles->tail_size > tiling->tail_size - tiles->tail_offset)
		return 0;
	return tiles->tail_size;
}

static uint64_t
level_get_bytes(const struct gp_array_shape *shape, const struct gp_array_tiling *tiling,
		const struct gp_array_tiles *tiles, uint64_t tile)
{
	bool layered = shape->flags & CUDA_ARRAY3D_LAYERED;
	struct gp_array_shape level;

	if (tiles->level >= (shape->levels ? shape->levels : 1) ||
	    (tiling->tail_size && tiles->level >= tiling->tail_level))
		return 0;
	level = gp_array_get_level_shape(shape, tiles->level);
	if (tiles->layer >= (layered ? level.depth : 1))
		return 0;
	return tile * axis_count_tiles(tiles->x, tiles->width, level.width, tiling->width) *
	       axis_count_tiles(tiles->y, tiles->height, level.height, tiling->height) *
	       axis_count_tiles(tiles->z, tiles->depth, layered || !level.depth ? 1 : level.depth,
				tiling->depth);
}

uint64_t
gp_array_tiles_get_bytes(const struct gp_array_shape *shape, const struct gp_array_tiling *tiling,
			 const struct gp_array_tiles *tiles)
{
	uint64_t tile = gp_array_tile_get_bytes(shape, tiling);

	if (!(shape->flags & CUDA_ARRAY3D_SPARSE) || tile == 0 || tiles->tail > 1)
		return 0;
	return tiles->tail ? tail_get_bytes(shape, tiling, tiles, tile)
			   : level_get_bytes(shape, tiling, tiles, tile);
}
