/* SPDX-License-Identifier: Apache-2.0 */
/* An assertion fails on the device: a message on stderr and an error that stays. */
#undef NDEBUG
#include "app.h"

#include <cassert>

static __global__ void
insist(int limit)
{
	assert((int)threadIdx.x < limit);
}

int
main()
{
	void *memory;

	insist<<<1, 4>>>(4);
	CHECK(cudaDeviceSynchronize());
	printf("a true assertion changes nothing\n");
	fflush(stdout);
	insist<<<1, 4>>>(3);
	cudaError_t error = cudaDeviceSynchronize();
	printf("synchronise: %s (%d)\n", cudaGetErrorName(error), (int)error);
	REQUIRE(error == cudaErrorAssert);
	error = cudaMalloc(&memory, 16);
	printf("malloc: %s (%d)\n", cudaGetErrorName(error), (int)error);
	REQUIRE(error == cudaErrorAssert);
	return app_ok("assertion");
}
