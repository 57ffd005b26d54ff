/* SPDX-License-Identifier: Apache-2.0 */
/* Built with --default-stream per-thread: stream 0 is another stream in each thread. */
#include "app.h"

#include <algorithm>
#include <thread>

const int thread_count = 4;
const int count = 1000;

static __global__ void
increment(int *data)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		data[i]++;
}

static void
work(int id, unsigned long long *stream_id)
{
	unsigned long long same;
	int *data = app_malloc<int>(count);
	std::vector<int> host(count, id);

	CHECK(cudaStreamGetId(0, stream_id));
	CHECK(cudaStreamGetId(cudaStreamPerThread, &same));
	REQUIRE(*stream_id == same);
	CHECK(cudaMemcpyAsync(data, host.data(), count * sizeof(int), cudaMemcpyHostToDevice, 0));
	for (int i = 0; i < 20; i++)
		increment<<<(count + 255) / 256, 256>>>(data);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpyAsync(host.data(), data, count * sizeof(int), cudaMemcpyDeviceToHost, 0));
	CHECK(cudaStreamSynchronize(0));
	CHECK(cudaStreamQuery(cudaStreamPerThread));
	for (int value : host)
		REQUIRE(value == id + 20);
	CHECK(cudaFree(data));
}

int
main()
{
	unsigned long long ids[thread_count + 1];
	std::vector<std::thread> threads;

	work(100, &ids[thread_count]);
	for (int i = 0; i < thread_count; i++)
		threads.emplace_back(work, i, &ids[i]);
	for (std::thread &thread : threads)
		thread.join();
	/* Threads that ran one after another may have the same stream ID, but not that of the main
	 * thread. */
	for (int i = 0; i < thread_count; i++)
		REQUIRE(ids[i] != ids[thread_count]);
	return app_ok("perthread");
}
