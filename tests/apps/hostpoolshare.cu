/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of host memory that one process exports to another: kernels, copies and the hosts of both
 * use the same memory, ordered by events and by messages. */
#include "peer_app.h"

#include <atomic>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROUNDS 3

static const cudaMemAllocationHandleType type = cudaMemHandleTypePosixFileDescriptor;
static const size_t large = (2 << 20) / sizeof(int) + 7, small = 1000;
static cudaStream_t stream;

static __global__ void
fill(int *data, size_t count, int first)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
	     i += gridDim.x * blockDim.x)
		data[i] = first + (int)i;
}

static __global__ void
add(int *data, size_t count, int value)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
	     i += gridDim.x * blockDim.x)
		data[i] += value;
}

static void
write_on_host(int *data, size_t count, int first)
{
	for (size_t i = 0; i < count; i++)
		data[i] = first + (int)i;
}

static void
expect(const int *data, size_t count, int first, int line)
{
	for (size_t i = 0; i < count; i++) {
		if (data[i] == first + (int)i)
			continue;
		printf("line %d: word %zu is %d, not %d\n", line, i, data[i], first + (int)i);
		exit(1);
	}
}

#define EXPECT_WORDS(data, count, first) expect(data, count, first, __LINE__)

static cudaError_t
create(cudaMemPool_t *pool, cudaMemLocationType where, int types)
{
	cudaMemPoolProps props = {};

	props.allocType = cudaMemAllocationTypePinned;
	props.handleTypes = (cudaMemAllocationHandleType)types;
	props.location.type = where;
	return cudaMemPoolCreate(pool, &props);
}

static void
give_device(cudaMemPool_t pool)
{
	cudaMemAccessDesc desc = {};

	desc.location.type = cudaMemLocationTypeDevice;
	desc.flags = cudaMemAccessFlagsProtReadWrite;
	CHECK(cudaMemPoolSetAccess(pool, &desc, 1));
}

static int *
allocate(cudaMemPool_t pool, size_t count)
{
	void *data;

	CHECK(cudaMallocFromPoolAsync(&data, count * sizeof(int), pool, stream));
	CHECK(cudaStreamSynchronize(stream));
	return (int *)data;
}

static void
put_pointer(int *data)
{
	cudaMemPoolPtrExportData exported;

	CHECK(cudaMemPoolExportPointer(&exported, data));
	app_put(&exported, sizeof(exported));
}

static void
print_result(const char *what, cudaError_t error)
{
	printf("%s: %s\n", what, cudaGetErrorName(error));
	(void)cudaGetLastError();
}

static void
refuse()
{
	cudaMemPool_t plain, pool;
	cudaMemPoolPtrExportData exported;
	int *data;
	int fd = -1;

	print_result("the host", create(&pool, cudaMemLocationTypeHost, type));
	print_result("the current node", create(&pool, cudaMemLocationTypeHostNumaCurrent, type));
	CHECK(create(&plain, cudaMemLocationTypeHostNuma, cudaMemHandleTypeNone));
	print_result("a pool for this process",
		     cudaMemPoolExportToShareableHandle(&fd, plain, type, 0));
	CHECK(cudaMemPoolDestroy(plain));
	CHECK(create(&pool, cudaMemLocationTypeHostNuma, type));
	data = allocate(pool, small);
	print_result("a pointer before its pool", cudaMemPoolExportPointer(&exported, data));
	CHECK(cudaMemPoolExportToShareableHandle(&fd, pool, type, 0));
	print_result("a pointer inside", cudaMemPoolExportPointer(&exported, data + 1));
	CHECK(cudaMemPoolExportPointer(&exported, data));
	REQUIRE(cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypeFabric, 0) !=
		cudaSuccess);
	(void)cudaGetLastError();
	close(fd);
	CHECK(cudaFreeAsync(data, stream));
	CHECK(cudaMemPoolDestroy(pool));
	CHECK(cudaStreamSynchronize(stream));
}

/* Descriptors of other files are rejected. */
static void
refuse_files()
{
	static const char *names[] = { "gpupool-host-pool", "gpupool-host-pool", "other",
				       "gpupool-host-memory" };
	static const int seals[] = { 0, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
				     F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };
	cudaMemPool_t none;
	int ends[2];

	for (int i = 0; i < 4; i++) {
		int fd = memfd_create(names[i], MFD_CLOEXEC | MFD_ALLOW_SEALING);

		REQUIRE(fd >= 0 && ftruncate(fd, 64 << 20) == 0);
		REQUIRE(fcntl(fd, F_ADD_SEALS, seals[i]) == 0);
		REQUIRE(cudaMemPoolImportFromShareableHandle(&none, (void *)(intptr_t)fd, type,
							     0) != cudaSuccess);
		close(fd);
	}
	REQUIRE(pipe(ends) == 0);
	for (int fd : { ends[0], ends[1], -1, 100000 })
		REQUIRE(cudaMemPoolImportFromShareableHandle(&none, (void *)(intptr_t)fd, type,
							     0) != cudaSuccess);
	close(ends[0]);
	close(ends[1]);
	(void)cudaGetLastError();
}

/* Export data of a pointer that refers outside of the pool, with each 8 bytes changed in turn. */
static void
refuse_bytes(cudaMemPool_t pool, const cudaMemPoolPtrExportData *exported)
{
	static const unsigned long long values[] = { 0,          1,          4096,  2 << 20,
						     1ull << 40, 1ull << 62, ~0ull, ~0ull << 21 };

	/* The export data has gpupool's format. */
	if (memcmp(exported, "gpIP", 4) != 0)
		return;
	for (size_t at = 0; at + 8 <= sizeof(*exported); at += 8) {
		for (unsigned long long value : values) {
			cudaMemPoolPtrExportData changed = *exported;
			void *data = nullptr;

			memcpy((char *)&changed + at, &value, sizeof(value));
			/* If the import succeeds, all of the memory can be accessed. */
			if (memcmp(&changed, exported, sizeof(changed)) == 0 ||
			    cudaMemPoolImportPointer(&data, pool, &changed) != cudaSuccess)
				continue;
			REQUIRE(data);
			(void)*(volatile char *)data;
			CHECK(cudaFree(data));
		}
	}
	(void)cudaGetLastError();
}

static std::atomic<bool> released;

static void CUDART_CB
hold(void *)
{
	while (!released)
		usleep(100);
}

static cudaEvent_t
create_event(cudaIpcEventHandle_t *handle)
{
	cudaEvent_t event;

	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
	CHECK(cudaIpcGetEventHandle(handle, event));
	return event;
}

/* Work of the other process that waits for an event is queued before the preceding kernel runs, and
 * finds what this kernel wrote. */
static void
produce_events(int *data)
{
	cudaIpcEventHandle_t handle;
	cudaEvent_t ready = create_event(&handle), back;

	app_put(&handle, sizeof(handle));
	app_get(&handle, sizeof(handle));
	CHECK(cudaIpcOpenEventHandle(&back, handle));
	for (int round = 1; round <= ROUNDS; round++) {
		released = false;
		CHECK(cudaLaunchHostFunc(stream, hold, nullptr));
		fill<<<32, 256, 0, stream>>>(data, large, round * 1000);
		CHECK(cudaEventRecord(ready, stream));
		app_nudge();
		app_await();
		CHECK(cudaStreamWaitEvent(stream, back, 0));
		add<<<32, 256, 0, stream>>>(data, large, 10);
		released = true;
		CHECK(cudaStreamSynchronize(stream));
		EXPECT_WORDS(data, large, round * 1000 + 11);
		app_nudge();
		app_await();
	}
	CHECK(cudaEventDestroy(back));
	CHECK(cudaEventDestroy(ready));
}

static void
consume_events(int *data)
{
	int *device = app_malloc<int>(large);
	std::vector<int> copy(large);
	cudaIpcEventHandle_t handle;
	cudaEvent_t ready, back;

	app_get(&handle, sizeof(handle));
	CHECK(cudaIpcOpenEventHandle(&ready, handle));
	back = create_event(&handle);
	app_put(&handle, sizeof(handle));
	for (int round = 1; round <= ROUNDS; round++) {
		app_await();
		CHECK(cudaStreamWaitEvent(stream, ready, 0));
		CHECK(cudaMemcpyAsync(device, data, large * sizeof(int), cudaMemcpyDefault,
				      stream));
		add<<<32, 256, 0, stream>>>(data, large, 1);
		CHECK(cudaEventRecord(back, stream));
		app_nudge();
		app_await();
		CHECK(cudaMemcpyAsync(copy.data(), device, large * sizeof(int), cudaMemcpyDefault,
				      stream));
		CHECK(cudaStreamSynchronize(stream));
		EXPECT_WORDS(copy.data(), large, round * 1000);
		EXPECT_WORDS(data, large, round * 1000 + 11);
		app_nudge();
	}
	CHECK(cudaFree(device));
	CHECK(cudaEventDestroy(back));
	CHECK(cudaEventDestroy(ready));
}

static int
produce()
{
	int fd = -1, pools, *first, *second;
	cudaMemPool_t pool, none;

	CHECK(cudaSetDevice(0));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaDeviceGetAttribute(&pools, cudaDevAttrHostNumaMemoryPoolsSupported, 0));
	app_skip_unless_supported(pools ? cudaSuccess : cudaErrorNotSupported,
				  "pools of host memory");
	refuse();
	refuse_files();
	CHECK(create(&pool, cudaMemLocationTypeHostNuma, type));
	give_device(pool);
	CHECK(cudaMemPoolExportToShareableHandle(&fd, pool, type, 0));
	/* gpupool rejects it with a message, because two mappings in one session would be two
	 * copies. */
	if (cudaMemPoolImportFromShareableHandle(&none, (void *)(intptr_t)fd, type, 0) ==
	    cudaSuccess)
		CHECK(cudaMemPoolDestroy(none));
	(void)cudaGetLastError();
	app_pass(fd);
	first = allocate(pool, large);
	second = allocate(pool, small);
	/* The host of one process and kernels of the other. */
	write_on_host(first, large, 1);
	write_on_host(second, small, 2);
	put_pointer(first);
	put_pointer(second);
	app_await();
	EXPECT_WORDS(first, large, 101);
	EXPECT_WORDS(second, small, 302);
	/* A kernel of one process and the host of the other. */
	fill<<<32, 256, 0, stream>>>(first, large, 5);
	CHECK(cudaStreamSynchronize(stream));
	app_nudge();
	app_await();
	add<<<32, 256, 0, stream>>>(first, large, 1);
	CHECK(cudaStreamSynchronize(stream));
	EXPECT_WORDS(first, large, 8);
	produce_events(first);
	/* Contents that the other process wrote before it freed the memory. */
	app_nudge();
	app_await();
	EXPECT_WORDS(second, small, 4007);
	EXPECT_WORDS(first, large, 6000);
	CHECK(cudaFreeAsync(first, stream));
	CHECK(cudaFreeAsync(second, stream));
	/* New memory at the same address. */
	first = allocate(pool, large);
	fill<<<32, 256, 0, stream>>>(first, large, 70);
	CHECK(cudaStreamSynchronize(stream));
	put_pointer(first);
	app_await();
	EXPECT_WORDS(first, large, 71);
	CHECK(cudaFreeAsync(first, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemPoolTrimTo(pool, 0));
	CHECK(cudaMemPoolDestroy(pool));
	return 0;
}

/* An allocation can be imported once until it is freed. */
static int *
import_once(cudaMemPool_t pool, const cudaMemPoolPtrExportData *exported)
{
	cudaMemPoolPtrExportData copy = *exported;
	void *data, *again;

	CHECK(cudaMemPoolImportPointer(&data, pool, &copy));
	EXPECT(cudaErrorAlreadyMapped, cudaMemPoolImportPointer(&again, pool, &copy));
	(void)cudaGetLastError();
	return (int *)data;
}

static int
consume()
{
	cudaMemPoolPtrExportData large_data, small_data;
	cudaPointerAttributes attributes;
	cudaMemPool_t pool;
	int fd = app_recv_fd(), *first, *second;
	void *none;

	if (fd < 0)
		return 0;
	CHECK(cudaSetDevice(0));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, type, 0));
	close(fd);
	give_device(pool);
	app_get(&large_data, sizeof(large_data));
	app_get(&small_data, sizeof(small_data));
	refuse_bytes(pool, &small_data);
	first = import_once(pool, &large_data);
	second = import_once(pool, &small_data);
	EXPECT_WORDS(first, large, 1);
	EXPECT_WORDS(second, small, 2);
	CHECK(cudaPointerGetAttributes(&attributes, first));
	REQUIRE(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == first &&
		attributes.devicePointer == first);
	REQUIRE(cudaMallocFromPoolAsync(&none, 4096, pool, stream) != cudaSuccess);
	REQUIRE(cudaDeviceSetMemPool(0, pool) != cudaSuccess);
	(void)cudaGetLastError();
	add<<<32, 256, 0, stream>>>(first, large, 100);
	add<<<32, 256, 0, stream>>>(second, small, 300);
	CHECK(cudaStreamSynchronize(stream));
	app_nudge();
	app_await();
	EXPECT_WORDS(first, large, 5);
	write_on_host(first, large, 7);
	app_nudge();
	consume_events(first);
	app_await();
	/* Freed in stream order, and imported again after the work that uses it. */
	fill<<<32, 256, 0, stream>>>(second, small, 4000);
	CHECK(cudaFreeAsync(second, stream));
	second = import_once(pool, &small_data);
	add<<<32, 256, 0, stream>>>(second, small, 7);
	CHECK(cudaFreeAsync(second, stream));
	fill<<<32, 256, 0, stream>>>(first, large, 6000);
	CHECK(cudaFreeAsync(first, stream));
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(cudaErrorInvalidValue, cudaFree(first));
	app_nudge();
	app_get(&large_data, sizeof(large_data));
	first = import_once(pool, &large_data);
	add<<<32, 256, 0, stream>>>(first, large, 1);
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaFree(first));
	CHECK(cudaMemPoolDestroy(pool));
	app_nudge();
	return 0;
}

int
main()
{
	return app_run_both("hostpoolshare", produce, consume);
}
