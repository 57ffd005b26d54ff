/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sleeper [-ms=N | -endless]: a kernel that keeps the device busy for N milliseconds (default 50)
 * or until the process is killed. Prints "running" once it is launched.
 */
#include "app.h"

static __device__ unsigned long long
nanoseconds()
{
	unsigned long long now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	return now;
}

static __global__ void
busy(unsigned long long duration, const volatile int *stop)
{
	unsigned long long start = nanoseconds();

	while (!*stop && (duration == 0 || nanoseconds() - start < duration))
		;
}

int
main(int argc, char **argv)
{
	unsigned long long duration = 50;
	int *stop = app_malloc<int>(1);

	if (argc == 2 && strcmp(argv[1], "-endless") == 0) {
		duration = 0;
	} else if (argc == 2 && strncmp(argv[1], "-ms=", 4) == 0) {
		duration = strtoull(argv[1] + 4, nullptr, 10);
	} else if (argc != 1) {
		fprintf(stderr, "usage: sleeper [-ms=N | -endless]\n");
		return 2;
	}
	CHECK(cudaMemset(stop, 0, sizeof(*stop)));
	busy<<<1, 1>>>(duration * 1000000, stop);
	CHECK(cudaGetLastError());
	/* Makes sure that the launch is on its way. */
	(void)cudaStreamQuery(0);
	printf("running\n");
	fflush(stdout);
	CHECK(cudaDeviceSynchronize());
	return app_ok("sleeper");
}
