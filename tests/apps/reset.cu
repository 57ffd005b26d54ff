/* SPDX-License-Identifier: Apache-2.0 */
/* The device is reset and used again. Memory is freed, and variables have their initial values. */
#include "app.h"

static __device__ int counter = 3;

static __global__ void
count(int *out)
{
	*out = ++counter;
}

static int
count_once()
{
	int *device = app_malloc<int>(1);

	count<<<1, 1>>>(device);
	CHECK(cudaGetLastError());
	/* Not freed, because the reset frees it. */
	return app_download(device, 1)[0];
}

int
main()
{
	cudaStream_t stream;
	size_t before, after, total;

	REQUIRE(count_once() == 4);
	REQUIRE(count_once() == 5);
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaDeviceReset());
	REQUIRE(count_once() == 4);
	printf("variables start anew\n");

	CHECK(cudaMemGetInfo(&before, &total));
	(void)app_malloc<char>(64 << 20);
	CHECK(cudaDeviceReset());
	CHECK(cudaFree(0));
	CHECK(cudaMemGetInfo(&after, &total));
	/* Other programs may use the device at the same time, hence the tolerance. */
	REQUIRE(after + (32 << 20) > before);
	for (int i = 0; i < 3; i++) {
		CHECK(cudaDeviceReset());
		REQUIRE(count_once() == 4);
	}
	printf("several times\n");
	return app_ok("reset");
}
