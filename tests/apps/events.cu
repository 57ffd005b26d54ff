/* SPDX-License-Identifier: Apache-2.0 */
/* Events: elapsed times, queries, and the errors of misuse. */
#include "app.h"

static __global__ void
work(int *sum, int rounds)
{
	unsigned int x = threadIdx.x;

	for (int i = 0; i < rounds; i++)
		x = x * 1664525u + 1013904223u;
	if (x == 1)
		*sum = 1;
}

int
main()
{
	cudaEvent_t start, middle, stop, untimed;
	float first, second, whole;
	int *sum = app_malloc<int>(1);

	CHECK(cudaEventCreate(&start));
	CHECK(cudaEventCreateWithFlags(&middle, cudaEventBlockingSync));
	CHECK(cudaEventCreate(&stop));
	CHECK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));

	/* An event that was never recorded is complete but has no time. */
	CHECK(cudaEventQuery(start));
	CHECK(cudaEventSynchronize(start));
	EXPECT(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&whole, start, stop));

	CHECK(cudaEventRecord(start));
	work<<<1, 64>>>(sum, 10000);
	CHECK(cudaEventRecord(middle));
	work<<<1, 64>>>(sum, 30000);
	CHECK(cudaEventRecord(stop));
	cudaError_t state = cudaEventQuery(stop);
	REQUIRE(state == cudaSuccess || state == cudaErrorNotReady);
	(void)cudaGetLastError();
	CHECK(cudaEventSynchronize(stop));
	CHECK(cudaEventQuery(stop));
	CHECK(cudaEventQuery(middle));

	CHECK(cudaEventElapsedTime(&first, start, middle));
	CHECK(cudaEventElapsedTime(&second, middle, stop));
	CHECK(cudaEventElapsedTime(&whole, start, stop));
	REQUIRE(first > 0 && second > 0 && whole > 0);
	REQUIRE(whole > first && whole > second);
	/* Each elapsed time is rounded to the clock's resolution. */
	REQUIRE(first + second < whole + 0.01f && first + second > whole - 0.01f);

	CHECK(cudaEventRecord(untimed));
	CHECK(cudaEventSynchronize(untimed));
	EXPECT(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&whole, start, untimed));
	EXPECT(cudaErrorInvalidValue, cudaEventElapsedTime(nullptr, start, stop));
	EXPECT(cudaErrorInvalidValue, cudaEventCreateWithFlags(&untimed, 0x4000));
	EXPECT(cudaErrorInvalidResourceHandle, cudaEventRecord(nullptr));

	CHECK(cudaEventDestroy(start));
	CHECK(cudaEventDestroy(middle));
	CHECK(cudaEventDestroy(stop));
	CHECK(cudaEventDestroy(untimed));
	CHECK(cudaFree(sum));
	return app_ok("events");
}
