/* SPDX-License-Identifier: Apache-2.0 */
/* The second file of multifile. */
#include "app.h"

__device__ int calls;
__constant__ int plus = 1;

__device__ __noinline__ int
twice_plus(int value)
{
	atomicAdd(&calls, 1);
	return 2 * value + plus;
}

void
set_plus(int value)
{
	CHECK(cudaMemcpyToSymbol(plus, &value, sizeof(value)));
}
