/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graphfacts: behavior of NVIDIA's driver, natively, for graphs that kernels launch and update, on
 * which server/worker/graph relies. Prints a line for each fact; "no" or an error means that it
 * does not hold, and that the worker must not rely on it.
 */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <cuda_runtime.h>

#define CHECK(call) check((int)(call), #call)

static void
check(int error, const char *call)
{
	if (!error)
		return;
	fprintf(stderr, "graphfacts: %s: error %d\n", call, error);
	exit(1);
}

static __global__ void
again(int *counter, long long cycles)
{
	for (long long begin = clock64(); clock64() - begin < cycles;)
		continue;
	if (--*counter > 0)
		cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}

static __global__ void
launch(cudaGraphExec_t exec, int *error)
{
	*error = cudaGraphLaunch(exec, cudaStreamGraphFireAndForget);
}

static __global__ void
store(int *cell, int value)
{
	*cell = value;
}

/* Records the multiprocessors that a loop runs on, as bits, and when it ends. */
static __global__ void
turn(int *left, unsigned long long *seen, cudaGraphConditionalHandle handle)
{
	unsigned int where;

	asm volatile("mov.u32 %0, %%smid;" : "=r"(where));
	atomicOr(seen + where / 64 % 4, 1ull << where % 64);
	if (blockIdx.x == 0 && threadIdx.x == 0)
		cudaGraphSetConditional(handle, --*left > 0);
}

static CUcontext primary, green;
static CUstream green_stream;
static int *cells; /* pinned */

static CUgraphNode
add(CUgraph graph, CUcontext context, void *function, void **args)
{
	CUDA_KERNEL_NODE_PARAMS params = {};
	cudaKernel_t kernel;
	CUgraphNode node;

	CHECK(cudaGetKernel(&kernel, function));
	params.kern = reinterpret_cast<CUkernel>(kernel);
	params.gridDimX = params.gridDimY = params.gridDimZ = 1;
	params.blockDimX = params.blockDimY = params.blockDimZ = 1;
	params.kernelParams = args;
	params.ctx = context;
	CHECK(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params));
	return node;
}

static void
make_green()
{
	CUdevResource all, group, rest;
	CUdevResourceDesc desc;
	CUgreenCtx context;
	unsigned int count = 1;

	CHECK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(cuDevSmResourceSplitByCount(&group, &count, &all, &rest, 0, all.sm.smCount / 2));
	CHECK(cuDevResourceGenerateDesc(&desc, &group, 1));
	CHECK(cuGreenCtxCreate(&context, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	CHECK(cuCtxFromGreenCtx(&green, context));
	CHECK(cuGreenCtxStreamCreate(&green_stream, context, CU_STREAM_NON_BLOCKING, 0));
}

/* A value written after a launch appears when all work that the launch has launched is complete. */
static void
marker(CUcontext context, CUstream stream, const char *where)
{
	int *counter = cells;
	long long cycles = 1000000;
	void *args[] = { &counter, &cycles };
	CUgraphExec exec;
	CUgraph graph;

	CHECK(cuGraphCreate(&graph, 0));
	add(graph, context, reinterpret_cast<void *>(again), args);
	CUresult result =
		cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
	printf("%s: instantiated for launches by kernels: error %d\n", where, result);
	if (result != CUDA_SUCCESS)
		return;
	volatile int *flag = cells + 1;
	cells[0] = 200;
	*flag = 0;
	CHECK(cuGraphUpload(exec, stream));
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamWriteValue32(stream, reinterpret_cast<CUdeviceptr>(cells + 1), 1, 0));
	auto begin = std::chrono::steady_clock::now();
	while (!*flag)
		continue;
	int left = *reinterpret_cast<volatile int *>(cells);
	std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
	printf("%s: the marker came after all launches of itself: %s (%.0f ms, %d left)\n", where,
	       left == 0 ? "yes" : "no", took.count(), left);
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
}

/* After a change of the session's share, the launching kernel may belong to another context. */
static void
contexts(CUcontext outer_context, CUstream outer_stream, CUcontext inner_context, const char *what)
{
	int *cell = cells + 2, *error = cells + 3, value = 7;
	CUgraph inner, outer;
	CUgraphExec launched, exec;
	void *args[] = { &cell, &value };

	CHECK(cuGraphCreate(&inner, 0));
	add(inner, inner_context, reinterpret_cast<void *>(store), args);
	CHECK(cuGraphInstantiate(&launched, inner, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH));
	CHECK(cuGraphUpload(launched, outer_stream));
	void *others[] = { &launched, &error };
	CHECK(cuGraphCreate(&outer, 0));
	add(outer, outer_context, reinterpret_cast<void *>(launch), others);
	CHECK(cuGraphInstantiate(&exec, outer, 0));
	cells[2] = 0;
	cells[3] = -1;
	CHECK(cuGraphLaunch(exec, outer_stream));
	CUresult result = cuStreamSynchronize(outer_stream);
	printf("%s: stream error %d, launch error %d, ran: %s\n", what, result, cells[3],
	       cells[2] == 7 ? "yes" : "no");
	CHECK(result);
	/* New content under the same name. */
	CUgraphExecUpdateResultInfo info;
	CUgraph changed;
	value = 8;
	CHECK(cuGraphCreate(&changed, 0));
	add(changed, inner_context, reinterpret_cast<void *>(store), args);
	result = cuGraphExecUpdate(launched, changed, &info);
	CHECK(cuGraphUpload(launched, outer_stream));
	CHECK(cuGraphLaunch(exec, outer_stream));
	CHECK(cuStreamSynchronize(outer_stream));
	printf("%s: update error %d, it has the new content: %s\n", what, result,
	       cells[2] == 8 ? "yes" : "no");
	for (CUgraphExec one : { launched, exec })
		CHECK(cuGraphExecDestroy(one));
	for (CUgraph one : { inner, outer, changed })
		CHECK(cuGraphDestroy(one));
}

/* Uses a root as the worker does: nodes around it are destroyed and created, and executables
 * replace each other. */
static void
updatable(CUcontext context, CUstream stream, const char *where)
{
	int *cell = cells + 4, *other = cells + 5, value = 1;
	CUkernelNodeAttrValue attribute = {}, told = {};
	void *args[] = { &cell, &value }, *others[] = { &other, &value };
	CUgraphExec exec[2];
	CUgraph graph;

	attribute.deviceUpdatableKernelNode.deviceUpdatable = 1;
	CHECK(cuGraphCreate(&graph, 0));
	CUgraphNode node = add(graph, context, reinterpret_cast<void *>(store), args);
	CUresult result = cuGraphKernelNodeSetAttribute(
		node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &attribute);
	CUresult asked = cuGraphKernelNodeGetAttribute(
		node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &told);
	printf("%s: set %d, the value has the name: %s; get %d, it has the same: %s\n", where,
	       result, attribute.deviceUpdatableKernelNode.devNode ? "yes" : "no", asked,
	       told.deviceUpdatableKernelNode.devNode == attribute.deviceUpdatableKernelNode.devNode
		       ? "yes"
		       : "no");
	for (int i = 0; i < 2; i++) {
		CUgraphNode before = add(graph, context, reinterpret_cast<void *>(store), others);

		result = cuGraphAddDependencies(graph, &before, &node, nullptr, 1);
		CUresult made = cuGraphInstantiate(&exec[i], graph, 0);
		printf("%s: executable %d: edge %d, instantiate %d", where, i, result, made);
		if (made == CUDA_SUCCESS) {
			CHECK(cuGraphUpload(exec[i], stream));
			CHECK(cuGraphLaunch(exec[i], stream));
			/* While it may still be running. */
			result = cuGraphExecDestroy(exec[i]);
			printf(", destroy %d", result);
		}
		printf(", the node before goes: %d\n", cuGraphDestroyNode(before));
	}
	CHECK(cuStreamSynchronize(stream));
	printf("%s: the graph goes: %d\n", where, cuGraphDestroy(graph));
}

/* After a change of the session's share: a handle belongs to a context; may the node and its body
 * belong to another? */
static void
conditions(CUcontext of_handle, CUcontext of_node, CUcontext of_body, CUstream stream,
	   const char *what)
{
	CUgraphNodeParams params = {};
	CUgraphConditionalHandle handle;
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph graph;
	int *left = cells + 6;
	unsigned long long *seen = reinterpret_cast<unsigned long long *>(cells + 8);
	void *args[] = { &left, &seen, &handle };
	int multiprocessors = 0;

	CHECK(cuGraphCreate(&graph, 0));
	CUresult result = cuGraphConditionalHandleCreate(&handle, graph, of_handle, 1,
							 CU_GRAPH_COND_ASSIGN_DEFAULT);
	printf("%s: handle %d", what, result);
	params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
	params.conditional.handle = handle;
	params.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
	params.conditional.size = 1;
	params.conditional.ctx = of_node;
	if (result == CUDA_SUCCESS) {
		result = cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &params);
		printf(", node %d", result);
	}
	if (result == CUDA_SUCCESS) {
		CUDA_KERNEL_NODE_PARAMS kernel = {};
		cudaKernel_t found;

		CHECK(cudaGetKernel(&found, reinterpret_cast<void *>(turn)));
		kernel.kern = reinterpret_cast<CUkernel>(found);
		kernel.gridDimX = 1024;
		kernel.gridDimY = kernel.gridDimZ = 1;
		kernel.blockDimX = 1024;
		kernel.blockDimY = kernel.blockDimZ = 1;
		kernel.kernelParams = args;
		kernel.ctx = of_body;
		result = cuGraphAddKernelNode(&node, params.conditional.phGraph_out[0], nullptr, 0,
					      &kernel);
		printf(", body %d", result);
	}
	if (result == CUDA_SUCCESS) {
		result = cuGraphInstantiate(&exec, graph, 0);
		printf(", instantiate %d", result);
	}
	if (result == CUDA_SUCCESS) {
		*left = 5;
		for (int i = 0; i < 4; i++)
			seen[i] = 0;
		CHECK(cuGraphLaunch(exec, stream));
		CHECK(cuStreamSynchronize(stream));
		for (int i = 0; i < 256; i++)
			multiprocessors += seen[i / 64] >> i % 64 & 1;
		printf(", left %d, on %d multiprocessors", *left, multiprocessors);
		CHECK(cuGraphExecDestroy(exec));
	}
	printf("\n");
	CHECK(cuGraphDestroy(graph));
}

int
main()
{
	CUstream stream;

	CHECK(cudaSetDevice(0));
	CHECK(cudaFree(nullptr));
	CHECK(cuCtxGetCurrent(&primary));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cudaMallocHost(&cells, 64 * sizeof(int)));
	make_green();
	marker(primary, stream, "primary");
	marker(green, green_stream, "green");
	updatable(primary, stream, "primary");
	updatable(green, green_stream, "green");
	conditions(primary, primary, primary, stream, "loop, all primary");
	conditions(green, green, green, green_stream, "loop, all green");
	conditions(primary, primary, green, green_stream, "loop, body alone green");
	conditions(primary, green, green, green_stream, "loop, handle alone primary");
	conditions(green, green, primary, green_stream, "loop, body alone primary");
	contexts(primary, stream, primary, "primary launches primary");
	contexts(green, green_stream, green, "green launches green");
	/* Last, because they may end the process. */
	contexts(primary, stream, green, "primary launches green");
	contexts(green, green_stream, primary, "green launches primary");
	return 0;
}
