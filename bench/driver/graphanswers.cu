/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graphanswers: results of NVIDIA's driver, natively, for graphs with conditional nodes in cases
 * that its documentation does not cover, each with the CUresult. The software device returns the
 * same.
 */
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <cuda_runtime.h>

#define CHECK(call) check((int)(call), #call, __LINE__)

static void
check(int error, const char *call, int line)
{
	if (!error)
		return;
	printf("line %d: %s: error %d\n", line, call, error);
	exit(1);
}

static CUcontext context;
static CUstream stream;
static CUdeviceptr memory;

static __global__ void
spin(long nanoseconds)
{
	unsigned long long start, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
	do
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	while (now - start < (unsigned long long)nanoseconds);
}

/* A graph with a handle that lets its node's body run. */
struct made {
	CUgraph graph, body;
	CUgraphConditionalHandle handle;
	CUgraphNode node;
};

static CUresult
add_condition(CUgraph graph, CUgraphConditionalHandle handle, CUgraphNode *node, CUgraph *body)
{
	CUgraphNodeParams params = {};
	CUresult result;

	params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
	params.conditional.handle = handle;
	params.conditional.type = CU_GRAPH_COND_TYPE_IF;
	params.conditional.size = 1;
	params.conditional.ctx = context;
	result = cuGraphAddNode(node, graph, nullptr, nullptr, 0, &params);
	if (result == CUDA_SUCCESS)
		*body = params.conditional.phGraph_out[0];
	return result;
}

static CUgraphConditionalHandle
make_handle(CUgraph graph)
{
	CUgraphConditionalHandle handle;

	CHECK(cuGraphConditionalHandleCreate(&handle, graph, context, 1,
					     CU_GRAPH_COND_ASSIGN_DEFAULT));
	return handle;
}

static made
make()
{
	made it = {};

	CHECK(cuGraphCreate(&it.graph, 0));
	it.handle = make_handle(it.graph);
	CHECK(add_condition(it.graph, it.handle, &it.node, &it.body));
	return it;
}

static CUresult
add_fill(CUgraph graph, unsigned int value, size_t width)
{
	CUDA_MEMSET_NODE_PARAMS params = {};
	CUgraphNode node;

	params.dst = memory;
	params.value = value;
	params.elementSize = 1;
	params.width = width;
	params.height = 1;
	return cuGraphAddMemsetNode(&node, graph, nullptr, 0, &params, context);
}

static CUgraphNode
add_spin(CUgraph graph, long nanoseconds)
{
	CUDA_KERNEL_NODE_PARAMS params = {};
	cudaFunction_t function;
	CUgraphNode node;
	void *args[] = { &nanoseconds };

	CHECK(cudaGetFuncBySymbol(&function, (const void *)spin));
	params.func = (CUfunction)function;
	params.gridDimX = params.gridDimY = params.gridDimZ = 1;
	params.blockDimX = params.blockDimY = params.blockDimZ = 1;
	params.kernelParams = args;
	CHECK(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params));
	return node;
}

/* Instantiates, launches and waits, as far as each step succeeds; prints what the body's memset has
 * written. */
static CUgraphExec
run(const char *what, CUgraph graph)
{
	CUgraphExec exec = nullptr;
	unsigned char byte = 0;
	CUresult made, launched = CUDA_SUCCESS, waited = CUDA_SUCCESS;

	CHECK(cuMemsetD8(memory, 0, 64));
	CHECK(cuCtxSynchronize());
	made = cuGraphInstantiate(&exec, graph, 0);
	if (made == CUDA_SUCCESS) {
		launched = cuGraphLaunch(exec, stream);
		waited = cuStreamSynchronize(stream);
	}
	CHECK(cuMemcpyDtoH(&byte, memory, 1));
	printf("%s: instantiate %d, launch %d, wait %d, byte %d\n", what, made, launched, waited,
	       byte);
	return made == CUDA_SUCCESS ? exec : nullptr;
}

static void
end(const char *what, CUgraphExec exec)
{
	if (exec)
		printf("%s: destroy executable %d\n", what, cuGraphExecDestroy(exec));
}

static void
handles()
{
	made one = make(), other = make();
	CUgraph body;
	CUgraphNode node;

	printf("handles: %#llx %#llx, of another graph %#llx\n", (unsigned long long)one.handle,
	       (unsigned long long)make_handle(one.graph), (unsigned long long)other.handle);
	end("a handle of no node", run("a handle of no node", one.graph));
	printf("two nodes, one handle: %d\n", add_condition(one.graph, one.handle, &node, &body));
	printf("in its own body: %d\n", add_condition(one.body, one.handle, &node, &body));
	printf("a handle of another graph: %d\n",
	       add_condition(one.graph, other.handle, &node, &body));
	printf("a handle of a body: %d\n",
	       cuGraphConditionalHandleCreate(&one.handle, one.body, context, 1, 0));
	printf("no such handle: %d\n", add_condition(one.graph, 1ull << 40, &node, &body));
	CHECK(cuGraphDestroy(one.graph));
	CHECK(cuGraphDestroy(other.graph));
}

static void
executables()
{
	made it = make();
	CUgraphExec first, second;

	CHECK(add_fill(it.body, 7, 16));
	first = run("the first executable", it.graph);
	second = run("a second one beside it", it.graph);
	end("the second one", second);
	if (first)
		printf("the first one again: launch %d, wait %d\n", cuGraphLaunch(first, stream),
		       cuStreamSynchronize(stream));
	end("the first one", first);
	end("when it is gone", run("when it is gone", it.graph));
	CHECK(cuGraphDestroy(it.graph));
}

/* Changes a graph as the daemon's worker does. */
static void
nodes_anew(const char *what, bool old_stays)
{
	made it = make();
	CUgraphExec first, second;
	CUresult result;

	CHECK(add_fill(it.body, 7, 16));
	first = run(what, it.graph);
	if (!old_stays) {
		end(what, first);
		first = nullptr;
	}
	printf("%s: destroy node %d", what, cuGraphDestroyNode(it.node));
	result = add_condition(it.graph, it.handle, &it.node, &it.body);
	printf(", add it again %d\n", result);
	if (result == CUDA_SUCCESS) {
		CHECK(add_fill(it.body, 9, 16));
		second = run(what, it.graph);
		end(what, second);
	}
	end(what, first);
	CHECK(cuGraphDestroy(it.graph));
}

static void
while_it_runs()
{
	made it = make();
	CUgraphExec first, second;

	add_spin(it.body, 300000000);
	CHECK(cuGraphInstantiate(&first, it.graph, 0));
	CHECK(cuGraphLaunch(first, stream));
	end("while it runs", first);
	second = run("behind one that runs", it.graph);
	end("behind one that runs", second);
	CHECK(cuGraphDestroy(it.graph));
}

/* The worker detects the end of work by a value that the stream writes after it, and queries the
 * stream only then. */
static void
when_memory_says_so(const char *what, bool asks)
{
	made it = make();
	CUgraphExec first, second;
	volatile unsigned int *word;
	CUdeviceptr mapped;
	CUresult result;
	int refused = 0;

	CHECK(cuMemHostAlloc((void **)&word, sizeof(*word), CU_MEMHOSTALLOC_DEVICEMAP));
	CHECK(cuMemHostGetDevicePointer(&mapped, (void *)word, 0));
	*word = 0;
	add_spin(it.body, 10000000);
	CHECK(cuGraphInstantiate(&first, it.graph, 0));
	CHECK(cuGraphLaunch(first, stream));
	CHECK(cuStreamWriteValue32(stream, mapped, 1, CU_STREAM_WRITE_VALUE_DEFAULT));
	while (*word == 0)
		continue;
	end(what, first);
	do {
		if (asks)
			(void)cuStreamQuery(stream);
		result = cuGraphInstantiate(&second, it.graph, 0);
	} while (result != CUDA_SUCCESS && ++refused < 1000);
	printf("%s: instantiate %d, refused %d times\n", what, result, refused);
	end(what, result == CUDA_SUCCESS ? second : nullptr);
	CHECK(cuMemFreeHost((void *)word));
	CHECK(cuGraphDestroy(it.graph));
}

static void
copies_of_graphs()
{
	made it = make();
	CUgraph clone, parent;
	CUgraphNode node;
	CUresult result;

	CHECK(add_fill(it.body, 7, 16));
	result = cuGraphClone(&clone, it.graph);
	printf("clone: %d\n", result);
	if (result == CUDA_SUCCESS)
		end("clone", run("clone", clone));
	CHECK(cuGraphCreate(&parent, 0));
	result = cuGraphAddChildGraphNode(&node, parent, nullptr, 0, it.graph);
	printf("as a child: %d\n", result);
	if (result == CUDA_SUCCESS)
		end("as a child", run("as a child", parent));
	CHECK(cuGraphDestroy(parent));
	CHECK(cuGraphDestroy(it.graph));
}

static void
changes()
{
	made it = make();
	CUgraphNode node = add_spin(it.body, 0);
	CUDA_KERNEL_NODE_PARAMS params;
	CUgraphExecUpdateResultInfo info = {};
	CUgraphExec exec;
	CUresult result;

	CHECK(cuGraphInstantiate(&exec, it.graph, 0));
	CHECK(cuGraphKernelNodeGetParams(node, &params));
	result = cuGraphExecKernelNodeSetParams(exec, node, &params);
	printf("parameters of a kernel in a body: %d, launch %d, wait %d\n", result,
	       cuGraphLaunch(exec, stream), cuStreamSynchronize(stream));
	result = cuGraphExecUpdate(exec, it.graph, &info);
	printf("update by its own graph: %d (%d), launch %d, wait %d\n", result, info.result,
	       cuGraphLaunch(exec, stream), cuStreamSynchronize(stream));
	end("changed", exec);
	CHECK(cuGraphDestroy(it.graph));
}

static void CUDA_CB
nothing(void *)
{
}

/* Node types that a body may contain. */
static void
bodies()
{
	CUDA_HOST_NODE_PARAMS host = { nothing, nullptr };
	CUDA_MEMCPY3D copy = {};
	made it = make();
	CUgraphNode node;
	CUevent event;
	int word = 7;

	end("empty body", run("empty body", it.graph));
	printf("memset of 16 bytes: %d, of 1: %d\n", add_fill(it.body, 7, 16),
	       add_fill(it.body, 7, 1));
	copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.srcDevice = memory;
	copy.dstDevice = memory + 32;
	copy.WidthInBytes = 4;
	copy.Height = copy.Depth = 1;
	printf("copy in the device: %d\n",
	       cuGraphAddMemcpyNode(&node, it.body, nullptr, 0, &copy, context));
	printf("empty node: %d\n", cuGraphAddEmptyNode(&node, it.body, nullptr, 0));
	end("these", run("these", it.graph));
	printf("host function: %d\n", cuGraphAddHostNode(&node, it.body, nullptr, 0, &host));
	CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	printf("event: %d\n", cuGraphAddEventRecordNode(&node, it.body, nullptr, 0, event));
	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = &word;
	printf("copy from the host: %d\n",
	       cuGraphAddMemcpyNode(&node, it.body, nullptr, 0, &copy, context));
	end("with what was taken", run("with what was taken", it.graph));
	CHECK(cuGraphDestroy(it.graph));
}

/* Remains of a graph that was changed. */
static void
leftovers()
{
	CUgraphNode first, second;
	made it = make();

	make_handle(it.graph);
	end("a handle of no node", run("a handle of no node", it.graph));
	printf("a node goes whose handle stays: %d\n", cuGraphDestroyNode(it.node));
	add_spin(it.graph, 1);
	end("a handle without its node", run("a handle without its node", it.graph));
	CHECK(cuGraphDestroy(it.graph));
	CHECK(cuGraphCreate(&it.graph, 0));
	first = add_spin(it.graph, 1);
	second = add_spin(it.graph, 1);
	printf("an edge that is not there goes: %d\n",
	       cuGraphRemoveDependencies(it.graph, &first, &second, nullptr, 1));
	CHECK(cuGraphAddDependencies(it.graph, &first, &second, nullptr, 1));
	printf("an edge goes: %d\n",
	       cuGraphRemoveDependencies(it.graph, &first, &second, nullptr, 1));
	make_handle(it.graph);
	end("a handle beside kernels", run("a handle beside kernels", it.graph));
	CHECK(cuGraphDestroy(it.graph));
}

int
main()
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(cudaSetDevice(0));
	CHECK(cudaFree(NULL));
	CHECK(cuCtxGetCurrent(&context));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAlloc(&memory, 64));
	handles();
	executables();
	nodes_anew("nodes anew, the old executable gone", false);
	nodes_anew("nodes anew, the old executable there", true);
	while_it_runs();
	when_memory_says_so("when memory says that it has ended", false);
	when_memory_says_so("when the driver was asked, too", true);
	copies_of_graphs();
	changes();
	bodies();
	leftovers();
	return 0;
}
