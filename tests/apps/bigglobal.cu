/* SPDX-License-Identifier: Apache-2.0 */
/* A variable of 64 MiB in device code. It is charged like other memory when the module is
 * loaded. */
#include "app.h"

static const size_t SIZE = 64 << 20;

__device__ unsigned char big[SIZE];
__device__ int small = 7;

static __global__ void
touch(int value)
{
	big[(size_t)threadIdx.x * (SIZE / 256)] = (unsigned char)(value + small);
}

int
main()
{
	unsigned char last;
	size_t available, total;
	cudaError_t error = cudaMemGetInfo(&available, &total);

	if (error == cudaSuccess) {
		touch<<<1, 256>>>(5);
		error = cudaGetLastError();
	}
	if (error != cudaSuccess) {
		printf("%s\n", cudaGetErrorName(error));
		return 1;
	}
	CHECK(cudaMemcpyFromSymbol(&last, big, 1, 255 * (SIZE / 256)));
	REQUIRE(last == 12);
	CHECK(cudaMemGetInfo(&available, &total));
	REQUIRE(total - available >= SIZE);
	return app_ok("bigglobal");
}
