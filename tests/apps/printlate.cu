/* SPDX-License-Identifier: Apache-2.0 */
/*
 * printlate LETTER MS: a kernel that runs for MS milliseconds and then prints "kernel of LETTER".
 */
#include "app.h"

static __global__ void
print_after(char first, unsigned long long duration)
{
	app_stay(duration);
	printf("kernel of %c\n", first);
}

int
main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: printlate LETTER MS\n");
		return 2;
	}
	print_after<<<1, 1>>>(argv[1][0], strtoull(argv[2], nullptr, 10) * 1000000);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
	fflush(stdout);
	return app_ok("printlate");
}
