/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrayfacts: behavior of the driver for arrays and textures, natively. For each kind of small
 * array, the number of formats with 1, 2 and 4 channels that the driver accepts, and those that it
 * rejects; then the handles of textures and surfaces after others were destroyed.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Including formats that imply the number of channels. */
static const CUarray_format formats[] = {
	CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT32,
	CU_AD_FORMAT_SIGNED_INT8,   CU_AD_FORMAT_SIGNED_INT16,   CU_AD_FORMAT_SIGNED_INT32,
	CU_AD_FORMAT_HALF,          CU_AD_FORMAT_FLOAT,          CU_AD_FORMAT_UNORM_INT8X1,
	CU_AD_FORMAT_UNORM_INT8X2,  CU_AD_FORMAT_UNORM_INT8X4,   CU_AD_FORMAT_UNORM_INT16X1,
	CU_AD_FORMAT_UNORM_INT16X2, CU_AD_FORMAT_UNORM_INT16X4,  CU_AD_FORMAT_SNORM_INT8X1,
	CU_AD_FORMAT_SNORM_INT8X2,  CU_AD_FORMAT_SNORM_INT8X4,   CU_AD_FORMAT_SNORM_INT16X1,
	CU_AD_FORMAT_SNORM_INT16X2, CU_AD_FORMAT_SNORM_INT16X4,
};

static void
check(CUresult result, const char *what)
{
	const char *name = "?";

	if (result == CUDA_SUCCESS)
		return;
	(void)cuGetErrorName(result, &name);
	printf("%s: %s\n", what, name);
	exit(1);
}

static CUresult
make(CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels)
{
	CUmipmappedArray mipmap;
	CUarray array;
	CUresult result;

	if (levels) {
		result = cuMipmappedArrayCreate(&mipmap, shape, levels);
		if (result == CUDA_SUCCESS)
			check(cuMipmappedArrayDestroy(mipmap), "destroy");
		return result;
	}
	result = cuArray3DCreate(&array, shape);
	if (result == CUDA_SUCCESS)
		check(cuArrayDestroy(array), "destroy");
	return result;
}

static void
try_sort(size_t width, size_t height, size_t depth, unsigned int flags, unsigned int levels)
{
	char refused[512] = "";
	int made = 0, all = 0;

	for (CUarray_format format : formats) {
		for (unsigned int channels = 1; channels <= 4; channels *= 2) {
			if (format >= CU_AD_FORMAT_UNORM_INT8X1 &&
			    channels != 1u << (format - CU_AD_FORMAT_UNORM_INT8X1) % 3)
				continue;
			CUDA_ARRAY3D_DESCRIPTOR shape = { width,  height,   depth,
							  format, channels, flags };
			CUresult result = make(&shape, levels);
			size_t at = strlen(refused);

			all++;
			made += result == CUDA_SUCCESS;
			if (result != CUDA_SUCCESS && at < 400)
				snprintf(refused + at, sizeof(refused) - at, " %x*%u:%d", format,
					 channels, result);
		}
	}
	if (made == 0)
		snprintf(refused, sizeof(refused), " none");
	printf("%zu x %zu x %zu, flags %#x, levels %u: %d of %d%s\n", width, height, depth, flags,
	       levels, made, all, made == all ? "" : refused);
}

static double
now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static CUdeviceptr memory;

static CUtexObject
texture(int kind)
{
	CUDA_RESOURCE_DESC resource = {};
	CUDA_TEXTURE_DESC description = {};
	CUtexObject object;

	resource.resType = CU_RESOURCE_TYPE_LINEAR;
	resource.res.linear = { memory, CU_AD_FORMAT_FLOAT, 1, 4096 };
	description.filterMode = kind & 1 ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT;
	if (kind & 2)
		description.flags = CU_TRSF_NORMALIZED_COORDINATES;
	if (kind & 4)
		description.addressMode[0] = CU_TR_ADDRESS_MODE_CLAMP;
	if (kind & 6 || kind & 1) {
		resource.resType = CU_RESOURCE_TYPE_PITCH2D;
		resource.res.pitch2D = { memory, CU_AD_FORMAT_FLOAT, 1, 32, 32, 512 };
	}
	check(cuTexObjectCreate(&object, &resource, &description, nullptr), "texture");
	return object;
}

static void
numbers(CUarray array)
{
	CUDA_RESOURCE_DESC resource = {};
	CUtexObject first[8], again[8];
	CUsurfObject surfaces[3];
	double begin;

	for (int i = 0; i < 8; i++) {
		first[i] = texture(0);
		printf("texture %d of one sort: %#llx\n", i, first[i]);
	}
	for (int i = 0; i < 8; i++)
		printf("texture of sort %d: %#llx\n", i, again[i] = texture(i));
	for (int i = 0; i < 8; i++)
		check(cuTexObjectDestroy(again[i]), "destroy");
	for (int i = 0; i < 8; i++) {
		CUtexObject was = first[i];

		check(cuTexObjectDestroy(was), "destroy");
		first[i] = texture(i);
		printf("in place of %#llx, of sort %d: %#llx\n", was, i, first[i]);
	}
	check(cuTexObjectDestroy(first[2]), "destroy");
	check(cuTexObjectDestroy(first[5]), "destroy");
	printf("%#llx and %#llx destroyed:", first[2], first[5]);
	first[2] = texture(0);
	first[5] = texture(0);
	printf(" then %#llx, %#llx\n", first[2], first[5]);
	resource.resType = CU_RESOURCE_TYPE_ARRAY;
	resource.res.array.hArray = array;
	for (int i = 0; i < 3; i++) {
		check(cuSurfObjectCreate(&surfaces[i], &resource), "surface");
		printf("surface %d: %#llx\n", i, surfaces[i]);
	}
	check(cuSurfObjectDestroy(surfaces[1]), "destroy");
	check(cuSurfObjectCreate(&surfaces[1], &resource), "surface");
	printf("surface 1 again: %#llx\n", surfaces[1]);
	begin = now_us();
	for (int i = 0; i < 1000; i++) {
		check(cuTexObjectDestroy(first[3]), "destroy");
		first[3] = texture(3);
	}
	printf("destroying and making one: %.2f us\n", (now_us() - begin) / 1000);
}

int
main(void)
{
	static const unsigned int flags[] = { 0, CUDA_ARRAY3D_SURFACE_LDST,
					      CUDA_ARRAY3D_TEXTURE_GATHER,
					      CUDA_ARRAY3D_SURFACE_LDST |
						      CUDA_ARRAY3D_TEXTURE_GATHER };
	CUDA_ARRAY3D_DESCRIPTOR shape = { 64, 64,
					  0,  CU_AD_FORMAT_FLOAT,
					  1,  CUDA_ARRAY3D_SURFACE_LDST };
	CUdevice device;
	CUcontext context;
	CUarray array;

	check(cuInit(0), "init");
	check(cuDeviceGet(&device, 0), "device");
	check(cuDevicePrimaryCtxRetain(&context, device), "context");
	check(cuCtxSetCurrent(context), "context");
	check(cuMemAlloc(&memory, 1 << 20), "memory");
	for (unsigned int levels = 0; levels <= 4; levels += 2) {
		for (unsigned int flag : flags) {
			try_sort(64, 0, 0, flag, levels);
			try_sort(64, 32, 0, flag, levels);
			try_sort(64, 32, 16, flag, levels);
			try_sort(64, 0, 5, flag | CUDA_ARRAY3D_LAYERED, levels);
			try_sort(64, 32, 5, flag | CUDA_ARRAY3D_LAYERED, levels);
			try_sort(64, 64, 6, flag | CUDA_ARRAY3D_CUBEMAP, levels);
			try_sort(64, 64, 12, flag | CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED,
				 levels);
		}
	}
	for (unsigned int flag : flags) {
		try_sort(16384, 0, 0, flag, 0);
		try_sort(16384, 16384, 0, flag, 0);
		try_sort(2046, 2046, 32, flag, 0);
		try_sort(32, 32, 2046, flag, 0);
		try_sort(16384, 16, 2046, flag | CUDA_ARRAY3D_LAYERED, 0);
		try_sort(16384, 0, 2046, flag | CUDA_ARRAY3D_LAYERED, 0);
		try_sort(16384, 16384, 6, flag | CUDA_ARRAY3D_CUBEMAP, 0);
		try_sort(256, 256, 2046, flag | CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED, 0);
	}
	check(cuArray3DCreate(&array, &shape), "array");
	numbers(array);
	return 0;
}
