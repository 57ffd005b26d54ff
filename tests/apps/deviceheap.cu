/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deviceheap take N: kernels allocate N blocks of 1 MiB with the device's malloc, mark them and
 * free none; prints how many they got.
 * deviceheap look N: allocates as many, prints how many of those it got bear such a mark, and frees
 * them.
 */
#include "app.h"

#define BLOCK ((size_t)1 << 20)
#define MARK 0x6d61726b6d61726bull

static __device__ unsigned int
count_marks(const unsigned long long *block)
{
	unsigned int found = 0;

	/* The start of a block may be the allocator's. */
	for (size_t i = 1024; i < BLOCK / sizeof(*block); i += 1024)
		found += block[i] == MARK;
	return found;
}

static __global__ void
use(unsigned int wanted, int looks, unsigned int *got, unsigned int *marked)
{
	unsigned long long *last = nullptr;

	for (unsigned int n = 0; n < wanted; n++) {
		unsigned long long *block = (unsigned long long *)malloc(BLOCK);

		if (!block)
			break;
		++*got;
		*marked += count_marks(block) > 0;
		for (size_t i = 1; i < BLOCK / sizeof(*block) && !looks; i++)
			block[i] = MARK;
		/* The blocks that are to be freed are a list. */
		block[0] = (unsigned long long)last;
		last = block;
	}
	while (looks && last) {
		unsigned long long *next = (unsigned long long *)last[0];

		free(last);
		last = next;
	}
}

int
main(int argc, char **argv)
{
	bool looks = argc == 3 && strcmp(argv[1], "look") == 0;
	unsigned int *counts;

	if (argc != 3 || (!looks && strcmp(argv[1], "take") != 0)) {
		fprintf(stderr, "usage: deviceheap take|look N\n");
		return 2;
	}
	counts = app_upload(std::vector<unsigned int>(2));
	use<<<1, 1>>>((unsigned int)atoi(argv[2]), looks, counts, counts + 1);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());

	std::vector<unsigned int> host = app_download(counts, 2);
	printf("blocks: %u\n", host[0]);
	if (looks)
		printf("marked: %u\n", host[1]);
	CHECK(cudaFree(counts));
	return app_ok("deviceheap");
}
