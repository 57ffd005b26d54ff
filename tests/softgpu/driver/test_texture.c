/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays, textures and surfaces, and kernels that use an invalid one. */
#include "tests/softgpu/driver/common.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static CUDA_ARRAY3D_DESCRIPTOR
floats(size_t width, size_t height, size_t depth, unsigned int flags)
{
	return (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = width,
		.Height = height,
		.Depth = depth,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 1,
		.Flags = flags,
	};
}

static size_t
available(void)
{
	size_t available, total;

	check(cuMemGetInfo_v2(&available, &total));
	return available;
}

/* In a process of its own: 0 if the kernel ends with this result. */
static int
run_touch(CUsurfObject surface, int x, CUresult wanted)
{
	CUdeviceptr out;
	void *params[] = { &surface, &x, &out };

	if (cuMemAlloc_v2(&out, 4) ||
	    cuLaunchKernel(gs_test_kernel("touch"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL))
		return 1;
	return cuCtxSynchronize() != wanted;
}

static int
surface_of_nothing(void)
{
	return run_touch(0x12345, 0, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static CUsurfObject
make_surface(void)
{
	CUDA_ARRAY3D_DESCRIPTOR described = floats(16, 0, 0, CUDA_ARRAY3D_SURFACE_LDST);
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_ARRAY };
	CUsurfObject surface = 0;

	(void)cuArray3DCreate_v2(&resource.res.array.hArray, &described);
	(void)cuSurfObjectCreate(&surface, &resource);
	return surface;
}

static int
inside_a_surface(void)
{
	return run_touch(make_surface(), 60, CUDA_SUCCESS);
}

static int
outside_a_surface(void)
{
	return run_touch(make_surface(), 64, CUDA_ERROR_LAUNCH_FAILED);
}

static int
a_surface_that_is_gone(void)
{
	CUsurfObject surface = make_surface();

	return cuSurfObjectDestroy(surface) || run_touch(surface, 0, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static int
run_in_child(int (*part)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)!freopen("/dev/null", "w", stderr);
		gs_test_deadline(30);
		_exit(gs_test_setup(NULL) ? 2 : part());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* Runs before this process uses the device, so that the forked children have no device yet. */
UNIT_TEST(wrong_surfaces_are_faults)
{
	assert_int_equal(run_in_child(inside_a_surface), 0);
	assert_int_equal(run_in_child(surface_of_nothing), 0);
	assert_int_equal(run_in_child(outside_a_surface), 0);
	assert_int_equal(run_in_child(a_surface_that_is_gone), 0);
}

#define TEST(test) UNIT_TEST_WITH(test, gs_test_setup, gs_test_teardown)

TEST(arrays_use_memory_within_the_limits_of_the_device)
{
	CUDA_ARRAY3D_DESCRIPTOR described = floats(1024, 1024, 0, 0), seen;
	size_t before = available();
	CUarray array;

	check(cuArray3DCreate_v2(&array, &described));
	assert_int_equal(available(), before - 4 * GS_MIB);
	check(cuArray3DGetDescriptor_v2(&seen, array));
	assert_int_equal(seen.Width, 1024);
	assert_int_equal(seen.Height, 1024);
	assert_int_equal(seen.Depth, 0);
	assert_int_equal(seen.Format, CU_AD_FORMAT_FLOAT);
	check(cuArrayDestroy(array));
	assert_int_equal(available(), before);
	check_is(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
	check_is(cuArray3DGetDescriptor_v2(&seen, array), CUDA_ERROR_INVALID_HANDLE);

	described = floats(131073, 0, 0, 0);
	check_is(cuArray3DCreate_v2(&array, &described), CUDA_ERROR_INVALID_VALUE);
	described = floats(8, 65537, 0, 0);
	check_is(cuArray3DCreate_v2(&array, &described), CUDA_ERROR_INVALID_VALUE);
	described = floats(8, 8, 16385, 0);
	check_is(cuArray3DCreate_v2(&array, &described), CUDA_ERROR_INVALID_VALUE);
	described = floats(8, 8, 2049, CUDA_ARRAY3D_LAYERED);
	check_is(cuArray3DCreate_v2(&array, &described), CUDA_ERROR_INVALID_VALUE);
	described = floats(16384, 16384, 0, 0);
	check_is(cuArray3DCreate_v2(&array, &described), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(available(), before);
}

TEST(levels_are_arrays_of_their_array)
{
	CUDA_ARRAY3D_DESCRIPTOR described = floats(64, 16, 0, 0), seen;
	CUmipmappedArray mipmap;
	CUarray level;

	check(cuMipmappedArrayCreate(&mipmap, &described, 99));
	check(cuMipmappedArrayGetLevel(&level, mipmap, 2));
	check(cuArray3DGetDescriptor_v2(&seen, level));
	assert_int_equal(seen.Width, 16);
	assert_int_equal(seen.Height, 4);
	check_is(cuArrayDestroy(level), CUDA_ERROR_INVALID_HANDLE);
	check_is(cuMipmappedArrayGetLevel(&level, mipmap, 7), CUDA_ERROR_INVALID_VALUE);
	check(cuMipmappedArrayDestroy(mipmap));
	check_is(cuArray3DGetDescriptor_v2(&seen, level), CUDA_ERROR_INVALID_HANDLE);
}

static CUtexObject
make_texture(CUarray array, unsigned int flags)
{
	const CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_ARRAY,
					      .res.array.hArray = array };
	const CUDA_TEXTURE_DESC description = {
		.addressMode = { CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP },
		.filterMode = CU_TR_FILTER_MODE_LINEAR,
		.flags = flags,
	};
	CUtexObject texture;

	check(cuTexObjectCreate(&texture, &resource, &description, NULL));
	return texture;
}

static float
fetch_texel(CUtexObject texture, float x, float y)
{
	CUdeviceptr out;
	float found;
	void *params[] = { &texture, &x, &y, &out };

	check(cuMemAlloc_v2(&out, sizeof(found)));
	check(cuLaunchKernel(gs_test_kernel("fetch_texel"), 1, 1, 1, 1, 1, 1, 0, NULL, params,
			     NULL));
	check(cuMemcpyDtoH_v2(&found, out, sizeof(found)));
	check(cuMemFree_v2(out));
	return found;
}

TEST(a_texture_keeps_its_array)
{
	const float values[8] = { 1, 2, 3, 4, 10, 20, 30, 40 };
	CUDA_ARRAY3D_DESCRIPTOR described = floats(4, 2, 0, 0);
	CUDA_MEMCPY3D copy = {
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = values,
		.srcPitch = 16,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.WidthInBytes = 16,
		.Height = 2,
		.Depth = 1,
	};
	CUtexObject texture;
	size_t before;

	/* Code takes device memory, too. */
	(void)gs_test_kernel("fetch_texel");
	before = available();
	check(cuArray3DCreate_v2(&copy.dstArray, &described));
	check(cuMemcpy3DAsync_v2(&copy, NULL));
	texture = make_texture(copy.dstArray, 0);
	assert_true(fetch_texel(texture, 0.5f, 0.5f) == 1);
	assert_true(fetch_texel(texture, 2.0f, 1.5f) == 25);
	assert_true(fetch_texel(texture, 3.5f, 1.0f) == 22);
	assert_true(fetch_texel(texture, 99.0f, -99.0f) == 4);
	check(cuArrayDestroy(copy.dstArray));
	assert_true(fetch_texel(texture, 0.5f, 0.5f) == 1);
	assert_true(available() < before);
	check(cuTexObjectDestroy(texture));
	assert_int_equal(available(), before);
	check_is(cuTexObjectDestroy(texture), CUDA_ERROR_INVALID_HANDLE);
}

TEST(textures_that_cannot_be_are_refused)
{
	CUDA_ARRAY3D_DESCRIPTOR described = floats(4, 2, 0, 0);
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_ARRAY };
	CUDA_TEXTURE_DESC good = { .filterMode = CU_TR_FILTER_MODE_POINT }, bad;
	CUtexObject texture;
	CUsurfObject surface;
	CUarray array;
	CUdeviceptr memory;

	check_is(cuTexObjectCreate(&texture, &resource, &good, NULL), CUDA_ERROR_INVALID_HANDLE);
	described.Format = CU_AD_FORMAT_SIGNED_INT32;
	check(cuArray3DCreate_v2(&array, &described));
	resource.res.array.hArray = array;
	bad = good, bad.filterMode = CU_TR_FILTER_MODE_LINEAR;
	check_is(cuTexObjectCreate(&texture, &resource, &bad, NULL), CUDA_ERROR_INVALID_VALUE);
	bad = good, bad.flags = 0x1000;
	check_is(cuTexObjectCreate(&texture, &resource, &bad, NULL), CUDA_ERROR_INVALID_VALUE);
	bad = good, bad.flags = CU_TRSF_SRGB;
	check_is(cuTexObjectCreate(&texture, &resource, &bad, NULL), CUDA_ERROR_NOT_SUPPORTED);
	/* The flags of the array do not matter. */
	check(cuSurfObjectCreate(&surface, &resource));
	check(cuSurfObjectDestroy(surface));
	check(cuArrayDestroy(array));

	check(cuMemAlloc_v2(&memory, 8192));
	resource = (CUDA_RESOURCE_DESC){ .resType = CU_RESOURCE_TYPE_LINEAR,
					 .res.linear = { .devPtr = memory,
							 .format = CU_AD_FORMAT_FLOAT,
							 .numChannels = 1,
							 .sizeInBytes = 8192 } };
	check(cuTexObjectCreate(&texture, &resource, &good, NULL));
	check(cuTexObjectDestroy(texture));
	resource.res.linear.devPtr += 4;
	check_is(cuTexObjectCreate(&texture, &resource, &good, NULL), CUDA_ERROR_INVALID_VALUE);
	resource.res.linear.devPtr = memory;
	resource.res.linear.sizeInBytes = 65536;
	check_is(cuTexObjectCreate(&texture, &resource, &good, NULL), CUDA_ERROR_INVALID_VALUE);
	check(cuMemFree_v2(memory));
}

UNIT_TEST_MAIN(NULL, NULL)
