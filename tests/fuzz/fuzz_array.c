/* SPDX-License-Identifier: Apache-2.0 */
/* The description of an array, a box in it, and a part of it with tiles: accepted inputs have
 * consistent sizes. */
#include "protocol/array_tiles.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool holds)
{
	if (!holds)
		abort();
}

static void
check_level(const struct gp_array_shape *shape, uint32_t level, const struct gp_array_box *box)
{
	struct gp_array_extent extent = gp_array_get_level_extent(shape, level);
	struct gp_array_shape alone = gp_array_get_level_shape(shape, level);
	struct gp_array_box whole = { .width = extent.width,
				      .height = extent.height,
				      .depth = extent.depth };

	check(extent.width && extent.height && extent.depth);
	check(extent.width <= GP_ARRAY_ROW_MAX);
	check(gp_array_contains(shape, level, &whole));
	check(gp_array_get_bytes(&alone) == extent.width * extent.height * extent.depth);
	if (gp_array_contains(shape, level, box))
		check(box->x < extent.width && box->width <= extent.width - box->x &&
		      box->y < extent.height && box->height <= extent.height - box->y &&
		      box->z < extent.depth && box->depth <= extent.depth - box->z);
}

static void
check_tiles(const struct gp_array_shape *shape, const uint8_t *data, size_t size)
{
	struct {
		struct gp_array_tiling tiling;
		struct gp_array_tiles tiles;
	} input;
	uint64_t bytes, tile;
	struct gp_array_shape level;

	if (size < sizeof(input))
		return;
	memcpy(&input, data, sizeof(input));
	bytes = gp_array_tiles_get_bytes(shape, &input.tiling, &input.tiles);
	if (bytes == 0)
		return;
	tile = gp_array_tile_get_bytes(shape, &input.tiling);
	check((shape->flags & CUDA_ARRAY3D_SPARSE) && tile > 0 && bytes % tile == 0);
	if (input.tiles.tail) {
		check(input.tiles.tail_size <= input.tiling.tail_size);
		return;
	}
	level = gp_array_get_level_shape(shape, input.tiles.level);
	check(input.tiles.x < level.width && input.tiles.y < level.height);
	check(bytes / tile <= level.width * level.height * (level.depth ? level.depth : 1));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct {
		struct gp_array_shape shape;
		struct gp_array_box box;
	} input;
	uint32_t levels;

	if (size < sizeof(input))
		return 0;
	memcpy(&input, data, sizeof(input));
	if (gp_array_check(&input.shape) != CUDA_SUCCESS)
		return 0;
	levels = input.shape.levels ? input.shape.levels : 1;
	check(levels <= GP_ARRAY_LEVELS_MAX);
	for (uint32_t level = 0; level < levels; level++)
		check_level(&input.shape, level, &input.box);
	check(gp_array_get_tiled_bytes(&input.shape) >= gp_array_get_bytes(&input.shape));
	check_tiles(&input.shape, data + sizeof(input), size - sizeof(input));
	return 0;
}
