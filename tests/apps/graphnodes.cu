/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel nodes that kernels of the graph update: parameters, grid, and whether they are enabled. */
#include "app.h"

static int *cells;

/* Each block adds the value to its cell. */
static __global__ void
add(int *cell, int value)
{
	atomicAdd(cell + blockIdx.x, value);
}

struct wanted {
	int value, blocks, enabled, all;
};

/* errors: one element per update. */
static __global__ void
change(cudaGraphDeviceNode_t node, const wanted *wanted, int *errors)
{
	if (wanted->all) {
		/* The type has no default constructor, because a member of its union has one. */
		alignas(8) unsigned char memory[3 * sizeof(cudaGraphKernelNodeUpdate)] = {};
		cudaGraphKernelNodeUpdate *updates =
			reinterpret_cast<cudaGraphKernelNodeUpdate *>(memory);

		updates[0].node = updates[1].node = updates[2].node = node;
		updates[0].field = cudaGraphKernelNodeFieldParam;
		updates[0].updateData.param.pValue = &wanted->value;
		updates[0].updateData.param.offset = sizeof(int *);
		updates[0].updateData.param.size = sizeof(int);
		updates[1].field = cudaGraphKernelNodeFieldGridDim;
		updates[1].updateData.gridDim = dim3(wanted->blocks);
		updates[2].field = cudaGraphKernelNodeFieldEnabled;
		updates[2].updateData.isEnabled = wanted->enabled;
		errors[0] = cudaGraphKernelNodeUpdatesApply(updates, 3);
		return;
	}
	errors[0] = cudaGraphKernelNodeSetParam(node, sizeof(int *), wanted->value);
	errors[1] = cudaGraphKernelNodeSetGridDim(node, dim3(wanted->blocks));
	errors[2] = cudaGraphKernelNodeSetEnabled(node, wanted->enabled != 0);
}

static cudaGraphNode_t
add_node(cudaGraph_t graph, const cudaGraphNode_t *behind, int cell, int value)
{
	int *where = cells + cell;
	void *args[] = { &where, &value };

	return app_add_kernel(graph, behind, reinterpret_cast<void *>(add), args);
}

/* From here on kernels may update the node. */
static cudaGraphDeviceNode_t
open_node(cudaGraphNode_t node)
{
	cudaLaunchAttributeValue value = {}, told;

	value.deviceUpdatableKernelNode.deviceUpdatable = 1;
	CHECK(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeDeviceUpdatableKernelNode,
					      &value));
	CHECK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeDeviceUpdatableKernelNode,
					      &told));
	REQUIRE(told.deviceUpdatableKernelNode.deviceUpdatable == 1);
	REQUIRE(told.deviceUpdatableKernelNode.devNode != nullptr);
	if (value.deviceUpdatableKernelNode.devNode)
		REQUIRE(value.deviceUpdatableKernelNode.devNode ==
			told.deviceUpdatableKernelNode.devNode);
	return told.deviceUpdatableKernelNode.devNode;
}

static void
show(const char *what)
{
	int values[16];

	CHECK(cudaMemcpy(values, cells, sizeof(values), cudaMemcpyDeviceToHost));
	printf("%s: before %d, changed", what, values[4]);
	for (int i = 0; i < 4; i++)
		printf(" %d", values[i]);
	printf(", after %d, errors %d %d %d\n", values[5], values[8], values[9], values[10]);
}

static void
run(const char *what, cudaGraphExec_t exec, cudaStream_t stream, wanted *device, wanted now)
{
	CHECK(cudaMemset(cells, 0, 16 * sizeof(int)));
	CHECK(cudaMemcpy(device, &now, sizeof(now), cudaMemcpyHostToDevice));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	show(what);
}

static void
changes(cudaStream_t stream)
{
	wanted *now = app_malloc<wanted>(1);
	int *errors = cells + 8;
	cudaKernelNodeParams params = {};
	cudaGraphDeviceNode_t device;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CHECK(cudaGraphCreate(&graph, 0));
	/* The graph has no edges yet when its body is opened. */
	cudaGraphNode_t changed = add_node(graph, nullptr, 0, 1);
	device = open_node(changed);
	void *args[] = { &device, &now, &errors };
	cudaGraphNode_t before = add_node(graph, nullptr, 4, 1);
	cudaGraphNode_t changer =
		app_add_kernel(graph, &before, reinterpret_cast<void *>(change), args);
	CHECK(cudaGraphAddDependencies(graph, &changer, &changed, nullptr, 1));
	add_node(graph, &changed, 5, 1);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphUpload(exec, stream));
	run("one by one", exec, stream, now, { 10, 3, 1, 0 });
	run("all at once", exec, stream, now, { 20, 2, 1, 1 });
	run("not at all", exec, stream, now, { 30, 4, 0, 0 });
	run("again", exec, stream, now, { 40, 4, 1, 1 });
	/* The host updates the node, too: it sets another cell, which kernels do not. */
	int *where = cells + 1, value = 5;
	void *others[] = { &where, &value };
	params.func = reinterpret_cast<void *>(add);
	params.gridDim = params.blockDim = dim3(1);
	params.kernelParams = others;
	CHECK(cudaGraphExecKernelNodeSetParams(exec, changed, &params));
	CHECK(cudaGraphUpload(exec, stream));
	run("by the host, too", exec, stream, now, { 50, 2, 1, 0 });
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphUpload(exec, stream));
	run("another executable", exec, stream, now, { 60, 1, 1, 0 });
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFree(now));
}

/* Two nodes, of which one depends on the other. */
static void
chains(cudaStream_t stream)
{
	wanted *now = app_malloc<wanted>(1);
	int *errors = cells + 8;
	cudaGraphDeviceNode_t first, second;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CHECK(cudaGraphCreate(&graph, 0));
	cudaGraphNode_t one = add_node(graph, nullptr, 0, 1);
	first = open_node(one);
	cudaGraphNode_t two = add_node(graph, &one, 1, 1);
	second = open_node(two);
	void *args[] = { &first, &now, &errors }, *others[] = { &second, &now, &errors };
	cudaGraphNode_t changer =
		app_add_kernel(graph, nullptr, reinterpret_cast<void *>(change), args);
	cudaGraphNode_t other =
		app_add_kernel(graph, &changer, reinterpret_cast<void *>(change), others);
	CHECK(cudaGraphAddDependencies(graph, &other, &one, nullptr, 1));
	for (int i = 0; i < 2; i++) {
		CHECK(cudaGraphInstantiate(&exec, graph, 0));
		CHECK(cudaGraphUpload(exec, stream));
		run("two nodes", exec, stream, now, { 7, 2, 1, 0 });
		CHECK(cudaGraphExecDestroy(exec));
	}
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFree(now));
}

/* Operations that are not allowed for such a node and its graph. CUDA's reference names them, but
 * not their error codes. */
static void
refusals(void)
{
	cudaLaunchAttributeValue value = {};
	cudaGraphExec_t exec, second;
	cudaGraph_t graph, other;

	CHECK(cudaGraphCreate(&graph, 0));
	cudaGraphNode_t node = add_node(graph, nullptr, 0, 1),
			plain = add_node(graph, nullptr, 1, 1);
	open_node(node);
	REQUIRE(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeDeviceUpdatableKernelNode,
						&value) != cudaSuccess);
	REQUIRE(cudaGraphKernelNodeCopyAttributes(plain, node) != cudaSuccess);
	REQUIRE(cudaGraphDestroyNode(node) != cudaSuccess);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	REQUIRE(cudaGraphInstantiate(&second, graph, 0) != cudaSuccess);
	cudaGraphExecUpdateResultInfo info;
	CHECK(cudaGraphCreate(&other, 0));
	add_node(other, nullptr, 0, 1);
	add_node(other, nullptr, 1, 1);
	REQUIRE(cudaGraphExecUpdate(exec, other, &info) != cudaSuccess);
	(void)cudaGetLastError();
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaGraphDestroy(other));
}

int
main(void)
{
	cudaStream_t stream;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&cells, 16 * sizeof(int)));
	changes(stream);
	chains(stream);
	refusals();
	CHECK(cudaFree(cells));
	CHECK(cudaStreamDestroy(stream));
	return app_ok("graphnodes");
}
