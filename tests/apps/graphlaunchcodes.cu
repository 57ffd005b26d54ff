/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of CUDA for graphs that kernels launch, with their codes. */
#include "app.h"

static int *cell;

static __global__ void
launch(cudaGraphExec_t exec, unsigned long long how, int *error)
{
	*error = cudaGraphLaunch(exec, reinterpret_cast<cudaStream_t>(how));
}

static __global__ void
itself(unsigned long long how, int times, int *errors)
{
	if (errors[times])
		return;
	errors[times] = 1;
	for (int i = 0; i < times; i++)
		errors[i] = cudaGraphLaunch(cudaGetCurrentGraphExec(),
					    reinterpret_cast<cudaStream_t>(how));
}

static __global__ void
is_current(cudaGraphExec_t exec, int *same)
{
	*same = cudaGetCurrentGraphExec() == exec;
}

static __global__ void
idle()
{
}

static const unsigned long long TAIL = 0x0100000000000000, BESIDE = 0x0200000000000000;

static cudaGraphNode_t
kernel(cudaGraph_t graph, void *function, void **args)
{
	cudaKernelNodeParams params = {};
	cudaGraphNode_t node;

	params.func = function;
	params.gridDim = params.blockDim = dim3(1);
	params.kernelParams = args;
	CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
	return node;
}

static cudaGraphExec_t
launchable(cudaGraph_t graph)
{
	cudaGraphExec_t exec;

	CHECK(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagDeviceLaunch));
	return exec;
}

static void
show(const char *what, int count)
{
	int values[8];

	CHECK(cudaMemcpy(values, cell, sizeof(values), cudaMemcpyDeviceToHost));
	printf("%s:", what);
	for (int i = 0; i < count; i++)
		printf(" %d", values[i]);
	printf("\n");
	CHECK(cudaMemset(cell, 0, sizeof(values)));
	CHECK(cudaDeviceSynchronize());
}

static void
instantiate(const char *what, cudaGraph_t graph, unsigned long long flags)
{
	cudaGraphInstantiateParams params = {};
	cudaGraphExec_t exec;

	params.flags = flags;
	cudaError_t error = cudaGraphInstantiateWithParams(&exec, graph, &params);
	printf("%s: %s, result %d\n", what, cudaGetErrorName(error),
	       static_cast<int>(params.result_out));
	(void)cudaGetLastError();
}

static void CUDART_CB
nothing(void *)
{
}

static void
instantiations(void)
{
	const unsigned long long flag = cudaGraphInstantiateFlagDeviceLaunch;
	cudaHostNodeParams host = { nothing, nullptr };
	cudaGraphNode_t node;
	cudaGraph_t graph, other;

	CHECK(cudaGraphCreate(&graph, 0));
	instantiate("of nothing", graph, flag);
	kernel(graph, reinterpret_cast<void *>(idle), nullptr);
	instantiate("freed at a launch, too", graph,
		    flag | cudaGraphInstantiateFlagAutoFreeOnLaunch);
	CHECK(cudaGraphClone(&other, graph));
	CHECK(cudaGraphAddHostNode(&node, graph, nullptr, 0, &host));
	instantiate("with a host function", graph, flag);
	CHECK(cudaGraphAddEmptyNode(&node, other, nullptr, 0));
	instantiate("with an empty node", other, flag);
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaGraphDestroy(other));
}

/* Launches by kernels. No invalid handles are passed. */
static void
launches(cudaStream_t stream)
{
	cudaGraph_t target, graph;
	cudaGraphExec_t exec;
	unsigned long long how = BESIDE;

	CHECK(cudaGraphCreate(&target, 0));
	kernel(target, reinterpret_cast<void *>(idle), nullptr);
	cudaGraphExec_t launched = launchable(target);
	CHECK(cudaGraphCreate(&graph, 0));
	void *args[] = { &launched, &how, &cell };
	kernel(graph, reinterpret_cast<void *>(launch), args);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphUpload(launched, stream));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	show("uploaded", 1);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphExecDestroy(launched));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaGraphDestroy(target));
}

static void
of_itself(cudaStream_t stream, const char *what, unsigned long long how, int times)
{
	void *args[] = { &how, &times, &cell };
	cudaGraph_t graph;

	CHECK(cudaGraphCreate(&graph, 0));
	kernel(graph, reinterpret_cast<void *>(itself), args);
	cudaGraphExec_t exec = launchable(graph);
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	show(what, times);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

/* The host's handle and the device's handle are the same. */
static void
names(cudaStream_t stream)
{
	cudaKernelNodeParams changed = {};
	cudaGraphExec_t exec = nullptr;
	cudaGraph_t graph;

	CHECK(cudaGraphCreate(&graph, 0));
	void *args[] = { &exec, &cell };
	cudaGraphNode_t node = kernel(graph, reinterpret_cast<void *>(is_current), args);
	exec = launchable(graph);
	changed.func = reinterpret_cast<void *>(is_current);
	changed.gridDim = changed.blockDim = dim3(1);
	changed.kernelParams = args;
	CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &changed));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	show("the same name", 1);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

int
main(void)
{
	cudaStream_t stream;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&cell, 8 * sizeof(int)));
	CHECK(cudaMemset(cell, 0, 8 * sizeof(int)));
	CHECK(cudaDeviceSynchronize());
	instantiations();
	launches(stream);
	of_itself(stream, "itself beside itself", BESIDE, 1);
	of_itself(stream, "itself twice behind itself", TAIL, 2);
	names(stream);
	CHECK(cudaFree(cell));
	CHECK(cudaStreamDestroy(stream));
	return app_ok("graphlaunchcodes");
}
