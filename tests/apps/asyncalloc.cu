/* SPDX-License-Identifier: Apache-2.0 */
/* Memory allocated and freed in stream order, from the device's pool and from a pool that the
 * program creates. */
#include "app.h"

#include <thread>

static __global__ void
fill(int *data, int count, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		data[i] = value + i;
}

static int *
allocate(int count, cudaStream_t stream, cudaMemPool_t pool)
{
	int *memory;

	if (pool)
		CHECK(cudaMallocFromPoolAsync(&memory, count * sizeof(int), pool, stream));
	else
		CHECK(cudaMallocAsync(&memory, count * sizeof(int), stream));
	return memory;
}

static void
use(cudaStream_t stream, cudaMemPool_t pool)
{
	const int count = 3000;
	std::vector<int> host(count);

	for (int round = 0; round < 20; round++) {
		int *memory = allocate(count, stream, pool);
		fill<<<(count + 255) / 256, 256, 0, stream>>>(memory, count, round);
		CHECK(cudaMemcpyAsync(host.data(), memory, count * sizeof(int),
				      cudaMemcpyDeviceToHost, stream));
		CHECK(cudaFreeAsync(memory, stream));
		CHECK(cudaStreamSynchronize(stream));
		for (int i = 0; i < count; i++)
			REQUIRE(host[i] == round + i);
	}
}

/* Allocations of many sizes, used and freed, without synchronization before the end. */
static void
churn(cudaStream_t stream, int seed, int rounds)
{
	struct block {
		int *memory;
		int count, value;
	};
	std::vector<block> blocks;
	std::vector<std::vector<int>> results;
	std::vector<int> values;

	for (int round = 0; round < rounds; round++) {
		const int sizes[] = { 1, 100, 5000, 70000, 400000, 1500000 };
		int count = sizes[(round * 7 + seed) % 6];
		int *memory = allocate(count, stream, nullptr);

		fill<<<(count + 255) / 256, 256, 0, stream>>>(memory, count, round);
		blocks.push_back({ memory, count, round });
		if (blocks.size() < 5)
			continue;
		block old = blocks[round % 3];
		blocks.erase(blocks.begin() + round % 3);
		results.emplace_back(2);
		values.push_back(old.value);
		CHECK(cudaMemcpyAsync(&results.back()[0], old.memory, sizeof(int),
				      cudaMemcpyDeviceToHost, stream));
		CHECK(cudaMemcpyAsync(&results.back()[1], old.memory + old.count - 1, sizeof(int),
				      cudaMemcpyDeviceToHost, stream));
		values.push_back(old.value + old.count - 1);
		CHECK(cudaFreeAsync(old.memory, stream));
	}
	for (const block &left : blocks)
		CHECK(cudaFreeAsync(left.memory, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (size_t i = 0; i < results.size(); i++) {
		REQUIRE(results[i][0] == values[2 * i]);
		REQUIRE(results[i][1] == values[2 * i + 1]);
	}
}

static void
threads()
{
	std::vector<std::thread> all;

	for (int i = 0; i < 4; i++) {
		all.emplace_back([i] {
			cudaStream_t stream;

			CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
			churn(stream, i, 60);
			CHECK(cudaStreamDestroy(stream));
			churn(cudaStreamPerThread, i, 30);
		});
	}
	for (std::thread &thread : all)
		thread.join();
}

/* Written on one stream, read and freed on another. */
static void
hand_over(cudaStream_t first, cudaStream_t second)
{
	const int count = 100000;
	std::vector<int> host(count);
	cudaEvent_t event;

	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	for (int round = 0; round < 10; round++) {
		int *memory = allocate(count, first, nullptr);

		fill<<<(count + 255) / 256, 256, 0, first>>>(memory, count, round);
		CHECK(cudaEventRecord(event, first));
		CHECK(cudaStreamWaitEvent(second, event, 0));
		CHECK(cudaMemcpyAsync(host.data(), memory, count * sizeof(int),
				      cudaMemcpyDeviceToHost, second));
		CHECK(cudaFreeAsync(memory, second));
		CHECK(cudaStreamSynchronize(second));
		for (int i = 0; i < count; i++)
			REQUIRE(host[i] == round + i);
	}
	CHECK(cudaEventDestroy(event));
}

/* Both ways of allocation may be combined with both ways of freeing. */
static void
mix(cudaStream_t stream)
{
	int *ours = allocate(1000, stream, nullptr), *plain;

	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaFree(ours));
	CHECK(cudaMalloc(&plain, 4000));
	fill<<<4, 256, 0, stream>>>(plain, 1000, 1);
	CHECK(cudaFreeAsync(plain, stream));
	CHECK(cudaStreamSynchronize(stream));
}

static unsigned long long
attribute(cudaMemPool_t pool, cudaMemPoolAttr which)
{
	unsigned long long value;

	CHECK(cudaMemPoolGetAttribute(pool, which, &value));
	return value;
}

static void
count_memory(cudaStream_t stream, cudaMemPool_t pool)
{
	const unsigned long long size = 8 << 20;
	unsigned long long threshold = ~0ull;

	CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
	REQUIRE(attribute(pool, cudaMemPoolAttrReleaseThreshold) == threshold);
	int *memory = allocate(size / sizeof(int), stream, pool);
	REQUIRE(attribute(pool, cudaMemPoolAttrUsedMemCurrent) == size);
	REQUIRE(attribute(pool, cudaMemPoolAttrReservedMemCurrent) >= size);
	CHECK(cudaFreeAsync(memory, stream));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(attribute(pool, cudaMemPoolAttrUsedMemCurrent) == 0);
	REQUIRE(attribute(pool, cudaMemPoolAttrUsedMemHigh) == size);
	REQUIRE(attribute(pool, cudaMemPoolAttrReservedMemCurrent) >= size);
	CHECK(cudaMemPoolTrimTo(pool, 0));
	REQUIRE(attribute(pool, cudaMemPoolAttrReservedMemCurrent) == 0);
}

int
main()
{
	cudaStream_t stream, other;
	cudaMemPool_t pool, current;
	cudaMemPoolProps props = {};
	int supported;
	unsigned long long threshold = 1 << 20;

	CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
	app_skip_unless_supported(supported ? cudaSuccess : cudaErrorNotSupported, "memory pools");
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaStreamCreate(&other));
	use(stream, nullptr);
	use(0, nullptr);
	printf("the default pool\n");

	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	CHECK(cudaMemPoolCreate(&pool, &props));
	count_memory(stream, pool);
	CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
	use(stream, pool);
	CHECK(cudaMemPoolTrimTo(pool, 0));
	CHECK(cudaDeviceSetMemPool(0, pool));
	use(other, nullptr);
	CHECK(cudaMemPoolDestroy(pool));
	CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
	CHECK(cudaDeviceGetMemPool(&current, 0));
	REQUIRE(pool == current);
	printf("a pool of its own\n");

	churn(stream, 0, 100);
	hand_over(stream, other);
	mix(stream);
	threads();
	CHECK(cudaStreamDestroy(other));
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaDeviceSynchronize());
	printf("many sizes, streams and threads\n");
	return app_ok("asyncalloc");
}
