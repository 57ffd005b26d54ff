/* SPDX-License-Identifier: Apache-2.0 */
/* Every way to launch a kernel, and large parameters. */
#include "app.h"

#include <cooperative_groups.h>

template <int words> struct parameters {
	int values[words];
};

template <int words>
static __global__ void
sum_parameters(const __grid_constant__ parameters<words> p, char tail, long long *sum)
{
	long long total = tail;

	for (int i = 0; i < words; i++)
		total += (long long)(i % 7 + 1) * p.values[i];
	*sum = total;
}

template <int words>
static void
large_parameters(long long *device)
{
	parameters<words> p;
	long long expected = 9;

	for (int i = 0; i < words; i++) {
		p.values[i] = i * 3 - words;
		expected += (long long)(i % 7 + 1) * p.values[i];
	}
	sum_parameters<words><<<1, 1>>>(p, 9, device);
	/* The launch has copied the parameters. */
	memset(&p, 0, sizeof(p));
	CHECK(cudaGetLastError());
	REQUIRE(app_download(device, 1)[0] == expected);
	printf("%zu bytes in a parameter\n", sizeof(p));
}

static __global__ void
where(int *cells, int scale)
{
	int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
	int threads = blockDim.x * blockDim.y * blockDim.z;
	int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;

	cells[block * threads + thread] = scale * (block * 1000 + thread);
}

static void
expect_cells(int *cells, int blocks, int threads, int scale)
{
	std::vector<int> host = app_download(cells, blocks * threads);

	for (int i = 0; i < blocks * threads; i++)
		REQUIRE(host[i] == scale * (i / threads * 1000 + i % threads));
	CHECK(cudaMemset(cells, 0, blocks * threads * sizeof(int)));
}

static void
all_ways()
{
	const dim3 grid(3, 2, 4), block(8, 4, 2);
	int *cells = app_malloc<int>(24 * 64);
	int scale = 5;
	void *arguments[] = { &cells, &scale };

	where<<<grid, block>>>(cells, 3);
	CHECK(cudaGetLastError());
	expect_cells(cells, 24, 64, 3);
	CHECK(cudaLaunchKernel(where, grid, block, arguments, 0, 0));
	expect_cells(cells, 24, 64, 5);

	cudaLaunchAttribute attribute = {};
	cudaLaunchConfig_t config = {};
	attribute.id = cudaLaunchAttributePriority;
	attribute.val.priority = 0;
	config.gridDim = grid;
	config.blockDim = block;
	config.attrs = &attribute;
	config.numAttrs = 1;
	CHECK(cudaLaunchKernelEx(&config, where, cells, 7));
	expect_cells(cells, 24, 64, 7);
	config.numAttrs = 0;
	CHECK(cudaLaunchKernelExC(&config, (const void *)where, arguments));
	expect_cells(cells, 24, 64, 5);
	CHECK(cudaFree(cells));
	printf("chevrons, cudaLaunchKernel, cudaLaunchKernelEx\n");
}

static __global__ void
use_shared(int *out, int words)
{
	extern __shared__ int scratch[];

	for (int i = threadIdx.x; i < words; i += blockDim.x)
		scratch[i] = i;
	__syncthreads();
	int sum = 0;
	for (int i = threadIdx.x; i < words; i += blockDim.x)
		sum += scratch[words - 1 - i];
	atomicAdd(out, sum);
}

static void
large_shared_memory()
{
	const int words = 60 * 1024 / 4;
	int *out = app_malloc<int>(1);
	cudaFuncAttributes attributes;

	CHECK(cudaMemset(out, 0, sizeof(int)));
	use_shared<<<1, 256, words * 4>>>(out, words);
	EXPECT(cudaErrorInvalidValue, cudaGetLastError());
	CHECK(cudaFuncSetAttribute(use_shared, cudaFuncAttributeMaxDynamicSharedMemorySize,
				   words * 4));
	use_shared<<<1, 256, words * 4>>>(out, words);
	CHECK(cudaGetLastError());
	REQUIRE(app_download(out, 1)[0] == words / 2 * (words - 1));
	CHECK(cudaFuncGetAttributes(&attributes, use_shared));
	REQUIRE(attributes.maxDynamicSharedSizeBytes == words * 4);
	REQUIRE(attributes.sharedSizeBytes == 0 && attributes.maxThreadsPerBlock >= 256);
	EXPECT(cudaErrorInvalidValue,
	       cudaFuncSetAttribute(use_shared, cudaFuncAttributeMaxDynamicSharedMemorySize,
				    1 << 20));
	CHECK(cudaFree(out));
	printf("dynamic shared memory beyond 48 KiB\n");
}

/* Every block adds up the values that all blocks have written before the barrier. */
static __global__ void
across_blocks(int *cells, int *sums)
{
	cooperative_groups::grid_group grid = cooperative_groups::this_grid();
	int rank = (int)grid.thread_rank();

	for (int round = 1; round <= 3; round++) {
		cells[rank] = round * rank;
		grid.sync();
		int sum = 0;
		for (int i = 0; i < (int)grid.size(); i++)
			sum += cells[i];
		sums[rank] = sum;
		grid.sync();
	}
}

static void
cooperative()
{
	const int blocks = 4, threads = 64, total = blocks * threads;
	int *cells = app_malloc<int>(total);
	int *sums = app_malloc<int>(total);
	void *arguments[] = { &cells, &sums };

	CHECK(cudaLaunchCooperativeKernel(across_blocks, dim3(blocks), dim3(threads), arguments));
	for (int sum : app_download(sums, total))
		REQUIRE(sum == 3 * total * (total - 1) / 2);

	cudaLaunchAttribute attribute = {};
	cudaLaunchConfig_t config = {};
	attribute.id = cudaLaunchAttributeCooperative;
	attribute.val.cooperative = 1;
	config.gridDim = dim3(blocks);
	config.blockDim = dim3(threads);
	config.attrs = &attribute;
	config.numAttrs = 1;
	CHECK(cudaMemset(sums, 0, total * sizeof(int)));
	CHECK(cudaLaunchKernelEx(&config, across_blocks, cells, sums));
	for (int sum : app_download(sums, total))
		REQUIRE(sum == 3 * total * (total - 1) / 2);
	/* More blocks than can be resident at once. */
	EXPECT(cudaErrorCooperativeLaunchTooLarge,
	       cudaLaunchCooperativeKernel(across_blocks, dim3(1 << 20), dim3(threads), arguments));
	CHECK(cudaFree(cells));
	CHECK(cudaFree(sums));
	printf("cooperative\n");
}

int
main()
{
	long long *sum = app_malloc<long long>(1);

	all_ways();
	large_parameters<1>(sum);
	large_parameters<1000>(sum);
	/* Up to the maximum size of all parameters, 32764 bytes. */
	large_parameters<1024>(sum);
	large_parameters<8100>(sum);
	large_shared_memory();
	cooperative();
	CHECK(cudaFree(sum));
	return app_ok("launch");
}
