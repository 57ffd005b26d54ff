/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that synchronize implicitly, and calls that do not. After each call the program finds the
 * same as bench/driver/implicitsync.cu on a GPU. A kernel or a copy is in flight each time, also in
 * a non-blocking stream.
 */
#include "app.h"

#include <atomic>
#include <cuda.h>
#include <functional>
#include <unistd.h>

template <typename F>
static F *
driver_function(const char *name, F *)
{
	cudaDriverEntryPointQueryResult found;
	void *function = nullptr;

	CHECK(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
	REQUIRE(found == cudaDriverEntryPointSuccess);
	return reinterpret_cast<F *>(function);
}
#define DRIVER(name) driver_function(#name, static_cast<decltype(name) *>(nullptr))
#define COUNT 4096
#define STAY_NS 30000000ull

static const char image[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
			    ".visible .entry nothing() { ret; }\n";

static __device__ int symbol[4];

static __global__ void
stay_and_fill(int *data, int count, int first, unsigned long long ns)
{
	app_stay(ns);
	for (int i = 0; i < count; i++)
		data[i] = first + i;
}

static __global__ void
copy(int *to, const int *from, int count)
{
	for (int i = 0; i < count; i++)
		to[i] = from[i];
}

/* Loads all code, and allocates the memory that the calls below free. */
struct program {
	cudaStream_t streams[3]; /* a non-blocking stream, the legacy stream, a blocking stream */
	cudaStream_t other;      /* non-blocking */
	int *device, *result, *pinned, *mapped;
	int next;
};

static program p;

static void
prepare()
{
	CHECK(cudaStreamCreateWithFlags(&p.streams[0], cudaStreamNonBlocking));
	p.streams[1] = cudaStreamLegacy;
	CHECK(cudaStreamCreate(&p.streams[2]));
	CHECK(cudaStreamCreateWithFlags(&p.other, cudaStreamNonBlocking));
	p.device = app_malloc<int>(COUNT);
	p.result = app_malloc<int>(COUNT);
	stay_and_fill<<<1, 1>>>(p.device, COUNT, 0, 0);
	copy<<<1, 1>>>(p.result, p.device, COUNT);
	CHECK(cudaMemcpyToSymbol(symbol, &p.next, sizeof(p.next)));
	CHECK(cudaDeviceSynchronize());
}

/* An object that a call frees. */
struct slot {
	int *memory, *host, *managed;
	char *pages;
	cudaArray_t array;
	CUmodule module;
};

struct call {
	const char *name;
	std::function<void(slot &)> prepare, act;
	bool copies; /* waits only for the work that the legacy stream waits for */
};

static std::vector<call> calls;

static void
list_calls()
{
	calls = {
		{ "cudaFree", [](slot &s) { CHECK(cudaMalloc(&s.memory, 4096)); },
		  [](slot &s) { CHECK(cudaFree(s.memory)); }, false },
		{ "cudaFree of much", [](slot &s) { CHECK(cudaMalloc(&s.memory, 32 << 20)); },
		  [](slot &s) { CHECK(cudaFree(s.memory)); }, false },
		{ "cudaFree of managed memory",
		  [](slot &s) { CHECK(cudaMallocManaged(&s.managed, 4096)); },
		  [](slot &s) { CHECK(cudaFree(s.managed)); }, false },
		{ "cudaFreeHost", [](slot &s) { CHECK(cudaMallocHost(&s.host, 4096)); },
		  [](slot &s) { CHECK(cudaFreeHost(s.host)); }, false },
		{ "cudaHostUnregister",
		  [](slot &s) {
			  s.pages = (char *)aligned_alloc(4096, 4096);
			  CHECK(cudaHostRegister(s.pages, 4096, cudaHostRegisterDefault));
		  },
		  [](slot &s) {
			  CHECK(cudaHostUnregister(s.pages));
			  free(s.pages);
		  },
		  false },
		{ "cudaFreeArray",
		  [](slot &s) {
			  cudaChannelFormatDesc desc = cudaCreateChannelDesc<int>();

			  CHECK(cudaMallocArray(&s.array, &desc, 64, 64));
		  },
		  [](slot &s) { CHECK(cudaFreeArray(s.array)); }, false },
		{ "cuModuleLoadData", nullptr,
		  [](slot &s) {
			  REQUIRE(DRIVER(cuModuleLoadData)(&s.module, image) == CUDA_SUCCESS);
			  REQUIRE(DRIVER(cuModuleUnload)(s.module) == CUDA_SUCCESS);
		  },
		  false },
		{ "cuModuleUnload",
		  [](slot &s) {
			  REQUIRE(DRIVER(cuModuleLoadData)(&s.module, image) == CUDA_SUCCESS);
		  },
		  [](slot &s) { REQUIRE(DRIVER(cuModuleUnload)(s.module) == CUDA_SUCCESS); },
		  false },
		{ "cudaMemcpy to the device", nullptr,
		  [](slot &) {
			  int value = 1;

			  CHECK(cudaMemcpy(p.result, &value, 4, cudaMemcpyHostToDevice));
		  },
		  true },
		{ "cudaMemcpy of 1 MiB to the device",
		  [](slot &s) { CHECK(cudaMalloc(&s.memory, 1 << 20)); },
		  [](slot &s) {
			  static char bytes[1 << 20];

			  CHECK(cudaMemcpy(s.memory, bytes, sizeof(bytes), cudaMemcpyHostToDevice));
		  },
		  true },
		{ "cudaMemcpyToSymbol", nullptr,
		  [](slot &) {
			  int value = 1;

			  CHECK(cudaMemcpyToSymbol(symbol, &value, sizeof(value)));
		  },
		  true },
		{ "cudaMemcpy2D to the device", nullptr,
		  [](slot &) {
			  static char bytes[32 * 32];

			  CHECK(cudaMemcpy2D(p.result, 64, bytes, 32, 32, 32,
					     cudaMemcpyHostToDevice));
		  },
		  true },
		{ "cudaMemset of pinned memory",
		  [](slot &s) { CHECK(cudaMallocHost(&s.host, 4096)); },
		  [](slot &s) { CHECK(cudaMemset(s.host, 1, 4096)); }, true },
	};
}

static void
require(bool so, const char *what, const call &one, int which)
{
	static const char *const names[] = { "a non-blocking", "the legacy", "a blocking" };

	if (so)
		return;
	printf("%s with work in %s stream: %s\n", one.name, names[which], what);
	fflush(stdout);
	exit(1);
}

/* The streams that the call waits for. */
static bool
covers(const call &one, int which)
{
	return !one.copies || which > 0;
}

static void
each(const std::function<void(const call &, slot &, int)> &test)
{
	for (const call &one : calls) {
		for (int which = 0; which < 3; which++) {
			slot s = {};

			if (!covers(one, which))
				continue;
			if (one.prepare)
				one.prepare(s);
			CHECK(cudaDeviceSynchronize());
			p.next += 10000;
			test(one, s, which);
			CHECK(cudaDeviceSynchronize());
		}
	}
}

/* Bytes that are written by an asynchronous copy to pinned memory, by a kernel, and by a kernel to
 * a copy of registered memory. */
static void
test_host_memory()
{
	int *pinned, *mapped;
	/* Kernels do not use this memory, so work without an effect precedes it. */
	CHECK(cudaMallocHost(&pinned, COUNT * sizeof(int)));
	each([&](const call &one, slot &s, int which) {
		volatile int *words = pinned;

		pinned[COUNT - 1] = 0;
		stay_and_fill<<<1, 1, 0, p.streams[which]>>>(p.device, COUNT, p.next, STAY_NS);
		CHECK(cudaMemcpyAsync(pinned, p.device, COUNT * sizeof(int), cudaMemcpyDeviceToHost,
				      p.streams[which]));
		one.act(s);
		require(words[COUNT - 1] == p.next + COUNT - 1, "the copy's bytes are not there",
			one, which);
	});
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaHostAlloc(&mapped, COUNT * sizeof(int), cudaHostAllocMapped));
	each([&](const call &one, slot &s, int which) {
		volatile int *words = mapped;

		mapped[COUNT - 1] = 0;
		stay_and_fill<<<1, 1, 0, p.streams[which]>>>(mapped, COUNT, p.next, STAY_NS);
		one.act(s);
		require(words[COUNT - 1] == p.next + COUNT - 1, "the kernel's bytes are not there",
			one, which);
	});
	CHECK(cudaFreeHost(mapped));
	printf("host memory\n");
}

/* Only kernels without visible effects are in flight, so queries must report their completion. */
static void
test_queries()
{
	cudaEvent_t begin, end;

	CHECK(cudaEventCreate(&begin));
	CHECK(cudaEventCreate(&end));
	each([&](const call &one, slot &s, int which) {
		float ms;

		CHECK(cudaEventRecord(begin, p.streams[which]));
		stay_and_fill<<<1, 1, 0, p.streams[which]>>>(p.device, COUNT, p.next, STAY_NS);
		CHECK(cudaEventRecord(end, p.streams[which]));
		one.act(s);
		/* A copy is in the legacy stream itself. */
		if (!one.copies || which == 2)
			require(cudaStreamQuery(p.streams[which]) == cudaSuccess,
				"the stream is not done", one, which);
		require(cudaEventQuery(end) == cudaSuccess, "the event is not done", one, which);
		require(cudaEventElapsedTime(&ms, begin, end) == cudaSuccess && ms > 0,
			"no time between events", one, which);
	});
	each([&](const call &one, slot &s, int which) {
		float ms;

		CHECK(cudaEventRecord(begin, p.streams[which]));
		stay_and_fill<<<1, 1, 0, p.streams[which]>>>(p.device, COUNT, p.next, STAY_NS);
		CHECK(cudaEventRecord(end, p.streams[which]));
		one.act(s);
		require(cudaEventElapsedTime(&ms, begin, end) == cudaSuccess && ms > 0,
			"no time between events at once", one, which);
	});
	CHECK(cudaEventDestroy(begin));
	CHECK(cudaEventDestroy(end));
	printf("queries\n");
}

/* Work after the call, in any stream, finds the results of work before it. */
static void
test_order()
{
	each([&](const call &one, slot &s, int which) {
		int last = 0;

		stay_and_fill<<<1, 1, 0, p.streams[which]>>>(p.device, COUNT, p.next, STAY_NS);
		one.act(s);
		copy<<<1, 1, 0, p.other>>>(p.result, p.device, COUNT);
		CHECK(cudaMemcpyAsync(&last, p.result + COUNT - 1, sizeof(last),
				      cudaMemcpyDeviceToHost, p.other));
		CHECK(cudaStreamSynchronize(p.other));
		require(last == p.next + COUNT - 1, "another stream is ahead", one, which);
	});
	each([&](const call &one, slot &s, int which) {
		cudaStream_t late;
		int last = 0;

		stay_and_fill<<<1, 1, 0, p.streams[which]>>>(p.device, COUNT, p.next, STAY_NS);
		one.act(s);
		CHECK(cudaStreamCreateWithFlags(&late, cudaStreamNonBlocking));
		CHECK(cudaMemcpyAsync(&last, p.device + COUNT - 1, sizeof(last),
				      cudaMemcpyDeviceToHost, late));
		CHECK(cudaStreamSynchronize(late));
		CHECK(cudaStreamDestroy(late));
		require(last == p.next + COUNT - 1, "a later stream is ahead", one, which);
	});
	printf("order\n");
}

/* Two streams have work, and the call is repeated. */
static void
test_frees_in_turn()
{
	int *first = app_malloc<int>(COUNT), *second = app_malloc<int>(COUNT), last[2];

	for (int i = 1; i <= 20; i++) {
		int *scratch;

		CHECK(cudaMalloc(&scratch, COUNT * sizeof(int)));
		stay_and_fill<<<1, 1, 0, p.streams[0]>>>(scratch, COUNT, i, i % 3 * 1000000ull);
		CHECK(cudaFree(scratch));
		CHECK(cudaMalloc(&scratch, COUNT * sizeof(int)));
		stay_and_fill<<<1, 1, 0, p.other>>>(scratch, COUNT, 2 * i, 0);
		copy<<<1, 1, 0, p.other>>>(second, scratch, COUNT);
		copy<<<1, 1, 0, p.streams[0]>>>(first, second, 1);
		CHECK(cudaFree(scratch));
		CHECK(cudaMemcpyAsync(&last[0], second + COUNT - 1, sizeof(int),
				      cudaMemcpyDeviceToHost, p.streams[0]));
		CHECK(cudaStreamSynchronize(p.streams[0]));
		REQUIRE(last[0] == 2 * i + COUNT - 1);
	}
	CHECK(cudaFree(first));
	CHECK(cudaFree(second));
	printf("frees in turn\n");
}

/* A stream whose host function waits for the program does not block these calls. */
static std::atomic<int> gate;

static void CUDART_CB
pass_gate(void *)
{
	while (gate.load() == 0)
		usleep(1000);
}

static void
test_calls_that_do_not_wait()
{
	cudaStream_t idle, busy;
	cudaEvent_t event;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaMemPool_t pool;
	void *block;
	int *memory;

	CHECK(cudaStreamCreateWithFlags(&idle, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking));
	CHECK(cudaEventCreate(&event));
	CHECK(cudaStreamBeginCapture(idle, cudaStreamCaptureModeRelaxed));
	copy<<<1, 1, 0, idle>>>(p.result, p.device, 1);
	CHECK(cudaStreamEndCapture(idle, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, idle));
	CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
	CHECK(cudaMallocAsync(&block, 4096, idle));
	CHECK(cudaDeviceSynchronize());
	gate = 0;
	CHECK(cudaLaunchHostFunc(busy, pass_gate, nullptr));
	CHECK(cudaEventRecord(event, busy));
	CHECK(cudaGraphLaunch(exec, busy));
	CHECK(cudaMalloc(&memory, 4096));
	CHECK(cudaFree(nullptr));
	CHECK(cudaFree(block)); /* memory of a pool */
	CHECK(cudaMemPoolTrimTo(pool, 0));
	CHECK(cudaEventDestroy(event));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaStreamDestroy(idle));
	CHECK(cudaStreamDestroy(busy));
	gate = 1;
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaFree(memory));
	printf("calls that do not wait\n");
}

/* The call also waits for the function. */
static void CUDART_CB
set_late(void *data)
{
	usleep(20000);
	*(std::atomic<int> *)data = 1;
}

static void
test_host_functions()
{
	std::atomic<int> set;

	each([&](const call &one, slot &s, int which) {
		set = 0;
		CHECK(cudaLaunchHostFunc(p.streams[which], set_late, &set));
		one.act(s);
		require(set == 1, "the host function has not run", one, which);
	});
	printf("host functions\n");
}

int
main()
{
	prepare();
	list_calls();
	/* First without memory that the program and kernels share. */
	test_queries();
	test_order();
	test_frees_in_turn();
	test_host_memory();
	test_host_functions();
	test_calls_that_do_not_wait();
	return app_ok("implicitwaits");
}
