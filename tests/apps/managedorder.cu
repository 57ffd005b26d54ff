/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory and work that is blocked: a copy, a fill or an operation on a word uses the bytes
 * that the memory has when the stream reaches the work. This holds whether the stream waits for a
 * host function, a value or another process, and no call waits in its caller.
 *
 * A local GPU guarantees less: copies from pageable memory may wait in their caller, and streams
 * cannot wait for a word of managed memory. With a local GPU the program skips the cases that would
 * never end.
 */
#include "app.h"

#include <atomic>
#include <cuda.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

static const size_t width = 512, rows = 384, size = width * rows;

/* Location of the newest bytes when the work is queued. */
enum state {
	HERE,
	THERE,
	BOTH,
	STATES
};
enum way {
	FUNCTION,
	CALLBACK,
	GRAPH,
	EVENT, /* a function of another stream, and an event */
	WAYS
};
/* Work that uses the memory. TO_HOST and the values before it read it. */
enum use {
	COPY,
	HOST_TO_DEVICE,
	COPY_2D,
	COPY_3D,
	TO_ARRAY,
	BATCH,
	BATCH_DURING_CALL,
	TO_MANAGED,
	PREFETCH,
	AFTER_KERNEL,
	TO_PAGEABLE,
	TO_HOST,
	COPY_TO,
	PAGEABLE_TO,
	SHORT_TO,
	PINNED_TO,
	FILL,
	USES
};

static unsigned char *managed, *other_managed, *device, *pinned, *pageable;
static cudaArray_t array;
static cudaStream_t stream, other;
static bool is_local; /* the GPU is local */
static int failures;

static __global__ void
add(unsigned char *bytes, size_t count)
{
	for (size_t i = threadIdx.x; i < count; i += blockDim.x)
		bytes[i]++;
}

/* Returns the index of the first byte that differs, or size if there is none. */
static size_t
find_other(const unsigned char *bytes, int value)
{
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] != value)
			return i;
	}
	return size;
}

static void
require_all(const unsigned char *bytes, int value, const char *what, int use, int state, int way)
{
	size_t at = find_other(bytes, value);

	if (at == size)
		return;
	printf("%s, use %d, state %d, way %d: byte %zu is %d, not %d\n", what, use, state, way, at,
	       bytes[at], value);
	failures++;
}

static void
create(enum state state, int value)
{
	CHECK(cudaMallocManaged(&managed, size));
	memset(managed, state == HERE ? value : value - 1, size);
	if (state != HERE) {
		add<<<1, 64>>>(managed, size);
		CHECK(cudaDeviceSynchronize());
	}
	if (state == BOTH)
		REQUIRE(find_other(managed, value) == size);
}

/* A host function that finds the previous bytes and writes others. */
struct step {
	int before, after;
	size_t wrong;
};

static void CUDART_CB
step_run(void *data)
{
	struct step *step = (struct step *)data;

	step->wrong += find_other(managed, step->before) != size;
	memset(managed, step->after, size);
}

static void CUDART_CB
step_call(cudaStream_t stream, cudaError_t status, void *data)
{
	step_run(data);
}

static void
queue_graph(struct step *step)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	CHECK(cudaLaunchHostFunc(stream, step_run, step));
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

static void
queue_step(enum way way, struct step *step)
{
	cudaEvent_t event;

	switch (way) {
	case CALLBACK:
		CHECK(cudaStreamAddCallback(stream, step_call, step, 0));
		break;
	case GRAPH:
		queue_graph(step);
		break;
	case EVENT:
		CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
		CHECK(cudaLaunchHostFunc(other, step_run, step));
		CHECK(cudaEventRecord(event, other));
		CHECK(cudaStreamWaitEvent(stream, event, 0));
		CHECK(cudaEventDestroy(event));
		break;
	default:
		CHECK(cudaLaunchHostFunc(stream, step_run, step));
	}
}

static void
queue_3d()
{
	cudaMemcpy3DParms params = {};

	params.srcPtr = make_cudaPitchedPtr(managed, width, width, rows / 4);
	params.dstPtr = make_cudaPitchedPtr(device, width, width, rows / 4);
	params.extent = make_cudaExtent(width, rows / 4, 4);
	params.kind = cudaMemcpyDefault;
	CHECK(cudaMemcpy3DAsync(&params, stream));
}

static void
queue_batch(cudaMemcpySrcAccessOrder order)
{
	void *to[] = { device, device + size / 2 };
	const void *from[] = { managed, managed + size / 2 };
	size_t sizes[] = { size / 2, size / 2 }, begin = 0;
	cudaMemcpyAttributes attributes = {};

	attributes.srcAccessOrder = order;
	CHECK(cudaMemcpyBatchAsync((const void **)to, (const void **)from, sizes, 2, &attributes,
				   &begin, 1, stream));
}

static void
prefetch()
{
	cudaMemLocation location = {};

	location.type = cudaMemLocationTypeDevice;
	CHECK(cudaMemPrefetchAsync(managed, size, location, 0, stream));
}

/* Returns whether the bytes are in `device` afterwards; otherwise they are in `managed`. */
static bool
queue_use(enum use use, int value)
{
	switch (use) {
	case COPY:
		CHECK(cudaMemcpyAsync(device, managed, size, cudaMemcpyDefault, stream));
		return true;
	case HOST_TO_DEVICE:
		CHECK(cudaMemcpyAsync(device, managed, size, cudaMemcpyHostToDevice, stream));
		return true;
	case COPY_2D:
		CHECK(cudaMemcpy2DAsync(device, width, managed, width, width, rows,
					cudaMemcpyDefault, stream));
		return true;
	case COPY_3D:
		queue_3d();
		return true;
	case TO_ARRAY:
		CHECK(cudaMemcpy2DToArrayAsync(array, 0, 0, managed, width, width, rows,
					       cudaMemcpyDefault, stream));
		CHECK(cudaMemcpy2DFromArrayAsync(device, width, array, 0, 0, width, rows,
						 cudaMemcpyDefault, stream));
		return true;
	case BATCH:
		queue_batch(cudaMemcpySrcAccessOrderStream);
		return true;
	case BATCH_DURING_CALL:
		queue_batch(cudaMemcpySrcAccessOrderDuringApiCall);
		return true;
	case TO_MANAGED:
		CHECK(cudaMemcpyAsync(other_managed, managed, size, cudaMemcpyDefault, stream));
		CHECK(cudaMemcpyAsync(device, other_managed, size, cudaMemcpyDefault, stream));
		return true;
	case PREFETCH:
		prefetch();
		CHECK(cudaMemcpyAsync(device, managed, size, cudaMemcpyDefault, stream));
		return true;
	case AFTER_KERNEL:
		add<<<1, 1, 0, other>>>(device, 0);
		CHECK(cudaMemcpyAsync(device, managed, size, cudaMemcpyDefault, stream));
		return true;
	case TO_PAGEABLE:
		CHECK(cudaMemcpyAsync(pageable, managed, size, cudaMemcpyDeviceToHost, stream));
		CHECK(cudaMemcpyAsync(device, pageable, size, cudaMemcpyHostToDevice, stream));
		return true;
	case TO_HOST:
		CHECK(cudaMemcpyAsync(pinned, managed, size, cudaMemcpyDefault, stream));
		CHECK(cudaMemcpyAsync(device, pinned, size, cudaMemcpyDefault, stream));
		return true;
	case COPY_TO:
		CHECK(cudaMemcpyAsync(managed, device, size, cudaMemcpyDefault, stream));
		return false;
	case PAGEABLE_TO:
		memset(pageable, value, size);
		CHECK(cudaMemcpyAsync(managed, pageable, size, cudaMemcpyDefault, stream));
		memset(pageable, 0, size);
		return false;
	case SHORT_TO:
		memset(pageable, value, size);
		for (size_t at = 0; at < size; at += 8192)
			CHECK(cudaMemcpyAsync(managed + at, pageable + at, 8192,
					      cudaMemcpyHostToDevice, stream));
		memset(pageable, 0, size);
		return false;
	case PINNED_TO:
		memset(pinned, value, size);
		CHECK(cudaMemcpyAsync(managed, pinned, size, cudaMemcpyHostToDevice, stream));
		return false;
	default:
		CHECK(cudaMemsetAsync(managed, value, size, stream));
		return false;
	}
}

static void
check_use(enum use use, int value, bool in_device, enum state state, int way)
{
	std::vector<unsigned char> found(size);

	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpy(found.data(), in_device ? device : managed, size, cudaMemcpyDefault));
	require_all(found.data(), value, "copied", use, state, way);
	/* Contents as the program sees them, and as a kernel sees them. */
	require_all(managed, value, "here", use, state, way);
	add<<<1, 64>>>(managed, size);
	CHECK(cudaDeviceSynchronize());
	require_all(managed, value + 1, "after a kernel", use, state, way);
}

/* These calls wait for the stream. With a local GPU, calls with pageable memory may wait, too, and
 * a copy that uses managed memory as host memory. */
static bool
is_waiting(enum use use)
{
	return use == TO_PAGEABLE || use == BATCH_DURING_CALL ||
	       (is_local && (use == PAGEABLE_TO || use == SHORT_TO || use == HOST_TO_DEVICE));
}

static void
after_functions(enum use use, enum state state, enum way way)
{
	struct step step = { 10, 20, 0 };
	bool is_read = use <= TO_HOST, in_device;

	create(state, 10);
	CHECK(cudaMemset(device, is_read ? 0 : 30, size));
	CHECK(cudaDeviceSynchronize());
	queue_step(way, &step);
	in_device = queue_use(use, 30);
	check_use(use, is_read ? 20 : 30, in_device, state, way);
	REQUIRE(step.wrong == 0);
	CHECK(cudaFree(managed));
}

/* A mapped word that a stream waits for. */
static unsigned int *word;
static CUresult (*wait_value)(CUstream, CUdeviceptr, cuuint32_t, unsigned int);
static CUresult (*write_value)(CUstream, CUdeviceptr, cuuint32_t, unsigned int);

static void
find_driver(const char *name, void *function)
{
	cudaDriverEntryPointQueryResult found;

	CHECK(cudaGetDriverEntryPointByVersion(name, (void **)function, 12000, cudaEnableDefault,
					       &found));
}

static CUdeviceptr
get_address(void *memory)
{
	return (CUdeviceptr)(uintptr_t)memory;
}

static void
queue_wait(cudaStream_t stream, void *at, unsigned int value)
{
	REQUIRE(wait_value(stream, get_address(at), value, CU_STREAM_WAIT_VALUE_EQ) ==
		CUDA_SUCCESS);
}

static void
release(unsigned int value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* The program itself fills the memory while the stream waits. */
static void
after_values(enum use use, bool at_once)
{
	static unsigned int value;
	bool is_read = use <= TO_HOST, in_device;

	if (is_waiting(use))
		return;
	create(HERE, 10);
	CHECK(cudaMemset(device, is_read ? 0 : 30, size));
	CHECK(cudaDeviceSynchronize());
	queue_wait(stream, word, ++value);
	/* The launch of a kernel transfers all managed memory. */
	in_device = queue_use(use == AFTER_KERNEL ? COPY : use, 30);
	if (!at_once)
		usleep(20000);
	memset(managed, 20, size);
	release(value);
	check_use(use, is_read ? 20 : 30, in_device, HERE, -1);
	CHECK(cudaFree(managed));
}

/* Synchronous calls run after the functions of streams that block the default stream. */
static void
synchronous_calls(enum state state)
{
	cudaStream_t blocking;
	struct step steps[] = { { 10, 20, 0 }, { 20, 30, 0 }, { 30, 40, 0 }, { 50, 60, 0 } };

	create(state, 10);
	CHECK(cudaStreamCreate(&blocking));
	CHECK(cudaLaunchHostFunc(blocking, step_run, &steps[0]));
	CHECK(cudaMemcpy(device, managed, size, cudaMemcpyDefault));
	CHECK(cudaLaunchHostFunc(blocking, step_run, &steps[1]));
	CHECK(cudaMemcpy(pageable, managed, size, cudaMemcpyDefault));
	require_all(pageable, 30, "synchronously to the host", -1, state, -1);
	CHECK(cudaMemcpy(pageable, device, size, cudaMemcpyDefault));
	require_all(pageable, 20, "synchronously", -1, state, -1);
	CHECK(cudaLaunchHostFunc(blocking, step_run, &steps[2]));
	CHECK(cudaMemset(managed, 50, size));
	CHECK(cudaLaunchHostFunc(blocking, step_run, &steps[3]));
	CHECK(cudaMemcpy(managed, pageable, size, cudaMemcpyDefault));
	require_all(managed, 20, "synchronously to managed memory", -1, state, -1);
	for (const struct step &step : steps)
		REQUIRE(step.wrong == 0);
	CHECK(cudaStreamDestroy(blocking));
	CHECK(cudaFree(managed));
}

static std::atomic<int> released;

static void
await_release(int value)
{
	for (int ms = 0; released < value; ms++) {
		/* With a local GPU, the call in progress may wait for this function. */
		REQUIRE(!is_local || ms < 10000);
		usleep(1000);
	}
}

/* A function that releases another stream before it returns. */
static void CUDART_CB
write_and_stay(void *data)
{
	unsigned int value = *(unsigned int *)data;

	memset(managed, 20, size);
	release(value);
	await_release(1);
}

static void
during_functions(enum use use, enum state state)
{
	static unsigned int value = 1000;
	bool is_read = use <= TO_HOST, in_device;

	if (is_waiting(use) || use == AFTER_KERNEL)
		return;
	/* With a local GPU, copies to managed memory wait for the function, on any stream
	 * (H100, driver 580). */
	if (is_local && !is_read)
		return;
	create(state, 10);
	CHECK(cudaMemset(device, is_read ? 0 : 30, size));
	CHECK(cudaDeviceSynchronize());
	released = 0;
	value++;
	CHECK(cudaLaunchHostFunc(other, write_and_stay, &value));
	queue_wait(stream, word, value);
	in_device = queue_use(use, 30);
	CHECK(cudaStreamSynchronize(stream));
	released = 1;
	CHECK(cudaStreamSynchronize(other));
	check_use(use, is_read ? 20 : 30, in_device, state, -2);
	CHECK(cudaFree(managed));
}

static void CUDART_CB
write_word(void *data)
{
	*(unsigned int *)managed = *(unsigned int *)data;
}

/* Words of managed memory that a stream waits for and writes. */
static void
words()
{
	unsigned int values[] = { 7, 9 };

	if (is_local)
		return;
	create(HERE, 1);
	CHECK(cudaLaunchHostFunc(stream, write_word, &values[0]));
	queue_wait(stream, managed, 7);
	CHECK(cudaLaunchHostFunc(stream, write_word, &values[1]));
	REQUIRE(write_value(stream, get_address(managed), 8, 0) == CUDA_SUCCESS);
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(*(unsigned int *)managed == 8);
	CHECK(cudaFree(managed));
}

static void CUDART_CB
await_caller(void *data)
{
	await_release(*(int *)data);
}

/* Work that is queued after a function does not wait for it in the caller. */
static void
calls_do_not_wait()
{
	int value = 1;

	create(HERE, 10);
	CHECK(cudaMemset(device, 0, size));
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < 3; i++) {
		released = 0;
		CHECK(cudaLaunchHostFunc(stream, await_caller, &value));
		for (int use = 0; use < USES; use++) {
			if (!is_waiting((enum use)use))
				(void)queue_use((enum use)use, 30);
		}
		/* Fewer than the queue of a local GPU has space for. */
		for (int call = 0; call < 500; call++)
			CHECK(cudaMemcpyAsync(device + call, managed + call, 1, cudaMemcpyDefault,
					      stream));
		EXPECT(cudaErrorNotReady, cudaStreamQuery(stream));
		released = 1;
		CHECK(cudaStreamSynchronize(stream));
		require_all(managed, 30, "queued after a function", -1, HERE, i);
	}
	CHECK(cudaFree(managed));
}

/* A synchronous copy waits for a function, which waits for a thread that launches a kernel. */
static void
waiting_copy_lets_others_launch()
{
	int value = 1;
	cudaStream_t blocking;

	/* With a local GPU, the launch may wait for the copy. */
	if (is_local)
		return;
	create(HERE, 10);
	CHECK(cudaStreamCreate(&blocking));
	memset(pageable, 30, size);
	released = 0;
	CHECK(cudaLaunchHostFunc(blocking, await_caller, &value));
	std::thread launching([] {
		usleep(20000);
		add<<<1, 1, 0, other>>>(device, 0);
		CHECK(cudaGetLastError());
		released = 1;
	});
	CHECK(cudaMemcpy(managed, pageable, size, cudaMemcpyHostToDevice));
	launching.join();
	require_all(managed, 30, "copied beside a launch", -1, HERE, -1);
	CHECK(cudaStreamDestroy(blocking));
	CHECK(cudaFree(managed));
}

static void
open_all()
{
	CHECK(cudaMalloc(&device, size));
	CHECK(cudaMallocManaged(&other_managed, size));
	CHECK(cudaHostAlloc(&pinned, size, cudaHostAllocDefault));
	CHECK(cudaHostAlloc(&word, sizeof(*word), cudaHostAllocMapped));
	*word = 0;
	pageable = (unsigned char *)malloc(size);
	cudaChannelFormatDesc bytes = cudaCreateChannelDesc<unsigned char>();
	CHECK(cudaMallocArray(&array, &bytes, width, rows));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	is_local = app_is_local();
	find_driver("cuStreamWaitValue32", &wait_value);
	find_driver("cuStreamWriteValue32", &write_value);
}

static void
close_all()
{
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaStreamDestroy(other));
	CHECK(cudaFreeArray(array));
	CHECK(cudaFree(device));
	CHECK(cudaFree(other_managed));
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFreeHost(word));
	free(pageable);
}

static __global__ void
await_word(volatile unsigned int *word)
{
	while (*word == 0)
		app_rest(100000);
}

/* The other process, whose stream records the event when the first process requests it. */
static int
run_other_process(int in, int out)
{
	cudaEvent_t event;
	cudaIpcEventHandle_t handle;
	char byte;

	CHECK(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
	CHECK(cudaIpcGetEventHandle(&handle, event));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaHostAlloc(&word, sizeof(*word), cudaHostAllocMapped));
	*word = 0;
	await_word<<<1, 1, 0, stream>>>(word);
	CHECK(cudaEventRecord(event, stream));
	REQUIRE(write(out, &handle, sizeof(handle)) == sizeof(handle));
	REQUIRE(read(in, &byte, 1) == 1);
	release(1);
	CHECK(cudaStreamSynchronize(stream));
	/* The first process keeps it open until then. */
	REQUIRE(read(in, &byte, 1) == 1);
	return 0;
}

static void
after_other_process(int in, int out)
{
	cudaIpcEventHandle_t handle;
	cudaEvent_t event;
	bool in_device;

	REQUIRE(read(in, &handle, sizeof(handle)) == sizeof(handle));
	CHECK(cudaIpcOpenEventHandle(&event, handle));
	create(HERE, 10);
	CHECK(cudaMemset(device, 0, size));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaStreamWaitEvent(stream, event, 0));
	in_device = queue_use(COPY, 30);
	memset(managed, 20, size);
	REQUIRE(write(out, "x", 1) == 1);
	check_use(COPY, 20, in_device, HERE, -3);
	CHECK(cudaEventDestroy(event));
	REQUIRE(write(out, "x", 1) == 1);
	CHECK(cudaFree(managed));
}

int
main()
{
	int there[2], back[2], status;
	pid_t child;

	REQUIRE(pipe(there) == 0 && pipe(back) == 0);
	child = fork();
	REQUIRE(child >= 0);
	/* If a process ends early, the other one reads the end of the file. */
	if (child == 0) {
		(void)close(there[1]);
		(void)close(back[0]);
		return run_other_process(there[0], back[1]);
	}
	(void)close(there[0]);
	(void)close(back[1]);
	open_all();
	after_other_process(back[0], there[1]);
	REQUIRE(waitpid(child, &status, 0) == child);
	REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	for (int use = 0; use < USES; use++) {
		for (int state = 0; state < STATES; state++) {
			for (int way = 0; way < WAYS; way++)
				after_functions((enum use)use, (enum state)state, (enum way)way);
			during_functions((enum use)use, (enum state)state);
		}
		after_values((enum use)use, true);
		after_values((enum use)use, false);
	}
	for (int state = 0; state < STATES; state++)
		synchronous_calls((enum state)state);
	words();
	calls_do_not_wait();
	waiting_copy_lets_others_launch();
	close_all();
	REQUIRE(failures == 0);
	return app_ok("managedorder");
}
