/* SPDX-License-Identifier: Apache-2.0 */
/* Two files that are linked on the device. A function, a variable and a constant are defined in the
 * other file. */
#include "app.h"

extern __device__ int twice_plus(int value);
extern __device__ int calls;
extern __constant__ int plus;
extern void set_plus(int value);

static __global__ void
apply(int *data)
{
	data[threadIdx.x] = twice_plus(data[threadIdx.x]);
}

int
main()
{
	std::vector<int> host(64);
	int count;

	for (int i = 0; i < 64; i++)
		host[i] = i;
	int *device = app_upload(host);
	set_plus(5);
	apply<<<1, 64>>>(device);
	CHECK(cudaGetLastError());
	host = app_download(device, 64);
	for (int i = 0; i < 64; i++)
		REQUIRE(host[i] == 2 * i + 5);
	CHECK(cudaMemcpyFromSymbol(&count, calls, sizeof(count)));
	REQUIRE(count == 64);
	CHECK(cudaMemcpyFromSymbol(&count, plus, sizeof(count)));
	REQUIRE(count == 5);
	CHECK(cudaFree(device));
	return app_ok("multifile");
}
