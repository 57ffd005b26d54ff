/* SPDX-License-Identifier: Apache-2.0 */
/* Calls exit() without freeing objects of every kind. */
#include "app.h"

static __global__ void
fill(int *data, int value)
{
	data[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

int
main()
{
	cudaStream_t stream;
	cudaEvent_t event;
	int *device = app_malloc<int>(1024);
	int *pinned;

	CHECK(cudaMallocHost(&pinned, 1024 * sizeof(int)));
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaEventCreate(&event));
	(void)app_malloc<char>(10 << 20);
	fill<<<8, 128, 0, stream>>>(device, 11);
	CHECK(cudaMemcpyAsync(pinned, device, 1024 * sizeof(int), cudaMemcpyDeviceToHost, stream));
	CHECK(cudaEventRecord(event, stream));
	CHECK(cudaEventSynchronize(event));
	REQUIRE(pinned[0] == 11 && pinned[1023] == 11);
	exit(app_ok("exitnoclean"));
}
