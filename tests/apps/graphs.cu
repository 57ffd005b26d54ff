/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that are built by explicit calls: every kind of node; launches, updates, and rejected
 * calls. */
#include "app.h"

#include <atomic>

#define N 4096

static __global__ void
add(int *cells, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < N)
		cells[i] += value;
}

static __global__ void
twice(int *cells)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < N)
		cells[i] *= 2;
}

static void CUDART_CB
count(void *data)
{
	++*(std::atomic<int> *)data;
}

static cudaGraphNode_t
add_kernel(cudaGraph_t graph, const cudaGraphNode_t *after, size_t count, const void *kernel,
	   void **params)
{
	cudaKernelNodeParams node = {};
	cudaGraphNode_t made;

	node.func = (void *)kernel;
	node.gridDim = dim3(N / 256);
	node.blockDim = dim3(256);
	node.kernelParams = params;
	CHECK(cudaGraphAddKernelNode(&made, graph, after, count, &node));
	return made;
}

static cudaGraphNode_t
add_memset(cudaGraph_t graph, const cudaGraphNode_t *after, size_t count, int *dst)
{
	cudaMemsetParams params = {};
	cudaGraphNode_t made;

	params.dst = dst;
	params.elementSize = 4;
	params.value = 5;
	params.width = N;
	params.height = 1;
	CHECK(cudaGraphAddMemsetNode(&made, graph, after, count, &params));
	return made;
}

static void
require_all(const std::vector<int> &host, int value)
{
	for (int i = 0; i < N; i++)
		REQUIRE(host[i] == value);
}

/* Two branches after one memset, joined by a copy. */
static void
diamond(cudaStream_t stream)
{
	int *a = app_malloc<int>(N), *b = app_malloc<int>(N);
	int one = 1, ten = 10;
	void *add_one[] = { &a, &one }, *add_ten[] = { &a, &ten }, *twice_b[] = { &b };
	std::vector<int> host(N);
	cudaGraphNode_t set, copied, kernels[2], seen[8];
	size_t nodes = 8;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CHECK(cudaGraphCreate(&graph, 0));
	set = add_memset(graph, nullptr, 0, a);
	kernels[0] = add_kernel(graph, &set, 1, (const void *)add, add_one);
	CHECK(cudaGraphAddMemcpyNode1D(&copied, graph, &kernels[0], 1, b, a, N * sizeof(int),
				       cudaMemcpyDeviceToDevice));
	kernels[1] = add_kernel(graph, &copied, 1, (const void *)twice, twice_b);
	add_kernel(graph, &copied, 1, (const void *)add, add_ten);
	CHECK(cudaGraphGetNodes(graph, seen, &nodes));
	REQUIRE(nodes == 5 && seen[0] == set && seen[5] == nullptr);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphDestroy(graph));
	for (int i = 0; i < 3; i++) {
		CHECK(cudaGraphLaunch(exec, stream));
		CHECK(cudaStreamSynchronize(stream));
		CHECK(cudaMemcpy(host.data(), a, N * sizeof(int), cudaMemcpyDeviceToHost));
		require_all(host, 16);
		CHECK(cudaMemcpy(host.data(), b, N * sizeof(int), cudaMemcpyDeviceToHost));
		require_all(host, 12);
	}
	CHECK(cudaGraphExecDestroy(exec));
	EXPECT(cudaErrorInvalidValue, cudaGraphLaunch(exec, stream));
	CHECK(cudaFree(a));
	CHECK(cudaFree(b));
}

/* Input and output by copies, and a host function between two kernels. */
static void
host_steps(cudaStream_t stream)
{
	int *cells = app_malloc<int>(N), *pinned, three = 3;
	void *params[] = { &cells, &three };
	std::atomic<int> calls(0);
	std::vector<int> in(N, 7), out(N);
	cudaGraphNode_t node, first;
	cudaHostNodeParams host = {};
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	host.fn = count;
	host.userData = &calls;
	CHECK(cudaMallocHost(&pinned, N * sizeof(int)));
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, cells, in.data(), N * sizeof(int),
				       cudaMemcpyHostToDevice));
	first = add_kernel(graph, &node, 1, (const void *)add, params);
	CHECK(cudaGraphAddHostNode(&node, graph, &first, 1, &host));
	first = add_kernel(graph, &node, 1, (const void *)add, params);
	CHECK(cudaGraphAddMemcpyNode1D(&node, graph, &first, 1, pinned, cells, N * sizeof(int),
				       cudaMemcpyDeviceToHost));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 3; i++) {
		in[N / 2] = i;
		CHECK(cudaGraphLaunch(exec, stream));
		CHECK(cudaStreamSynchronize(stream));
		REQUIRE(calls == i + 1);
		REQUIRE(pinned[N / 2] == i + 6 && pinned[0] == 13);
	}
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFree(cells));
}

/* A child graph, an empty node, and an event that other streams wait for. */
static void
parts(cudaStream_t stream)
{
	int *cells = app_malloc<int>(N), one = 1;
	void *params[] = { &cells, &one }, *only[] = { &cells };
	std::vector<int> host(N);
	cudaGraphNode_t node, last, child;
	cudaGraph_t graph, inner;
	cudaGraphExec_t exec;
	cudaEvent_t event;
	cudaStream_t other;

	CHECK(cudaEventCreate(&event));
	CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CHECK(cudaGraphCreate(&inner, 0));
	node = add_kernel(inner, nullptr, 0, (const void *)add, params);
	add_kernel(inner, &node, 1, (const void *)twice, only);
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddEmptyNode(&node, graph, nullptr, 0));
	last = add_memset(graph, &node, 1, cells);
	CHECK(cudaGraphAddChildGraphNode(&child, graph, &last, 1, inner));
	CHECK(cudaGraphDestroy(inner));
	last = add_kernel(graph, &child, 1, (const void *)add, params);
	CHECK(cudaGraphAddEventRecordNode(&node, graph, &last, 1, event));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamWaitEvent(other, event, 0));
	CHECK(cudaMemcpyAsync(host.data(), cells, N * sizeof(int), cudaMemcpyDeviceToHost, other));
	CHECK(cudaStreamSynchronize(other));
	require_all(host, 13);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaStreamDestroy(other));
	CHECK(cudaEventDestroy(event));
	CHECK(cudaFree(cells));
}

/* Updates with other parameters, a disabled node, and another graph of the same shape. */
static void
updates(cudaStream_t stream)
{
	int *cells = app_malloc<int>(N), value = 1;
	void *params[] = { &cells, &value };
	cudaKernelNodeParams kernel = {};
	cudaGraphExecUpdateResultInfo info;
	std::vector<int> host(N);
	cudaGraphNode_t set, node;
	cudaGraph_t graph, clone;
	cudaGraphExec_t exec;

	CHECK(cudaGraphCreate(&graph, 0));
	set = add_memset(graph, nullptr, 0, cells);
	node = add_kernel(graph, &set, 1, (const void *)add, params);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphKernelNodeGetParams(node, &kernel));
	REQUIRE(kernel.gridDim.x == N / 256 && *(int *)kernel.kernelParams[1] == 1);
	kernel.kernelParams = params;
	value = 20;
	CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &kernel));
	value = 0;
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpy(host.data(), cells, N * sizeof(int), cudaMemcpyDeviceToHost));
	require_all(host, 25);
	CHECK(cudaGraphNodeSetEnabled(exec, node, 0));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpy(host.data(), cells, N * sizeof(int), cudaMemcpyDeviceToHost));
	require_all(host, 5);
	CHECK(cudaGraphClone(&clone, graph));
	CHECK(cudaGraphExecUpdate(exec, clone, &info));
	REQUIRE(info.result == cudaGraphExecUpdateSuccess);
	CHECK(cudaGraphNodeSetEnabled(exec, node, 1));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpy(host.data(), cells, N * sizeof(int), cudaMemcpyDeviceToHost));
	require_all(host, 6);
	add_kernel(clone, nullptr, 0, (const void *)add, params);
	EXPECT(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, clone, &info));
	REQUIRE(info.result == cudaGraphExecUpdateErrorTopologyChanged);
	CHECK(cudaGraphDestroy(clone));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaFree(cells));
}

static void
refused(void)
{
	cudaGraphNode_t nodes[2];
	cudaGraph_t graph;
	cudaGraphExec_t exec = nullptr;

	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddEmptyNode(&nodes[0], graph, nullptr, 0));
	CHECK(cudaGraphAddEmptyNode(&nodes[1], graph, nodes, 1));
	EXPECT(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, nullptr, 0));
	CHECK(cudaGraphDestroy(graph));
	EXPECT(cudaErrorInvalidValue, cudaGraphDestroy(graph));
}

int
main()
{
	cudaStream_t stream;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	diamond(stream);
	host_steps(stream);
	parts(stream);
	updates(stream);
	refused();
	CHECK(cudaStreamDestroy(stream));
	return app_ok("graphs");
}
