/* SPDX-License-Identifier: Apache-2.0 */
/* Device-side graph launches: beside the caller (cudaStreamGraphFireAndForget), tail, sibling and
 * self-relaunch. */
#include "app.h"

static int *cells;

/* Appends a value to a list: cells[0] is its length, the values follow. */
static __global__ void
append(int *list, int value)
{
	list[1 + atomicAdd(list, 1)] = value;
}

static __global__ void
launch(cudaGraphExec_t exec, unsigned long long how, int *error)
{
	*error = cudaGraphLaunch(exec, reinterpret_cast<cudaStream_t>(how));
}

/* Relaunches itself while the counter is not 0. */
static __global__ void
again(int *counter, int *launches)
{
	++*launches;
	if (--*counter > 0)
		cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}

static const unsigned long long TAIL = 0x0100000000000000, BESIDE = 0x0200000000000000,
				SIBLING = 0x0300000000000000;

static cudaGraphNode_t
append_node(cudaGraph_t graph, const cudaGraphNode_t *behind, int value)
{
	void *args[] = { &cells, &value };

	return app_add_kernel(graph, behind, reinterpret_cast<void *>(append), args);
}

static cudaGraphNode_t
launch_node(cudaGraph_t graph, const cudaGraphNode_t *behind, cudaGraphExec_t exec,
	    unsigned long long how, int cell)
{
	int *error = cells + cell;
	void *args[] = { &exec, &how, &error };

	return app_add_kernel(graph, behind, reinterpret_cast<void *>(launch), args);
}

static cudaGraphExec_t
launchable(cudaGraph_t graph, cudaStream_t stream)
{
	cudaGraphExec_t exec;

	CHECK(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagDeviceLaunch));
	CHECK(cudaGraphUpload(exec, stream));
	return exec;
}

/* A graph that appends one value, for kernels to launch. */
static cudaGraphExec_t
appender(int value, cudaStream_t stream)
{
	cudaGraph_t graph;

	CHECK(cudaGraphCreate(&graph, 0));
	append_node(graph, nullptr, value);
	cudaGraphExec_t exec = launchable(graph, stream);
	CHECK(cudaGraphDestroy(graph));
	return exec;
}

static void
run(cudaGraphExec_t exec, cudaStream_t stream)
{
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
}

static void
clear(void)
{
	CHECK(cudaMemset(cells, 0, 256 * sizeof(int)));
	CHECK(cudaDeviceSynchronize());
}

static void
show(const char *what, int first, int count)
{
	int values[256];

	CHECK(cudaMemcpy(values, cells, sizeof(values), cudaMemcpyDeviceToHost));
	printf("%s:", what);
	for (int i = first; i < first + count; i++)
		printf(" %d", values[i]);
	printf("\n");
}

/* Launches of each kind. Tail launches run after the graph, in their order. */
static void
kinds(cudaStream_t stream)
{
	cudaGraphExec_t beside = appender(10, stream),
			tails[2] = { appender(20, stream), appender(30, stream) };
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	clear();
	CHECK(cudaGraphCreate(&graph, 0));
	cudaGraphNode_t last = launch_node(graph, nullptr, tails[0], TAIL, 100);
	last = launch_node(graph, &last, tails[1], TAIL, 101);
	last = launch_node(graph, &last, beside, BESIDE, 102);
	append_node(graph, &last, 1);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 3; i++) {
		clear();
		run(exec, stream);
		int list[5];
		CHECK(cudaMemcpy(list, cells, sizeof(list), cudaMemcpyDeviceToHost));
		/* The first two may be in any order. */
		printf("launches: %d in all, %d first, then %d %d\n", list[0], list[1] + list[2],
		       list[3], list[4]);
		show("errors", 100, 3);
	}
	/* Later work of the stream runs after all of them. */
	clear();
	CHECK(cudaGraphLaunch(exec, stream));
	append<<<1, 1, 0, stream>>>(cells, 99);
	CHECK(cudaStreamSynchronize(stream));
	show("behind all", 3, 3);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaGraphExecDestroy(beside));
	CHECK(cudaGraphExecDestroy(tails[0]));
	CHECK(cudaGraphExecDestroy(tails[1]));
}

/* A sibling launch does not delay the tail launches of the graph that launched it. */
static void
siblings(cudaStream_t stream)
{
	cudaGraphExec_t sibling = appender(40, stream), tail = appender(50, stream);
	cudaGraph_t inner, outer;
	cudaGraphExec_t exec;

	CHECK(cudaGraphCreate(&inner, 0));
	cudaGraphNode_t last = launch_node(inner, nullptr, sibling, SIBLING, 100);
	append_node(inner, &last, 2);
	cudaGraphExec_t middle = launchable(inner, stream);
	CHECK(cudaGraphCreate(&outer, 0));
	last = launch_node(outer, nullptr, middle, BESIDE, 101);
	last = launch_node(outer, &last, tail, TAIL, 102);
	CHECK(cudaGraphInstantiate(&exec, outer, 0));
	clear();
	run(exec, stream);
	int list[4];
	CHECK(cudaMemcpy(list, cells, sizeof(list), cudaMemcpyDeviceToHost));
	printf("sibling: %d in all, the last is %d\n", list[0], list[3]);
	show("errors", 100, 3);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphExecDestroy(middle));
	CHECK(cudaGraphExecDestroy(sibling));
	CHECK(cudaGraphExecDestroy(tail));
	CHECK(cudaGraphDestroy(inner));
	CHECK(cudaGraphDestroy(outer));
}

static void
itself(cudaStream_t stream)
{
	int *counter = cells + 100, *launches = cells + 101;
	void *args[] = { &counter, &launches };
	cudaGraph_t graph;

	CHECK(cudaGraphCreate(&graph, 0));
	cudaGraphNode_t first =
		app_add_kernel(graph, nullptr, reinterpret_cast<void *>(again), args);
	append_node(graph, &first, 7);
	cudaGraphExec_t exec = launchable(graph, stream);
	for (int times : { 1, 2, 50 }) {
		clear();
		CHECK(cudaMemcpy(counter, &times, sizeof(times), cudaMemcpyHostToDevice));
		run(exec, stream);
		show("itself: left, launches", 100, 2);
		show("itself: appended", 0, 2);
	}
	/* A launched graph may be launched by another graph, too. */
	cudaGraph_t outer;
	cudaGraphExec_t outer_exec;
	int times = 5;

	CHECK(cudaGraphCreate(&outer, 0));
	launch_node(outer, nullptr, exec, BESIDE, 102);
	CHECK(cudaGraphInstantiate(&outer_exec, outer, 0));
	clear();
	CHECK(cudaMemcpy(counter, &times, sizeof(times), cudaMemcpyHostToDevice));
	run(outer_exec, stream);
	show("by another one: left, launches, error", 100, 3);
	CHECK(cudaGraphExecDestroy(outer_exec));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(outer));
	CHECK(cudaGraphDestroy(graph));
}

/* Memset nodes, copies and child graphs in a launched graph, and an update of it. */
static void
contents(cudaStream_t stream)
{
	cudaGraph_t child, graph, outer;
	cudaGraphNode_t nodes[4];
	cudaMemsetParams fill = {}, other;
	cudaGraphExec_t outer_exec;

	CHECK(cudaGraphCreate(&child, 0));
	append_node(child, nullptr, 60);
	append_node(child, nullptr, 60);
	CHECK(cudaGraphCreate(&graph, 0));
	fill.dst = cells + 50;
	fill.value = 5;
	fill.elementSize = sizeof(int);
	fill.width = 4;
	fill.height = 1;
	CHECK(cudaGraphAddMemsetNode(&nodes[0], graph, nullptr, 0, &fill));
	CHECK(cudaGraphAddMemcpyNode1D(&nodes[1], graph, &nodes[0], 1, cells + 60, cells + 50,
				       4 * sizeof(int), cudaMemcpyDeviceToDevice));
	CHECK(cudaGraphAddChildGraphNode(&nodes[2], graph, &nodes[1], 1, child));
	nodes[3] = append_node(graph, &nodes[2], 61);
	cudaGraphExec_t exec = launchable(graph, stream);
	unsigned long long flags;
	CHECK(cudaGraphExecGetFlags(exec, &flags));
	printf("flags: %llu\n", flags);
	CHECK(cudaGraphCreate(&outer, 0));
	launch_node(outer, nullptr, exec, TAIL, 102);
	CHECK(cudaGraphInstantiate(&outer_exec, outer, 0));
	clear();
	run(outer_exec, stream);
	show("contents: appended", 0, 4);
	show("contents: copied", 60, 5);
	other = fill;
	other.value = 6;
	CHECK(cudaGraphExecMemsetNodeSetParams(exec, nodes[0], &other));
	CHECK(cudaGraphUpload(exec, stream));
	clear();
	run(outer_exec, stream);
	show("changed: copied", 60, 5);
	/* The graph may also be launched by the host. */
	clear();
	run(exec, stream);
	show("from the host: appended", 0, 4);
	CHECK(cudaGraphExecDestroy(outer_exec));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(outer));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaGraphDestroy(child));
}

int
main(void)
{
	cudaStream_t stream;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&cells, 256 * sizeof(int)));
	kinds(stream);
	siblings(stream);
	itself(stream);
	contents(stream);
	CHECK(cudaFree(cells));
	CHECK(cudaStreamDestroy(stream));
	return app_ok("graphlaunch");
}
