/* SPDX-License-Identifier: Apache-2.0 */
/* Two devices of different machines: after a kernel fault on the first, the second remains
 * usable. */
#include "app.h"

static __global__ void
write_to(int *where)
{
	*where = 42;
}

static cudaError_t
try_device(int device, bool faults)
{
	int *data = nullptr, value = 0;
	cudaError_t error;

	CHECK(cudaSetDevice(device));
	error = cudaMalloc(&data, sizeof(int));
	if (error != cudaSuccess)
		return error;
	write_to<<<1, 1>>>(faults ? (int *)0x10 : data);
	error = cudaDeviceSynchronize();
	if (error == cudaSuccess)
		error = cudaMemcpy(&value, data, sizeof(int), cudaMemcpyDeviceToHost);
	REQUIRE(error != cudaSuccess || value == 42);
	return error;
}

int
main()
{
	int count;

	CHECK(cudaGetDeviceCount(&count));
	app_skip_unless_supported(count == 2 ? cudaSuccess : cudaErrorNotSupported, "two devices");
	CHECK(try_device(0, false));
	CHECK(try_device(1, false));
	for (int i = 0; i < 2; i++) {
		cudaError_t error = try_device(i, i == 0);

		printf("device %d: %s (%d)\n", i, cudaGetErrorName(error), (int)error);
	}
	return app_ok("faultofone");
}
