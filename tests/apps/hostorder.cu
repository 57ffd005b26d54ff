/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host functions and memory in stream order. Work after a function finds what the function has
 * written, a function finds what earlier work has written, copies read pinned memory when the
 * stream reaches them, and nothing that is queued after a function waits for it in the caller.
 * hostorder uses: calls that use the destination of an earlier copy which waits for the caller.
 * hostorder within: copies within host memory, which wait for their stream, and batches and fills,
 * which do not.
 * hostorder in, back [function|value|kernel]: blocked copies from pageable memory and to the host
 * do not block anything else.
 * hostorder many [function|value|kernel [ROUNDS [CALLS]]]: 1 GiB of copies, 32 MiB per round, and
 * 100,000 calls after a function, a wait value, and a kernel that polls a word.
 */
#include "app.h"

#include <atomic>
#include <cuda.h>
#include <thread>
#include <time.h>
#include <unistd.h>

/* COPIED is registered memory whose device address is never queried. */
enum memory {
	PINNED,
	MAPPED,
	REGISTERED,
	COPIED
};
enum way {
	FUNCTION,
	CALLBACK,
	GRAPH
};

/* A block of host memory, and its address for kernels. */
struct block {
	enum memory memory;
	int *host, *device;
	int count;
};

static struct block
block_create(enum memory memory, int count)
{
	struct block block = { memory, nullptr, nullptr, count };
	size_t size = count * sizeof(int);

	if (memory >= REGISTERED) {
		block.host = (int *)aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
		CHECK(cudaHostRegister(block.host, size, cudaHostRegisterDefault));
	} else {
		CHECK(cudaHostAlloc((void **)&block.host, size,
				    memory == MAPPED ? cudaHostAllocMapped : cudaHostAllocDefault));
		block.device = block.host;
	}
	memset(block.host, 0, size);
	if (memory == REGISTERED)
		CHECK(cudaHostGetDevicePointer((void **)&block.device, block.host, 0));
	return block;
}

static void
block_destroy(struct block *block)
{
	if (block->memory >= REGISTERED) {
		CHECK(cudaHostUnregister(block->host));
		free(block->host);
	} else {
		CHECK(cudaFreeHost(block->host));
	}
}

static __global__ void
count_others(const int *words, int count, int value, int *others)
{
	for (int i = threadIdx.x; i < count; i += blockDim.x) {
		if (words[i] != value)
			atomicAdd(others, 1);
	}
}

static __global__ void
fill(int *words, int count, int value)
{
	for (int i = threadIdx.x; i < count; i += blockDim.x)
		words[i] = value;
}

/* The parameters of a host function, which compares the words and sets them to another value. */
struct step {
	struct block *block;
	int expected; /* < 0: nothing is */
	int value;
	int wrong;
};

static void CUDART_CB
step_run(void *data)
{
	struct step *step = (struct step *)data;

	for (int i = 0; i < step->block->count; i++) {
		step->wrong += step->expected >= 0 && step->block->host[i] != step->expected;
		step->block->host[i] = step->value;
	}
}

static void CUDART_CB
step_call(cudaStream_t stream, cudaError_t status, void *data)
{
	step_run(data);
}

static void
queue_step(enum way way, cudaStream_t stream, struct step *step)
{
	if (way == CALLBACK)
		CHECK(cudaStreamAddCallback(stream, step_call, step, 0));
	else
		CHECK(cudaLaunchHostFunc(stream, step_run, step));
}

/* A kernel writes, a function reads and writes, a kernel reads, all in the same memory. */
static void
kernels_and_functions(enum memory memory, enum way way, int count, cudaStream_t stream)
{
	struct block block = block_create(memory, count);
	int *others = app_malloc<int>(1), found;
	struct step step = { &block, 0, 0, 0 };
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	if (way == GRAPH) {
		CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
		queue_step(way, stream, &step);
		CHECK(cudaStreamEndCapture(stream, &graph));
		CHECK(cudaGraphInstantiate(&exec, graph, 0));
	}
	for (int round = 1; round <= 4; round++) {
		step.expected = round * 10;
		step.value = round * 100;
		CHECK(cudaMemsetAsync(others, 0, sizeof(int), stream));
		fill<<<1, 64, 0, stream>>>(block.device, count, round * 10);
		if (way == GRAPH)
			CHECK(cudaGraphLaunch(exec, stream));
		else
			queue_step(way, stream, &step);
		count_others<<<1, 64, 0, stream>>>(block.device, count, round * 100, others);
		CHECK(cudaMemcpyAsync(&found, others, sizeof(int), cudaMemcpyDeviceToHost, stream));
		CHECK(cudaStreamSynchronize(stream));
		if (found || step.wrong) {
			printf("memory %d, way %d, %d words: kernel %d, function %d old\n", memory,
			       way, count, found, step.wrong);
			exit(1);
		}
	}
	if (way == GRAPH) {
		CHECK(cudaGraphExecDestroy(exec));
		CHECK(cudaGraphDestroy(graph));
	}
	CHECK(cudaFree(others));
	block_destroy(&block);
}

static void
require_all(const int *words, int count, int value, const char *what)
{
	for (int i = 0; i < count; i++) {
		if (words[i] != value) {
			printf("%s, %d words: word %d is %d, not %d\n", what, count, i, words[i],
			       value);
			exit(1);
		}
	}
}

/* A copy reads its source after earlier work of the stream. */
static void
copies_after_functions(enum memory memory, int count, cudaStream_t stream, cudaStream_t other)
{
	struct block block = block_create(memory, count);
	std::vector<int> back(count);
	int *words = app_malloc<int>(count);
	struct step step = { &block, -1, 0, 0 };
	cudaEvent_t event;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	size_t size = count * sizeof(int);
	auto copy_back = [&](int value, const char *what) {
		CHECK(cudaMemcpyAsync(back.data(), words, size, cudaMemcpyDeviceToHost, stream));
		CHECK(cudaStreamSynchronize(stream));
		require_all(back.data(), count, value, what);
	};

	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	step.value = 1;
	CHECK(cudaLaunchHostFunc(stream, step_run, &step));
	CHECK(cudaMemcpyAsync(words, block.host, size, cudaMemcpyHostToDevice, stream));
	copy_back(1, "after a function");

	step.value = 2;
	CHECK(cudaLaunchHostFunc(other, step_run, &step));
	CHECK(cudaEventRecord(event, other));
	CHECK(cudaStreamWaitEvent(stream, event, 0));
	CHECK(cudaMemcpyAsync(words, block.host, size, cudaMemcpyHostToDevice, stream));
	copy_back(2, "after another stream's function");

	/* Writes to memory that a later copy reads, and reads of memory that a later function
	 * changes. */
	step.value = 3;
	CHECK(cudaLaunchHostFunc(stream, step_run, &step));
	CHECK(cudaMemcpyAsync(words, block.host, size, cudaMemcpyHostToDevice, stream));
	struct step later = { &block, 3, 4, 0 };
	CHECK(cudaLaunchHostFunc(stream, step_run, &later));
	copy_back(3, "between two functions");
	REQUIRE(later.wrong == 0);

	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	CHECK(cudaLaunchHostFunc(stream, step_run, &step));
	CHECK(cudaMemcpyAsync(words, block.host, size, cudaMemcpyHostToDevice, stream));
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int round = 5; round < 8; round++) {
		step.value = round;
		CHECK(cudaGraphLaunch(exec, stream));
		copy_back(round, "after a graph's function");
	}
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaEventDestroy(event));
	CHECK(cudaFree(words));
	block_destroy(&block);
}

/* A copy after a wait value reads what the program has written before it wrote the value. */
static void
copies_after_words(enum memory memory, int count, cudaStream_t stream)
{
	struct block block = block_create(memory, count), flag = block_create(MAPPED, 1);
	std::vector<int> back(count);
	int *words = app_malloc<int>(count);
	size_t size = count * sizeof(int);
	cudaDriverEntryPointQueryResult found;
	CUresult (*wait)(CUstream, CUdeviceptr, cuuint32_t, unsigned int);

	CHECK(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", (void **)&wait, 12000,
					       cudaEnableDefault, &found));
	for (int round = 1; round <= 3; round++) {
		REQUIRE(wait(stream, (CUdeviceptr)(uintptr_t)flag.device, round,
			     CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS);
		CHECK(cudaMemcpyAsync(words, block.host, size, cudaMemcpyHostToDevice, stream));
		if (round % 2)
			std::this_thread::sleep_for(std::chrono::milliseconds(20));
		for (int i = 0; i < count; i++)
			block.host[i] = round;
		__atomic_store_n(flag.host, round, __ATOMIC_RELEASE);
		CHECK(cudaMemcpyAsync(back.data(), words, size, cudaMemcpyDeviceToHost, stream));
		CHECK(cudaStreamSynchronize(stream));
		require_all(back.data(), count, round, "after a word");
	}
	CHECK(cudaFree(words));
	block_destroy(&flag);
	block_destroy(&block);
}

/* Copies in batches read their sources, of all kinds of memory, at the time that the caller has
 * specified. */
static void
batches_read_in_order(int count, cudaStream_t stream)
{
	struct block pinned = block_create(PINNED, count), mapped = block_create(MAPPED, count);
	std::vector<int> pageable(count, 0), back(3 * count);
	struct block filled = { PINNED, pageable.data(), nullptr, count };
	struct step step = { &filled, -1, 1, 0 };
	int *words = app_malloc<int>(3 * count);
	size_t size = count * sizeof(int), sizes[] = { size, size, size };
	const void *to[] = { words, words + count, words + 2 * count };
	const void *from[] = { pageable.data(), pinned.host, mapped.host };
	size_t begins[] = { 0, 1 };
	cudaMemcpyAttributes attributes[2] = {};

	attributes[0].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	attributes[1].srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;
	for (int i = 0; i < count; i++)
		pinned.host[i] = mapped.host[i] = 2;
	/* Calls that read mapped memory before they return may wait for the function. */
	CHECK(cudaMemcpyBatchAsync(to + 2, from + 2, sizes, 1, attributes + 1, begins, 1, stream));
	for (int i = 0; i < count; i++)
		mapped.host[i] = 3;
	CHECK(cudaLaunchHostFunc(stream, step_run, &step));
	CHECK(cudaMemcpyBatchAsync(to, from, sizes, 2, attributes, begins, 2, stream));
	for (int i = 0; i < count; i++)
		pinned.host[i] = 3;
	CHECK(cudaMemcpyAsync(back.data(), words, 3 * size, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	require_all(back.data(), count, 1, "read in the stream's order");
	require_all(back.data() + count, 2 * count, 2, "read during the call");
	CHECK(cudaFree(words));
	block_destroy(&pinned);
	block_destroy(&mapped);
}

/* Work that blocks a stream until the program releases it. */
enum holder {
	HOST_FUNCTION,
	WAIT_VALUE,
	KERNEL
};

static const char *const holder_names[] = { "function", "value", "kernel" };
static std::atomic<bool> released;
static std::atomic<int> queued; /* number of calls that have returned */

static void CUDART_CB
await_release(void *data)
{
	while (!released)
		(void)usleep(20);
}

static __global__ void
await_word(const volatile int *word)
{
	while (*word == 0)
		continue;
}

static void
hold(enum holder holder, const struct block *flag, cudaStream_t stream)
{
	cudaDriverEntryPointQueryResult found;
	CUresult (*wait)(CUstream, CUdeviceptr, cuuint32_t, unsigned int);

	switch (holder) {
	case HOST_FUNCTION:
		CHECK(cudaLaunchHostFunc(stream, await_release, nullptr));
		break;
	case WAIT_VALUE:
		CHECK(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", (void **)&wait, 12000,
						       cudaEnableDefault, &found));
		REQUIRE(wait(stream, (CUdeviceptr)(uintptr_t)flag->device, 1,
			     CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS);
		break;
	case KERNEL:
		await_word<<<1, 1, 0, stream>>>(flag->device);
		CHECK(cudaGetLastError());
		break;
	}
}

/* Releases the stream when everything is queued, or when a full queue blocks the caller; the queue
 * of a local GPU is full after some thousand calls. A slow machine also blocks the caller; timeout
 * is in units of 50 ms. */
static void
release_later(const struct block *flag, int timeout)
{
	int before = -1, still = 0;

	while (!released && still < timeout) {
		std::this_thread::sleep_for(std::chrono::milliseconds(50));
		still = queued == before ? still + 1 : 0;
		before = queued;
	}
	released = true;
	__atomic_store_n(flag->host, 1, __ATOMIC_RELEASE);
}

static void
queue_copies(int rounds, const struct block *in, const struct block *out,
	     const struct block *registered, std::vector<int> &pageable, int *words, int *more,
	     cudaStream_t stream)
{
	const size_t size = in->count * sizeof(int);

	for (int i = 0; i < rounds; i++) {
		CHECK(cudaMemcpyAsync(words, in->host, size, cudaMemcpyHostToDevice, stream));
		CHECK(cudaMemcpyAsync(more, registered->host, size, cudaMemcpyHostToDevice,
				      stream));
		queued++;
	}
	CHECK(cudaMemcpyAsync(more, pageable.data(), size, cudaMemcpyHostToDevice, stream));
	std::fill(pageable.begin(), pageable.end(), 4);
	CHECK(cudaMemcpyAsync(out->host, more, size, cudaMemcpyDeviceToHost, stream));
	/* From the destination of the previous copy. */
	CHECK(cudaMemcpyAsync(words, out->host, size, cudaMemcpyHostToDevice, stream));
}

/* No call may wait for earlier work of its stream. */
static void
calls_do_not_wait(enum holder holder, int rounds, int calls, cudaStream_t stream,
		  cudaStream_t other)
{
	const int count = 4 << 20;
	const size_t size = count * sizeof(int);
	struct block in = block_create(PINNED, count), out = block_create(PINNED, count);
	struct block registered = block_create(COPIED, count), flag = block_create(MAPPED, 1);
	std::vector<int> pageable(count, 3);
	int *words = app_malloc<int>(count), *more = app_malloc<int>(count);
	cudaEvent_t event;

	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	for (int i = 0; i < count; i++)
		in.host[i] = registered.host[i] = 1;
	fill<<<1, 1, 0, stream>>>(words, 1, 0);
	CHECK(cudaDeviceSynchronize());
	released = false;
	queued = 0;
	hold(holder, &flag, stream);
	/* After a function the caller must not be blocked at all. With a local GPU it is blocked by
	 * copies from pageable memory. */
	const bool may_wait = holder != HOST_FUNCTION || app_is_local();
	std::thread releaser(release_later, &flag, may_wait ? 20 : 1200);
	if (rounds > 0)
		queue_copies(rounds, &in, &out, &registered, pageable, words, more, stream);
	for (int i = 0; i < calls; i++) {
		CHECK(cudaMemsetAsync(more, i, 4, stream));
		queued++;
	}
	fill<<<1, 1, 0, stream>>>(words, 1, 9);
	CHECK(cudaEventRecord(event, stream));
	/* The caller was not blocked. */
	if (!released) {
		EXPECT(cudaErrorNotReady, cudaEventQuery(event));
		EXPECT(cudaErrorNotReady, cudaStreamQuery(stream));
	} else {
		REQUIRE(may_wait);
	}
	CHECK(cudaMemcpyAsync(more + 1, in.host, 400, cudaMemcpyHostToDevice, other));
	CHECK(cudaStreamSynchronize(other));
	released = true;
	CHECK(cudaMemcpyAsync(pageable.data(), words, size, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	releaser.join();
	REQUIRE(pageable[0] == 9);
	pageable[0] = 3;
	if (rounds > 0)
		require_all(pageable.data(), count, 3,
			    "of a copy that was queued after what holds it up");
	CHECK(cudaEventDestroy(event));
	CHECK(cudaFree(words));
	CHECK(cudaFree(more));
	block_destroy(&in);
	block_destroy(&out);
	block_destroy(&registered);
	block_destroy(&flag);
}

/* Copies that are queued while their stream is full read their sources when the stream reaches
 * them. The calls fill the queue in the daemon, but not that of a local GPU. */
static void
copies_after_a_full_stream(cudaStream_t stream)
{
	const int count = 100000, few = 100, calls = 900;
	struct block in = block_create(PINNED, count), registered = block_create(COPIED, count);
	struct block flag = block_create(MAPPED, 1);
	int *words = app_malloc<int>(2 * count + few);
	std::vector<int> back(2 * count + few);

	for (int i = 0; i < count; i++)
		in.host[i] = registered.host[i] = 1;
	CHECK(cudaDeviceSynchronize());
	hold(KERNEL, &flag, stream);
	for (int i = 0; i < calls; i++)
		CHECK(cudaMemsetAsync(words, 0, 4, stream));
	/* Until the daemon defers further calls. */
	std::this_thread::sleep_for(std::chrono::milliseconds(200));
	CHECK(cudaMemcpyAsync(words, in.host, count * sizeof(int), cudaMemcpyHostToDevice, stream));
	CHECK(cudaMemcpyAsync(words + count, registered.host, count * sizeof(int),
			      cudaMemcpyHostToDevice, stream));
	CHECK(cudaMemcpyAsync(words + 2 * count, in.host, few * sizeof(int), cudaMemcpyHostToDevice,
			      stream));
	for (int i = 0; i < count; i++)
		in.host[i] = registered.host[i] = 2;
	__atomic_store_n(flag.host, 1, __ATOMIC_RELEASE);
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpy(back.data(), words, back.size() * sizeof(int), cudaMemcpyDeviceToHost));
	require_all(back.data(), (int)back.size(), 2, "copied after a full stream");
	CHECK(cudaFree(words));
	block_destroy(&in);
	block_destroy(&registered);
	block_destroy(&flag);
}

static __global__ void
increase(int *words, int count)
{
	for (int i = threadIdx.x; i < count; i += blockDim.x)
		words[i]++;
}

/* Uses of host memory after a copy to it. */
enum use {
	USE_KERNEL,
	USE_KERNEL_ELSEWHERE, /* on another stream, after an event */
	USE_GRAPH,
	USE_COPY_FROM,
	USE_COPY_TO, /* a second copy to the same memory */
	USE_FILL,
	USE_COUNT
};

/* Expected contents of the memory afterwards; words: the result of the first copy, 5 each. */
static int
use_block(enum use use, struct block *block, int *words, int *more, cudaStream_t stream,
	  cudaStream_t other)
{
	const size_t size = block->count * sizeof(int);
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	cudaEvent_t event;

	if (use != USE_FILL && block->memory == COPIED)
		CHECK(cudaHostGetDevicePointer((void **)&block->device, block->host, 0));
	switch (use) {
	case USE_KERNEL_ELSEWHERE:
		CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
		CHECK(cudaEventRecord(event, stream));
		CHECK(cudaStreamWaitEvent(other, event, 0));
		increase<<<1, 64, 0, other>>>(block->device, block->count);
		CHECK(cudaEventRecord(event, other));
		CHECK(cudaStreamWaitEvent(stream, event, 0));
		CHECK(cudaEventDestroy(event));
		return 6;
	case USE_GRAPH:
		CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
		increase<<<1, 64, 0, stream>>>(block->device, block->count);
		CHECK(cudaStreamEndCapture(stream, &graph));
		CHECK(cudaGraphInstantiate(&exec, graph, 0));
		CHECK(cudaGraphLaunch(exec, stream));
		CHECK(cudaGraphExecDestroy(exec));
		CHECK(cudaGraphDestroy(graph));
		return 6;
	case USE_COPY_FROM:
		CHECK(cudaMemcpyAsync(more, block->device, size, cudaMemcpyDefault, stream));
		return 5;
	case USE_COPY_TO:
		fill<<<1, 64, 0, stream>>>(words, block->count, 8);
		CHECK(cudaMemcpyAsync(block->device, words, size, cudaMemcpyDefault, stream));
		increase<<<1, 64, 0, stream>>>(block->device, block->count);
		return 9;
	case USE_FILL:
		CHECK(cudaMemsetAsync(block->host, 1, size, stream));
		return 0x01010101;
	default:
		increase<<<1, 64, 0, stream>>>(block->device, block->count);
		return 6;
	}
}

/* After a function that waits for the caller, and a copy. */
static void
uses_do_not_wait(enum memory memory, enum use use, int count, cudaStream_t stream,
		 cudaStream_t other)
{
	const size_t size = count * sizeof(int);
	struct block block = block_create(memory, count);
	int *words = app_malloc<int>(count), *more = app_malloc<int>(count), expected;
	std::vector<int> back(count);

	fill<<<1, 64, 0, stream>>>(words, count, 5);
	CHECK(cudaMemsetAsync(more, 0, size, stream));
	CHECK(cudaStreamSynchronize(stream));
	released = false;
	CHECK(cudaLaunchHostFunc(stream, await_release, nullptr));
	CHECK(cudaMemcpyAsync(block.host, words, size, cudaMemcpyDeviceToHost, stream));
	expected = use_block(use, &block, words, more, stream, other);
	CHECK(cudaGetLastError());
	released = true;
	CHECK(cudaStreamSynchronize(stream));
	require_all(block.host, count, expected, "used after a copy to it");
	if (use == USE_COPY_FROM) {
		CHECK(cudaMemcpyAsync(back.data(), more, size, cudaMemcpyDeviceToHost, stream));
		CHECK(cudaStreamSynchronize(stream));
		require_all(back.data(), count, 5, "copied after a copy to it");
	}
	CHECK(cudaFree(words));
	CHECK(cudaFree(more));
	block_destroy(&block);
}

static void
uses(cudaStream_t stream, cudaStream_t other)
{
	for (int count : { 1, 1024, 100000 }) {
		for (enum memory memory : { PINNED, COPIED }) {
			for (int use = 0; use < USE_COUNT; use++)
				uses_do_not_wait(memory, (enum use)use, count, stream, other);
		}
	}
}

/* Copies and fills within host memory. Those before WITHIN_BATCH are complete when the call
 * returns. */
enum within {
	WITHIN_ROW,
	WITHIN_DEFAULT,
	WITHIN_ROWS,
	WITHIN_BOX,
	WITHIN_GRAPH,
	WITHIN_BATCH,
	WITHIN_FILL,
	WITHIN_FILL_ROWS,
	WITHIN_COUNT
};

/* Instantiated before the stream is blocked, and destroyed afterwards. */
static cudaGraphExec_t within_graph;

static void
prepare_within(enum within within, const struct block *to, const struct block *from)
{
	cudaGraphNode_t node;
	cudaGraph_t graph;

	if (within != WITHIN_GRAPH)
		return;
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, to->host, from->host,
				       from->count * sizeof(int), cudaMemcpyDefault));
	CHECK(cudaGraphInstantiate(&within_graph, graph, 0));
	CHECK(cudaGraphDestroy(graph));
}

static void
finish_within(enum within within)
{
	if (within == WITHIN_GRAPH)
		CHECK(cudaGraphExecDestroy(within_graph));
}

static void
queue_within(enum within within, const struct block *to, const struct block *from,
	     cudaStream_t stream)
{
	const size_t size = from->count * sizeof(int), half = size / 2, begin = 0;
	cudaMemcpyAttributes attributes = {};
	cudaMemcpy3DParms box = {};
	void *const dst = to->host;
	const void *const src = from->host;

	switch (within) {
	case WITHIN_ROW:
		CHECK(cudaMemcpyAsync(dst, src, size, cudaMemcpyHostToHost, stream));
		break;
	case WITHIN_DEFAULT:
		CHECK(cudaMemcpyAsync(dst, src, size, cudaMemcpyDefault, stream));
		break;
	case WITHIN_ROWS:
		CHECK(cudaMemcpy2DAsync(dst, half, src, half, half, 2, cudaMemcpyDefault, stream));
		break;
	case WITHIN_BOX:
		box.srcPtr = make_cudaPitchedPtr(from->host, half, half, 1);
		box.dstPtr = make_cudaPitchedPtr(to->host, half, half, 1);
		box.extent = make_cudaExtent(half, 1, 2);
		box.kind = cudaMemcpyDefault;
		CHECK(cudaMemcpy3DAsync(&box, stream));
		break;
	case WITHIN_BATCH:
		attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
		CHECK(cudaMemcpyBatchAsync((const void **)&dst, (const void **)&src, &size, 1,
					   &attributes, (size_t *)&begin, 1, stream));
		break;
	case WITHIN_GRAPH:
		CHECK(cudaGraphLaunch(within_graph, stream));
		break;
	case WITHIN_FILL:
		CHECK(cudaMemsetAsync(dst, 2, size, stream));
		break;
	default:
		CHECK(cudaMemset2DAsync(dst, half, 2, half, 2, stream));
	}
}

/* The stream is blocked until the source has other bytes. These bytes, and those of a kernel, are
 * in the destination when the call returns. */
static void
within_waits(enum within within, enum holder holder, enum memory memory, int count,
	     cudaStream_t stream)
{
	struct block from = block_create(memory, count), to = block_create(memory, count);
	struct block flag = block_create(MAPPED, 1);
	const size_t size = count * sizeof(int);

	prepare_within(within, &to, &from);
	CHECK(cudaDeviceSynchronize());
	memset(from.host, 1, size);
	released = false;
	hold(holder, &flag, stream);
	std::thread releasing([&] {
		std::this_thread::sleep_for(std::chrono::milliseconds(2));
		memset(from.host, 2, size);
		released = true;
		__atomic_store_n(flag.host, 1, __ATOMIC_RELEASE);
	});
	queue_within(within, &to, &from, stream);
	require_all(to.host, count, 0x02020202, "of a copy within the host");
	memset(from.host, 3, size);
	EXPECT(cudaSuccess, cudaStreamQuery(stream));
	releasing.join();
	if (from.device) {
		fill<<<1, 64, 0, stream>>>(from.device, count, 7);
		queue_within(within, &to, &from, stream);
		require_all(to.host, count, 7, "of a kernel, copied within the host");
	}
	finish_within(within);
	block_destroy(&from);
	block_destroy(&to);
	block_destroy(&flag);
}

/* They read and write when the stream reaches them. Neither their caller nor the copies to the host
 * before and after them, which write the same memory, wait for them. */
static void
within_does_not_wait(enum within within, enum holder holder, int count, cudaStream_t stream)
{
	struct block from = block_create(PINNED, count), to = block_create(PINNED, count);
	struct block flag = block_create(MAPPED, 1);
	const size_t size = count * sizeof(int);
	int *words = app_malloc<int>(count);
	std::vector<int> back(count);

	CHECK(cudaMemset(words, 5, size));
	CHECK(cudaDeviceSynchronize());
	memset(from.host, 1, size);
	released = false;
	hold(holder, &flag, stream);
	CHECK(cudaMemcpyAsync(to.host, words, size, cudaMemcpyDeviceToHost, stream));
	queue_within(within, &to, &from, stream);
	CHECK(cudaMemcpyAsync(from.host, words, size, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaMemcpyAsync(words, to.host, size, cudaMemcpyHostToDevice, stream));
	EXPECT(cudaErrorNotReady, cudaStreamQuery(stream));
	REQUIRE(to.host[0] == 0);
	memset(from.host, 2, size);
	released = true;
	__atomic_store_n(flag.host, 1, __ATOMIC_RELEASE);
	CHECK(cudaStreamSynchronize(stream));
	require_all(to.host, count, 0x02020202, "of a copy or fill within the host");
	require_all(from.host, count, 0x05050505, "of a copy after one within the host");
	CHECK(cudaMemcpy(back.data(), words, size, cudaMemcpyDeviceToHost));
	require_all(back.data(), count, 0x02020202, "copied after a copy within the host");
	CHECK(cudaFree(words));
	block_destroy(&from);
	block_destroy(&to);
	block_destroy(&flag);
}

/* A stream that waits for the default stream also waits for these. */
static void
within_waits_for_the_default_stream(enum within within)
{
	struct block from = block_create(PINNED, 1024), to = block_create(PINNED, 1024);
	cudaStream_t blocking;

	CHECK(cudaStreamCreate(&blocking));
	prepare_within(within, &to, &from);
	CHECK(cudaDeviceSynchronize());
	memset(from.host, 1, 4096);
	released = false;
	CHECK(cudaLaunchHostFunc(nullptr, await_release, nullptr));
	std::thread releasing([&] {
		std::this_thread::sleep_for(std::chrono::milliseconds(2));
		memset(from.host, 2, 4096);
		released = true;
	});
	queue_within(within, &to, &from, blocking);
	if (within >= WITHIN_BATCH)
		CHECK(cudaStreamSynchronize(blocking));
	require_all(to.host, 1024, 0x02020202, "within the host, after the default stream");
	releasing.join();
	finish_within(within);
	CHECK(cudaStreamDestroy(blocking));
	block_destroy(&from);
	block_destroy(&to);
}

/* A batch does not wait for its copies to pageable memory, either. */
static void
batches_to_pageable_memory_do_not_wait(enum holder holder, int count, cudaStream_t stream)
{
	struct block flag = block_create(MAPPED, 1);
	const size_t size = count * sizeof(int), begin = 0;
	int *words = app_malloc<int>(count);
	std::vector<int> back(count, 1);
	void *to = back.data();
	const void *from = words;
	cudaMemcpyAttributes attributes = {};

	CHECK(cudaMemset(words, 5, size));
	CHECK(cudaDeviceSynchronize());
	released = false;
	hold(holder, &flag, stream);
	attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	CHECK(cudaMemcpyBatchAsync((const void **)&to, &from, &size, 1, &attributes,
				   (size_t *)&begin, 1, stream));
	CHECK(cudaMemsetAsync(words, 6, size, stream));
	EXPECT(cudaErrorNotReady, cudaStreamQuery(stream));
	REQUIRE(back[0] == 1);
	released = true;
	__atomic_store_n(flag.host, 1, __ATOMIC_RELEASE);
	CHECK(cudaStreamSynchronize(stream));
	require_all(back.data(), count, 0x05050505, "copied to pageable memory by a batch");
	CHECK(cudaFree(words));
	block_destroy(&flag);
}

static void
within_the_host(cudaStream_t stream)
{
	app_load((const void *)await_word);
	app_load((const void *)fill);
	for (int within = 0; within < WITHIN_COUNT; within++) {
		for (int holder = 0; holder < 3; holder++) {
			for (int count : { 2, 1024, 1 << 18 }) {
				if (within == WITHIN_BATCH)
					batches_to_pageable_memory_do_not_wait((enum holder)holder,
									       count, stream);
				if (within >= WITHIN_BATCH)
					within_does_not_wait((enum within)within,
							     (enum holder)holder, count, stream);
				/* Registered memory that kernels access is not ordered with pinned
				 * memory over a local socket, and a message reports this. */
				for (enum memory memory : { PINNED, MAPPED, COPIED }) {
					if (within < WITHIN_BATCH &&
					    (memory != COPIED || holder != KERNEL))
						within_waits((enum within)within,
							     (enum holder)holder, memory, count,
							     stream);
				}
			}
		}
		within_waits_for_the_default_stream((enum within)within);
	}
}

/* Copies to the host that exceed the daemon's staging memory, and later work, do not block other
 * streams or the work that releases them. */
static void
large_copies_back(enum holder holder, cudaStream_t stream, cudaStream_t other)
{
	const int count = 4 << 20, copies = 8;
	const size_t size = count * sizeof(int);
	struct block out = block_create(COPIED, copies * count), flag = block_create(MAPPED, 1);
	int *words = app_malloc<int>(count), *more = app_malloc<int>(1), found = 0;

	CHECK(cudaMemset(words, 7, size));
	CHECK(cudaMemset(more, 0, sizeof(int)));
	CHECK(cudaDeviceSynchronize());
	released = false;
	hold(holder, &flag, stream);
	for (int i = 0; i < copies; i++)
		CHECK(cudaMemcpyAsync(out.host + i * count, words, size, cudaMemcpyDeviceToHost,
				      stream));
	CHECK(cudaMemsetAsync(words, 8, size, stream));
	EXPECT(cudaErrorNotReady, cudaStreamQuery(stream));
	fill<<<1, 1, 0, other>>>(more, 1, 3);
	CHECK(cudaMemcpyAsync(&found, more, sizeof(int), cudaMemcpyDeviceToHost, other));
	CHECK(cudaStreamSynchronize(other));
	REQUIRE(found == 3);
	released = true;
	__atomic_store_n(flag.host, 1, __ATOMIC_RELEASE);
	CHECK(cudaStreamSynchronize(stream));
	require_all(out.host, copies * count, 0x07070707, "of a large copy to the host");
	CHECK(cudaFree(words));
	CHECK(cudaFree(more));
	block_destroy(&out);
	block_destroy(&flag);
}

/* The same with many small copies on several streams, none of which is full. */
static void
many_copies_back(enum holder holder, cudaStream_t stream)
{
	const int streams = 10, copies = 300;
	struct block out = block_create(COPIED, streams * copies), flag = block_create(MAPPED, 1);
	int *words = app_malloc<int>(1);
	cudaStream_t others[streams];
	cudaEvent_t event;

	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	fill<<<1, 1, 0, stream>>>(words, 1, 7);
	CHECK(cudaDeviceSynchronize());
	released = false;
	hold(holder, &flag, stream);
	CHECK(cudaEventRecord(event, stream));
	for (int i = 0; i < streams; i++) {
		CHECK(cudaStreamCreateWithFlags(&others[i], cudaStreamNonBlocking));
		CHECK(cudaStreamWaitEvent(others[i], event, 0));
		for (int j = 0; j < copies; j++)
			CHECK(cudaMemcpyAsync(out.host + i * copies + j, words, sizeof(int),
					      cudaMemcpyDeviceToHost, others[i]));
	}
	EXPECT(cudaErrorNotReady, cudaStreamQuery(others[streams - 1]));
	released = true;
	__atomic_store_n(flag.host, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < streams; i++) {
		CHECK(cudaStreamSynchronize(others[i]));
		CHECK(cudaStreamDestroy(others[i]));
	}
	require_all(out.host, streams * copies, 7, "of many copies to the host");
	CHECK(cudaEventDestroy(event));
	CHECK(cudaFree(words));
	block_destroy(&out);
	block_destroy(&flag);
}

/* Copies from pageable memory that exceed the daemon's staging memory. Their caller may wait, so
 * another thread releases the kernel. */
static void
large_copies_in(enum holder holder, cudaStream_t stream)
{
	const int count = 4 << 20, copies = 8;
	const size_t size = count * sizeof(int);
	struct block flag = block_create(MAPPED, 1);
	int *words = app_malloc<int>(count);
	std::vector<int> in(count), back(count);

	fill<<<1, 1, 0, stream>>>(words, 1, 0);
	CHECK(cudaDeviceSynchronize());
	released = false;
	queued = 0;
	hold(holder, &flag, stream);
	std::thread releaser(release_later, &flag, 20);
	for (int i = 0; i < copies; i++) {
		in[0] = in[count - 1] = i;
		CHECK(cudaMemcpyAsync(words, in.data(), size, cudaMemcpyHostToDevice, stream));
		queued++;
	}
	CHECK(cudaMemcpyAsync(back.data(), words, size, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(back[0] == copies - 1 && back[count - 1] == copies - 1);
	releaser.join();
	CHECK(cudaFree(words));
	block_destroy(&flag);
}

/* An interprocess event, after a function that waits for the caller. */
static void
interprocess_records_do_not_wait(cudaStream_t stream)
{
	cudaEvent_t event;

	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
	released = false;
	CHECK(cudaLaunchHostFunc(stream, await_release, nullptr));
	CHECK(cudaEventRecord(event, stream));
	EXPECT(cudaErrorNotReady, cudaEventQuery(event));
	released = true;
	CHECK(cudaEventSynchronize(event));
	CHECK(cudaEventDestroy(event));
}

/* Calls that allocate memory do not wait for memory that is freed after a function which waits for
 * the caller. */
static void
allocations_do_not_wait(cudaStream_t stream)
{
	const int count = 40;
	const size_t size = (size_t)1 << 20;
	void *blocks[count], *more[count];

	for (int i = 0; i < count; i++)
		CHECK(cudaMalloc(&blocks[i], size));
	released = false;
	CHECK(cudaLaunchHostFunc(stream, await_release, nullptr));
	for (int i = 0; i < count; i++)
		CHECK(cudaFreeAsync(blocks[i], stream));
	for (int i = 0; i < count; i++)
		CHECK(cudaMalloc(&more[i], size));
	EXPECT(cudaErrorNotReady, cudaStreamQuery(stream));
	released = true;
	CHECK(cudaStreamSynchronize(stream));
	for (int i = 0; i < count; i++)
		CHECK(cudaFree(more[i]));
}

/* Work with host memory does not wait for copies of other streams, which may depend on the
 * program's next call. */
static void
others_do_not_wait(cudaStream_t stream, cudaStream_t other)
{
	const int count = 1000;
	const size_t size = count * sizeof(int);
	CUresult (*wait)(CUstream, CUdeviceptr, cuuint32_t, unsigned int);
	CUresult (*write)(CUstream, CUdeviceptr, cuuint32_t, unsigned int);
	cudaDriverEntryPointQueryResult found;
	struct block block = block_create(PINNED, count), source = block_create(PINNED, count);
	int *words = app_upload(std::vector<int>(count, 2)), *copied = app_malloc<int>(count);
	int *word = app_malloc<int>(1);

	CHECK(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", (void **)&wait, 12000,
					       cudaEnableDefault, &found));
	CHECK(cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", (void **)&write, 12000,
					       cudaEnableDefault, &found));
	for (int way = 0; way < 3; way++) {
		CHECK(cudaMemset(word, 0, sizeof(*word)));
		CHECK(cudaDeviceSynchronize());
		REQUIRE(wait(stream, (CUdeviceptr)(uintptr_t)word, 1, CU_STREAM_WAIT_VALUE_EQ) ==
			CUDA_SUCCESS);
		CHECK(cudaMemcpyAsync(block.host, words, size, cudaMemcpyDeviceToHost, stream));
		if (way == 0)
			CHECK(cudaMemcpyAsync(block.host, source.host, size, cudaMemcpyHostToHost,
					      other));
		else if (way == 1)
			CHECK(cudaMemcpyAsync(copied, block.host, size, cudaMemcpyHostToDevice,
					      other));
		else
			CHECK(cudaMemsetAsync(block.host, 8, size, other));
		REQUIRE(write(other, (CUdeviceptr)(uintptr_t)word, 1, 0) == CUDA_SUCCESS);
		CHECK(cudaStreamSynchronize(other));
		CHECK(cudaStreamSynchronize(stream));
		require_all(block.host, count, 2, "copied behind another stream's work");
	}
	CHECK(cudaFree(words));
	CHECK(cudaFree(copied));
	CHECK(cudaFree(word));
	block_destroy(&block);
	block_destroy(&source);
}

/* hostorder in, back [function|value|kernel] */
static void
held_up(int argc, char **argv, cudaStream_t stream, cudaStream_t other)
{
	for (int i = 0; i < 3; i++) {
		if (argc > 2 && strcmp(argv[2], holder_names[i]) != 0)
			continue;
		if (strcmp(argv[1], "in") == 0) {
			large_copies_in((enum holder)i, stream);
			continue;
		}
		large_copies_back((enum holder)i, stream, other);
		many_copies_back((enum holder)i, stream);
	}
}

/* hostorder many function|value|kernel [ROUNDS [CALLS]] */
static void
many(int argc, char **argv, cudaStream_t stream, cudaStream_t other)
{
	int rounds = argc > 3 ? atoi(argv[3]) : 32, calls = argc > 4 ? atoi(argv[4]) : 100000;

	for (int i = 0; i < 3; i++) {
		if (argc < 3 || strcmp(argv[2], holder_names[i]) == 0)
			calls_do_not_wait((enum holder)i, rounds, calls, stream, other);
	}
}

int
main(int argc, char **argv)
{
	cudaStream_t stream, other;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	if (argc > 1 && strcmp(argv[1], "many") == 0) {
		many(argc, argv, stream, other);
		printf("hostorder: ok\n");
		return 0;
	}
	if (argc > 1 && (strcmp(argv[1], "in") == 0 || strcmp(argv[1], "back") == 0)) {
		held_up(argc, argv, stream, other);
		printf("hostorder: ok\n");
		return 0;
	}
	if (argc > 1 && strcmp(argv[1], "within") == 0) {
		within_the_host(stream);
		others_do_not_wait(stream, other);
		printf("hostorder: ok\n");
		return 0;
	}
	if (argc > 1 && strcmp(argv[1], "uses") == 0) {
		interprocess_records_do_not_wait(stream);
		allocations_do_not_wait(stream);
		uses(stream, other);
		printf("hostorder: ok\n");
		return 0;
	}
	/* Runs first, because copies are sent late after a flag has been polled once. */
	copies_after_a_full_stream(stream);
	for (int count : { 1, 1024, 100000 }) {
		for (enum memory memory : { PINNED, MAPPED, REGISTERED }) {
			for (enum way way : { FUNCTION, CALLBACK, GRAPH })
				kernels_and_functions(memory, way, count, stream);
		}
		for (enum memory memory : { PINNED, MAPPED, COPIED }) {
			copies_after_functions(memory, count, stream, other);
			copies_after_words(memory, count, stream);
		}
		batches_read_in_order(count, stream);
	}
	for (enum memory memory : { PINNED, MAPPED, COPIED })
		copies_after_functions(memory, 2 << 20, stream, other);
	/* A local GPU queues about a thousand calls; then the caller waits. */
	calls_do_not_wait(HOST_FUNCTION, 8, 500, stream, other);
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaStreamDestroy(other));
	printf("hostorder: ok\n");
	return 0;
}
