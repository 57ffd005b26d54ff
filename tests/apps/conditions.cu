/* SPDX-License-Identifier: Apache-2.0 */
/* Conditional nodes of graphs: if, while and switch nodes, whose conditions kernels set. */
#include "app.h"

static int *cells; /* [0]: counter; [1] and later: values that bodies write */

/* Repeats while the counter is not 0. */
static __global__ void
count_down(cudaGraphConditionalHandle handle, int *counter)
{
	cudaGraphSetConditional(handle, --*counter > 0);
}

static __global__ void
choose(cudaGraphConditionalHandle handle, const int *value)
{
	cudaGraphSetConditional(handle, (unsigned int)*value);
}

static __global__ void
add(int *cell, int value)
{
	*cell += value;
}

static void
set(int cell, int value)
{
	CHECK(cudaMemcpy(cells + cell, &value, sizeof(value), cudaMemcpyHostToDevice));
}

static int
get(int cell)
{
	int value;

	CHECK(cudaMemcpy(&value, cells + cell, sizeof(value), cudaMemcpyDeviceToHost));
	return value;
}

static cudaGraphNode_t
add_node(cudaGraph_t graph, const cudaGraphNode_t *behind, int cell, int value)
{
	int *where = cells + cell;
	void *args[] = { &where, &value };

	return app_add_kernel(graph, behind, reinterpret_cast<void *>(add), args);
}

static cudaGraphNode_t
condition(cudaGraph_t graph, const cudaGraphNode_t *behind, cudaGraphConditionalHandle handle,
	  cudaGraphConditionalNodeType type, unsigned int size, cudaGraph_t *bodies)
{
	cudaGraphNodeParams params = {};
	cudaGraphNode_t node;

	params.type = cudaGraphNodeTypeConditional;
	params.conditional.handle = handle;
	params.conditional.type = type;
	params.conditional.size = size;
	CHECK(cudaGraphAddNode(&node, graph, behind, nullptr, behind != nullptr, &params));
	for (unsigned int i = 0; i < size; i++)
		bodies[i] = params.conditional.phGraph_out[i];
	return node;
}

static cudaGraphConditionalHandle
make_handle(cudaGraph_t graph, unsigned int value, bool assigned)
{
	cudaGraphConditionalHandle handle;

	CHECK(cudaGraphConditionalHandleCreate(
		&handle, graph, value, assigned ? (unsigned int)cudaGraphCondAssignDefault : 0));
	return handle;
}

static void
run(cudaGraphExec_t exec, cudaStream_t stream)
{
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
}

/* A loop that decrements cell 0 and adds to cell 1 in each iteration; then runs the node after the
 * loop. */
static void
loops(cudaStream_t stream)
{
	cudaGraphNodeType type;
	cudaGraph_t graph, body;
	cudaGraphExec_t exec;
	cudaKernelNodeParams changed = {};
	int three = 3;

	CHECK(cudaGraphCreate(&graph, 0));
	cudaGraphConditionalHandle handle = make_handle(graph, 1, true);
	cudaGraphNode_t first = add_node(graph, nullptr, 2, 1);
	cudaGraphNode_t loop = condition(graph, &first, handle, cudaGraphCondTypeWhile, 1, &body);
	add_node(graph, &loop, 3, 100);
	CHECK(cudaGraphNodeGetType(loop, &type));
	REQUIRE(type == cudaGraphNodeTypeConditional);
	cudaGraphNode_t inside = add_node(body, nullptr, 1, 2);
	void *args[] = { &handle, &cells };
	app_add_kernel(body, &inside, reinterpret_cast<void *>(count_down), args);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int times = 10; times <= 30; times += 10) {
		CHECK(cudaMemset(cells, 0, 16 * sizeof(int)));
		set(0, times);
		run(exec, stream);
		printf("while: %d %d %d %d\n", get(0), get(1), get(2), get(3));
	}
	/* Updates a kernel's parameters in the body of an executable graph. */
	int *where = cells + 1;
	void *others[] = { &where, &three };
	changed.func = reinterpret_cast<void *>(add);
	changed.gridDim = changed.blockDim = dim3(1);
	changed.kernelParams = others;
	CHECK(cudaGraphExecKernelNodeSetParams(exec, inside, &changed));
	CHECK(cudaMemset(cells, 0, 16 * sizeof(int)));
	set(0, 5);
	CHECK(cudaGraphDestroy(graph));
	run(exec, stream);
	printf("while, changed: %d %d\n", get(0), get(1));
	CHECK(cudaGraphExecDestroy(exec));
}

static void
branches(cudaStream_t stream)
{
	cudaGraph_t graph, either[2], one_of[3];
	cudaGraphExec_t exec;
	int *value = cells + 8, *number = cells + 9;

	CHECK(cudaGraphCreate(&graph, 0));
	cudaGraphConditionalHandle yes = make_handle(graph, 0, false);
	cudaGraphConditionalHandle which = make_handle(graph, 0, false);
	void *first[] = { &yes, &value }, *second[] = { &which, &number };
	cudaGraphNode_t last =
		app_add_kernel(graph, nullptr, reinterpret_cast<void *>(choose), first);
	last = app_add_kernel(graph, &last, reinterpret_cast<void *>(choose), second);
	last = condition(graph, &last, yes, cudaGraphCondTypeIf, 2, either);
	condition(graph, &last, which, cudaGraphCondTypeSwitch, 3, one_of);
	add_node(either[0], nullptr, 1, 1);
	add_node(either[1], nullptr, 2, 1);
	for (int i = 0; i < 3; i++)
		add_node(one_of[i], nullptr, 3 + i, 1);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 5; i++) {
		CHECK(cudaMemset(cells, 0, 16 * sizeof(int)));
		set(8, i % 2);
		set(9, i);
		run(exec, stream);
		printf("if %d: %d %d; switch %d: %d %d %d\n", i % 2, get(1), get(2), i, get(3),
		       get(4), get(5));
	}
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

/* A loop in a branch in a loop; one body is captured. */
static void
nested(cudaStream_t stream)
{
	cudaGraph_t graph, outer, branch, inner, captured;
	cudaGraphExec_t exec;
	int *counter = cells, *left = cells + 6;

	CHECK(cudaGraphCreate(&graph, 0));
	cudaGraphConditionalHandle again = make_handle(graph, 1, true);
	cudaGraphConditionalHandle enters = make_handle(graph, 0, true);
	cudaGraphConditionalHandle more = make_handle(graph, 0, true);
	condition(graph, nullptr, again, cudaGraphCondTypeWhile, 1, &outer);
	void *odd[] = { &enters, &counter };
	cudaGraphNode_t last =
		app_add_kernel(outer, nullptr, reinterpret_cast<void *>(choose), odd);
	last = condition(outer, &last, enters, cudaGraphCondTypeIf, 1, &branch);
	void *down[] = { &again, &counter };
	app_add_kernel(outer, &last, reinterpret_cast<void *>(count_down), down);
	last = add_node(branch, nullptr, 6, 4);
	void *from[] = { &more, &left };
	last = app_add_kernel(branch, &last, reinterpret_cast<void *>(choose), from);
	condition(branch, &last, more, cudaGraphCondTypeWhile, 1, &inner);
	CHECK(cudaStreamBeginCaptureToGraph(stream, inner, nullptr, nullptr, 0,
					    cudaStreamCaptureModeThreadLocal));
	add<<<1, 1, 0, stream>>>(cells + 1, 1);
	CHECK(cudaMemcpyAsync(cells + 2, cells + 1, sizeof(int), cudaMemcpyDeviceToDevice, stream));
	CHECK(cudaMemsetAsync(cells + 3, 1, 1, stream));
	count_down<<<1, 1, 0, stream>>>(more, left);
	CHECK(cudaStreamEndCapture(stream, &captured));
	REQUIRE(captured == inner);
	/* The graph argument may be omitted where the graph is known. */
	CHECK(cudaStreamBeginCaptureToGraph(stream, inner, nullptr, nullptr, 0,
					    cudaStreamCaptureModeThreadLocal));
	CHECK(cudaStreamEndCapture(stream, nullptr));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaMemset(cells, 0, 16 * sizeof(int)));
	set(0, 6);
	run(exec, stream);
	printf("nested: %d %d %d %d %d\n", get(0), get(1), get(2), get(3), get(6));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

static void
wrong()
{
	cudaGraph_t graph, other, copy;
	cudaGraphNodeParams params = {};
	cudaGraphExec_t exec;
	cudaGraphNode_t node;

	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphCreate(&other, 0));
	params.type = cudaGraphNodeTypeConditional;
	params.conditional.handle = make_handle(graph, 0, false);
	params.conditional.type = cudaGraphCondTypeWhile;
	params.conditional.size = 2;
	EXPECT(cudaErrorInvalidValue, cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
	params.conditional.type = cudaGraphCondTypeIf;
	params.conditional.size = 3;
	EXPECT(cudaErrorInvalidValue, cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
	params.conditional.size = 1;
	EXPECT(cudaErrorInvalidValue, cudaGraphAddNode(&node, other, nullptr, nullptr, 0, &params));
	/* A handle that no node uses. */
	EXPECT(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
	REQUIRE(cudaGraphClone(&copy, graph) != cudaSuccess);
	REQUIRE(cudaGraphAddChildGraphNode(&node, other, nullptr, 0, graph) != cudaSuccess);
	(void)cudaGetLastError();
	CHECK(cudaGraphDestroy(other));
	CHECK(cudaGraphDestroy(graph));
	printf("what is wrong is refused\n");
}

int
main()
{
	cudaStream_t stream;

	cells = app_malloc<int>(16);
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	loops(stream);
	branches(stream);
	nested(stream);
	wrong();
	printf("conditions: ok\n");
	return 0;
}
