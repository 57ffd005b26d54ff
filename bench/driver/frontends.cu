/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frontends: assignment of streams to the GPU's front ends (hardware queues), natively, and its
 * cost.
 *
 * Each stream has COUNT (300) empty kernels that wait for a word which the program then writes, so
 * the time until all are done is the GPU's alone. Prints kernels per second: of each of eight
 * streams together with the first, where all eight got their first work one after another on an
 * idle GPU; of increasing numbers of them together; and the same for eight other streams that got
 * their first work while the very first stream had work.
 */
#include "measure.h"

#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <cuda_runtime.h>
#include <vector>

#define STREAMS 8
#define TRIES 3

static __global__ void
empty(const float *, const float *, float *, int, int, float)
{
}

static volatile unsigned int *gate;
static int count = 300;

static void
give(cudaStream_t stream)
{
	empty<<<1, 32, 0, stream>>>(nullptr, nullptr, nullptr, 0, 0, 0);
	CHECK(cudaGetLastError());
}

static void
hold(cudaStream_t stream)
{
	CHECK(cuStreamWaitValue32(stream, (CUdeviceptr)gate, 1, CU_STREAM_WAIT_VALUE_GEQ));
}

/* Thousands of kernels per second, the best of several tries. */
static double
drain(const std::vector<cudaStream_t> &streams)
{
	double best = 0, begin, rate;

	for (int i = 0; i < TRIES; i++) {
		*gate = 0;
		for (cudaStream_t stream : streams) {
			hold(stream);
			for (int k = 0; k < count; k++)
				give(stream);
		}
		begin = now_us();
		*gate = 1;
		CHECK(cudaDeviceSynchronize());
		rate = (double)count * (double)streams.size() / (now_us() - begin) * 1e3;
		best = rate > best ? rate : best;
	}
	return best;
}

/* Creates streams and submits their first work, one after another, while the stream `beside`, if
 * any, has work. */
static std::vector<cudaStream_t>
begin_streams(cudaStream_t beside)
{
	std::vector<cudaStream_t> streams(STREAMS);

	*gate = 0;
	if (beside) {
		hold(beside);
		give(beside);
	}
	for (cudaStream_t &stream : streams) {
		CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
		give(stream);
		CHECK(cudaStreamSynchronize(stream));
	}
	*gate = 1;
	CHECK(cudaDeviceSynchronize());
	return streams;
}

static void
show(const char *what, const std::vector<cudaStream_t> &streams)
{
	printf("%s\n  the first beside each other:", what);
	for (int i = 1; i < STREAMS; i++)
		printf(" %.0f", drain({ streams[0], streams[i] }));
	printf("\n  together:");
	for (int n : { 1, 2, 4, STREAMS })
		printf(" %d: %.0f", n, drain({ streams.begin(), streams.begin() + n }));
	printf("\n");
}

int
main(int argc, char **argv)
{
	std::vector<cudaStream_t> first;
	void *word;

	if (argc > 2 || (argc == 2 && (count = atoi(argv[1])) < 1)) {
		fprintf(stderr, "usage: frontends [COUNT]\n");
		return 2;
	}
	CHECK(cudaHostAlloc(&word, sizeof(*gate), cudaHostAllocMapped));
	gate = (volatile unsigned int *)word;
	printf("thousand kernels a second\n");
	first = begin_streams(nullptr);
	show("first work in turns, on an idle GPU", first);
	show("first work while another stream has work", begin_streams(first[0]));
	return 0;
}
