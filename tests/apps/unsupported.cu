/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module of which one kernel has an instruction that the software device does not support.
 * Launches of this kernel return an error from the call, and every other kernel works. A GPU runs
 * all of them.
 */
#include "app.h"

static __device__ int
add_by_video(int a, int b)
{
	int sum;

	asm("vadd.s32.s32.s32 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
	return sum;
}

static __device__ __noinline__ int
add_by_call(int a, int b)
{
	return add_by_video(a, b);
}

__global__ void
video(int *p, int n)
{
	*p = add_by_video(*p, n);
}

__global__ void
caller(int *p, int n)
{
	*p = add_by_call(*p, n);
}

__global__ void
plain(int *p, int n)
{
	*p += n;
}

static int *word;

static int
value()
{
	int now;

	CHECK(cudaMemcpy(&now, word, sizeof(now), cudaMemcpyDeviceToHost));
	return now;
}

/* The kernel has run, or the call has returned an error. */
static void
try_kernel(void (*kernel)(int *, int))
{
	int before = value();
	cudaError_t error;

	kernel<<<1, 1>>>(word, 5);
	error = cudaGetLastError();
	REQUIRE(error == cudaSuccess || error == cudaErrorNotSupported);
	CHECK(cudaDeviceSynchronize());
	REQUIRE(value() == (error == cudaSuccess ? before + 5 : before));
}

static void
try_node(void (*kernel)(int *, int))
{
	int before = value(), five = 5;
	void *values[] = { &word, &five };
	cudaKernelNodeParams params = {};
	cudaGraphExec_t exec;
	cudaGraphNode_t node;
	cudaGraph_t graph;
	cudaError_t error;

	params.func = (void *)kernel;
	params.gridDim = params.blockDim = dim3(1);
	params.kernelParams = values;
	CHECK(cudaGraphCreate(&graph, 0));
	error = cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params);
	(void)cudaGetLastError();
	REQUIRE(error == cudaSuccess || error == cudaErrorNotSupported);
	if (error == cudaSuccess) {
		CHECK(cudaGraphInstantiate(&exec, graph, 0));
		CHECK(cudaGraphLaunch(exec, 0));
		CHECK(cudaGraphExecDestroy(exec));
	}
	CHECK(cudaGraphDestroy(graph));
	REQUIRE(value() == (error == cudaSuccess ? before + 5 : before));
}

int
main()
{
	cudaFuncAttributes attributes;

	CHECK(cudaMalloc(&word, sizeof(*word)));
	CHECK(cudaMemset(word, 0, sizeof(*word)));
	CHECK(cudaFuncGetAttributes(&attributes, video));
	REQUIRE(attributes.maxThreadsPerBlock > 0);
	plain<<<1, 1>>>(word, 1);
	CHECK(cudaGetLastError());
	REQUIRE(value() == 1);
	for (int i = 0; i < 3; i++) {
		try_kernel(video);
		try_kernel(caller);
		try_kernel(plain);
	}
	try_node(video);
	try_node(plain);
	return app_ok("unsupported");
}
