/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of destroyed objects: each use returns an error, and the program continues. */
#include "app.h"

#include <cuda.h>

static void
report(const char *what, cudaError_t error)
{
	printf("%s: %s (%d)\n", what, cudaGetErrorName(error), (int)error);
	REQUIRE(error != cudaSuccess && error != cudaErrorIllegalAddress);
	(void)cudaGetLastError();
}

template <typename F>
static F *
driver_function(const char *name, F *)
{
	cudaDriverEntryPointQueryResult found;
	void *function = nullptr;

	CHECK(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
	REQUIRE(found == cudaDriverEntryPointSuccess);
	return reinterpret_cast<F *>(function);
}
#define DRIVER(name) driver_function(#name, static_cast<decltype(name) *>(nullptr))

static void
linkers(void)
{
	CUlinkState linker;
	void *image;

	REQUIRE(DRIVER(cuLinkComplete)((CUlinkState)0x1234, &image, nullptr) ==
		CUDA_ERROR_INVALID_HANDLE);
	REQUIRE(DRIVER(cuLinkCreate)(0, nullptr, nullptr, &linker) == CUDA_SUCCESS);
	REQUIRE(DRIVER(cuLinkDestroy)(linker) == CUDA_SUCCESS);
	REQUIRE(DRIVER(cuLinkDestroy)(linker) == CUDA_ERROR_INVALID_HANDLE);
}

int
main()
{
	cudaStream_t stream;
	cudaEvent_t event;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaEventCreate(&event));
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaEventDestroy(event));
	report("query of a destroyed stream", cudaStreamQuery(stream));
	report("synchronise with a destroyed stream", cudaStreamSynchronize(stream));
	report("second destruction of a stream", cudaStreamDestroy(stream));
	report("query of a destroyed event", cudaEventQuery(event));
	report("record of a destroyed event", cudaEventRecord(event, 0));
	report("second destruction of an event", cudaEventDestroy(event));
	linkers();
	CHECK(cudaDeviceSynchronize());
	return app_ok("badhandle");
}
