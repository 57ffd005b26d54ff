/* SPDX-License-Identifier: Apache-2.0 */
/* Fills with bytes, 16-bit and 32-bit words: lines, planes and volumes. */
#include "app.h"

#include <cuda.h>

template <typename F>
static F
driver_function(const char *name)
{
	void *function = nullptr;
	cudaDriverEntryPointQueryResult status;

	CHECK(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &status));
	REQUIRE(status == cudaDriverEntryPointSuccess && function != nullptr);
	return (F)function;
}

static void
bytes()
{
	const size_t size = 100003;
	unsigned char *device = app_malloc<unsigned char>(size);

	CHECK(cudaMemset(device, 0x12, size));
	CHECK(cudaMemset(device + 3, 0x1ff, 5000));
	CHECK(cudaMemsetAsync(device + 70001, 0x77, 1, 0));
	CHECK(cudaMemset(device, 0x99, 0));
	std::vector<unsigned char> host = app_download(device, size);
	for (size_t i = 0; i < size; i++) {
		int expected = i >= 3 && i < 5003 ? 0xff : i == 70001 ? 0x77 : 0x12;
		REQUIRE(host[i] == expected);
	}
	CHECK(cudaFree(device));
	printf("bytes\n");
}

static void
words()
{
	auto set16 = driver_function<decltype(&cuMemsetD16)>("cuMemsetD16");
	auto set32 = driver_function<decltype(&cuMemsetD32Async)>("cuMemsetD32Async");
	const size_t count = 3001;
	unsigned short *half = app_malloc<unsigned short>(count);
	unsigned int *whole = app_malloc<unsigned int>(count);

	REQUIRE(set16((CUdeviceptr)half, 0xbeef, count) == CUDA_SUCCESS);
	REQUIRE(set32((CUdeviceptr)whole, 0xcafef00d, count, nullptr) == CUDA_SUCCESS);
	CHECK(cudaDeviceSynchronize());
	for (unsigned short value : app_download(half, count))
		REQUIRE(value == 0xbeef);
	for (unsigned int value : app_download(whole, count))
		REQUIRE(value == 0xcafef00d);
	/* The address must be a multiple of the value's size. */
	REQUIRE(set16((CUdeviceptr)half + 1, 1, 10) == CUDA_ERROR_INVALID_VALUE);
	CHECK(cudaFree(half));
	CHECK(cudaFree(whole));
	printf("words\n");
}

static void
planes_and_volumes()
{
	const size_t pitch = 512, rows = 20;
	unsigned char *device = app_malloc<unsigned char>(pitch * rows);
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMemset(device, 1, pitch * rows));
	CHECK(cudaMemset2D(device + 5, pitch, 2, 300, rows));
	CHECK(cudaMemset2DAsync(device, pitch, 3, 4, 10, stream));
	CHECK(cudaStreamSynchronize(stream));
	std::vector<unsigned char> host = app_download(device, pitch * rows);
	for (size_t i = 0; i < host.size(); i++) {
		size_t x = i % pitch, y = i / pitch;
		int expected = x < 4 && y < 10 ? 3 : x >= 5 && x < 305 ? 2 : 1;
		REQUIRE(host[i] == expected);
	}
	CHECK(cudaFree(device));

	cudaExtent extent = make_cudaExtent(70, 5, 3);
	cudaPitchedPtr volume;
	CHECK(cudaMalloc3D(&volume, extent));
	CHECK(cudaMemset3DAsync(volume, 9, extent, stream));
	CHECK(cudaStreamSynchronize(stream));
	host = app_download((unsigned char *)volume.ptr, volume.pitch * 15);
	/* Bytes after a row may or may not be set. */
	for (size_t i = 0; i < host.size(); i++)
		REQUIRE(host[i] == 9 || i % volume.pitch >= 70);
	CHECK(cudaFree(volume.ptr));
	CHECK(cudaStreamDestroy(stream));
	printf("planes and volumes\n");
}

int
main()
{
	CHECK(cudaFree(0));
	bytes();
	words();
	planes_and_volumes();
	return app_ok("memset");
}
