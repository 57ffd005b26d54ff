/* SPDX-License-Identifier: Apache-2.0 */
/* Returns from main() while the device has queued work. */
#include "app.h"

static __global__ void
linger(volatile int *cell, int rounds)
{
	for (int i = 0; i < rounds; i++)
		*cell = *cell + 1;
}

int
main()
{
	cudaStream_t stream;
	int *cell = app_malloc<int>(1);
	static char host[1 << 20];
	char *device = app_malloc<char>(sizeof(host));

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int i = 0; i < 20; i++)
		linger<<<1, 1, 0, stream>>>(cell, 5000);
	CHECK(cudaMemcpyAsync(device, host, sizeof(host), cudaMemcpyHostToDevice, 0));
	linger<<<1, 1>>>(cell, 5000);
	CHECK(cudaGetLastError());
	return app_ok("exitpending");
}
