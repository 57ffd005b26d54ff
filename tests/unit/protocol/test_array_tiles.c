/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/array_tiles.h"
#include "tests/test.h"

#define TILE ((uint64_t)64 << 10)

static const struct gp_array_tiling flat = { .width = 128, .height = 128, .depth = 1 };
static const struct gp_array_shape floats = { .width = 300,
					      .height = 256,
					      .format = CU_AD_FORMAT_FLOAT,
					      .channels = 1,
					      .flags = CUDA_ARRAY3D_SPARSE };

static uint64_t
bytes(const struct gp_array_shape *shape, const struct gp_array_tiling *tiling,
      struct gp_array_tiles tiles)
{
	return gp_array_tiles_get_bytes(shape, tiling, &tiles);
}

UNIT_TEST(a_part_is_whole_tiles_but_at_the_edge)
{
	const struct gp_array_tiles one = { .width = 128, .height = 128, .depth = 1 };
	struct gp_array_tiles part = one;

	assert_int_equal(bytes(&floats, &flat, one), TILE);
	part.width = 300;
	part.height = 256;
	assert_int_equal(bytes(&floats, &flat, part), 6 * TILE);
	part.width = 384;
	assert_int_equal(bytes(&floats, &flat, part), 6 * TILE);
	part.width = 512;
	assert_int_equal(bytes(&floats, &flat, part), 0);
	part = one;
	part.x = 256;
	part.width = 44;
	assert_int_equal(bytes(&floats, &flat, part), TILE);
	part.width = 43;
	assert_int_equal(bytes(&floats, &flat, part), 0);
	part = one;
	part.x = 1;
	assert_int_equal(bytes(&floats, &flat, part), 0);
	part.x = 384;
	assert_int_equal(bytes(&floats, &flat, part), 0);
	part = one;
	part.height = UINT32_MAX;
	assert_int_equal(bytes(&floats, &flat, part), 0);
	part = one;
	part.depth = 2;
	assert_int_equal(bytes(&floats, &flat, part), 0);
}

UNIT_TEST(layers_have_tiles_of_their_own)
{
	struct gp_array_shape layered = floats;
	struct gp_array_tiles part = { .width = 128, .height = 128, .depth = 1, .layer = 2 };

	assert_int_equal(bytes(&floats, &flat, part), 0);
	layered.flags |= CUDA_ARRAY3D_LAYERED;
	layered.depth = 3;
	assert_int_equal(bytes(&layered, &flat, part), TILE);
	part.layer = 3;
	assert_int_equal(bytes(&layered, &flat, part), 0);
	part.layer = 0;
	part.z = 1;
	assert_int_equal(bytes(&layered, &flat, part), 0);
}

UNIT_TEST(levels_below_a_tile_are_the_tail)
{
	const struct gp_array_tiling tiling = {
		.width = 128, .height = 128, .depth = 1, .tail_level = 2, .tail_size = TILE
	};
	struct gp_array_shape levels = floats;
	struct gp_array_tiles part = { .width = 128, .height = 128, .depth = 1, .level = 1 };
	struct gp_array_tiles tail = { .tail = 1, .tail_size = TILE };

	levels.levels = 5;
	assert_int_equal(bytes(&levels, &tiling, part), TILE);
	part.level = 2;
	assert_int_equal(bytes(&levels, &tiling, part), 0);
	assert_int_equal(bytes(&levels, &tiling, tail), TILE);
	assert_int_equal(bytes(&levels, &flat, tail), 0);
	tail.tail_offset = TILE;
	assert_int_equal(bytes(&levels, &tiling, tail), 0);
	tail.tail_offset = UINT64_MAX - TILE + 1;
	assert_int_equal(bytes(&levels, &tiling, tail), 0);
	tail = (struct gp_array_tiles){ .tail = 1, .tail_size = TILE, .layer = 1 };
	assert_int_equal(bytes(&levels, &tiling, tail), 0);
}

UNIT_TEST(what_no_device_has_is_none)
{
	const struct gp_array_tiles one = { .width = 128, .height = 128, .depth = 1 };
	struct gp_array_tiling tiling = flat;
	struct gp_array_shape dense = floats;

	dense.flags = 0;
	assert_int_equal(bytes(&dense, &flat, one), 0);
	tiling.width = 0;
	assert_int_equal(bytes(&floats, &tiling, one), 0);
	tiling = (struct gp_array_tiling){ .width = UINT32_MAX,
					   .height = UINT32_MAX,
					   .depth = UINT32_MAX };
	assert_int_equal(bytes(&floats, &tiling, one), 0);
	tiling = (struct gp_array_tiling){ .width = 65536, .height = 65536, .depth = 65536 };
	assert_int_equal(gp_array_tile_get_bytes(&floats, &tiling), 0);
}

UNIT_TEST_MAIN(NULL, NULL)
