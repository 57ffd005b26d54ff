/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned and registered host memory, and queries of pointer attributes. */
#include "app.h"

#include <unistd.h>

static __device__ int device_symbol[4];

static void
expect_type(const void *pointer, cudaMemoryType type)
{
	cudaPointerAttributes attributes;

	CHECK(cudaPointerGetAttributes(&attributes, pointer));
	if (attributes.type != type)
		printf("memory type %d, expected %d\n", (int)attributes.type, (int)type);
	REQUIRE(attributes.type == type);
	if (type == cudaMemoryTypeDevice)
		REQUIRE(attributes.device == 0 && attributes.devicePointer == pointer);
	if (type == cudaMemoryTypeHost)
		REQUIRE(attributes.hostPointer == pointer);
}

static void
round_trip(char *host, size_t size, char *device)
{
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	for (size_t i = 0; i < size; i++)
		host[i] = (char)(i * 11);
	CHECK(cudaMemcpyAsync(device, host, size, cudaMemcpyHostToDevice, stream));
	CHECK(cudaStreamSynchronize(stream));
	memset(host, 0, size);
	CHECK(cudaMemcpyAsync(host, device, size, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (size_t i = 0; i < size; i++)
		REQUIRE(host[i] == (char)(i * 11));
	CHECK(cudaStreamDestroy(stream));
}

int
main()
{
	const size_t size = 100000;
	char *device = app_malloc<char>(size);
	char *pinned, *flagged;
	unsigned int flags;
	void *symbol;

	CHECK(cudaMallocHost(&pinned, size));
	CHECK(cudaHostAlloc(&flagged, size, cudaHostAllocPortable | cudaHostAllocWriteCombined));
	CHECK(cudaHostGetFlags(&flags, flagged));
	REQUIRE(flags & cudaHostAllocWriteCombined);
	EXPECT(cudaErrorInvalidValue, cudaHostAlloc(&symbol, size, 0x1000));
	round_trip(pinned, size, device);
	round_trip(flagged, size, device);
	printf("pinned\n");

	size_t page = sysconf(_SC_PAGESIZE);
	char *pageable = (char *)aligned_alloc(page, 32 * page);
	REQUIRE(pageable != nullptr);
	expect_type(pageable, cudaMemoryTypeUnregistered);
	CHECK(cudaHostRegister(pageable, 32 * page, cudaHostRegisterDefault));
	expect_type(pageable, cudaMemoryTypeHost);
	EXPECT(cudaErrorHostMemoryAlreadyRegistered,
	       cudaHostRegister(pageable, 32 * page, cudaHostRegisterDefault));
	round_trip(pageable, size, device);
	CHECK(cudaHostUnregister(pageable));
	expect_type(pageable, cudaMemoryTypeUnregistered);
	EXPECT(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(pageable));
	EXPECT(cudaErrorInvalidValue, cudaHostRegister(pageable, 0, cudaHostRegisterDefault));
	free(pageable);
	printf("registered\n");

	expect_type(pinned, cudaMemoryTypeHost);
	expect_type(pinned + 17, cudaMemoryTypeHost);
	expect_type(device, cudaMemoryTypeDevice);
	expect_type(device + size - 1, cudaMemoryTypeDevice);
	expect_type(&flags, cudaMemoryTypeUnregistered);
	CHECK(cudaGetSymbolAddress(&symbol, device_symbol));
	expect_type(symbol, cudaMemoryTypeDevice);
	printf("attributes\n");

	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFreeHost(flagged));
	EXPECT(cudaErrorInvalidValue, cudaFreeHost(&flags));
	CHECK(cudaFree(device));
	return app_ok("pinned");
}
