/* SPDX-License-Identifier: Apache-2.0 */
/* Eight host threads, each with its own stream and memory. */
#include "app.h"

#include <thread>

const int thread_count = 8;
const int count = 5000;

static __global__ void
scale_and_add(int *data, int factor, int plus)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		data[i] = data[i] * factor + plus;
}

static void
work(int id, const int *shared_offset)
{
	cudaStream_t stream;
	int *pinned, *device;

	CHECK(cudaSetDevice(0));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMallocHost(&pinned, count * sizeof(int)));
	for (int round = 0; round < 10; round++) {
		CHECK(cudaMalloc(&device, count * sizeof(int)));
		for (int i = 0; i < count; i++)
			pinned[i] = i + id;
		CHECK(cudaMemcpyAsync(device, pinned, count * sizeof(int), cudaMemcpyHostToDevice,
				      stream));
		for (int k = 0; k < 3; k++)
			scale_and_add<<<(count + 127) / 128, 128, 0, stream>>>(device, 2, id);
		CHECK(cudaGetLastError());
		CHECK(cudaMemcpyAsync(pinned, device, count * sizeof(int), cudaMemcpyDeviceToHost,
				      stream));
		CHECK(cudaStreamSynchronize(stream));
		for (int i = 0; i < count; i++)
			REQUIRE(pinned[i] == 8 * (i + id) + 7 * id);
		CHECK(cudaFree(device));

		/* The last error is per thread. */
		CHECK(cudaPeekAtLastError());
		if (id % 2 == 0)
			EXPECT(cudaErrorInvalidDevice, cudaSetDevice(-1));
	}
	int offset;
	CHECK(cudaMemcpyAsync(&offset, shared_offset, sizeof(offset), cudaMemcpyDeviceToHost,
			      stream));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(offset == 4833);
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaStreamDestroy(stream));
}

int
main()
{
	std::vector<std::thread> threads;
	int *offset = app_upload(std::vector<int>(1, 4833));

	for (int i = 0; i < thread_count; i++)
		threads.emplace_back(work, i, offset);
	for (std::thread &thread : threads)
		thread.join();
	CHECK(cudaFree(offset));
	return app_ok("threads");
}
