/* SPDX-License-Identifier: Apache-2.0 */
/* The occupancy calculator. */
#include "app.h"

static __global__ void
small(int *out)
{
	out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

/* The queries that cuBLAS makes when it creates a handle: clusters that are the whole grid, with an
 * increasing number of blocks. Equal queries return equal results; the supported sizes depend on
 * the GPU. */
static void
query_clusters()
{
#if CUDART_VERSION >= 11080
	for (unsigned int size = 3; size <= 32; size++) {
		cudaLaunchAttribute attribute = {};
		cudaLaunchConfig_t config = {};
		cudaError_t first, second;
		int clusters = -1, again = -1;

		attribute.id = cudaLaunchAttributeClusterDimension;
		attribute.val.clusterDim.x = size;
		attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
		config.gridDim = size;
		config.blockDim = 128;
		config.attrs = &attribute;
		config.numAttrs = 1;
		first = cudaOccupancyMaxActiveClusters(&clusters, small, &config);
		second = cudaOccupancyMaxActiveClusters(&again, small, &config);
		(void)cudaGetLastError();
		REQUIRE(first == second && clusters == again);
		REQUIRE(first == cudaSuccess ? clusters >= 0 : clusters == -1);
	}
#endif
}

int
main()
{
	cudaDeviceProp prop;
	int blocks, last = 1 << 20, grid, block;
	size_t available;

	CHECK(cudaGetDeviceProperties(&prop, 0));
	for (int threads = 32; threads <= 1024; threads *= 2) {
		CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, small, threads, 0));
		printf("%d threads: %d blocks\n", threads, blocks);
		REQUIRE(blocks >= 1 && blocks <= last);
		REQUIRE(blocks * threads <= prop.maxThreadsPerMultiProcessor);
		last = blocks;
	}
	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, small, 64, 40000));
	printf("64 threads, 40000 bytes of shared memory: %d blocks\n", blocks);
	REQUIRE(blocks >= 1 && blocks <= (int)(prop.sharedMemPerMultiprocessor / 40000));
	CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, small, 0, 0));
	printf("best: %d blocks of %d threads\n", grid, block);
	REQUIRE(block >= 32 && block <= prop.maxThreadsPerBlock);
	REQUIRE(grid >= prop.multiProcessorCount && grid % prop.multiProcessorCount == 0);
	CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&available, small, 1, 128));
	REQUIRE(available > 0 && available <= prop.sharedMemPerMultiprocessor);
	query_clusters();
	EXPECT(cudaErrorInvalidValue,
	       cudaOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, small, 64, 0));
	return app_ok("occupancy");
}
