/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota malloc|pitch|small|async: allocates in steps, by this way, until it is refused. Prints the
 * error, how much of the device's memory it got, and whether all of it can be had again.
 */
#include "app.h"

#include <vector>

static const size_t MIB = 1 << 20;

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
	return cudaMalloc(memory, *size);
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
		CHECK(cudaMemset(memory, 1, size));
		taken->push_back(memory);
		sum += size;
	}
}

static void
give_back(const char *way, std::vector<void *> *taken)
{
	bool async = strcmp(way, "async") == 0;

	for (void *memory : *taken)
		CHECK(async ? cudaFreeAsync(memory, 0) : cudaFree(memory));
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
	REQUIRE(cudaGetLastError() == cudaErrorMemoryAllocation);
	/* The refusal has cost nothing: what is there can be used, and freed memory is to be had.
	 */
	CHECK(cudaMemset(taken[0], 2, 4));
	give_back(way, &taken);
	again = take_all(way, &taken, &error);
	printf("again: %s after %.2f %% of the total\n", cudaGetErrorName(error),
	       100.0 * again / total);
	(void)cudaGetLastError();
	REQUIRE(again >= sum);
	give_back(way, &taken);
	return app_ok("quota");
}
