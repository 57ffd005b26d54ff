/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerfacts: operations that the driver allows between two devices, without and with peer access:
 * fills of the peer's memory, copies in a capture, and nodes of a graph. Prints a line for each,
 * with the error's name.
 */
#include <cuda_runtime.h>
#include <functional>
#include <stdio.h>
#include <string>

#define SIZE ((size_t)1 << 20)

static char *at[2];
static cudaStream_t streams[2];

static void
say(const std::string &what, cudaError_t result)
{
	printf("%-60s %s\n", what.c_str(), cudaGetErrorName(result));
	(void)cudaGetLastError();
}

static cudaError_t
capture(const std::function<cudaError_t(cudaStream_t)> &work, cudaGraph_t *graph)
{
	cudaError_t result, end;

	*graph = nullptr;
	(void)cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal);
	result = work(streams[0]);
	end = cudaStreamEndCapture(streams[0], graph);
	return result == cudaSuccess ? end : result;
}

static void
run(const std::string &what, cudaGraph_t graph)
{
	cudaGraphExec_t exec;
	cudaError_t result = cudaGraphInstantiate(&exec, graph, 0);

	say(what + ": instantiate", result);
	if (result != cudaSuccess)
		return;
	result = cudaGraphLaunch(exec, streams[0]);
	if (result == cudaSuccess)
		result = cudaStreamSynchronize(streams[0]);
	say(what + ": launch", result);
	(void)cudaGraphExecDestroy(exec);
}

static void
captured(const std::string &what, const std::function<cudaError_t(cudaStream_t)> &work)
{
	cudaGraph_t graph;

	say("capture of " + what, capture(work, &graph));
	if (!graph)
		return;
	run(what, graph);
	(void)cudaGraphDestroy(graph);
}

static void
node()
{
	cudaGraph_t graph;
	cudaGraphNode_t added;
	cudaError_t result;

	(void)cudaGraphCreate(&graph, 0);
	result = cudaGraphAddMemcpyNode1D(&added, graph, nullptr, 0, at[1], at[0], SIZE,
					  cudaMemcpyDefault);
	say("node of a copy to the other", result);
	if (result == cudaSuccess)
		run("node of a copy to the other", graph);
	(void)cudaGraphDestroy(graph);
}

static cudaError_t
box(cudaStream_t stream)
{
	cudaMemcpy3DPeerParms params = {};

	params.srcPtr = make_cudaPitchedPtr(at[0], 400, 100, 50);
	params.srcDevice = 0;
	params.dstPtr = make_cudaPitchedPtr(at[1], 400, 100, 50);
	params.dstDevice = 1;
	params.extent = make_cudaExtent(400, 50, 1);
	return cudaMemcpy3DPeerAsync(&params, stream);
}

static void
facts(const std::string &with)
{
	printf("%s\n", with.c_str());
	say("fill of the other's", cudaMemset(at[1], 1, SIZE));
	say("fill of the other's in rows", cudaMemset2D(at[1], 1024, 1, 512, 16));
	say("copy to the other",
	    cudaMemcpyAsync(at[1], at[0], SIZE, cudaMemcpyDefault, streams[0]));
	say("copy of the other's to itself",
	    cudaMemcpyAsync(at[1], at[1] + SIZE / 2, SIZE / 2, cudaMemcpyDefault, streams[0]));
	say("synchronize", cudaDeviceSynchronize());
	captured("a peer copy", [](cudaStream_t stream) {
		return cudaMemcpyPeerAsync(at[1], 1, at[0], 0, SIZE, stream);
	});
	captured("a peer copy within the device", [](cudaStream_t stream) {
		return cudaMemcpyPeerAsync(at[0], 0, at[0] + SIZE / 2, 0, SIZE / 2, stream);
	});
	captured("a box between them", box);
	captured("a copy to the other", [](cudaStream_t stream) {
		return cudaMemcpyAsync(at[1], at[0], SIZE, cudaMemcpyDefault, stream);
	});
	captured("a copy from the other", [](cudaStream_t stream) {
		return cudaMemcpyAsync(at[0], at[1], SIZE, cudaMemcpyDefault, stream);
	});
	captured("a fill of the other's",
		 [](cudaStream_t stream) { return cudaMemsetAsync(at[1], 1, SIZE, stream); });
	node();
}

int
main()
{
	int count = 0;

	if (cudaGetDeviceCount(&count) != cudaSuccess || count < 2) {
		printf("skipped: two devices are needed\n");
		return 77;
	}
	for (int i = 0; i < 2; i++) {
		(void)cudaSetDevice(i);
		(void)cudaMalloc(&at[i], SIZE);
		(void)cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
	}
	(void)cudaSetDevice(0);
	facts("without access");
	say("access of 0 to 1", cudaDeviceEnablePeerAccess(1, 0));
	facts("0 has access to 1");
	(void)cudaSetDevice(1);
	say("access of 1 to 0", cudaDeviceEnablePeerAccess(0, 0));
	(void)cudaSetDevice(0);
	facts("both have access");
	return 0;
}
