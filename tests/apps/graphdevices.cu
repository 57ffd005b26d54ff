/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs with nodes of two devices, captured and built by calls. Kernels wait before they write, so
 * that missing dependencies are detected.
 */
#include "app.h"

static const int COUNT = 1000;
static const size_t BYTES = COUNT * sizeof(int);
static const unsigned long long STAY_NS = 5000000;

using ints = std::vector<int>;

static __global__ void
change(int *data, int times, int plus)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	app_stay(STAY_NS);
	if (i < COUNT)
		data[i] = data[i] * times + plus;
}

struct side {
	int *data;  /* memory of the device */
	int *other; /* value received from the other device */
	cudaStream_t stream;
	cudaEvent_t done;
};

static ints
model(ints data, int times, int plus)
{
	for (int &value : data)
		value = value * times + plus;
	return data;
}

static void
fill(side *sides, ints *hosts)
{
	for (int device = 0; device < 2; device++) {
		hosts[device].resize(COUNT);
		for (int i = 0; i < COUNT; i++)
			hosts[device][i] = i + device * 100;
		CHECK(cudaMemcpy(sides[device].data, hosts[device].data(), BYTES,
				 cudaMemcpyDefault));
	}
}

static void
begin(side *sides)
{
	for (int device = 0; device < 2; device++) {
		CHECK(cudaSetDevice(device));
		sides[device].data = app_malloc<int>(COUNT);
		sides[device].other = app_malloc<int>(COUNT);
		CHECK(cudaStreamCreate(&sides[device].stream));
		CHECK(cudaEventCreateWithFlags(&sides[device].done, cudaEventDisableTiming));
	}
	CHECK(cudaSetDevice(0));
}

static void
end(side *sides)
{
	for (int device = 0; device < 2; device++) {
		CHECK(cudaSetDevice(device));
		CHECK(cudaFree(sides[device].data));
		CHECK(cudaFree(sides[device].other));
		CHECK(cudaStreamDestroy(sides[device].stream));
		CHECK(cudaEventDestroy(sides[device].done));
	}
}

static void CUDART_CB
count(void *data)
{
	++*(int *)data;
}

/* Both devices work at once, then one uses the results of the other. */
static cudaGraph_t
capture(side *sides, int *counted)
{
	cudaGraph_t graph;

	CHECK(cudaSetDevice(0));
	CHECK(cudaStreamBeginCapture(sides[0].stream, cudaStreamCaptureModeThreadLocal));
	change<<<4, 256, 0, sides[0].stream>>>(sides[0].data, 3, 1);
	CHECK(cudaEventRecord(sides[0].done, sides[0].stream));
	CHECK(cudaSetDevice(1));
	CHECK(cudaStreamWaitEvent(sides[1].stream, sides[0].done, 0));
	CHECK(cudaMemcpyAsync(sides[1].other, sides[0].data, BYTES, cudaMemcpyDefault,
			      sides[1].stream));
	change<<<4, 256, 0, sides[1].stream>>>(sides[1].other, 2, 5);
	change<<<4, 256, 0, sides[1].stream>>>(sides[1].data, 5, 2);
	CHECK(cudaEventRecord(sides[1].done, sides[1].stream));
	CHECK(cudaSetDevice(0));
	change<<<4, 256, 0, sides[0].stream>>>(sides[0].other, 1, 7);
	CHECK(cudaStreamWaitEvent(sides[0].stream, sides[1].done, 0));
	CHECK(cudaLaunchHostFunc(sides[0].stream, count, counted));
	CHECK(cudaMemcpyAsync(sides[0].other, sides[1].data, BYTES, cudaMemcpyDefault,
			      sides[0].stream));
	change<<<4, 256, 0, sides[0].stream>>>(sides[0].other, 1, -4);
	CHECK(cudaStreamEndCapture(sides[0].stream, &graph));
	return graph;
}

static void
captured(side *sides)
{
	cudaGraphExec_t exec;
	int counted = 0;
	ints host[2];
	cudaGraph_t graph = capture(sides, &counted);

	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphDestroy(graph));
	fill(sides, host);
	for (int i = 1; i <= 4; i++) {
		/* The second branch, which nothing has waited for, must run after the first. */
		for (int launch = 0; launch < 2; launch++) {
			CHECK(cudaGraphLaunch(exec, sides[0].stream));
			host[0] = model(host[0], 3, 1);
			ints given = model(host[0], 2, 5);
			host[1] = model(host[1], 5, 2);
			if (launch == 0)
				continue;
			ints other(COUNT), back(COUNT);
			CHECK(cudaMemcpyAsync(other.data(), sides[1].other, BYTES,
					      cudaMemcpyDefault, sides[0].stream));
			CHECK(cudaMemcpyAsync(back.data(), sides[0].other, BYTES, cudaMemcpyDefault,
					      sides[0].stream));
			CHECK(cudaStreamSynchronize(sides[0].stream));
			REQUIRE(other == given);
			REQUIRE(back == model(host[1], 1, -4));
			REQUIRE(app_download(sides[0].data, COUNT) == host[0]);
			REQUIRE(app_download(sides[1].data, COUNT) == host[1]);
		}
		REQUIRE(counted == 2 * i);
	}
	CHECK(cudaGraphExecDestroy(exec));
	printf("captured\n");
}

static cudaGraphNode_t
add_kernel(cudaGraph_t graph, int device, const ints &before, const cudaGraphNode_t *nodes,
	   int *data, int times, int plus)
{
	void *arguments[] = { &data, &times, &plus };
	cudaKernelNodeParams params = {};
	std::vector<cudaGraphNode_t> on;
	cudaGraphNode_t node;

	for (int number : before)
		on.push_back(nodes[number]);
	params.func = (void *)change;
	params.gridDim = dim3(4);
	params.blockDim = dim3(256);
	params.kernelParams = arguments;
	CHECK(cudaSetDevice(device));
	CHECK(cudaGraphAddKernelNode(&node, graph, on.data(), on.size(), &params));
	return node;
}

static cudaGraphNode_t
add_copy(cudaGraph_t graph, cudaGraphNode_t before, int *to, const int *from)
{
	cudaGraphNode_t node;

	CHECK(cudaGraphAddMemcpyNode1D(&node, graph, &before, 1, to, from, BYTES,
				       cudaMemcpyDefault));
	return node;
}

static void
run(cudaGraphExec_t exec, side *sides, ints *host)
{
	fill(sides, host);
	CHECK(cudaSetDevice(0));
	CHECK(cudaGraphLaunch(exec, sides[0].stream));
	CHECK(cudaStreamSynchronize(sides[0].stream));
}

/* Dependencies in both directions, with an empty node and a memset; then with changed, disabled and
 * cloned nodes. */
static void
built(side *sides)
{
	cudaGraphNode_t nodes[8];
	cudaMemsetParams zero = {};
	cudaGraph_t graph, clone;
	cudaGraphExec_t exec;
	ints host[2];

	CHECK(cudaGraphCreate(&graph, 0));
	nodes[0] = add_kernel(graph, 0, {}, nodes, sides[0].data, 2, 1);
	CHECK(cudaGraphAddEmptyNode(&nodes[1], graph, nodes, 1));
	nodes[2] = add_copy(graph, nodes[1], sides[1].other, sides[0].data);
	nodes[3] = add_kernel(graph, 1, { 2 }, nodes, sides[1].other, 3, 1);
	nodes[4] = add_kernel(graph, 1, { 1 }, nodes, sides[1].data, 3, 4);
	nodes[5] = add_copy(graph, nodes[3], sides[0].other, sides[1].other);
	nodes[6] = add_kernel(graph, 0, { 5, 4 }, nodes, sides[0].other, 5, 0);
	zero.dst = sides[1].other;
	zero.elementSize = 4;
	zero.width = COUNT;
	zero.height = 1;
	CHECK(cudaSetDevice(1));
	CHECK(cudaGraphAddMemsetNode(&nodes[7], graph, &nodes[6], 1, &zero));
	CHECK(cudaGraphClone(&clone, graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 2; i++) {
		run(exec, sides, host);
		REQUIRE(app_download(sides[0].data, COUNT) == model(host[0], 2, 1));
		REQUIRE(app_download(sides[0].other, COUNT) ==
			model(model(model(host[0], 2, 1), 3, 1), 5, 0));
		REQUIRE(app_download(sides[1].data, COUNT) == model(host[1], 3, 4));
		REQUIRE(app_download(sides[1].other, COUNT) == ints(COUNT));
	}
	CHECK(cudaGraphNodeSetEnabled(exec, nodes[4], 0));
	CHECK(cudaGraphNodeSetEnabled(exec, nodes[7], 0));
	run(exec, sides, host);
	REQUIRE(app_download(sides[1].data, COUNT) == host[1]);
	REQUIRE(app_download(sides[1].other, COUNT) == model(model(host[0], 2, 1), 3, 1));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaGraphInstantiate(&exec, clone, 0));
	CHECK(cudaGraphDestroy(clone));
	run(exec, sides, host);
	REQUIRE(app_download(sides[1].data, COUNT) == model(host[1], 3, 4));
	CHECK(cudaGraphExecDestroy(exec));
	printf("built\n");
}

int
main()
{
	side sides[2];
	int devices;

	CHECK(cudaGetDeviceCount(&devices));
	if (devices < 2) {
		printf("skipped: there is one device only\n");
		return 77;
	}
	begin(sides);
	captured(sides);
	built(sides);
	end(sides);
	return app_ok("graphdevices");
}
