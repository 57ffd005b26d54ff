/* SPDX-License-Identifier: Apache-2.0 */
/*
 * smcount [ROUNDS [PAUSE_MS [clusters]]]: prints the number of multiprocessors on which a grid runs
 * that has enough blocks for all, and the number that the device reports. A second launch in each
 * round has the number of cooperative blocks that this number allows. clusters: also prints the
 * number of clusters that can be resident.
 */
#include "app.h"

#include <algorithm>
#include <unistd.h>

#define THREADS 256

static __global__ void
record(unsigned int *ran, long long clocks)
{
	unsigned int here;
	long long start = clock64();

	asm volatile("mov.u32 %0, %%smid;" : "=r"(here));
	if (threadIdx.x == 0)
		ran[blockIdx.x] = here;
	while (clock64() - start < clocks)
		continue;
}

static size_t
distinct(unsigned int *ran, unsigned int blocks)
{
	std::vector<unsigned int> all = app_download(ran, blocks);

	std::sort(all.begin(), all.end());
	return (size_t)(std::unique(all.begin(), all.end()) - all.begin());
}

/* A cluster of one block. */
static void
count_clusters(unsigned int blocks, int fit)
{
	cudaLaunchConfig_t config = {};
	int clusters;

	config.gridDim = dim3(blocks);
	config.blockDim = dim3(THREADS);
	CHECK(cudaOccupancyMaxActiveClusters(&clusters, record, &config));
	printf("room for clusters on %d\n", clusters / fit);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1, pause_ms = argc > 2 ? atoi(argv[2]) : 0;
	int count, cooperative, fit;
	long long clocks = 20000;
	unsigned int *ran, blocks;

	CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
	CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, record, THREADS, 0));
	printf("multiprocessors: %d\n", count);
	blocks = 2u * (unsigned int)(count * fit);
	ran = app_malloc<unsigned int>(blocks);
	for (int round = 0; round < rounds; round++) {
		void *args[] = { &ran, &clocks };

		if (round && pause_ms)
			usleep((useconds_t)pause_ms * 1000);
		record<<<blocks, THREADS>>>(ran, clocks);
		CHECK(cudaGetLastError());
		printf("a grid ran on %zu\n", distinct(ran, blocks));
		fflush(stdout);
		if (argc > 3)
			count_clusters(blocks, fit);
		if (!cooperative || rounds > 1)
			continue;
		CHECK(cudaLaunchCooperativeKernel((void *)record, count * fit, THREADS, args, 0,
						  nullptr));
		printf("a cooperative one ran on %zu\n",
		       distinct(ran, (unsigned int)(count * fit)));
		EXPECT(cudaErrorCooperativeLaunchTooLarge,
		       cudaLaunchCooperativeKernel((void *)record, count * fit + 1, THREADS, args,
						   0, nullptr));
	}
	CHECK(cudaFree(ran));
	return app_ok("smcount");
}
