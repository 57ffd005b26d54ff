/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repeats a part of a program, so that a test can count the round trips of each repetition:
 *
 *   loops graphs COUNT     builds a graph, instantiates, launches, updates and launches it, ends it
 *   loops together COUNT   the same of a graph whose kernel's blocks run together
 *   loops grids COUNT      launches a kernel whose blocks run together, with one more each time
 *   loops modules COUNT    loads the same code, sets a kernel up, launches it, unloads the code
 *   loops libraries COUNT  the same as a library
 *   loops copies COUNT     loads the same code, which stays loaded, and launches it
 *   loops rotation COUNT   loads, launches and unloads one of 80 such codes after the other,
 *                          sometimes after a host function
 *   loops links COUNT      links two texts, loads what came of it, launches it and unloads it
 *   loops relinks COUNT    the same with a second text that is another one each time; before, one
 *                          that is not code is refused
 *   loops threads COUNT    four threads do what modules does
 *
 * The results of all repetitions are read once, at the end.
 */
#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
#define BLOCK 32

/* Adds 1 to a word, in the first thread of each block. */
#define ADD                                                                                        \
	".visible .entry add(.param .u64 where)\n"                                                 \
	"{\n"                                                                                      \
	"	.reg .pred %p<2>;\n"                                                                     \
	"	.reg .b32 %r<3>;\n"                                                                      \
	"	.reg .b64 %rd<3>;\n"                                                                     \
	"	ld.param.u64 %rd1, [where];\n"                                                           \
	"	cvta.to.global.u64 %rd2, %rd1;\n"                                                        \
	"	mov.u32 %r1, %tid.x;\n"                                                                  \
	"	setp.ne.u32 %p1, %r1, 0;\n"                                                              \
	"	@%p1 bra done;\n"                                                                        \
	"	atom.global.add.u32 %r2, [%rd2], 1;\n"                                                   \
	"done:\n"                                                                                  \
	"	ret;\n"                                                                                  \
	"}\n"

static const char add_text[] = HEAD ADD;
/* Other code, with a variable. */
static const char other_text[] = HEAD ".global .b32 unused[16];\n" ADD;

/* Adds the result of a function in the second text, 2, to a word. */
static const char caller_text[] = HEAD ".extern .func (.param .b32 result) two();\n"
				       ".visible .entry call(.param .u64 where)\n"
				       "{\n"
				       "	.reg .b32 %r<3>;\n"
				       "	.reg .b64 %rd<3>;\n"
				       "	ld.param.u64 %rd1, [where];\n"
				       "	cvta.to.global.u64 %rd2, %rd1;\n"
				       "	{\n"
				       "	.param .b32 back;\n"
				       "	call.uni (back), two, ();\n"
				       "	ld.param.b32 %r1, [back];\n"
				       "	}\n"
				       "	atom.global.add.u32 %r2, [%rd2], %r1;\n"
				       "	ret;\n"
				       "}\n";
static const char called_text[] = HEAD ".visible .func (.param .b32 result) two()\n"
				       "{\n"
				       "	.reg .b32 %r<2>;\n"
				       "	mov.u32 %r1, 2;\n"
				       "	st.param.b32 [result], %r1;\n"
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
static CUcontext context;

static CUgraph
build_graph(unsigned int blocks, bool together, CUgraphNode *node)
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
	CUgraph graph;

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
	CUgraph graph = build_graph(1, together, &node), other = build_graph(2, together, &node);
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

/* In grids that grow; then one that is too large. */
static unsigned int
launch_together(int count)
{
	void *params[] = { &sum };
	int blocks, multiprocessors;
	CUdevice device;

	for (int i = 1; i <= count; i++)
		CHECK(cuLaunchCooperativeKernel(add, (unsigned int)i, 1, 1, BLOCK, 1, 1, 0, NULL,
						params));
	CHECK(cuCtxGetDevice(&device));
	CHECK(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
				   device));
	CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, BLOCK, 0));
	blocks *= multiprocessors;
	CHECK(cuLaunchCooperativeKernel(add, (unsigned int)blocks, 1, 1, BLOCK, 1, 1, 0, NULL,
					params));
	if (cuLaunchCooperativeKernel(add, (unsigned int)blocks + 1, 1, 1, BLOCK, 1, 1, 0, NULL,
				      params) != CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE) {
		printf("%d blocks together are not refused\n", blocks + 1);
		exit(1);
	}
	return (unsigned int)(count * (count + 1) / 2 + blocks);
}

/* With more dynamic shared memory than a fresh kernel allows. */
static void
launch_large(CUfunction function)
{
	void *params[] = { &sum };
	int allowed = -1;

	CHECK(cuFuncGetAttribute(&allowed, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
				 function));
	if (allowed != 48 << 10) {
		printf("a fresh kernel allows %d bytes\n", allowed);
		exit(1);
	}
	if (cuLaunchKernel(function, 1, 1, 1, BLOCK, 1, 1, 60 << 10, NULL, params, NULL) !=
	    CUDA_ERROR_INVALID_VALUE) {
		printf("a launch beyond that is not refused\n");
		exit(1);
	}
	CHECK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
				 60 << 10));
	CHECK(cuLaunchKernel(function, 1, 1, 1, BLOCK, 1, 1, 60 << 10, NULL, params, NULL));
}

static unsigned int
load_modules(int count, bool unload)
{
	CUfunction function;
	CUmodule module;

	for (int i = 0; i < count; i++) {
		CHECK(cuModuleLoadData(&module, other_text));
		CHECK(cuModuleGetFunction(&function, module, "add"));
		launch_large(function);
		if (unload)
			CHECK(cuModuleUnload(module));
	}
	return (unsigned int)count;
}

static unsigned int
load_libraries(int count)
{
	CUlibrary library;
	CUkernel kernel;

	for (int i = 0; i < count; i++) {
		CHECK(cuLibraryLoadData(&library, other_text, NULL, NULL, 0, NULL, NULL, 0));
		CHECK(cuLibraryGetKernel(&kernel, library, "add"));
		launch_large((CUfunction)kernel);
		CHECK(cuLibraryUnload(library));
	}
	return (unsigned int)count;
}

static void *
load_in_thread(void *arg)
{
	CHECK(cuCtxSetCurrent(context));
	(void)load_modules(*(int *)arg, true);
	return NULL;
}

static unsigned int
load_in_threads(int count)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++) {
		if (pthread_create(&threads[i], NULL, load_in_thread, &count))
			exit(2);
	}
	for (int i = 0; i < 4; i++)
		(void)pthread_join(threads[i], NULL);
	return 4 * (unsigned int)count;
}

static void
add_text_to(CUlinkState linker, const char *text)
{
	CHECK(cuLinkAddData(linker, CU_JIT_INPUT_PTX, (void *)(uintptr_t)text, strlen(text) + 1,
			    "text", 0, NULL, NULL));
}

/* The linker's log has the same text each time. */
static void
link_and_launch(char *first_log, const char *second_text)
{
	char log[1024] = "";
	CUjit_option keys[] = { CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { log, (void *)(uintptr_t)sizeof(log) }, *params[] = { &sum }, *image;
	CUfunction function;
	CUlinkState linker;
	CUmodule module;
	size_t size;

	CHECK(cuLinkCreate(2, keys, values, &linker));
	add_text_to(linker, caller_text);
	add_text_to(linker, second_text);
	CHECK(cuLinkComplete(linker, &image, &size));
	if (!*first_log)
		(void)snprintf(first_log, sizeof(log) + 1, "%s.", log);
	if (strncmp(log, first_log, strlen(first_log) - 1) != 0) {
		printf("the log was %s and is %s\n", first_log, log);
		exit(1);
	}
	CHECK(cuModuleLoadData(&module, image));
	CHECK(cuLinkDestroy(linker));
	CHECK(cuModuleGetFunction(&function, module, "call"));
	CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK(cuModuleUnload(module));
}

static unsigned int
link_texts(int count)
{
	char log[1025] = "";

	for (int i = 0; i < count; i++)
		link_and_launch(log, called_text);
	return 2 * (unsigned int)count;
}

static void
refuse_text(void)
{
	char error[1024] = "";
	CUjit_option keys[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { error, (void *)(uintptr_t)sizeof(error) };
	CUlinkState linker;

	CHECK(cuLinkCreate(2, keys, values, &linker));
	add_text_to(linker, caller_text);
	if (cuLinkAddData(linker, CU_JIT_INPUT_PTX, HEAD "nonsense", sizeof(HEAD "nonsense"),
			  "text", 0, NULL, NULL) == CUDA_SUCCESS ||
	    !*error) {
		printf("invalid code is linked, or the log is empty\n");
		exit(1);
	}
	CHECK(cuLinkDestroy(linker));
}

static unsigned int
link_others(int count)
{
	char text[sizeof(called_text) + 32], log[1024];

	for (int i = 0; i < count; i++) {
		log[0] = '\0';
		(void)snprintf(text, sizeof(text), "%s// %d\n", called_text, i);
		if (i % 4 == 0)
			refuse_text();
		link_and_launch(log, text);
	}
	return 2 * (unsigned int)count;
}

static void CUDA_CB
rest(void *arg)
{
	(void)usleep(2000);
}

static unsigned int
rotate(int count)
{
	char text[sizeof(other_text) + 32];
	void *params[] = { &sum };
	CUfunction function;
	CUmodule module;

	for (int i = 0; i < count; i++) {
		if (i % 5 == 0)
			CHECK(cuLaunchHostFunc(NULL, rest, NULL));
		(void)snprintf(text, sizeof(text), "%s// %d\n", other_text, i % 80);
		CHECK(cuModuleLoadData(&module, text));
		CHECK(cuModuleGetFunction(&function, module, "add"));
		CHECK(cuLaunchKernel(function, 1, 1, 1, BLOCK, 1, 1, 0, NULL, params, NULL));
		if (i % 7 == 0)
			CHECK(cuCtxSynchronize());
		CHECK(cuModuleUnload(module));
	}
	CHECK(cuCtxSynchronize());
	return (unsigned int)count;
}

static unsigned int
run(const char *what, int count)
{
	if (strcmp(what, "graphs") == 0)
		return run_graphs(count, false);
	if (strcmp(what, "together") == 0)
		return run_graphs(count, true);
	if (strcmp(what, "grids") == 0)
		return launch_together(count);
	if (strcmp(what, "modules") == 0)
		return load_modules(count, true);
	if (strcmp(what, "copies") == 0)
		return load_modules(count, false);
	if (strcmp(what, "libraries") == 0)
		return load_libraries(count);
	if (strcmp(what, "links") == 0)
		return link_texts(count);
	if (strcmp(what, "relinks") == 0)
		return link_others(count);
	if (strcmp(what, "threads") == 0)
		return load_in_threads(count);
	if (strcmp(what, "rotation") == 0)
		return rotate(count);
	fprintf(stderr, "usage: loops "
			"graphs|together|grids|modules|libraries|copies|links|relinks|threads|"
			"rotation COUNT\n");
	exit(2);
}

int
main(int argc, char **argv)
{
	unsigned int wanted, found;
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
