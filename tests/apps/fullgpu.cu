/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that fills the GPU and ends when a copy on another stream has arrived. A kernel that was
 * started before precedes this copy in its stream, so that nothing that still has to start waits
 * for a free multiprocessor.
 */
#include "app.h"

#include <unistd.h>

const int rounds = 6;
const unsigned long long limit_ns = 20000000000ull;

static __global__ void
stay(unsigned long long ns)
{
	app_stay(ns);
}

/* Uses few registers and no shared memory, so that the number of threads is the limit. */
static __global__ void
wait_for(volatile int *flag, int value, int *late)
{
	unsigned long long start = app_nanoseconds();

	if (threadIdx.x == 0) {
		while (*flag != value && app_nanoseconds() - start < limit_ns)
			app_rest(10000);
		if (*flag != value)
			*late = 1;
	}
	__syncthreads();
}

static int
blocks_that_fill(int threads)
{
	cudaDeviceProp prop;
	int blocks;

	CHECK(cudaGetDeviceProperties(&prop, 0));
	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, wait_for, threads, 0));
	return blocks * prop.multiProcessorCount;
}

int
main()
{
	const int threads = 1024, blocks = blocks_that_fill(threads);
	cudaStream_t filled, other;
	int *cells, *value, late;

	CHECK(cudaStreamCreateWithFlags(&filled, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&cells, 2 * sizeof(int)));
	CHECK(cudaMemset(cells, 0, 2 * sizeof(int)));
	CHECK(cudaHostAlloc(&value, sizeof(int), cudaHostAllocDefault));
	CHECK(cudaDeviceSynchronize());
	for (int round = 1; round <= rounds; round++) {
		*value = round;
		stay<<<1, 32, 0, other>>>(30000000);
		(void)usleep(10000);
		wait_for<<<blocks, threads, 0, filled>>>(cells, round, cells + 1);
		CHECK(cudaMemcpyAsync(cells, value, sizeof(int), cudaMemcpyHostToDevice, other));
		CHECK(cudaStreamSynchronize(other));
		CHECK(cudaStreamSynchronize(filled));
	}
	CHECK(cudaMemcpy(&late, cells + 1, sizeof(int), cudaMemcpyDeviceToHost));
	REQUIRE(late == 0);
	printf("a copy reaches a kernel that fills the GPU\n");
	CHECK(cudaFreeHost(value));
	CHECK(cudaFree(cells));
	return app_ok("fullgpu");
}
