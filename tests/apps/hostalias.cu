/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file in memory (memfd) that is mapped at two addresses and registered at both, or as one range.
 * The next kernel must find data at one address that a kernel has written at the other; or
 * registration of the second address is rejected.
 */
#include "app.h"

#include <sys/mman.h>
#include <unistd.h>

static const size_t size = 1 << 16;
static const int count = size / sizeof(int);

static __global__ void
fill(int *data, int by)
{
	for (int i = threadIdx.x; i < count; i += blockDim.x)
		data[i] = i * by;
}

static __global__ void
copy(const int *from, int *to)
{
	for (int i = threadIdx.x; i < count; i += blockDim.x)
		to[i] = from[i];
}

static int *
map(int file, void *address, off_t offset)
{
	void *memory = mmap(address, size, PROT_READ | PROT_WRITE,
			    MAP_SHARED | (address ? MAP_FIXED : 0), file, offset);

	REQUIRE(memory != MAP_FAILED);
	return (int *)memory;
}

/* NULL: registration was rejected. */
static int *
there(int *memory)
{
	int *device = nullptr;
	cudaError_t error = cudaHostGetDevicePointer(&device, memory, 0);

	if (error == cudaErrorNotPermitted) {
		(void)cudaGetLastError();
		return nullptr;
	}
	CHECK(error);
	return device;
}

static void
expect_alike(int *first, int *second, int by)
{
	int *seen = app_malloc<int>(count);

	fill<<<1, 128>>>(first, by);
	copy<<<1, 128>>>(second, seen);
	CHECK(cudaDeviceSynchronize());
	std::vector<int> here = app_download(seen, count);
	for (int i = 0; i < count; i++)
		REQUIRE(here[i] == i * by);
	CHECK(cudaFree(seen));
}

int
main()
{
	int file = memfd_create("hostalias", 0);
	int *first, *second, *device, *own = app_malloc<int>(count);

	REQUIRE(file >= 0 && ftruncate(file, 2 * size) == 0);
	first = map(file, nullptr, 0);
	second = map(file, nullptr, 0);
	CHECK(cudaHostRegister(first, size, cudaHostRegisterMapped));
	CHECK(cudaHostRegister(second, size, cudaHostRegisterMapped));
	device = there(first);
	REQUIRE(device);
	if (there(second)) {
		expect_alike(device, there(second), 3);
		expect_alike(there(second), device, 5);
	}
	/* Copies access it at both addresses. */
	fill<<<1, 128>>>(own, 7);
	CHECK(cudaMemcpy(second, own, size, cudaMemcpyDeviceToHost));
	REQUIRE(first[9] == 63);
	expect_alike(device, device, 11);
	CHECK(cudaMemcpy(own, second, size, cudaMemcpyHostToDevice));
	REQUIRE(app_download(own, count)[9] == 99);
	printf("two registrations\n");
	CHECK(cudaHostUnregister(first));
	device = there(second);
	REQUIRE(device);
	expect_alike(device, device, 13);
	REQUIRE(first[9] == 117);
	CHECK(cudaHostUnregister(second));
	printf("one of them\n");
	/* Other pages of the file are different memory. */
	second = map(file, second, size);
	CHECK(cudaHostRegister(first, size, cudaHostRegisterMapped));
	CHECK(cudaHostRegister(second, size, cudaHostRegisterMapped));
	REQUIRE(there(first) && there(second));
	CHECK(cudaHostUnregister(first));
	CHECK(cudaHostUnregister(second));
	printf("other pages\n");
	void *ring = mmap(nullptr, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(ring != MAP_FAILED);
	first = map(file, ring, 0);
	(void)map(file, (char *)ring + size, 0);
	CHECK(cudaHostRegister(first, 2 * size, cudaHostRegisterMapped));
	device = there(first);
	if (device)
		expect_alike(device, device + count, 17);
	CHECK(cudaHostUnregister(first));
	printf("a ring\n");
	return app_ok("hostalias");
}
