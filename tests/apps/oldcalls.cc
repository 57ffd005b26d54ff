/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions as they were before CUDA 3.2, with 32 bits for addresses and sizes: arrays and copies
 * of them work; memory is told to have no such address, and none of it is lost.
 */
#define __CUDA_API_VERSION_INTERNAL
#include "driver_app.h"

#include <climits>
#include <cstring>
#include <dlfcn.h>
#include <vector>

static const unsigned int width = 61, height = 17, depth = 5;

static const char text[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
			   ".visible .global .align 4 .b8 table[40];\n";

static unsigned int
at_most(size_t value)
{
	return value > UINT_MAX ? UINT_MAX : (unsigned int)value;
}

static void
run_sizes(CUdevice device)
{
	unsigned int old_free = 0, old_total = 0, bytes = 0;
	size_t free, total;

	CHECK(cuDeviceTotalMem_v2(&total, device));
	CHECK(cuDeviceTotalMem(&bytes, device));
	REQUIRE(bytes == at_most(total));
	CHECK(cuMemGetInfo_v2(&free, &total));
	CHECK(cuMemGetInfo(&old_free, &old_total));
	REQUIRE(old_total == at_most(total) && old_free <= old_total && old_free > 0);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceTotalMem(nullptr, device));
	EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceTotalMem(&bytes, 4096));
	printf("sizes: at most what 32 bits hold\n");
}

static CUarray
new_array(unsigned int channels)
{
	CUDA_ARRAY_DESCRIPTOR_v1 wanted = { width, height, CU_AD_FORMAT_UNSIGNED_INT8, channels };
	CUDA_ARRAY_DESCRIPTOR_v1 got;
	CUarray array;

	CHECK(cuArrayCreate(&array, &wanted));
	memset(&got, 0xff, sizeof(got));
	CHECK(cuArrayGetDescriptor(&got, array));
	REQUIRE(got.Width == width && got.Height == height &&
		got.Format == CU_AD_FORMAT_UNSIGNED_INT8 && got.NumChannels == channels);
	return array;
}

static std::vector<unsigned char>
pattern(size_t size)
{
	std::vector<unsigned char> bytes(size);

	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(i * 7 + 3);
	return bytes;
}

/* A row of one array to another, and what comes back of it. */
static void
run_rows(CUstream stream)
{
	CUDA_ARRAY_DESCRIPTOR_v1 line = { 256, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1 };
	std::vector<unsigned char> sent = pattern(256), back(256);
	CUarray one, two;

	CHECK(cuArrayCreate(&one, &line));
	CHECK(cuArrayCreate(&two, &line));
	CHECK(cuMemcpyHtoA(one, 0, sent.data(), 200));
	CHECK(cuMemcpyHtoAAsync(one, 200, sent.data() + 200, 56, stream));
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuMemcpyAtoA(two, 0, one, 0, 256));
	CHECK(cuMemcpyAtoH(back.data(), two, 0, 100));
	CHECK(cuMemcpyAtoHAsync(back.data() + 100, two, 100, 156, stream));
	CHECK(cuStreamSynchronize(stream));
	REQUIRE(back == sent);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoH(back.data(), two, 200, 57));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuArrayCreate(&one, nullptr));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuArrayGetDescriptor(nullptr, one));
	CHECK(cuArrayDestroy(one));
	CHECK(cuArrayDestroy(two));
	printf("arrays of one dimension: right\n");
}

static CUDA_MEMCPY2D_v1
plane(CUmemorytype from, CUmemorytype to, CUarray array, unsigned char *host)
{
	CUDA_MEMCPY2D_v1 copy;

	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = from;
	copy.dstMemoryType = to;
	copy.srcArray = copy.dstArray = array;
	copy.srcHost = copy.dstHost = host;
	copy.srcPitch = copy.dstPitch = width;
	copy.WidthInBytes = width;
	copy.Height = height;
	return copy;
}

static void
run_planes(CUstream stream)
{
	std::vector<unsigned char> sent = pattern(width * height), back(width * height);
	CUarray array = new_array(1);
	CUDA_MEMCPY2D_v1 in = plane(CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_ARRAY, array, sent.data());
	CUDA_MEMCPY2D_v1 out = plane(CU_MEMORYTYPE_ARRAY, CU_MEMORYTYPE_HOST, array, back.data());

	CHECK(cuMemcpy2D(&in));
	CHECK(cuMemcpy2DUnaligned(&out));
	REQUIRE(back == sent);
	sent[width] ^= 0xff;
	CHECK(cuMemcpy2DAsync(&in, stream));
	CHECK(cuMemcpy2DAsync(&out, stream));
	CHECK(cuStreamSynchronize(stream));
	REQUIRE(back == sent);
	out.srcXInBytes = 1;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&out));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(nullptr));
	CHECK(cuArrayDestroy(array));
	printf("arrays of two dimensions: right\n");
}

static void
run_boxes(CUstream stream)
{
	CUDA_ARRAY3D_DESCRIPTOR_v1 wanted = { width, height,
					      depth, CU_AD_FORMAT_UNSIGNED_INT8,
					      1,     CUDA_ARRAY3D_SURFACE_LDST };
	CUDA_ARRAY3D_DESCRIPTOR_v1 got;
	std::vector<unsigned char> sent = pattern(width * height * depth), back(sent.size());
	CUDA_MEMCPY3D_v1 copy;
	CUarray array;

	CHECK(cuArray3DCreate(&array, &wanted));
	CHECK(cuArray3DGetDescriptor(&got, array));
	REQUIRE(got.Width == width && got.Height == height && got.Depth == depth &&
		got.NumChannels == 1 && got.Flags == CUDA_ARRAY3D_SURFACE_LDST);
	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = sent.data();
	copy.srcPitch = copy.dstPitch = copy.WidthInBytes = width;
	copy.srcHeight = copy.dstHeight = copy.Height = height;
	copy.Depth = depth;
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = copy.srcArray = array;
	CHECK(cuMemcpy3D(&copy));
	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = back.data();
	CHECK(cuMemcpy3DAsync(&copy, stream));
	CHECK(cuStreamSynchronize(stream));
	REQUIRE(back == sent);
	CHECK(cuArrayDestroy(array));
	printf("arrays of three dimensions: right\n");
}

/* Memory of the device lies above what 32 bits reach, so it is given back at once. */
static void
run_memory()
{
	const unsigned int size = 256u << 20;
	size_t before, after, total;
	CUdeviceptr_v1 memory = 7;
	unsigned int pitch = 0;

	CHECK(cuMemGetInfo_v2(&before, &total));
	for (size_t i = 0; i < 2 * total / size; i++)
		EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&memory, size));
	EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocPitch(&memory, &pitch, 100, 10, 4));
	REQUIRE(memory == 7 && pitch == 0);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&memory, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(nullptr, 100));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemGetInfo_v2(&after, &total));
	REQUIRE(after + size / 2 >= before);
	printf("memory: none has so short an address, and none is lost\n");
}

static void
run_addresses(CUstream stream)
{
	const CUdeviceptr_v1 nowhere = 0x10000;
	char host[16] = { 0 };
	CUarray array = new_array(1);

	CHECK(cuMemFree(0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(nowhere));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(nowhere, host, sizeof(host)));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(host, nowhere, sizeof(host)));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(nowhere, nowhere, sizeof(host)));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoDAsync(nowhere, host, sizeof(host), stream));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoHAsync(host, nowhere, sizeof(host), stream));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoDAsync(nowhere, nowhere, sizeof(host), stream));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoA(array, 0, nowhere, sizeof(host)));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoD(nowhere, array, 0, sizeof(host)));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(nowhere, 1, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD16(nowhere, 1, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(nowhere, 1, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D8(nowhere, 64, 1, 4, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D16(nowhere, 64, 1, 4, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D32(nowhere, 64, 1, 4, 4));
	CHECK(cuArrayDestroy(array));
	printf("addresses: refused\n");
}

static void
run_module()
{
	CUdeviceptr_v1 address = 7;
	unsigned int size = 0;
	CUmodule module;

	CHECK(cuModuleLoadData(&module, text));
	CHECK(cuModuleGetGlobal(nullptr, &size, module, "table"));
	REQUIRE(size == 40);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuModuleGetGlobal(&address, &size, module, "table"));
	REQUIRE(address == 7);
	EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(nullptr, &size, module, "chair"));
	CHECK(cuModuleUnload(module));
	printf("variables of modules: their size\n");
}

static void
run_names()
{
	CUdriverProcAddressQueryResult found;
	void *function;

	CHECK(cuGetProcAddress_v2("cuMemAlloc", &function, 3010, 0, &found));
	REQUIRE(function == dlsym(RTLD_DEFAULT, "cuMemAlloc"));
	CHECK(cuGetProcAddress_v2("cuMemAlloc", &function, 3020, 0, &found));
	REQUIRE(function == dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
	CHECK(cuGetProcAddress_v2("cuMemHostRegister", &function, 4000, 0, &found));
	REQUIRE(function == dlsym(RTLD_DEFAULT, "cuMemHostRegister"));
	printf("names: as of each version\n");
}

int
main()
{
	static char host[8192];
	CUdevice device;
	CUcontext context;
	CUstream stream;

	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuCtxCreate(&context, 0, device));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	run_sizes(device);
	run_rows(stream);
	run_planes(stream);
	run_boxes(stream);
	run_memory();
	run_addresses(stream);
	run_module();
	run_names();
	CHECK(cuMemHostRegister(host, sizeof(host), 0));
	CHECK(cuMemHostUnregister(host));
	CHECK(cuStreamDestroy_v2(stream));
	CHECK(cuCtxDestroy_v2(context));
	printf("oldcalls: ok\n");
	return 0;
}
