/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consecutive copies from the device to the same host memory, ordered by one stream, or by two
 * streams with an event or a wait value. The copies have different sizes and overlap, and there are
 * other writers and readers of the memory. Each byte must be that of the last copy, for pinned
 * memory, registered memory, mapped memory that kernels use, and pageable memory.
 */
#include "app.h"

#include <cstdint>
#include <cuda.h>
#include <vector>

static const size_t MOST = 3 << 20;

static cudaStream_t first, second, blocking;
static cudaEvent_t event;
static uint8_t *device, *other, *pinned;
static const char *kind;

static __global__ void
set(uint8_t *bytes, uint8_t value, size_t size)
{
	size_t step = (size_t)gridDim.x * blockDim.x;

	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < size; i += step)
		bytes[i] = value;
}

static void
set_on(cudaStream_t stream, uint8_t *bytes, uint8_t value, size_t size)
{
	set<<<4, 64, 0, stream>>>(bytes, value, size);
	CHECK(cudaGetLastError());
}

static void
out(void *host, const void *from, size_t size, cudaStream_t stream)
{
	CHECK(cudaMemcpyAsync(host, from, size, cudaMemcpyDeviceToHost, stream));
}

/* Orders the second stream's later work after the work of the first. */
static void
order_streams()
{
	CHECK(cudaEventRecord(event, first));
	CHECK(cudaStreamWaitEvent(second, event, 0));
}

/* A shape is a function that copies to `size` bytes of the memory; `device` has the value 1 and
 * `other` has 2. It returns the range that has `value` afterwards; the bytes before it have the
 * value 1. */
struct end {
	size_t at, size;
	uint8_t value;
};

static struct end
one_stream(uint8_t *host, size_t size)
{
	out(host, device, size, first);
	out(host, other, size, first);
	CHECK(cudaStreamSynchronize(first));
	return { 0, size, 2 };
}

static struct end
kernels_between(uint8_t *host, size_t size)
{
	for (uint8_t i = 7; i > 0; i--) {
		set_on(first, device, i, size);
		out(host, device, size, first);
	}
	out(host, other, size, first);
	CHECK(cudaStreamSynchronize(first));
	return { 0, size, 2 };
}

static struct end
two_streams(uint8_t *host, size_t size)
{
	out(host, device, size, first);
	order_streams();
	out(host, other, size, second);
	CHECK(cudaStreamSynchronize(second));
	return { 0, size, 2 };
}

static struct end
three_in_two_streams(uint8_t *host, size_t size)
{
	out(host, device, size, second);
	CHECK(cudaEventRecord(event, second));
	CHECK(cudaStreamWaitEvent(first, event, 0));
	out(host, device, size, first);
	order_streams();
	out(host, other, size, second);
	CHECK(cudaEventRecord(event, second));
	while (cudaEventQuery(event) == cudaErrorNotReady)
		continue;
	CHECK(cudaEventQuery(event));
	return { 0, size, 2 };
}

static struct end
partly_over(uint8_t *host, size_t size)
{
	out(host, device, size, first);
	out(host + size / 3, other, size / 3, first);
	CHECK(cudaStreamSynchronize(first));
	return { size / 3, size / 3, 2 };
}

static struct end
short_over_long(uint8_t *host, size_t size)
{
	out(host, device, size, first);
	out(host + size - 20, other, 16, first);
	while (cudaStreamQuery(first) == cudaErrorNotReady)
		continue;
	return { size - 20, 16, 2 };
}

static struct end
long_over_short(uint8_t *host, size_t size)
{
	memset(host, 1, size);
	out(host, device, size < 200000 ? size : 200000, first);
	out(host, other, size, first);
	CHECK(cudaStreamSynchronize(first));
	return { 0, size, 2 };
}

static struct end
rows_over_one(uint8_t *host, size_t size)
{
	out(host, device, size, first);
	CHECK(cudaMemcpy2DAsync(host, size / 8, other, size / 8, size / 8, 8,
				cudaMemcpyDeviceToHost, first));
	CHECK(cudaStreamSynchronize(first));
	return { 0, size / 8 * 8, 2 };
}

static struct end
one_over_rows(uint8_t *host, size_t size)
{
	memset(host, 1, size);
	CHECK(cudaMemcpy2DAsync(host, size / 8, device, size / 8, size / 8, 8,
				cudaMemcpyDeviceToHost, first));
	out(host, other, size, first);
	CHECK(cudaStreamSynchronize(first));
	return { 0, size, 2 };
}

static struct end
fill_over(uint8_t *host, size_t size)
{
	out(host, device, size, first);
	if (strcmp(kind, "pageable") == 0) {
		memset(host, 2, size);
	} else {
		CHECK(cudaMemsetAsync(host, 2, size, first));
		CHECK(cudaStreamSynchronize(first));
	}
	return { 0, size, 2 };
}

static struct end
over_fill(uint8_t *host, size_t size)
{
	out(host, device, size, first);
	if (strcmp(kind, "pageable") != 0)
		CHECK(cudaMemsetAsync(host, 9, size, first));
	out(host, other, size, first);
	CHECK(cudaStreamSynchronize(first));
	return { 0, size, 2 };
}

static struct end
host_copy_over(uint8_t *host, size_t size)
{
	memset(pinned, 2, size);
	out(host, device, size, first);
	CHECK(cudaMemcpyAsync(host, pinned, size, cudaMemcpyHostToHost, first));
	CHECK(cudaStreamSynchronize(first));
	return { 0, size, 2 };
}

static struct end
host_copy_over_in_second(uint8_t *host, size_t size)
{
	memset(pinned, 2, size);
	out(host, device, size, first);
	order_streams();
	CHECK(cudaMemcpyAsync(host, pinned, size, cudaMemcpyHostToHost, second));
	CHECK(cudaStreamSynchronize(second));
	return { 0, size, 2 };
}

static struct end
synchronous_over(uint8_t *host, size_t size)
{
	out(host, device, size, blocking);
	CHECK(cudaMemcpy(host, other, size, cudaMemcpyDeviceToHost));
	CHECK(cudaStreamSynchronize(blocking));
	return { 0, size, 2 };
}

static uint8_t *seen_at;
static size_t seen_size;
static bool seen_right;

static bool
has(const uint8_t *host, size_t size, uint8_t value)
{
	for (size_t i = 0; i < size; i++) {
		if (host[i] != value)
			return false;
	}
	return true;
}

static void
see(void *)
{
	seen_right = has(seen_at, seen_size, 7);
	memset(seen_at, 3, seen_size);
}

static struct end
function_between(uint8_t *host, size_t size)
{
	seen_at = host;
	seen_size = size;
	set_on(first, device, 5, size);
	out(host, device, size, first);
	set_on(first, device, 7, size);
	out(host, device, size, first);
	CHECK(cudaLaunchHostFunc(first, see, NULL));
	out(host, other, size / 2, first);
	CHECK(cudaStreamSynchronize(first));
	REQUIRE(seen_right && has(host + size / 2, size - size / 2, 3));
	memset(host + size / 2, 2, size - size / 2);
	return { 0, size, 2 };
}

/* Both copies to the device have the same destination, and the second one reads what the copies
 * from the device have written. */
static struct end
read_by_copy(uint8_t *host, size_t size)
{
	memset(pinned, 8, size);
	out(host, device, size, first);
	out(host, other, size, first);
	CHECK(cudaMemcpyAsync(device, pinned, size, cudaMemcpyHostToDevice, first));
	CHECK(cudaMemcpyAsync(device, host, size, cudaMemcpyHostToDevice, first));
	out(pinned, device, size, first);
	CHECK(cudaStreamSynchronize(first));
	REQUIRE(has(pinned, size, 2));
	return { 0, size, 2 };
}

/* Two streams with two copies to the same device memory. */
static struct end
to_device(uint8_t *host, size_t size)
{
	memset(pinned, 8, size);
	memset(host, 6, size);
	CHECK(cudaMemcpyAsync(device, pinned, size, cudaMemcpyHostToDevice, first));
	order_streams();
	CHECK(cudaMemcpyAsync(device, host, size, cudaMemcpyHostToDevice, second));
	out(pinned, device, size, second);
	CHECK(cudaStreamSynchronize(second));
	REQUIRE(has(pinned, size, 6));
	return { 0, size, 6 };
}

/* The copy that is posted first waits for the copy that is posted second. */
static struct end
against_posting(uint8_t *host, size_t size)
{
	static uint32_t *word;
	static CUresult (*wait)(CUstream, CUdeviceptr, cuuint32_t, unsigned int);
	static CUresult (*write)(CUstream, CUdeviceptr, cuuint32_t, unsigned int);
	CUdeviceptr at;

	if (!word) {
		cudaDriverEntryPointQueryResult found;

		word = app_malloc<uint32_t>(1);
		CHECK(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", (void **)&wait, 13000,
						       cudaEnableDefault, &found));
		CHECK(cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", (void **)&write,
						       13000, cudaEnableDefault, &found));
	}
	at = (CUdeviceptr)(uintptr_t)word;
	CHECK(cudaMemset(word, 0, 4));
	CHECK(cudaDeviceSynchronize());
	REQUIRE(wait(first, at, 1, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS);
	/* A copy to pageable memory would wait here. */
	if (strcmp(kind, "pageable") != 0)
		out(host, other, size, first);
	out(host, device, size, second);
	REQUIRE(write(second, at, 1, 0) == CUDA_SUCCESS);
	if (strcmp(kind, "pageable") == 0)
		out(host, other, size, first);
	CHECK(cudaStreamSynchronize(first));
	CHECK(cudaStreamSynchronize(second));
	return { 0, size, 2 };
}

/* Kernels write to the memory between copies to it. */
static struct end
kernel_over(uint8_t *host, size_t size)
{
	uint8_t *mapped;

	if (strcmp(kind, "mapped") != 0)
		return one_stream(host, size);
	CHECK(cudaHostGetDevicePointer(&mapped, host, 0));
	out(host, device, size, first);
	set_on(first, mapped, 4, size);
	out(host, other, size / 2, first);
	CHECK(cudaStreamSynchronize(first));
	REQUIRE(has(host + size / 2, size - size / 2, 4));
	memset(host + size / 2, 2, size - size / 2);
	return { 0, size, 2 };
}

/* The kernel's bytes are older than the copy's. */
static struct end
over_kernel(uint8_t *host, size_t size)
{
	uint8_t *mapped;

	if (strcmp(kind, "mapped") != 0)
		return two_streams(host, size);
	CHECK(cudaHostGetDevicePointer(&mapped, host, 0));
	set_on(first, mapped, 4, size);
	out(host, device, size, first);
	order_streams();
	out(host, other, size, second);
	CHECK(cudaStreamSynchronize(second));
	return { 0, size, 2 };
}

static struct end
graph_over(uint8_t *host, size_t size)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	if (strcmp(kind, "pageable") == 0)
		return one_stream(host, size);
	CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal));
	out(host, device, size, first);
	out(host, other, size, first);
	CHECK(cudaStreamEndCapture(first, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	out(host, device, size, first);
	CHECK(cudaGraphLaunch(exec, first));
	CHECK(cudaStreamSynchronize(first));
	REQUIRE(has(host, size, 2));
	CHECK(cudaGraphLaunch(exec, first));
	out(host + 100, device, size - 100, first);
	CHECK(cudaStreamSynchronize(first));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	REQUIRE(has(host + 100, size - 100, 1));
	memset(host + 100, 2, size - 100);
	return { 0, size, 2 };
}

static const struct shape {
	const char *name;
	struct end (*run)(uint8_t *host, size_t size);
} shapes[] = {
	{ "one stream", one_stream },
	{ "kernels in between", kernels_between },
	{ "two streams", two_streams },
	{ "three copies in two streams", three_in_two_streams },
	{ "partly over the first", partly_over },
	{ "short over long", short_over_long },
	{ "long over short", long_over_short },
	{ "rows over one", rows_over_one },
	{ "one over rows", one_over_rows },
	{ "a fill over a copy", fill_over },
	{ "a copy over a fill", over_fill },
	{ "a copy from host memory over a copy", host_copy_over },
	{ "the same in a second stream", host_copy_over_in_second },
	{ "a synchronous copy over another", synchronous_over },
	{ "a function in between", function_between },
	{ "read by a copy to the device", read_by_copy },
	{ "to the device", to_device },
	{ "against the order of posting", against_posting },
	{ "a kernel over a copy", kernel_over },
	{ "a copy over a kernel", over_kernel },
	{ "graphs", graph_over },
};

static void
run(const struct shape *shape, uint8_t *host, size_t size)
{
	struct end end;

	memset(host, 0xaa, size);
	CHECK(cudaMemset(device, 1, MOST));
	CHECK(cudaMemset(other, 2, MOST));
	CHECK(cudaDeviceSynchronize());
	end = shape->run(host, size);
	CHECK(cudaDeviceSynchronize());
	for (size_t i = 0; i < size; i++) {
		uint8_t expected = i >= end.at && i < end.at + end.size ? end.value : 1;

		if (host[i] == expected || (end.at == 0 && i >= end.size))
			continue;
		printf("%s, %s, %zu bytes: %d at %zu, not %d\n", kind, shape->name, size, host[i],
		       i, expected);
		fflush(stdout);
		exit(1);
	}
}

/* Without a number of rounds, runs only the shapes that are fast. */
static void
all_shapes(const char *name, uint8_t *host, int rounds)
{
	static const size_t few[] = { 1 << 20, MOST },
			    all[] = { 100000, 300000, 600000, 1 << 20, MOST };
	std::vector<size_t> sizes(all, all + 5);

	kind = name;
	if (rounds == 0)
		sizes.assign(few, few + (strcmp(name, "pinned") == 0 ? 2 : 1));
	for (int i = 0; i < rounds || i == 0; i++) {
		for (size_t size : sizes) {
			for (const struct shape &shape : shapes)
				run(&shape, host, size);
		}
	}
	printf("%s\n", name);
}

int
main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 0;
	uint8_t *host, *mapped;

	CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
	CHECK(cudaStreamCreate(&blocking));
	CHECK(cudaEventCreate(&event));
	device = app_malloc<uint8_t>(MOST);
	other = app_malloc<uint8_t>(MOST);
	CHECK(cudaMallocHost(&pinned, MOST));
	CHECK(cudaMallocHost(&host, MOST));
	all_shapes("pinned", host, rounds);
	CHECK(cudaFreeHost(host));
	host = (uint8_t *)malloc(MOST);
	all_shapes("pageable", host, rounds);
	CHECK(cudaHostRegister(host, MOST, cudaHostRegisterMapped));
	all_shapes("registered", host, rounds);
	CHECK(cudaHostGetDevicePointer(&mapped, host, 0));
	set_on(first, mapped, 9, MOST);
	CHECK(cudaStreamSynchronize(first));
	all_shapes("mapped", host, rounds);
	CHECK(cudaHostUnregister(host));
	free(host);
	return app_ok("copyorder");
}
