/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deviceheap take N: kernels allocate N blocks of 1 MiB with malloc() on the device, mark them and
 * free none. Prints the number of allocated blocks.
 * deviceheap look N: allocates as many blocks, prints how many of them have such a mark, and frees
 * them.
 */
#include "app.h"

#define BLOCK ((size_t)1 << 20)
#define MARK 0x6d61726b6d61726bull

static __device__ unsigned int
count_marked_words(const unsigned long long *block)
{
	unsigned int found = 0;

	/* The first bytes of a block may belong to the allocator. */
	for (size_t i = 1024; i < BLOCK / sizeof(*block); i += 1024)
		found += block[i] == MARK;
	return found;
}

static __global__ void
use(unsigned int wanted, int looks, unsigned int *got, unsigned int *marked)
{
	__shared__ unsigned long long *block;
	unsigned long long *last = nullptr;

	for (unsigned int n = 0; n < wanted; n++) {
		if (threadIdx.x == 0)
			block = (unsigned long long *)malloc(BLOCK);
		__syncthreads();
		if (!block)
			break;
		if (threadIdx.x == 0) {
			++*got;
			*marked += count_marked_words(block) > 0;
		}
		__syncthreads();
		for (size_t i = threadIdx.x; i < BLOCK / sizeof(*block) && !looks; i += blockDim.x)
			block[i] = MARK;
		__syncthreads();
		/* The blocks to be freed form a linked list. */
		if (threadIdx.x == 0)
			block[0] = (unsigned long long)last;
		last = block;
		__syncthreads();
	}
	while (looks && threadIdx.x == 0 && last) {
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
	use<<<1, 32>>>((unsigned int)atoi(argv[2]), looks, counts, counts + 1);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());

	std::vector<unsigned int> host = app_download(counts, 2);
	printf("blocks: %u\n", host[0]);
	if (looks)
		printf("marked: %u\n", host[1]);
	CHECK(cudaFree(counts));
	return app_ok("deviceheap");
}
