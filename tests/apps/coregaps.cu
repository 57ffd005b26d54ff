/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that CUDA bindings make first: the state of the process before cuInit(), tensor maps, a
 * pool whose maximum size is below one granule, an empty allocation in a capture, and pools of the
 * host's NUMA node.
 */
#include "app.h"

#include <cuda.h>
#include <unistd.h>

template <typename F>
static F *
driver(const char *name, F *)
{
	cudaDriverEntryPointQueryResult found;
	void *function = nullptr;

	CHECK(cudaGetDriverEntryPointByVersion(name, &function, 12080, cudaEnableDefault, &found));
	REQUIRE(found == cudaDriverEntryPointSuccess);
	return reinterpret_cast<F *>(function);
}
#define DRIVER(name) driver(#name, static_cast<decltype(name) *>(nullptr))

static void
pools()
{
	cudaMemPoolProps props = {};
	cudaMemPool_t pool;
	cudaStream_t stream;
	void *memory, *second;
	int node = -2;

	CHECK(cudaStreamCreate(&stream));
	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	props.maxSize = 2048;
	CHECK(cudaMemPoolCreate(&pool, &props));
	CHECK(cudaMallocFromPoolAsync(&memory, 64, pool, stream));
	CHECK(cudaMemsetAsync(memory, 1, 64, stream));
	EXPECT(cudaErrorMemoryAllocation,
	       cudaMallocFromPoolAsync(&second, (size_t)1 << 30, pool, stream));
	CHECK(cudaFreeAsync(memory, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemPoolDestroy(pool));

	CHECK(cudaDeviceGetAttribute(&node, cudaDevAttrHostNumaId, 0));
	REQUIRE(node >= 0);
	props.location.type = cudaMemLocationTypeHostNuma;
	props.location.id = node;
	props.maxSize = 0;
	CHECK(cudaMemPoolCreate(&pool, &props));
	CHECK(cudaMallocFromPoolAsync(&memory, 4096, pool, stream));
	CHECK(cudaStreamSynchronize(stream));
	*(volatile int *)memory = 5;
	CHECK(cudaFreeAsync(memory, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemPoolDestroy(pool));
	CHECK(cudaStreamDestroy(stream));
}

static void
empty_allocation_in_a_capture()
{
	cudaStream_t stream;
	cudaGraph_t graph;
	void *memory = &graph;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	CHECK(cudaMallocAsync(&memory, 0, stream));
	REQUIRE(memory == nullptr);
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaStreamDestroy(stream));
}

/* The software device encodes them, but its kernels do not use them. */
static void
tensor_maps()
{
	cudaDeviceProp properties;
	int major = 0, supported = -1;

	CHECK(cudaGetDeviceProperties(&properties, 0));
	CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
	REQUIRE(DRIVER(cuDeviceGetAttribute)(&supported,
					     CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED,
					     0) == CUDA_SUCCESS);
	REQUIRE(supported == (major >= 9 && !strstr(properties.name, "software")));
}

int
main()
{
	CUprocessState state = CU_PROCESS_STATE_FAILED;
	CUresult result = DRIVER(cuCheckpointProcessGetState)(getpid(), &state);

	REQUIRE(result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_SUPPORTED);
	REQUIRE(result != CUDA_SUCCESS || state == CU_PROCESS_STATE_RUNNING);
	tensor_maps();
	pools();
	empty_allocation_in_a_capture();
	return app_ok("coregaps");
}
