/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/array_geometry.h"
#include "tests/test.h"

static struct gp_array_shape
floats(uint64_t width, uint64_t height, uint64_t depth, uint32_t flags)
{
	return (struct gp_array_shape){
		.width = width,
		.height = height,
		.depth = depth,
		.format = CU_AD_FORMAT_FLOAT,
		.channels = 1,
		.flags = flags,
	};
}

static CUresult
check(uint64_t width, uint64_t height, uint64_t depth, uint32_t flags)
{
	struct gp_array_shape shape = floats(width, height, depth, flags);

	return gp_array_check(&shape);
}

UNIT_TEST(shapes_are_those_that_cuda_has)
{
	assert_int_equal(check(1, 0, 0, 0), CUDA_SUCCESS);
	assert_int_equal(check(7, 5, 0, 0), CUDA_SUCCESS);
	assert_int_equal(check(7, 5, 3, 0), CUDA_SUCCESS);
	assert_int_equal(check(7, 0, 3, CUDA_ARRAY3D_LAYERED), CUDA_SUCCESS);
	assert_int_equal(check(7, 5, 3, CUDA_ARRAY3D_LAYERED), CUDA_SUCCESS);
	assert_int_equal(check(8, 8, 6, CUDA_ARRAY3D_CUBEMAP), CUDA_SUCCESS);
	assert_int_equal(check(8, 8, 12, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED),
			 CUDA_SUCCESS);
	assert_int_equal(check(8, 8, 0, CUDA_ARRAY3D_TEXTURE_GATHER), CUDA_SUCCESS);

	assert_int_equal(check(0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(check(7, 0, 3, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(check(7, 5, 0, CUDA_ARRAY3D_LAYERED), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(check(8, 7, 6, CUDA_ARRAY3D_CUBEMAP), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(check(8, 8, 12, CUDA_ARRAY3D_CUBEMAP), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(check(8, 8, 7, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(check(8, 8, 2, CUDA_ARRAY3D_TEXTURE_GATHER), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(check(UINT64_MAX, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(check(8, 8, 0, 1u << 30), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(check(8, 8, 0, CUDA_ARRAY3D_DEFERRED_MAPPING), CUDA_ERROR_NOT_SUPPORTED);

	assert_int_equal(check(8, 8, 0, CUDA_ARRAY3D_SPARSE), CUDA_SUCCESS);
	assert_int_equal(check(8, 8, 3, CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_LAYERED), CUDA_SUCCESS);
	assert_int_equal(check(8, 8, 0, CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_SURFACE_LDST),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(check(8, 0, 0, CUDA_ARRAY3D_SPARSE), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(check(8, 8, 6, CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_CUBEMAP),
			 CUDA_ERROR_INVALID_VALUE);
}

UNIT_TEST(elements_have_1_2_or_4_channels)
{
	assert_int_equal(gp_array_get_element_size(CU_AD_FORMAT_UNSIGNED_INT8, 1), 1);
	assert_int_equal(gp_array_get_element_size(CU_AD_FORMAT_HALF, 2), 4);
	assert_int_equal(gp_array_get_element_size(CU_AD_FORMAT_SIGNED_INT32, 4), 16);
	assert_int_equal(gp_array_get_element_size(CU_AD_FORMAT_FLOAT, 3), 0);
	assert_int_equal(gp_array_get_element_size(CU_AD_FORMAT_FLOAT, 0), 0);
	assert_int_equal(gp_array_get_element_size(0x1000, 1), 0);
	assert_int_equal(gp_array_get_element_size(CU_AD_FORMAT_UNORM_INT8X4, 4), 4);
	assert_int_equal(gp_array_get_element_size(CU_AD_FORMAT_UNORM_INT8X4, 1), 0);
	assert_int_equal(gp_array_get_element_size(CU_AD_FORMAT_SNORM_INT16X2, 2), 4);
	assert_int_equal(gp_array_get_element_size(CU_AD_FORMAT_SNORM_INT16X4, 4), 8);
}

UNIT_TEST(levels_halve_what_is_no_layer)
{
	struct gp_array_shape shape = floats(100, 40, 6, CUDA_ARRAY3D_LAYERED);
	struct gp_array_extent extent;

	assert_int_equal(gp_array_get_levels_max(&shape), 7);
	shape.levels = 7;
	assert_int_equal(gp_array_check(&shape), CUDA_SUCCESS);
	extent = gp_array_get_level_extent(&shape, 2);
	assert_int_equal(extent.width, 100);
	assert_int_equal(extent.height, 10);
	assert_int_equal(extent.depth, 6);
	extent = gp_array_get_level_extent(&shape, 6);
	assert_int_equal(extent.width, 4);
	assert_int_equal(extent.height, 1);
	shape.levels = 8;
	assert_int_equal(gp_array_check(&shape), CUDA_ERROR_INVALID_VALUE);
	shape = floats(4, 4, 256, 0);
	assert_int_equal(gp_array_get_levels_max(&shape), 9);
	assert_int_equal(gp_array_get_level_extent(&shape, 3).depth, 32);
}

static bool
contains(const struct gp_array_shape *shape, uint64_t x, uint64_t y, uint64_t z, uint64_t width,
	 uint64_t height, uint64_t depth)
{
	const struct gp_array_box box = { x, y, z, width, height, depth };

	return gp_array_contains(shape, 0, &box);
}

UNIT_TEST(boxes_have_whole_elements_inside)
{
	struct gp_array_shape shape = floats(10, 4, 3, 0);

	assert_true(contains(&shape, 0, 0, 0, 40, 4, 3));
	assert_true(contains(&shape, 36, 3, 2, 4, 1, 1));
	assert_false(contains(&shape, 38, 0, 0, 2, 1, 1));
	assert_false(contains(&shape, 0, 0, 0, 44, 1, 1));
	assert_false(contains(&shape, 4, 0, 0, 40, 1, 1));
	assert_false(contains(&shape, 0, 0, 0, 0, 1, 1));
	assert_false(contains(&shape, 0, 4, 0, 4, 1, 1));
	assert_false(contains(&shape, 0, 0, 3, 4, 1, 1));
	assert_false(contains(&shape, UINT64_MAX - 3, 0, 0, 8, 1, 1));
	assert_false(contains(&shape, 0, UINT64_MAX, 0, 4, 2, 1));
}

UNIT_TEST(tiles_are_a_bound_of_what_a_gpu_takes)
{
	struct gp_array_shape shape = floats(1000, 1000, 0, 0);

	/* On an H200 this one takes 4 MiB. */
	assert_in_range(gp_array_get_tiled_bytes(&shape), gp_array_get_bytes(&shape), 4 << 20);
	shape = floats(4096, 4096, 0, 0);
	assert_int_equal(gp_array_get_tiled_bytes(&shape), 64 << 20);
	shape = floats(1024, 512, 0, 0);
	assert_int_equal(gp_array_get_tiled_bytes(&shape), 2 << 20);
	shape = floats(1, 1, 1, 0);
	assert_int_equal(gp_array_get_bytes(&shape), 4);
	assert_int_equal(gp_array_get_tiled_bytes(&shape), 512);
	/* The largest that passes. */
	shape = floats(1 << 18, 1 << 20, 1 << 16, 0);
	shape.channels = 4;
	assert_int_equal(gp_array_check(&shape), CUDA_SUCCESS);
	assert_true(gp_array_get_tiled_bytes(&shape) >= gp_array_get_bytes(&shape));
	assert_true(gp_array_get_bytes(&shape) == (uint64_t)1 << 58);
	assert_true(gp_array_get_level_extent(&shape, 0).width == GP_ARRAY_ROW_MAX);
}

UNIT_TEST_MAIN(NULL, NULL)
