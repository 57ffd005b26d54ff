/* SPDX-License-Identifier: Apache-2.0 */
/* Launches with attributes and settings of kernels, as libraries make them for each layer. argv[1]:
 * number of repetitions. */
#include "app.h"

#include <cooperative_groups.h>

static __global__ void
add(int *sum, int value)
{
	extern __shared__ int scratch[];

	if (threadIdx.x == 0)
		scratch[0] = value;
	__syncthreads();
	if (threadIdx.x == 1)
		atomicAdd(sum, scratch[0]);
}

static __global__ void
add_together(int *sum)
{
	cooperative_groups::this_grid().sync();
	if (threadIdx.x == 0)
		atomicAdd(sum, 100);
}

static void
launch_with(cudaLaunchAttribute attribute, int *sum, int shared)
{
	cudaLaunchConfig_t config = {};

	config.gridDim = dim3(2);
	config.blockDim = dim3(32);
	config.dynamicSmemBytes = shared;
	config.attrs = &attribute;
	config.numAttrs = 1;
	CHECK(cudaLaunchKernelEx(&config, add, sum, 1));
}

static void
allow(int bytes)
{
	CHECK(cudaFuncSetAttribute(add, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

/* 2 + 2 + 2 + 200 */
static void
round_of_launches(int *sum)
{
	cudaLaunchAttribute cluster = {}, programmatic = {}, priority = {};
	void *arguments[] = { &sum };
	cudaFuncAttributes attributes;

	cluster.id = cudaLaunchAttributeClusterDimension;
	cluster.val.clusterDim.x = cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
	programmatic.id = cudaLaunchAttributeProgrammaticStreamSerialization;
	programmatic.val.programmaticStreamSerializationAllowed = 1;
	priority.id = cudaLaunchAttributePriority;

	allow(60 << 10);
	launch_with(cluster, sum, 60 << 10);
	allow(64 << 10);
	launch_with(programmatic, sum, 64 << 10);
	launch_with(priority, sum, 64 << 10);
	CHECK(cudaFuncGetAttributes(&attributes, add));
	REQUIRE(attributes.maxDynamicSharedSizeBytes == 64 << 10);
	CHECK(cudaLaunchCooperativeKernel(add_together, dim3(2), dim3(32), arguments));
	CHECK(cudaFuncSetAttribute(add, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
}

int
main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 3;
	int *sum = app_malloc<int>(1);

	CHECK(cudaMemset(sum, 0, sizeof(int)));
	for (int i = 0; i < rounds; i++)
		round_of_launches(sum);
	REQUIRE(app_download(sum, 1)[0] == rounds * 206);
	CHECK(cudaFree(sum));
	return app_ok("attributes");
}
