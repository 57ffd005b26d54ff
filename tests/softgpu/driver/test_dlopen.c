/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's way to use the driver: dlopen, dlsym, mapped memory, a fatbin of nvcc, vectorAdd. */
#include "tests/softgpu/driver/common.h"

#include <dlfcn.h>
#include <stdlib.h>

#define COUNT 50000

static void *driver;

static void *
symbol(const char *name)
{
	void *address = dlsym(driver, name);

	assert_non_null(address);
	return address;
}

#define call(name, ...) check(((__typeof__(&name))symbol(#name))(__VA_ARGS__))

static CUdeviceptr
map_memory(size_t size)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
	};
	const CUmemAccessDesc access = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
					 .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle handle;
	CUdeviceptr window;

	call(cuMemAddressReserve, &window, size, 0, 0, 0);
	call(cuMemCreate, &handle, size, &prop, 0);
	call(cuMemMap, window, size, 0, handle, 0);
	call(cuMemSetAccess, window, size, &access, 1);
	call(cuMemRelease, handle);
	return window;
}

UNIT_TEST(vector_add_runs_from_a_fatbin)
{
	size_t bytes = COUNT * sizeof(float);
	float *host[3];
	CUcontext ctx;
	CUstream stream;
	CUlibrary library;
	CUkernel kernel;
	CUdeviceptr window, a, b, c;
	void *image = gs_test_file("kernels.fatbin", NULL);
	int n = COUNT;

	call(cuInit, 0);
	call(cuDevicePrimaryCtxRetain, &ctx, 0);
	call(cuCtxSetCurrent, ctx);
	call(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	call(cuLibraryLoadData, &library, image, NULL, NULL, 0, NULL, NULL, 0);
	free(image);
	call(cuLibraryGetKernel, &kernel, library, "vector_add");
	window = map_memory(GS_CHUNK);
	a = window;
	b = a + bytes;
	c = b + bytes;
	for (unsigned int i = 0; i < 3; i++)
		call(cuMemHostAlloc, (void **)&host[i], bytes, 0);
	for (int i = 0; i < COUNT; i++) {
		host[0][i] = (float)i;
		host[1][i] = 0.5f;
	}
	call(cuMemcpyHtoDAsync_v2, a, host[0], bytes, stream);
	call(cuMemcpyHtoDAsync_v2, b, host[1], bytes, stream);
	call(cuLaunchKernel, (CUfunction)kernel, (COUNT + 255) / 256, 1, 1, 256, 1, 1, 0, stream,
	     (void *[]){ &a, &b, &c, &n }, NULL);
	call(cuMemcpyDtoHAsync_v2, host[2], c, bytes, stream);
	call(cuStreamSynchronize, stream);
	for (int i = 0; i < COUNT; i++)
		assert_true(host[2][i] == (float)i + 0.5f);

	for (unsigned int i = 0; i < 3; i++)
		call(cuMemFreeHost, host[i]);
	call(cuLibraryUnload, library);
	call(cuStreamDestroy_v2, stream);
	call(cuMemUnmap, window, GS_CHUNK);
	call(cuMemAddressFree, window, GS_CHUNK);
	call(cuDevicePrimaryCtxRelease_v2, 0);
}

UNIT_TEST(extension_is_found_by_name)
{
	symbol("gpSoftStreamCancel");
	assert_null(dlsym(driver, "cuGraphicsMapResources"));
	assert_null(dlsym(driver, "gs_launch"));
}

int
main(void)
{
	driver = dlopen(getenv("GP_TEST_DRIVER"), RTLD_NOW | RTLD_LOCAL);
	if (!driver)
		return 1;
	return unit_tests_run(NULL, NULL);
}
