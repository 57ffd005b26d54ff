/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sleeper [-ms=N | -endless] [-rest=N]: a kernel that occupies the device for N milliseconds
 * (default 50) or until the process is killed. Prints "running" after the launch. -rest: then
 * sleeps for N milliseconds and makes one more call.
 */
#include "app.h"

#include <unistd.h>

static __global__ void
busy(unsigned long long duration, const volatile int *stop)
{
	unsigned long long start = app_nanoseconds(), gone = 0;

	while (!*stop && (duration == 0 || gone < duration)) {
		app_rest(duration ? duration - gone : 1000000);
		gone = app_nanoseconds() - start;
	}
}

int
main(int argc, char **argv)
{
	unsigned long long duration = 50, rest = 0;
	int *stop = app_malloc<int>(1);

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-endless") == 0) {
			duration = 0;
		} else if (strncmp(argv[i], "-ms=", 4) == 0) {
			duration = strtoull(argv[i] + 4, nullptr, 10);
		} else if (strncmp(argv[i], "-rest=", 6) == 0) {
			rest = strtoull(argv[i] + 6, nullptr, 10);
		} else {
			fprintf(stderr, "usage: sleeper [-ms=N | -endless] [-rest=N]\n");
			return 2;
		}
	}
	CHECK(cudaMemset(stop, 0, sizeof(*stop)));
	busy<<<1, 1>>>(duration * 1000000, stop);
	CHECK(cudaGetLastError());
	/* Ensures that the launch has been sent. */
	(void)cudaStreamQuery(0);
	printf("running\n");
	fflush(stdout);
	CHECK(cudaDeviceSynchronize());
	if (rest) {
		usleep(rest * 1000);
		CHECK(cudaDeviceSynchronize());
	}
	return app_ok("sleeper");
}
