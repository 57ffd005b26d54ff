/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools of host memory and of managed memory: stream order, and accesses from both sides. */
#include "app.h"

#include <atomic>
#include <cuda.h>
#include <unistd.h>

#define DRIVER(name) reinterpret_cast<decltype(&name)>(entry(#name))
#define COUNT 3000

static void *
entry(const char *name)
{
	cudaDriverEntryPointQueryResult found;
	void *function = nullptr;

	CHECK(cudaGetDriverEntryPointByVersion(name, &function, 13000, cudaEnableDefault, &found));
	REQUIRE(function);
	return function;
}

static bool
has(CUdevice_attribute attribute)
{
	int value = 0;

	REQUIRE(DRIVER(cuDeviceGetAttribute)(&value, attribute, 0) == CUDA_SUCCESS);
	return value != 0;
}

static __global__ void
add(int *data, int count, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		data[i] += value;
}

static __global__ void
set_late(int *data, int count, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	for (long long start = clock64(); clock64() - start < 100000;)
		;
	if (i < count)
		data[i] = value + i;
}

static cudaMemPool_t
make(cudaMemAllocationType type, cudaMemLocationType where, int id)
{
	cudaMemPoolProps props = {};
	cudaMemPool_t pool;

	props.allocType = type;
	props.location.type = where;
	props.location.id = id;
	CHECK(cudaMemPoolCreate(&pool, &props));
	return pool;
}

static unsigned long long
get(cudaMemPool_t pool, cudaMemPoolAttr attribute)
{
	unsigned long long value = 0;

	CHECK(cudaMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

static const char *
access(cudaMemPool_t pool, cudaMemLocationType type)
{
	cudaMemLocation location = {};
	cudaMemAccessFlags flags;

	location.type = type;
	CHECK(cudaMemPoolGetAccess(&flags, pool, &location));
	return flags == cudaMemAccessFlagsProtReadWrite ? "may" : "may not";
}

static void
give_device(cudaMemPool_t pool)
{
	cudaMemAccessDesc desc = {};

	desc.location.type = cudaMemLocationTypeDevice;
	desc.flags = cudaMemAccessFlagsProtReadWrite;
	CHECK(cudaMemPoolSetAccess(pool, &desc, 1));
}

/* The program and a kernel access the memory alternately. */
static void
alternate(cudaMemPool_t pool, cudaStream_t stream)
{
	int *memory, *device = app_malloc<int>(COUNT);
	std::vector<int> copy(COUNT);

	CHECK(cudaMallocFromPoolAsync(&memory, COUNT * sizeof(int), pool, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < COUNT; i++)
			memory[i] = i * round;
		add<<<(COUNT + 255) / 256, 256, 0, stream>>>(memory, COUNT, 7);
		CHECK(cudaMemcpyAsync(device, memory, COUNT * sizeof(int), cudaMemcpyDefault,
				      stream));
		CHECK(cudaMemcpyAsync(copy.data(), device, COUNT * sizeof(int), cudaMemcpyDefault,
				      stream));
		CHECK(cudaStreamSynchronize(stream));
		for (int i = 0; i < COUNT; i++)
			REQUIRE(memory[i] == i * round + 7 && copy[i] == memory[i]);
	}
	REQUIRE(get(pool, cudaMemPoolAttrUsedMemCurrent) >= COUNT * sizeof(int));
	REQUIRE(get(pool, cudaMemPoolAttrReservedMemCurrent) >= COUNT * sizeof(int));
	CHECK(cudaFreeAsync(memory, stream));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(get(pool, cudaMemPoolAttrUsedMemCurrent) == 0);
	CHECK(cudaMemPoolTrimTo(pool, 0));
	REQUIRE(get(pool, cudaMemPoolAttrReservedMemCurrent) == 0);
	CHECK(cudaFree(device));
}

struct check {
	const int *memory;
	int value, wrong;
};

static void CUDART_CB
run_check(void *arg)
{
	check *what = (check *)arg;

	for (int i = 0; i < COUNT; i++)
		what->wrong += what->memory[i] != what->value + i;
}

/* Memory that is freed after a kernel and a host function stays valid for them, and no call
 * waits. */
static void
free_in_order(cudaMemPool_t pool, cudaStream_t stream, bool destroy)
{
	std::vector<check> checks(12);

	for (int round = 0; round < 12; round++) {
		int *memory;

		CHECK(cudaMallocFromPoolAsync(&memory, COUNT * sizeof(int), pool, stream));
		set_late<<<(COUNT + 255) / 256, 256, 0, stream>>>(memory, COUNT, round);
		checks[round] = { memory, round, 0 };
		CHECK(cudaLaunchHostFunc(stream, run_check, &checks[round]));
		CHECK(cudaFreeAsync(memory, stream));
	}
	if (destroy)
		CHECK(cudaMemPoolDestroy(pool));
	CHECK(cudaStreamSynchronize(stream));
	for (const check &one : checks)
		REQUIRE(one.wrong == 0);
}

/* Uses of the pool by the program while a host function waits for it to continue. */
enum meanwhile {
	ALLOCATE,
	ALLOCATE_ELSEWHERE,
	TRIM,
	DESTROY,
	MEANWHILE_COUNT
};

static std::atomic<bool> released;

static void CUDART_CB
run_check_when_released(void *arg)
{
	while (!released)
		(void)usleep(20);
	run_check(arg);
}

static void CUDART_CB
run_check_when_released_callback(cudaStream_t stream, cudaError_t status, void *arg)
{
	run_check_when_released(arg);
}

static void
launch_check(struct check *check, int way, cudaStream_t stream)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	if (way == 0) {
		CHECK(cudaLaunchHostFunc(stream, run_check_when_released, check));
		return;
	}
	if (way == 1) {
		CHECK(cudaStreamAddCallback(stream, run_check_when_released_callback, check, 0));
		return;
	}
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	CHECK(cudaLaunchHostFunc(stream, run_check_when_released, check));
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

/* The only work that uses freed memory is a host function, launched in all possible ways. */
static void
free_after_function(cudaMemPool_t pool, enum meanwhile meanwhile, int way, cudaStream_t stream)
{
	const size_t size = COUNT * sizeof(int);
	struct check what = { nullptr, way, 0 };
	int *memory, *again = nullptr;
	cudaStream_t other, next = stream;

	CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CHECK(cudaMallocFromPoolAsync(&memory, size, pool, stream));
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < COUNT; i++)
		memory[i] = way + i;
	what.memory = memory;
	released = false;
	launch_check(&what, way, stream);
	CHECK(cudaFreeAsync(memory, stream));
	if (meanwhile == ALLOCATE_ELSEWHERE)
		next = other;
	switch (meanwhile) {
	case ALLOCATE_ELSEWHERE:
	case ALLOCATE:
		CHECK(cudaMallocFromPoolAsync(&again, size, pool, next));
		CHECK(cudaMemsetAsync(again, 0xff, size, next));
		CHECK(cudaFreeAsync(again, next));
		break;
	case TRIM:
		CHECK(cudaMemPoolTrimTo(pool, 0));
		break;
	default:
		CHECK(cudaMemPoolDestroy(pool));
	}
	if (next == other)
		CHECK(cudaStreamSynchronize(other));
	released = true;
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(what.wrong == 0);
	CHECK(cudaStreamDestroy(other));
}

static void
free_after_functions(cudaMemAllocationType type, cudaMemLocationType where, cudaStream_t stream)
{
	for (int meanwhile = 0; meanwhile < MEANWHILE_COUNT; meanwhile++) {
		for (int way = 0; way < 3; way++) {
			cudaMemPool_t pool = make(type, where, 0);

			if (type == cudaMemAllocationTypePinned)
				give_device(pool);
			free_after_function(pool, (enum meanwhile)meanwhile, way, stream);
			if (meanwhile != DESTROY)
				CHECK(cudaMemPoolDestroy(pool));
		}
	}
}

static void
use_host(cudaMemLocationType where, cudaStream_t stream)
{
	cudaMemPool_t pool = make(cudaMemAllocationTypePinned, where, 0), of_pointer;
	cudaPointerAttributes attributes;
	void *memory;

	printf("host %s touch it, device %s\n", access(pool, where),
	       access(pool, cudaMemLocationTypeDevice));
	give_device(pool);
	printf("device %s\n", access(pool, cudaMemLocationTypeDevice));
	CHECK(cudaMallocFromPoolAsync(&memory, 100, pool, stream));
	CHECK(cudaPointerGetAttributes(&attributes, memory));
	REQUIRE(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == memory &&
		attributes.devicePointer == memory);
	REQUIRE(DRIVER(cuPointerGetAttribute)(&of_pointer, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
					      (CUdeviceptr)memory) == CUDA_SUCCESS);
	REQUIRE(of_pointer == pool);
	CHECK(cudaFreeAsync(memory, stream));
	CHECK(cudaStreamSynchronize(stream));
	alternate(pool, stream);
	free_in_order(pool, stream, true);
	free_after_functions(cudaMemAllocationTypePinned, where, stream);
}

static void
use_managed(cudaMemLocationType where, cudaStream_t stream)
{
	cudaMemPool_t pool = make(cudaMemAllocationTypeManaged, where, 0);
	int *memory, managed = 0;

	CHECK(cudaMallocFromPoolAsync(&memory, COUNT * sizeof(int), pool, stream));
	REQUIRE(DRIVER(cuPointerGetAttribute)(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED,
					      (CUdeviceptr)memory) == CUDA_SUCCESS);
	REQUIRE(managed == 1);
	CHECK(cudaFreeAsync(memory, stream));
	CHECK(cudaStreamSynchronize(stream));
	alternate(pool, stream);
	free_in_order(pool, stream, false);
	CHECK(cudaMemPoolDestroy(pool));
	free_after_functions(cudaMemAllocationTypeManaged, where, stream);
}

/* Each location has a default pool, and another pool can be set. */
static void
use_defaults(void)
{
	cudaMemLocation host = {}, node = {};
	cudaMemPool_t standard, same, other, pool;

	host.type = cudaMemLocationTypeHost;
	node.type = cudaMemLocationTypeHostNuma;
	CHECK(cudaMemGetDefaultMemPool(&standard, &host, cudaMemAllocationTypePinned));
	CHECK(cudaMemGetMemPool(&same, &host, cudaMemAllocationTypePinned));
	CHECK(cudaMemGetDefaultMemPool(&other, &node, cudaMemAllocationTypePinned));
	REQUIRE(standard == same && other != standard);
	CHECK(cudaMemGetDefaultMemPool(&other, &host, cudaMemAllocationTypeManaged));
	REQUIRE(other != standard);
	pool = make(cudaMemAllocationTypePinned, cudaMemLocationTypeHost, 0);
	CHECK(cudaMemSetMemPool(&host, cudaMemAllocationTypePinned, pool));
	CHECK(cudaMemGetMemPool(&same, &host, cudaMemAllocationTypePinned));
	REQUIRE(same == pool);
	CHECK(cudaMemGetDefaultMemPool(&same, &host, cudaMemAllocationTypePinned));
	REQUIRE(same == standard);
	CHECK(cudaMemSetMemPool(&host, cudaMemAllocationTypePinned, standard));
	CHECK(cudaMemPoolDestroy(pool));
}

static void
print_result(const char *what, cudaError_t error)
{
	printf("%s: %s\n", what, cudaGetErrorName(error));
	(void)cudaGetLastError();
}

static void
query_wrongly(void)
{
	cudaMemPoolProps props = {};
	cudaMemLocation location = {};
	cudaMemPool_t pool, device;

	props.allocType = cudaMemAllocationTypePinned;
	print_result("nowhere", cudaMemPoolCreate(&pool, &props));
	props.location.type = cudaMemLocationTypeHostNuma;
	props.location.id = -1;
	print_result("node -1", cudaMemPoolCreate(&pool, &props));
	props.location.id = 0;
	props.location.type = cudaMemLocationTypeHostNumaCurrent;
	print_result("the current node", cudaMemPoolCreate(&pool, &props));
	props.location.type = cudaMemLocationTypeHost;
	props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
	print_result("exported from the host", cudaMemPoolCreate(&pool, &props));
	location.type = cudaMemLocationTypeHost;
	CHECK(cudaDeviceGetDefaultMemPool(&device, 0));
	print_result("a device's pool for the host",
		     cudaMemSetMemPool(&location, cudaMemAllocationTypePinned, device));
	CHECK(cudaMemGetDefaultMemPool(&pool, &location, cudaMemAllocationTypePinned));
	print_result("a default pool destroyed", cudaMemPoolDestroy(pool));
	print_result("a host's pool for the device", cudaDeviceSetMemPool(0, pool));
}

int
main()
{
	cudaStream_t stream;

	CHECK(cudaFree(nullptr));
	if (!has(CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED) ||
	    !has(CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED)) {
		printf("hostpools: not supported\n");
		return 77;
	}
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	use_host(cudaMemLocationTypeHost, stream);
	use_host(cudaMemLocationTypeHostNuma, stream);
	use_managed(cudaMemLocationTypeNone, stream);
	use_managed(cudaMemLocationTypeDevice, stream);
	use_managed(cudaMemLocationTypeHost, stream);
	use_defaults();
	query_wrongly();
	CHECK(cudaStreamDestroy(stream));
	return app_ok("hostpools");
}
