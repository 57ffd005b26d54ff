/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota malloc|pitch|small|async|virtual|array|managed: allocates in steps, by this way, until it
 * is refused. Prints the error, how much of the device's memory it got, and whether all of it can
 * be had again.
 */
#include "app.h"

#include <cuda.h>
#include <vector>

static const size_t MIB = 1 << 20;

template <typename F>
static F
driver(const char *name, F)
{
	cudaDriverEntryPointQueryResult found;
	void *function = nullptr;

	CHECK(cudaGetDriverEntryPointByVersion(name, &function, 13000, cudaEnableDefault, &found));
	REQUIRE(function);
	return reinterpret_cast<F>(function);
}
#define DRIVER(name) driver(#name, static_cast<decltype(&name)>(nullptr))
#define MUST(call) REQUIRE((call) == CUDA_SUCCESS)

static cudaError_t
map_memory(void **memory, size_t size)
{
	static const auto create = DRIVER(cuMemCreate);
	static const auto reserve = DRIVER(cuMemAddressReserve);
	static const auto map = DRIVER(cuMemMap);
	static const auto set_access = DRIVER(cuMemSetAccess);
	static const auto release = DRIVER(cuMemRelease);
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop = {};
	CUmemAccessDesc access = {};
	CUdeviceptr address;

	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.location = prop.location;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	CUresult result = create(&handle, size, &prop, 0);
	if (result != CUDA_SUCCESS)
		return result == CUDA_ERROR_OUT_OF_MEMORY ? cudaErrorMemoryAllocation
							  : cudaErrorUnknown;
	MUST(reserve(&address, size, 0, 0, 0));
	MUST(map(address, size, 0, handle, 0));
	MUST(set_access(address, size, &access, 1));
	MUST(release(handle));
	*memory = reinterpret_cast<void *>(address);
	return cudaSuccess;
}

static void
unmap_memory(void *memory, size_t size)
{
	static const auto unmap = DRIVER(cuMemUnmap);
	static const auto unreserve = DRIVER(cuMemAddressFree);

	MUST(unmap(reinterpret_cast<CUdeviceptr>(memory), size));
	MUST(unreserve(reinterpret_cast<CUdeviceptr>(memory), size));
}

/* Whole pages of the device: 1024 by 512 floats. */
static cudaError_t
make_array(void **memory)
{
	const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaArray_t array = nullptr;
	cudaError_t error = cudaMallocArray(&array, &format, 1024, 512);

	*memory = array;
	return error;
}

static void
fill_array(void *memory)
{
	static const std::vector<float> ones(1024 * 512, 1.0f);

	CHECK(cudaMemcpy2DToArray((cudaArray_t)memory, 0, 0, ones.data(), 4096, 4096, 512,
				  cudaMemcpyHostToDevice));
}

static cudaError_t
allocate(const char *way, void **memory, size_t *size)
{
	size_t pitch;

	if (strcmp(way, "pitch") == 0) {
		cudaError_t error = cudaMallocPitch(memory, &pitch, 4000, 512);

		*size = pitch * 512;
		return error;
	}
	*size = strcmp(way, "small") == 0 ? 64 << 10 : 2 * MIB;
	if (strcmp(way, "async") == 0)
		return cudaMallocAsync(memory, *size, 0);
	if (strcmp(way, "virtual") == 0)
		return map_memory(memory, *size);
	if (strcmp(way, "array") == 0)
		return make_array(memory);
	if (strcmp(way, "managed") == 0)
		return cudaMallocManaged(memory, *size);
	return cudaMalloc(memory, *size);
}

static void
use(const char *way, void *memory, int value, size_t size)
{
	if (strcmp(way, "array") == 0)
		fill_array(memory);
	else
		CHECK(cudaMemset(memory, value, size));
}

/* How many bytes there are to be had. */
static size_t
take_all(const char *way, std::vector<void *> *taken, cudaError_t *error)
{
	size_t sum = 0;

	for (;;) {
		void *memory = nullptr;
		size_t size;

		*error = allocate(way, &memory, &size);
		if (*error != cudaSuccess)
			return sum;
		use(way, memory, 1, size);
		taken->push_back(memory);
		sum += size;
	}
}

static void
give_back(const char *way, std::vector<void *> *taken)
{
	for (void *memory : *taken) {
		if (strcmp(way, "virtual") == 0)
			unmap_memory(memory, 2 * MIB);
		else if (strcmp(way, "async") == 0)
			CHECK(cudaFreeAsync(memory, 0));
		else if (strcmp(way, "array") == 0)
			CHECK(cudaFreeArray((cudaArray_t)memory));
		else
			CHECK(cudaFree(memory));
	}
	taken->clear();
	CHECK(cudaDeviceSynchronize());
}

int
main(int argc, char **argv)
{
	const char *way = argc == 2 ? argv[1] : "malloc";
	std::vector<void *> taken;
	size_t available, total, again;
	cudaDeviceProp properties;
	cudaError_t error;

	CHECK(cudaGetDeviceProperties(&properties, 0));
	CHECK(cudaMemGetInfo(&available, &total));
	printf("device %zu MiB, total %zu MiB, free %zu MiB\n", properties.totalGlobalMem / MIB,
	       total / MIB, available / MIB);
	size_t sum = take_all(way, &taken, &error);
	CHECK(cudaMemGetInfo(&available, &total));
	printf("%s: %s after %.2f %% of the total, %.1f %% free\n", way, cudaGetErrorName(error),
	       100.0 * sum / total, 100.0 * available / total);
	REQUIRE(error == cudaErrorMemoryAllocation);
	REQUIRE(cudaGetLastError() == error || strcmp(way, "virtual") == 0);
	/* The refusal has cost nothing: what is there can be used, and freed memory is to be had.
	 */
	use(way, taken[0], 2, 4);
	give_back(way, &taken);
	again = take_all(way, &taken, &error);
	printf("again: %s after %.2f %% of the total\n", cudaGetErrorName(error),
	       100.0 * again / total);
	(void)cudaGetLastError();
	REQUIRE(again >= sum);
	give_back(way, &taken);
	return app_ok("quota");
}
