/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launches COUNT [wait | streams | graph NODES]: launches a kernel with six parameters COUNT times,
 * on device 0, natively or through a daemon. bench/launch_instructions.sh counts its instructions.
 *
 * With wait it launches once, prints "ready" and the device's free memory, and continues at the
 * next line of its input: then it prints "done" and when the launches began and ended, by the
 * system-wide monotonic clock. With streams it prints the launches per second on 1, 2, 4 and 8
 * streams in rotation, by one thread: the best of three tries each. With graph it launches a graph
 * of NODES kernels in sequence and prints the time that a launch took its caller.
 */
#include "bench/bench_cuda.h"

#include <string.h>

#define STREAMS 8
#define TRIES 3

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry six(.param .u64 a, .param .u64 b, .param .u64 c,\n"
			  "\t.param .u32 d, .param .u32 e, .param .f32 f)\n{\n\tret;\n}\n";

/* Returns false if there is no next line. */
static int
wait_for_line(void)
{
	size_t available = 0, total;
	char line[16];

	must(cuCtxSynchronize(), "cuCtxSynchronize");
	must(cuMemGetInfo(&available, &total), "cuMemGetInfo");
	printf("ready %zu\n", available);
	fflush(stdout);
	return fgets(line, sizeof(line), stdin) != NULL;
}

/* Builds a graph of `nodes` kernels, each after the previous one. */
static CUgraphExec
chain(CUfunction function, void **params, long nodes)
{
	const CUDA_KERNEL_NODE_PARAMS node = { .func = function,
					       .gridDimX = 1,
					       .gridDimY = 1,
					       .gridDimZ = 1,
					       .blockDimX = 32,
					       .blockDimY = 1,
					       .blockDimZ = 1,
					       .kernelParams = params };
	CUgraphNode last = NULL;
	CUgraphExec exec;
	CUgraph graph;

	must(cuGraphCreate(&graph, 0), "cuGraphCreate");
	for (long i = 0; i < nodes; i++) {
		CUgraphNode before = last;

		must(cuGraphAddKernelNode(&last, graph, &before, i > 0, &node),
		     "cuGraphAddKernelNode");
	}
	must(cuGraphInstantiate(&exec, graph, 0), "cuGraphInstantiate");
	return exec;
}

static void
launch_graphs(CUgraphExec exec, long count)
{
	double begin, issued;

	must(cuGraphLaunch(exec, NULL), "cuGraphLaunch");
	must(cuCtxSynchronize(), "cuCtxSynchronize");
	begin = now();
	for (long i = 0; i < count; i++)
		must(cuGraphLaunch(exec, NULL), "cuGraphLaunch");
	issued = now();
	must(cuCtxSynchronize(), "cuCtxSynchronize");
	printf("graph_launch_issue %.3f us\ngraph_launch_rate %.3f us\n",
	       (issued - begin) / (double)count * 1e6, (now() - begin) / (double)count * 1e6);
}

static double
measure_rate(CUfunction function, void **params, const CUstream *streams, long count,
	     long stream_count)
{
	double begin = now();

	for (long i = 0; i < count; i++)
		must(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, streams[i % stream_count],
				    params, NULL),
		     "cuLaunchKernel");
	must(cuCtxSynchronize(), "cuCtxSynchronize");
	return (double)count / (now() - begin);
}

static void
on_streams(CUfunction function, void **params, long count)
{
	CUstream streams[STREAMS];
	double best[STREAMS + 1] = { 0 };

	for (int i = 0; i < STREAMS; i++)
		must(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	(void)measure_rate(function, params, streams, STREAMS, STREAMS);
	for (int turn = 0; turn < TRIES; turn++) {
		for (int n = 1; n <= STREAMS; n *= 2) {
			double rate = measure_rate(function, params, streams, count, n);

			best[n] = rate > best[n] ? rate : best[n];
		}
	}
	for (int n = 1; n <= STREAMS; n *= 2)
		printf("%d streams: %.0f launches/s, %.2f of one stream\n", n, best[n],
		       best[n] / best[1]);
}

int
main(int argc, char **argv)
{
	long count = argc >= 2 ? atol(argv[1]) : 0;
	int waits = argc == 3 && strcmp(argv[2], "wait") == 0;
	long nodes = argc == 4 && strcmp(argv[2], "graph") == 0 ? atol(argv[3]) : 0;
	int spreads = argc == 3 && strcmp(argv[2], "streams") == 0;
	double begin;
	unsigned long long a = 0, b = 0, c = 0;
	unsigned int d = 0, e = 0;
	float f = 0;
	void *params[] = { &a, &b, &c, &d, &e, &f };
	CUfunction function;
	CUmodule module;

	if (count <= 0 || argc > 4 || (argc > 2 && !waits && !spreads && nodes <= 0)) {
		fprintf(stderr, "usage: launches COUNT [wait | streams | graph NODES]\n");
		return 2;
	}
	use_device();
	must(cuModuleLoadData(&module, ptx), "cuModuleLoadData");
	must(cuModuleGetFunction(&function, module, "six"), "cuModuleGetFunction");
	if (nodes > 0) {
		launch_graphs(chain(function, params, nodes), count);
		return 0;
	}
	if (spreads) {
		on_streams(function, params, count);
		return 0;
	}
	if (waits) {
		must(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL),
		     "cuLaunchKernel");
		if (!wait_for_line())
			return 0;
	}
	begin = now();
	for (long i = 0; i < count; i++)
		must(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL),
		     "cuLaunchKernel");
	must(cuCtxSynchronize(), "cuCtxSynchronize");
	if (waits)
		printf("done %.9f %.9f\n", begin, now());
	return 0;
}
