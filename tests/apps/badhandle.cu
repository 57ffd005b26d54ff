/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of objects that are gone: an error each, and the program goes on. */
#include "app.h"

static void
report(const char *what, cudaError_t error)
{
	printf("%s: %s (%d)\n", what, cudaGetErrorName(error), (int)error);
	REQUIRE(error != cudaSuccess && error != cudaErrorIllegalAddress);
	(void)cudaGetLastError();
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
	CHECK(cudaDeviceSynchronize());
	return app_ok("badhandle");
}
