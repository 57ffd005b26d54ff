/* SPDX-License-Identifier: Apache-2.0 */
/* Memory allocated and freed in stream order, from the device's pool and from one of its own. */
#include "app.h"

static __global__ void
fill(int *data, int count, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		data[i] = value + i;
}

static void
use(cudaStream_t stream, cudaMemPool_t pool)
{
	const int count = 3000;
	std::vector<int> host(count);

	for (int round = 0; round < 20; round++) {
		int *memory;
		if (pool)
			CHECK(cudaMallocFromPoolAsync(&memory, count * sizeof(int), pool, stream));
		else
			CHECK(cudaMallocAsync(&memory, count * sizeof(int), stream));
		fill<<<(count + 255) / 256, 256, 0, stream>>>(memory, count, round);
		CHECK(cudaMemcpyAsync(host.data(), memory, count * sizeof(int),
				      cudaMemcpyDeviceToHost, stream));
		CHECK(cudaFreeAsync(memory, stream));
		CHECK(cudaStreamSynchronize(stream));
		for (int i = 0; i < count; i++)
			REQUIRE(host[i] == round + i);
	}
}

int
main()
{
	cudaStream_t stream;
	cudaMemPool_t pool;
	cudaMemPoolProps props = {};
	int supported;
	unsigned long long threshold = 1 << 20;

	CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
	app_skip_unless_supported(supported ? cudaSuccess : cudaErrorNotSupported, "memory pools");
	CHECK(cudaStreamCreate(&stream));
	use(stream, nullptr);
	use(0, nullptr);
	printf("the default pool\n");

	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	CHECK(cudaMemPoolCreate(&pool, &props));
	CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
	use(stream, pool);
	CHECK(cudaMemPoolTrimTo(pool, 0));
	CHECK(cudaMemPoolDestroy(pool));
	CHECK(cudaStreamDestroy(stream));
	printf("a pool of its own\n");
	return app_ok("asyncalloc");
}
