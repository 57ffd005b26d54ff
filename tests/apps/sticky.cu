/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel writes to unmapped memory. The next synchronization and every later call return the
 * error.
 */
#include "app.h"

static __global__ void
write_to(int *where)
{
	*where = 1;
}

static void
report(const char *what, cudaError_t error)
{
	printf("%s: %s (%d)\n", what, cudaGetErrorName(error), (int)error);
	REQUIRE(error == cudaErrorIllegalAddress);
}

int
main()
{
	int *good = app_malloc<int>(1);
	int host = 0;
	cudaStream_t stream;

	write_to<<<1, 1>>>(good);
	CHECK(cudaDeviceSynchronize());
	write_to<<<1, 1>>>((int *)0x10);
	report("synchronise", cudaDeviceSynchronize());
	report("last error", cudaGetLastError());
	report("synchronise again", cudaDeviceSynchronize());
	report("copy", cudaMemcpy(&host, good, sizeof(host), cudaMemcpyDeviceToHost));
	report("malloc", cudaMalloc(&good, 16));
	report("stream", cudaStreamCreate(&stream));
	write_to<<<1, 1>>>(good);
	report("launch", cudaGetLastError());
	report("free", cudaFree(good));
	report("last error", cudaPeekAtLastError());
	return app_ok("sticky");
}
