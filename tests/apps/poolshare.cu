/* SPDX-License-Identifier: Apache-2.0 */
/* A memory pool of one process in another: a descriptor for the pool, 64 bytes for each pointer,
 * and an event that signals that the memory is ready. poolshare -answers: prints the results of
 * calls that CUDA's documentation does not specify, in one process. */
#include "peer_app.h"

#include <unistd.h>

static const cudaMemAllocationHandleType type = cudaMemHandleTypePosixFileDescriptor;
static const size_t large = (5 << 20) / sizeof(int) + 7, small = 1000;
static cudaStream_t stream;

static __global__ void
fill(int *data, size_t count, int first)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
	     i += gridDim.x * blockDim.x)
		data[i] = first + (int)i;
}

static void
write_to(int *data, size_t count, int first)
{
	fill<<<32, 256, 0, stream>>>(data, count, first);
	CHECK(cudaGetLastError());
}

static void
expect(const int *data, size_t count, int first)
{
	std::vector<int> host(count);

	CHECK(cudaMemcpyAsync(host.data(), data, count * sizeof(int), cudaMemcpyDefault, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (size_t i = 0; i < count; i++)
		REQUIRE(host[i] == first + (int)i);
}

static void
prepare()
{
	int types;

	CHECK(cudaSetDevice(0));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaDeviceGetAttribute(&types, cudaDevAttrMemoryPoolSupportedHandleTypes, 0));
	app_skip_unless_supported(types & type ? cudaSuccess : cudaErrorNotSupported,
				  "pools for other processes");
}

static cudaMemPool_t
make_pool(cudaMemAllocationHandleType types)
{
	cudaMemPoolProps props = {};
	cudaMemPool_t pool;

	props.allocType = cudaMemAllocationTypePinned;
	props.handleTypes = types;
	props.location.type = cudaMemLocationTypeDevice;
	CHECK(cudaMemPoolCreate(&pool, &props));
	return pool;
}

static int *
allocate(cudaMemPool_t pool, size_t count)
{
	void *data;

	CHECK(cudaMallocFromPoolAsync(&data, count * sizeof(int), pool, stream));
	return (int *)data;
}

static void
put_pointer(int *data)
{
	cudaMemPoolPtrExportData exported;

	CHECK(cudaMemPoolExportPointer(&exported, data));
	app_put(&exported, sizeof(exported));
}

/* A pool that was not created for export cannot be exported. */
static void
refuse()
{
	cudaMemPool_t plain = make_pool(cudaMemHandleTypeNone), pool = make_pool(type), none;
	cudaMemPoolPtrExportData exported;
	int *data = allocate(plain, small), *other;
	int fd, ends[2];

	REQUIRE(cudaMemPoolExportToShareableHandle(&fd, plain, type, 0) != cudaSuccess);
	REQUIRE(cudaMemPoolExportPointer(&exported, data) != cudaSuccess);
	CHECK(cudaFreeAsync(data, stream));
	/* A pointer cannot be imported before its pool. */
	data = allocate(pool, small);
	EXPECT(cudaErrorInvalidValue, cudaMemPoolExportPointer(&exported, data));
	CHECK(cudaMalloc(&other, 4096));
	REQUIRE(cudaMemPoolExportPointer(&exported, other) != cudaSuccess);
	REQUIRE(pipe(ends) == 0);
	REQUIRE(cudaMemPoolImportFromShareableHandle(&none, (void *)(intptr_t)ends[0], type, 0) !=
		cudaSuccess);
	close(ends[0]);
	close(ends[1]);
	CHECK(cudaFree(other));
	CHECK(cudaFreeAsync(data, stream));
	CHECK(cudaMemPoolDestroy(pool));
	CHECK(cudaMemPoolDestroy(plain));
	(void)cudaGetLastError();
}

static int
produce()
{
	cudaMemPool_t pool;
	cudaEvent_t ready;
	cudaIpcEventHandle_t handle;
	int *first, *second, *third;
	int fd = -1;

	prepare();
	refuse();
	pool = make_pool(type);
	CHECK(cudaMemPoolExportToShareableHandle(&fd, pool, type, 0));
	app_pass(fd);
	CHECK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming | cudaEventInterprocess));
	CHECK(cudaIpcGetEventHandle(&handle, ready));
	app_put(&handle, sizeof(handle));
	first = allocate(pool, large);
	second = allocate(pool, small);
	third = allocate(pool, small);
	write_to(first, large, 1000);
	write_to(second, small, 2000);
	write_to(third, small, 3000);
	put_pointer(first);
	put_pointer(second);
	CHECK(cudaEventRecord(ready, stream));
	app_nudge();
	app_await();
	expect(first, large, 4000);
	expect(second, small, 5000);
	expect(third, small, 3000);
	write_to(second, small, 6000);
	CHECK(cudaEventRecord(ready, stream));
	app_nudge();
	/* The other process has freed all of it. */
	app_await();
	expect(second, small, 6000);
	CHECK(cudaFreeAsync(first, stream));
	CHECK(cudaFreeAsync(second, stream));
	first = allocate(pool, large);
	write_to(first, large, 7000);
	expect(first, large, 7000);
	CHECK(cudaFreeAsync(first, stream));
	CHECK(cudaFreeAsync(third, stream));
	CHECK(cudaMemPoolDestroy(pool));
	CHECK(cudaStreamSynchronize(stream));
	return 0;
}

/* Memory that is imported twice has one address, and is freed once. */
static int *
get_pointer(cudaMemPool_t pool)
{
	cudaMemPoolPtrExportData exported;
	void *data, *again;

	app_get(&exported, sizeof(exported));
	CHECK(cudaMemPoolImportPointer(&data, pool, &exported));
	CHECK(cudaMemPoolImportPointer(&again, pool, &exported));
	REQUIRE(again == data);
	return (int *)data;
}

static int
consume()
{
	cudaPointerAttributes attributes;
	cudaIpcEventHandle_t handle;
	cudaMemPool_t pool;
	cudaEvent_t ready;
	int *first, *second;
	void *none;
	int fd;

	prepare();
	fd = app_recv_fd();
	CHECK(cudaMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, type, 0));
	close(fd);
	app_get(&handle, sizeof(handle));
	CHECK(cudaIpcOpenEventHandle(&ready, handle));
	first = get_pointer(pool);
	second = get_pointer(pool);
	app_await();
	CHECK(cudaStreamWaitEvent(stream, ready, 0));
	expect(first, large, 1000);
	expect(second, small, 2000);
	CHECK(cudaPointerGetAttributes(&attributes, second));
	REQUIRE(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
	/* An imported pool contains the memory that the other process allocates. */
	REQUIRE(cudaMallocFromPoolAsync(&none, 4096, pool, stream) != cudaSuccess);
	REQUIRE(cudaDeviceSetMemPool(0, pool) != cudaSuccess);
	(void)cudaGetLastError();
	write_to(first, large, 4000);
	write_to(second, small, 5000);
	CHECK(cudaStreamSynchronize(stream));
	app_nudge();
	app_await();
	CHECK(cudaStreamWaitEvent(stream, ready, 0));
	expect(second, small, 6000);
	CHECK(cudaFreeAsync(first, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaFree(second));
	EXPECT(cudaErrorInvalidValue, cudaFree(second));
	CHECK(cudaMemPoolDestroy(pool));
	app_nudge();
	return 0;
}

static void
answer(const char *what, cudaError_t error)
{
	printf("%s: %s\n", what, cudaGetErrorName(error));
	(void)cudaGetLastError();
}

static int
answers()
{
	cudaMemPool_t pool, other = nullptr;
	cudaMemPoolPtrExportData exported, inside;
	void *first = nullptr, *second = nullptr, *none;
	int *data;
	int fd;

	prepare();
	pool = make_pool(type);
	data = allocate(pool, small);
	answer("a pointer before its pool", cudaMemPoolExportPointer(&exported, data));
	CHECK(cudaMemPoolExportToShareableHandle(&fd, pool, type, 0));
	answer("a pointer", cudaMemPoolExportPointer(&exported, data));
	answer("an address inside", cudaMemPoolExportPointer(&inside, data + 1));
	answer("in the same process",
	       cudaMemPoolImportFromShareableHandle(&other, (void *)(intptr_t)fd, type, 0));
	answer("into its own pool", cudaMemPoolImportPointer(&first, pool, &exported));
	answer("into the imported pool", cudaMemPoolImportPointer(&first, other, &exported));
	answer("twice", cudaMemPoolImportPointer(&second, other, &exported));
	printf("the same address: %d\n", first == second);
	answer("allocating from it", cudaMallocFromPoolAsync(&none, 4096, other, stream));
	answer("as the current one", cudaDeviceSetMemPool(0, other));
	answer("exported again", cudaMemPoolExportToShareableHandle(&fd, other, type, 0));
	answer("freed", cudaFree(first));
	answer("freed twice", cudaFree(second));
	answer("freed once more", cudaFree(second));
	return 0;
}

int
main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "-answers") == 0)
		return answers();

	return app_run_both("poolshare", produce, consume);
}
