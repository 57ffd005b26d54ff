/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that graphs allocate and free, by explicit nodes and by capture. */
#include "app.h"

#define N 4096

static __global__ void
add(int *cells, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < N)
		cells[i] += value;
}

static void *
add_alloc(cudaGraph_t graph, cudaGraphNode_t *node, size_t size)
{
	cudaMemAllocNodeParams params = {};

	params.poolProps.allocType = cudaMemAllocationTypePinned;
	params.poolProps.location.type = cudaMemLocationTypeDevice;
	params.poolProps.location.id = 0;
	params.bytesize = size;
	CHECK(cudaGraphAddMemAllocNode(node, graph, nullptr, 0, &params));
	REQUIRE(params.dptr != nullptr);
	return params.dptr;
}

static cudaGraphNode_t
add_work(cudaGraph_t graph, cudaGraphNode_t after, int *cells, int value)
{
	void *params[] = { &cells, &value };
	cudaMemsetParams set = {};
	cudaKernelNodeParams kernel = {};
	cudaGraphNode_t node;

	set.dst = cells;
	set.elementSize = 4;
	set.value = 1;
	set.width = N;
	set.height = 1;
	CHECK(cudaGraphAddMemsetNode(&node, graph, &after, 1, &set));
	kernel.func = (void *)add;
	kernel.gridDim = dim3(N / 256);
	kernel.blockDim = dim3(256);
	kernel.kernelParams = params;
	CHECK(cudaGraphAddKernelNode(&node, graph, &node, 1, &kernel));
	return node;
}

static int
first_cell(const int *cells, cudaStream_t stream)
{
	int seen = 0;

	CHECK(cudaMemcpyAsync(&seen, cells, sizeof(seen), cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	return seen;
}

static cudaGraphExec_t
instantiate(cudaGraph_t graph, unsigned long long flags)
{
	cudaGraphExec_t exec;

	CHECK(cudaGraphInstantiate(&exec, graph, flags));
	return exec;
}

/* A graph that allocates and frees memory. */
static void
within(cudaStream_t stream)
{
	int *out = app_malloc<int>(N);
	cudaGraphNode_t alloc, last, freed;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	void *memory, *told;
	int *cells;

	CHECK(cudaGraphCreate(&graph, 0));
	memory = add_alloc(graph, &alloc, N * sizeof(int));
	cells = (int *)memory;
	last = add_work(graph, alloc, cells, 5);
	CHECK(cudaGraphAddMemcpyNode1D(&last, graph, &last, 1, out, cells, N * sizeof(int),
				       cudaMemcpyDeviceToDevice));
	CHECK(cudaGraphAddMemFreeNode(&freed, graph, &last, 1, memory));
	CHECK(cudaGraphMemFreeNodeGetParams(freed, &told));
	REQUIRE(told == memory);
	EXPECT(cudaErrorInvalidValue, cudaGraphAddMemFreeNode(&freed, graph, &last, 1, memory));
	exec = instantiate(graph, 0);
	for (int i = 0; i < 3; i++) {
		CHECK(cudaMemsetAsync(out, 0, N * sizeof(int), stream));
		CHECK(cudaGraphLaunch(exec, stream));
		REQUIRE(first_cell(out, stream) == 6);
	}
	EXPECT(cudaErrorInvalidValue, cudaFree(memory));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFree(out));
}

/* Consecutive allocations: the graph is much longer than the memory that it needs at once. Memory
 * is reused after it has been freed, and not before. */
static void
by_turns(cudaStream_t stream)
{
	const size_t bytes = (size_t)64 << 20;
	unsigned long long reserved, zero = 0;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	int *out = app_malloc<int>(N), *kept, *cells;

	CHECK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &zero));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	CHECK(cudaMallocAsync(&kept, bytes, stream));
	CHECK(cudaMemsetAsync(kept, 0, bytes, stream));
	for (int i = 1; i <= 10; i++) {
		CHECK(cudaMallocAsync(&cells, bytes - i * 4096, stream));
		REQUIRE((char *)cells >= (char *)kept + bytes ||
			(char *)cells + bytes <= (char *)kept);
		CHECK(cudaMemcpyAsync(cells, kept, N * sizeof(int), cudaMemcpyDeviceToDevice,
				      stream));
		add<<<N / 256, 256, 0, stream>>>(cells, i);
		CHECK(cudaMemcpyAsync(kept, cells, N * sizeof(int), cudaMemcpyDeviceToDevice,
				      stream));
		CHECK(cudaFreeAsync(cells, stream));
	}
	CHECK(cudaMemcpyAsync(out, kept, N * sizeof(int), cudaMemcpyDeviceToDevice, stream));
	CHECK(cudaFreeAsync(kept, stream));
	CHECK(cudaStreamEndCapture(stream, &graph));
	exec = instantiate(graph, 0);
	for (int i = 0; i < 2; i++) {
		CHECK(cudaGraphLaunch(exec, stream));
		REQUIRE(first_cell(out, stream) == 55);
	}
	CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &reserved));
	REQUIRE(reserved >= 2 * bytes - (4096 << 4) && reserved < 4 * bytes);
	EXPECT(cudaErrorInvalidValue, cudaFree(cells));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFree(out));
}

/* Memory that stays allocated after the launch until the application frees it. */
static void
beyond(cudaStream_t stream)
{
	cudaGraphNode_t alloc, node;
	cudaGraph_t graph, other, clone;
	cudaGraphExec_t exec, second;
	void *memory;

	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphCreate(&other, 0));
	memory = add_alloc(graph, &alloc, N * sizeof(int));
	node = add_work(graph, alloc, (int *)memory, 5);
	EXPECT(cudaErrorNotSupported, cudaGraphDestroyNode(alloc));
	EXPECT(cudaErrorNotSupported, cudaGraphClone(&clone, graph));
	EXPECT(cudaErrorNotSupported, cudaGraphAddChildGraphNode(&node, other, nullptr, 0, graph));
	EXPECT(cudaErrorInvalidValue, cudaFree(memory));
	exec = instantiate(graph, 0);
	EXPECT(cudaErrorNotSupported, cudaGraphInstantiate(&second, graph, 0));
	CHECK(cudaGraphLaunch(exec, stream));
	REQUIRE(first_cell((int *)memory, stream) == 6);
	EXPECT(cudaErrorInvalidValue, cudaGraphLaunch(exec, stream));
	CHECK(cudaFreeAsync(memory, stream));
	EXPECT(cudaErrorInvalidValue, cudaFreeAsync(memory, stream));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaFree(memory));
	EXPECT(cudaErrorInvalidValue, cudaFree(memory));
	/* A graph that frees memory which another graph has allocated. */
	CHECK(cudaGraphAddMemFreeNode(&node, other, nullptr, 0, memory));
	EXPECT(cudaErrorInvalidValue, cudaGraphAddMemFreeNode(&node, other, nullptr, 0, memory));
	second = instantiate(other, 0);
	EXPECT(cudaErrorInvalidValue, cudaGraphLaunch(second, stream));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaGraphLaunch(second, stream));
	EXPECT(cudaErrorInvalidValue, cudaGraphLaunch(second, stream));
	/* Memory in use after the graph and its executable have been destroyed. */
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaGraphExecDestroy(second));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(other));
	CHECK(cudaGraphDestroy(graph));
	REQUIRE(first_cell((int *)memory, stream) == 6);
	CHECK(cudaFree(memory));
	EXPECT(cudaErrorInvalidValue, cudaFree(memory));
}

/* Freed by the next launch. */
static void
automatic(cudaStream_t stream)
{
	cudaGraphNode_t alloc;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	void *memory;

	CHECK(cudaGraphCreate(&graph, 0));
	memory = add_alloc(graph, &alloc, N * sizeof(int));
	add_work(graph, alloc, (int *)memory, 5);
	exec = instantiate(graph, cudaGraphInstantiateFlagAutoFreeOnLaunch);
	for (int i = 0; i < 3; i++) {
		CHECK(cudaGraphLaunch(exec, stream));
		REQUIRE(first_cell((int *)memory, stream) == 6);
	}
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFree(memory));
}

static void
captured(cudaStream_t stream)
{
	int *out = app_malloc<int>(N), *cells;
	cudaGraphNode_t nodes[8];
	cudaGraphNodeType type;
	size_t count = 8;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CHECK(cudaMallocAsync(&cells, N * sizeof(int), stream));
	CHECK(cudaMemsetAsync(cells, 0, N * sizeof(int), stream));
	add<<<N / 256, 256, 0, stream>>>(cells, 7);
	CHECK(cudaMemcpyAsync(out, cells, N * sizeof(int), cudaMemcpyDeviceToDevice, stream));
	CHECK(cudaFreeAsync(cells, stream));
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphGetNodes(graph, nodes, &count));
	REQUIRE(count == 5);
	CHECK(cudaGraphNodeGetType(nodes[0], &type));
	REQUIRE(type == cudaGraphNodeTypeMemAlloc);
	CHECK(cudaGraphNodeGetType(nodes[4], &type));
	REQUIRE(type == cudaGraphNodeTypeMemFree);
	exec = instantiate(graph, 0);
	for (int i = 0; i < 3; i++) {
		CHECK(cudaMemsetAsync(out, 0, N * sizeof(int), stream));
		CHECK(cudaGraphLaunch(exec, stream));
		REQUIRE(first_cell(out, stream) == 7);
	}
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFree(out));
}

/* No memory is in use; the high watermark is reported until it is reset. */
static void
footprint(void)
{
	unsigned long long bytes;

	CHECK(cudaDeviceGraphMemTrim(0));
	CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &bytes));
	REQUIRE(bytes == 0);
	CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &bytes));
	REQUIRE(bytes >= N * sizeof(int));
	bytes = 0;
	CHECK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &bytes));
	CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &bytes));
	REQUIRE(bytes == 0);
	EXPECT(cudaErrorInvalidValue,
	       cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &bytes));
}

int
main()
{
	cudaStream_t stream;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	within(stream);
	by_turns(stream);
	beyond(stream);
	automatic(stream);
	captured(stream);
	footprint();
	CHECK(cudaStreamDestroy(stream));
	return app_ok("graphmemory");
}
