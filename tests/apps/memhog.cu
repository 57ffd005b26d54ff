/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memhog [MIB]: allocates MIB MiB of device memory (default 16), writes to all of it, and waits for
 * a line or the end of its standard input. Prints the free memory before and after the allocation.
 */
#include "app.h"

static size_t
free_mib()
{
	size_t available, total;

	CHECK(cudaMemGetInfo(&available, &total));
	return available >> 20;
}

int
main(int argc, char **argv)
{
	size_t mib = argc > 1 ? strtoul(argv[1], nullptr, 10) : 16;
	char line[16];
	void *memory;

	printf("free before: %zu MiB\n", free_mib());
	CHECK(cudaMalloc(&memory, mib << 20));
	CHECK(cudaMemset(memory, 0x5a, mib << 20));
	CHECK(cudaDeviceSynchronize());
	printf("free after: %zu MiB\n", free_mib());
	fflush(stdout);
	(void)!fgets(line, sizeof(line), stdin);
	CHECK(cudaFree(memory));
	printf("free at the end: %zu MiB\n", free_mib());
	return app_ok("memhog");
}
