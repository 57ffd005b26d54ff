/* SPDX-License-Identifier: Apache-2.0 */
#include "client/array/array.h"
#include "client/array/texture.h"
#include "gpc_calls.h"
#include "tests/unit/client/fake_wire.h"

#include <stdlib.h>
#include <string.h>

#define NO_HANDLE(call) assert_int_equal(call, CUDA_ERROR_INVALID_HANDLE)

static CUDA_ARRAY3D_DESCRIPTOR
floats(size_t width, size_t height, size_t depth)
{
	return (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = width,
		.Height = height,
		.Depth = depth,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 1,
	};
}

static CUarray
make(size_t width, size_t height, size_t depth)
{
	CUDA_ARRAY3D_DESCRIPTOR described = floats(width, height, depth);
	CUarray array = NULL;

	CU(gpc_cuArray3DCreate_v2(&array, &described));
	return array;
}

FAKE_WIRE_TEST(an_array_says_what_it_is_until_it_is_destroyed)
{
	CUarray array = make(20, 30, 0);
	CUDA_ARRAY3D_DESCRIPTOR seen;
	CUDA_ARRAY_DESCRIPTOR short_seen;
	struct gpc_array *found;

	CU(gpc_array_enter(array, &found));
	seen = gpc_array_get_descriptor_3d(found);
	assert_int_equal(seen.Width, 20);
	assert_int_equal(seen.Height, 30);
	assert_int_equal(seen.Depth, 0);
	short_seen = gpc_array_get_descriptor(found);
	assert_int_equal(short_seen.Height, 30);
	assert_int_equal(short_seen.Format, CU_AD_FORMAT_FLOAT);
	CU(gpc_cuArrayDestroy(array));
	assert_int_equal(fake_wire_arrays(), 0);
	NO_HANDLE(gpc_cuArrayDestroy(array));
	NO_HANDLE(gpc_array_enter(array, &found));
	NO_HANDLE(gpc_cuArrayDestroy(NULL));
}

static CUarray
make_pairs(size_t width, size_t height)
{
	CUDA_ARRAY3D_DESCRIPTOR described = floats(width, height, 0);
	CUarray array = NULL;

	described.NumChannels = 2;
	CU(gpc_cuArray3DCreate_v2(&array, &described));
	return array;
}

/* Sizes that some GPUs do not support are queried. */
FAKE_WIRE_TEST(arrays_come_out_of_credit)
{
	CUarray arrays[6];

	fake_wire_allow_credit();
	for (size_t i = 0; i < 4; i++)
		arrays[i] = make_pairs(20 + i, 30);
	assert_int_equal(fake.arrays_made, 4);
	arrays[4] = make_pairs(20000, 2);
	assert_int_equal(fake.arrays_made, 4);
	arrays[5] = make_pairs(20, 0);
	assert_int_equal(fake.arrays_made, 5);
	for (size_t i = 0; i < 6; i++)
		CU(gpc_cuArrayDestroy(arrays[i]));
	assert_int_equal(fake_wire_arrays(), 0);
	assert_int_equal(fake.allowance, 0);
}

FAKE_WIRE_TEST(what_cannot_be_an_array_does_not_travel)
{
	CUDA_ARRAY3D_DESCRIPTOR described = floats(0, 1, 0);
	CUarray array;

	INVALID(gpc_cuArray3DCreate_v2(&array, &described));
	INVALID(gpc_cuArray3DCreate_v2(&array, NULL));
	described.Width = 1 << 18;
	described.Height = 1 << 20;
	assert_int_equal(gpc_cuArray3DCreate_v2(&array, &described), CUDA_ERROR_OUT_OF_MEMORY);
	described.Flags = CUDA_ARRAY3D_SPARSE;
	assert_int_equal(gpc_cuArray3DCreate_v2(&array, &described), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(fake_wire_arrays(), 0);
}

FAKE_WIRE_TEST(levels_go_with_their_mipmapped_array)
{
	CUDA_ARRAY3D_DESCRIPTOR described = floats(64, 16, 0), seen;
	CUmipmappedArray mipmap;
	CUarray level, again;
	struct gpc_array *found;

	CU(gpc_cuMipmappedArrayCreate(&mipmap, &described, 100));
	CU(gpc_cuMipmappedArrayGetLevel(&level, mipmap, 6));
	CU(gpc_cuMipmappedArrayGetLevel(&again, mipmap, 6));
	assert_ptr_equal(level, again);
	INVALID(gpc_cuMipmappedArrayGetLevel(&again, mipmap, 7));
	CU(gpc_array_enter(level, &found));
	seen = gpc_array_get_descriptor_3d(found);
	assert_int_equal(seen.Width, 1);
	assert_int_equal(seen.Height, 1);
	NO_HANDLE(gpc_cuArrayDestroy(level));
	NO_HANDLE(gpc_cuArrayDestroy((CUarray)mipmap));
	CU(gpc_cuMipmappedArrayDestroy(mipmap));
	NO_HANDLE(gpc_array_enter(level, &found));
	NO_HANDLE(gpc_cuMipmappedArrayGetLevel(&level, mipmap, 0));
	assert_int_equal(fake_wire_arrays(), 0);
}

/* A box of a packed volume of the host's. */
static CUDA_MEMCPY3D
between(CUarray array, uint8_t *host, size_t width, size_t height, size_t depth, bool up)
{
	CUDA_MEMCPY3D copy = { .WidthInBytes = width, .Height = height, .Depth = depth };

	if (up) {
		copy.srcMemoryType = CU_MEMORYTYPE_HOST;
		copy.srcHost = host;
		copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
		copy.dstArray = array;
	} else {
		copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
		copy.srcArray = array;
		copy.dstMemoryType = CU_MEMORYTYPE_HOST;
		copy.dstHost = host;
	}
	return copy;
}

FAKE_WIRE_TEST(volumes_go_in_and_come_back)
{
	const size_t size = 400 * 50 * 6;
	uint8_t *out = fake_wire_pattern(size, 3), *back = calloc(1, size);
	CUarray array = make(100, 50, 6);
	CUDA_MEMCPY3D copy = between(array, out, 400, 50, 6, true);

	CU(gpc_cuMemcpy3D_v2(&copy));
	assert_int_equal(fake.barriers, 1);
	copy = between(array, back, 400, 50, 6, false);
	CU(gpc_cuMemcpy3D_v2(&copy));
	/* Slices that follow each other are one request. */
	assert_int_equal(fake.copies_out, 1);
	assert_memory_equal(back, out, size);
	/* With a gap between them they are one each. */
	memset(back, 0, size);
	copy = between(array, back, 40, 5, 6, false);
	copy.dstPitch = 400;
	copy.dstHeight = 50;
	copy.srcXInBytes = 8;
	copy.srcY = 7;
	CU(gpc_cuMemcpy3D_v2(&copy));
	assert_int_equal(fake.copies_out, 7);
	for (size_t row = 0; row < 30; row++)
		assert_memory_equal(back + (row / 5 * 50 + row % 5) * 400,
				    out + (row / 5 * 50 + row % 5 + 7) * 400 + 8, 40);
	CU(gpc_cuArrayDestroy(array));
	free(out);
	free(back);
}

FAKE_WIRE_TEST(rows_move_between_arrays_and_memory)
{
	uint8_t *out = fake_wire_pattern(400, 5), back[400] = { 0 };
	CUarray a = make(100, 0, 0), b = make(100, 0, 0);
	CUdeviceptr device = fake_wire_alloc(400);

	CU(gpc_cuMemcpyHtoA_v2(a, 0, out, 400));
	CU(gpc_cuMemcpyAtoA_v2(b, 100, a, 200, 200));
	CU(gpc_cuMemcpyAtoD_v2(device, b, 100, 200));
	assert_memory_equal(fake_wire_at(device), out + 200, 200);
	CU(gpc_cuMemcpyDtoA_v2(b, 0, device, 200));
	CU(gpc_cuMemcpyAtoH_v2(back, b, 0, 200));
	assert_memory_equal(back, out + 200, 200);
	INVALID(gpc_cuMemcpyHtoA_v2(a, 4, out, 400));
	INVALID(gpc_cuMemcpyHtoA_v2(a, 2, out, 4));
	INVALID(gpc_cuMemcpyAtoH_v2(back, a, SIZE_MAX - 3, 8));
	INVALID(gpc_cuMemcpyDtoA_v2(a, 0, device + 4, 400));
	CU(gpc_cuMemcpyHtoA_v2(a, 0, out, 0));
	CU(gpc_cuArrayDestroy(a));
	NO_HANDLE(gpc_cuMemcpyHtoA_v2(a, 0, out, 4));
	CU(gpc_cuArrayDestroy(b));
	free(out);
}

FAKE_WIRE_TEST(an_array_of_the_same_shape_is_had_again)
{
	CUDA_ARRAY3D_DESCRIPTOR described = floats(64, 16, 0);
	CUmipmappedArray mipmap, again;
	CUarray array = make(20, 30, 0), level;

	CU(gpc_cuArrayDestroy(array));
	NO_HANDLE(gpc_cuArrayDestroy(array));
	assert_ptr_not_equal(make(20, 31, 0), array);
	assert_ptr_equal(make(20, 30, 0), array);
	assert_ptr_not_equal(make(20, 30, 0), array);
	CU(gpc_cuMipmappedArrayCreate(&mipmap, &described, 3));
	CU(gpc_cuMipmappedArrayGetLevel(&level, mipmap, 1));
	CU(gpc_cuMipmappedArrayDestroy(mipmap));
	NO_HANDLE(gpc_cuArrayDestroy(level));
	CU(gpc_cuMipmappedArrayCreate(&again, &described, 3));
	assert_ptr_equal(again, mipmap);
	CU(gpc_cuMipmappedArrayGetLevel(&level, mipmap, 1));
	gpc_array_drop_context(fake.context);
	assert_int_equal(fake_wire_arrays(), 0);
}

FAKE_WIRE_TEST(an_object_that_is_just_the_same_is_had_again)
{
	CUDA_RESOURCE_DESC of = { .resType = CU_RESOURCE_TYPE_ARRAY };
	CUDA_TEXTURE_DESC sampled = { .filterMode = CU_TR_FILTER_MODE_LINEAR };
	CUtexObject texture, other;
	CUsurfObject surface;

	of.res.array.hArray = make(20, 30, 0);
	CU(gpc_cuTexObjectCreate(&texture, &of, &sampled, NULL));
	CU(gpc_cuTexObjectDestroy(texture));
	NO_HANDLE(gpc_cuTexObjectDestroy(texture));
	CU(gpc_cuSurfObjectCreate(&surface, &of));
	assert_int_not_equal(surface, texture);
	sampled.filterMode = CU_TR_FILTER_MODE_POINT;
	CU(gpc_cuTexObjectCreate(&other, &of, &sampled, NULL));
	assert_int_not_equal(other, texture);
	sampled.filterMode = CU_TR_FILTER_MODE_LINEAR;
	CU(gpc_cuTexObjectCreate(&other, &of, &sampled, NULL));
	assert_int_equal(other, texture);
	assert_int_equal(fake.objects, 3);
	CU(gpc_cuSurfObjectDestroy(surface));
	CU(gpc_cuSurfObjectCreate(&surface, &of));
	assert_int_equal(fake.objects, 3);
	gpc_texture_drop_context(fake.context);
	assert_int_equal(fake.objects, 0);
	gpc_array_drop_context(fake.context);
}

FAKE_WIRE_TEST(what_is_kept_of_an_array_goes_with_it)
{
	CUDA_RESOURCE_DESC of = { .resType = CU_RESOURCE_TYPE_ARRAY };
	CUarray array = make(20, 30, 0);
	CUsurfObject surface;

	of.res.array.hArray = array;
	CU(gpc_cuSurfObjectCreate(&surface, &of));
	CU(gpc_cuSurfObjectDestroy(surface));
	CU(gpc_cuArrayDestroy(array));
	assert_int_equal(fake.objects, 1);
	assert_int_equal(fake_wire_arrays(), 0);
	assert_int_equal(fake.objects, 0);
}

static CUsurfObject late;

static void
destroy_late(void)
{
	fake.array_destroyed = NULL;
	CU(gpc_cuSurfObjectDestroy(late));
	assert_int_equal(fake.objects, 0);
}

/* A later array can have its name, and would have an object of another one. */
FAKE_WIRE_TEST(nothing_of_an_array_is_kept_from_when_it_goes)
{
	CUDA_RESOURCE_DESC of = { .resType = CU_RESOURCE_TYPE_ARRAY };
	CUarray array = make(20, 30, 0);

	of.res.array.hArray = array;
	CU(gpc_cuSurfObjectCreate(&late, &of));
	fake.array_destroyed = destroy_late;
	CU(gpc_cuArrayDestroy(array));
	assert_int_equal(fake_wire_arrays(), 0);
	assert_null(fake.array_destroyed);
	assert_int_equal(fake.objects, 0);
}

FAKE_WIRE_TEST(what_work_still_uses_is_not_had_again)
{
	CUarray array = make(20, 30, 0);

	fake.lazy = true;
	fake.posted++;
	CU(gpc_cuArrayDestroy(array));
	fake.done = 0;
	fake.busy = true;
	assert_ptr_not_equal(make(20, 30, 0), array);
	fake.done = fake.posted;
	assert_ptr_equal(make(20, 30, 0), array);
	gpc_array_drop_context(fake.context);
}

FAKE_WIRE_TEST(a_context_takes_its_arrays_along)
{
	CUarray array = make(10, 10, 0);

	gpc_array_drop_context(fake.context);
	assert_int_equal(fake_wire_arrays(), 0);
	NO_HANDLE(gpc_cuArrayDestroy(array));
}

UNIT_TEST_MAIN(NULL, NULL)
