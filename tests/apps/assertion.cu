/* SPDX-License-Identifier: Apache-2.0 */
/* A failed assertion on the device: a message on stderr and a sticky error. */
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
