/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launchrate [N [-time]]: launches N empty kernels (default 10000) and waits once. -time: prints
 * the time per launch on stderr.
 */
#include "app.h"

#include <chrono>

static __global__ void
empty()
{
}

int
main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 10000;
	bool timed = argc > 2 && strcmp(argv[2], "-time") == 0;

	REQUIRE(count > 0);
	empty<<<1, 1>>>();
	CHECK(cudaDeviceSynchronize());
	auto start = std::chrono::steady_clock::now();
	for (int i = 0; i < count; i++)
		empty<<<1, 1>>>();
	auto issued = std::chrono::steady_clock::now();
	CHECK(cudaDeviceSynchronize());
	auto done = std::chrono::steady_clock::now();
	CHECK(cudaGetLastError());
	if (timed) {
		std::chrono::duration<double, std::micro> issue = issued - start;
		std::chrono::duration<double, std::micro> whole = done - start;
		fprintf(stderr, "%d launches: %.3f us each to issue, %.3f us with the wait\n",
			count, issue.count() / count, whole.count() / count);
	}
	return app_ok("launchrate");
}
