/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assertlate MS: a kernel that occupies the device for MS milliseconds and then fails an assertion.
 * Prints "running" after the launch.
 */
#undef NDEBUG
#include "app.h"

#include <cassert>

static __global__ void
fail(unsigned long long duration)
{
	app_stay(duration);
	assert(!"all is well");
}

int
main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: assertlate MS\n");
		return 2;
	}
	fail<<<1, 1>>>(strtoull(argv[1], nullptr, 10) * 1000000);
	CHECK(cudaGetLastError());
	/* Ensures that the launch has been sent. */
	(void)cudaStreamQuery(0);
	printf("running\n");
	fflush(stdout);
	EXPECT(cudaErrorAssert, cudaDeviceSynchronize());
	return app_ok("assertlate");
}
