/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota malloc|pitch|small|async|virtual|array|managed: allocates memory of this kind in steps
 * until an allocation fails. Prints the error, the amount of the device's memory that it has
 * allocated, and whether all of it can be allocated again.
 */
#include "physical_app.h"

#include <vector>

static const size_t MIB = 1 << 20;

static cudaError_t
map_memory(void **memory, size_t size)
{
	const CUmemAllocationProp prop = app_physical_properties();
	CUmemGenericAllocationHandle handle;
	CUresult result = DRIVER(cuMemCreate)(&handle, size, &prop, 0);

	if (result != CUDA_SUCCESS)
		return result == CUDA_ERROR_OUT_OF_MEMORY ? cudaErrorMemoryAllocation
							  : cudaErrorUnknown;
	*memory = reinterpret_cast<void *>(app_physical_map(handle, size));
	DCHECK(DRIVER(cuMemRelease)(handle));
	return cudaSuccess;
}

static void
unmap_memory(void *memory, size_t size)
{
	app_physical_unmap(reinterpret_cast<CUdeviceptr>(memory), size);
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

/* Allocates until a call fails. Returns the number of bytes. */
static size_t
allocate_all(const char *way, std::vector<void *> *taken, cudaError_t *error)
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
	size_t sum = allocate_all(way, &taken, &error);
	CHECK(cudaMemGetInfo(&available, &total));
	printf("%s: %s after %.2f %% of the total, %.1f %% free\n", way, cudaGetErrorName(error),
	       100.0 * sum / total, 100.0 * available / total);
	REQUIRE(error == cudaErrorMemoryAllocation);
	REQUIRE(cudaGetLastError() == error || strcmp(way, "virtual") == 0);
	/* The failure has no side effects: existing memory can be used, and freed memory can be
	 * allocated. */
	use(way, taken[0], 2, 4);
	give_back(way, &taken);
	again = allocate_all(way, &taken, &error);
	printf("again: %s after %.2f %% of the total\n", cudaGetErrorName(error),
	       100.0 * again / total);
	(void)cudaGetLastError();
	REQUIRE(again >= sum);
	give_back(way, &taken);
	return app_ok("quota");
}
