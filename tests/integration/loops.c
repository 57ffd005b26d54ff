/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program does again and again, so that a test sees whether each time costs a round trip:
 *
 *   loops graphs COUNT     builds a graph, instantiates, launches, updates and launches it, ends it
 *   loops together COUNT   the same of a graph whose kernel's blocks run together
 *
 * What all of them have written is read once, at the end.
 */
#include <cuda.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
#define BLOCK 32

/* Adds 1 to a word, in the first thread of each block. */
static const char add_text[] = HEAD ".visible .entry add(.param .u64 where)\n"
				    "{\n"
				    "	.reg .pred %p<2>;\n"
				    "	.reg .b32 %r<3>;\n"
				    "	.reg .b64 %rd<3>;\n"
				    "	ld.param.u64 %rd1, [where];\n"
				    "	cvta.to.global.u64 %rd2, %rd1;\n"
				    "	mov.u32 %r1, %tid.x;\n"
				    "	setp.ne.u32 %p1, %r1, 0;\n"
				    "	@%p1 bra done;\n"
				    "	atom.global.add.u32 %r2, [%rd2], 1;\n"
				    "done:\n"
				    "	ret;\n"
				    "}\n";

static void
check(CUresult result, const char *what)
{
	const char *name = "?";

	if (result == CUDA_SUCCESS)
		return;
	(void)cuGetErrorName(result, &name);
	printf("%s: %s (%d)\n", what, name, (int)result);
	exit(1);
}

#define CHECK(call) check((call), #call)

static CUdeviceptr sum;
static CUfunction add;

static CUgraph
graph_of(unsigned int blocks, bool together, CUgraphNode *node)
{
	void *params[] = { &sum };
	const CUDA_KERNEL_NODE_PARAMS kernel = { .func = add,
						 .gridDimX = blocks,
						 .gridDimY = 1,
						 .gridDimZ = 1,
						 .blockDimX = BLOCK,
						 .blockDimY = 1,
						 .blockDimZ = 1,
						 .kernelParams = params };
	const CUDA_MEMSET_NODE_PARAMS fill = {
		.dst = sum + 4, .elementSize = 4, .width = 1, .height = 1, .value = blocks
	};
	const CUlaunchAttributeValue cooperative = { .cooperative = 1 };
	CUgraphNode first;
	CUcontext context;
	CUgraph graph;

	CHECK(cuCtxGetCurrent(&context));
	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphAddMemsetNode(&first, graph, NULL, 0, &fill, context));
	CHECK(cuGraphAddKernelNode(node, graph, &first, 1, &kernel));
	if (together)
		CHECK(cuGraphKernelNodeSetAttribute(*node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
						    &cooperative));
	return graph;
}

/* Adds 3. */
static void
run_graph(bool together)
{
	CUgraphExecUpdateResultInfo info;
	CUgraphNode node;
	CUgraph graph = graph_of(1, together, &node), other = graph_of(2, together, &node);
	CUgraphExec exec;

	CHECK(cuGraphInstantiate(&exec, graph, 0));
	CHECK(cuGraphLaunch(exec, NULL));
	CHECK(cuGraphExecUpdate(exec, other, &info));
	CHECK(cuGraphLaunch(exec, NULL));
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
	CHECK(cuGraphDestroy(other));
}

static unsigned int
run_graphs(int count, bool together)
{
	for (int i = 0; i < count; i++)
		run_graph(together);
	return 3 * (unsigned int)count;
}

static unsigned int
run(const char *what, int count)
{
	if (strcmp(what, "graphs") == 0)
		return run_graphs(count, false);
	if (strcmp(what, "together") == 0)
		return run_graphs(count, true);
	fprintf(stderr, "usage: loops graphs|together COUNT\n");
	exit(2);
}

int
main(int argc, char **argv)
{
	unsigned int wanted, found;
	CUcontext context;
	CUmodule module;
	CUdevice device;

	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuModuleLoadData(&module, add_text));
	CHECK(cuModuleGetFunction(&add, module, "add"));
	CHECK(cuMemAlloc(&sum, 8));
	CHECK(cuMemsetD32(sum, 0, 2));
	wanted = run(argc > 1 ? argv[1] : "", argc > 2 ? atoi(argv[2]) : 1);
	CHECK(cuMemcpyDtoH(&found, sum, sizeof(found)));
	if (found != wanted) {
		printf("%u were added, not %u\n", found, wanted);
		return 1;
	}
	CHECK(cuMemFree(sum));
	printf("loops: ok\n");
	return 0;
}
