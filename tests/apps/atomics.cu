/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic operations on global and shared memory. */
#include "app.h"

struct cells {
	int sum, difference, smallest, largest, all, any, parity, wrapped, down;
	unsigned int exchanged;
	float real_sum;
	double wide_real_sum;
	unsigned long long wide_sum, wide_largest;
	int swapped;
	int histogram[16];
};

static __global__ void
operate(cells *c)
{
	__shared__ int local[16];
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (threadIdx.x < 16)
		local[threadIdx.x] = 0;
	__syncthreads();
	atomicAdd(&c->sum, i);
	atomicSub(&c->difference, 1);
	atomicMin(&c->smallest, -i);
	atomicMax(&c->largest, i);
	atomicAnd(&c->all, ~(1 << (i % 4)));
	atomicOr(&c->any, 1 << (i % 20));
	atomicXor(&c->parity, i);
	atomicInc((unsigned int *)&c->wrapped, 99);
	atomicDec((unsigned int *)&c->down, 99);
	atomicExch(&c->exchanged, 7u);
	atomicAdd(&c->real_sum, 0.5f);
	atomicAdd(&c->wide_real_sum, 0.25);
	atomicAdd(&c->wide_sum, 1ull << 33);
	atomicMax(&c->wide_largest, (unsigned long long)i << 34);
	/* Adds by compare and swap. */
	int old = c->swapped, seen;
	do {
		seen = old;
		old = atomicCAS(&c->swapped, seen, seen + 2);
	} while (old != seen);
	atomicAdd(&local[i % 16], 1);
	__syncthreads();
	if (threadIdx.x < 16)
		atomicAdd(&c->histogram[threadIdx.x], local[threadIdx.x]);
}

int
main()
{
	const int blocks = 10, threads = 100, total = blocks * threads;
	cells start = {};
	int parity = 0;

	start.all = -1;
	std::vector<cells> host(1, start);
	cells *device = app_upload(host);
	operate<<<blocks, threads>>>(device);
	CHECK(cudaGetLastError());
	cells c = app_download(device, 1)[0];

	for (int i = 0; i < total; i++)
		parity ^= i;
	REQUIRE(c.sum == total * (total - 1) / 2);
	REQUIRE(c.difference == -total);
	REQUIRE(c.smallest == 1 - total && c.largest == total - 1);
	REQUIRE(c.all == ~15 && c.any == (1 << 20) - 1 && c.parity == parity);
	/* Counts from 0 to 99 and starts again; downward it starts with the wrap from 0. */
	REQUIRE(c.wrapped == total % 100 && c.down == (100 - total % 100) % 100);
	REQUIRE(c.exchanged == 7);
	REQUIRE(c.real_sum == total * 0.5f && c.wide_real_sum == total * 0.25);
	REQUIRE(c.wide_sum == (unsigned long long)total << 33);
	REQUIRE(c.wide_largest == (unsigned long long)(total - 1) << 34);
	REQUIRE(c.swapped == 2 * total);
	for (int i = 0; i < 16; i++)
		REQUIRE(c.histogram[i] == total / 16 + (i < total % 16));
	CHECK(cudaFree(device));
	return app_ok("atomics");
}
