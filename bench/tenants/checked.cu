/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checked [MIB]: work with results that it checks, until its standard input ends.
 *
 * It holds MIB MiB (16) of device memory, filled with a pattern, of which it prints the address,
 * and "running". Then, again and again, on each of four streams: new memory, a copy to it, kernels,
 * a copy back; it compares all of it, and the pattern. Prints at the end one line of JSON: rounds,
 * wrong words, the longest round in ms. Exit status 0 if nothing was wrong.
 */
#include "../driver/measure.h"

#include <algorithm>
#include <cuda_runtime.h>
#include <poll.h>
#include <vector>

#define PATTERN 0x5ec2e75ec2e75ecull
#define STREAMS 4
#define KERNELS 8
#define WORDS 65536

static __global__ void
fill(unsigned long long *words, size_t count)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
	     i += (size_t)gridDim.x * blockDim.x)
		words[i] = PATTERN + i;
}

static __global__ void
count_wrong(const unsigned long long *words, size_t count, unsigned long long *wrong)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
	     i += (size_t)gridDim.x * blockDim.x) {
		if (words[i] != PATTERN + i)
			atomicAdd(wrong, 1);
	}
}

static __global__ void
step(unsigned int *words, unsigned int add)
{
	size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

	words[i] = words[i] * 3 + add;
}

struct lane {
	cudaStream_t stream;
	unsigned int *host;
	unsigned int *device;
};

static unsigned int
expected(unsigned int value, unsigned int round)
{
	for (unsigned int k = 0; k < KERNELS; k++)
		value = value * 3 + round + k;
	return value;
}

static long
run_round(lane *lanes, unsigned int round)
{
	long wrong = 0;

	for (int l = 0; l < STREAMS; l++) {
		lane *lane = &lanes[l];

		for (unsigned int i = 0; i < WORDS; i++)
			lane->host[i] = i + round + (unsigned int)l;
		CHECK(cudaMalloc(&lane->device, WORDS * sizeof(int)));
		CHECK(cudaMemcpyAsync(lane->device, lane->host, WORDS * sizeof(int),
				      cudaMemcpyHostToDevice, lane->stream));
		for (unsigned int k = 0; k < KERNELS; k++)
			step<<<WORDS / 256, 256, 0, lane->stream>>>(lane->device, round + k);
		CHECK(cudaMemcpyAsync(lane->host, lane->device, WORDS * sizeof(int),
				      cudaMemcpyDeviceToHost, lane->stream));
	}
	for (int l = 0; l < STREAMS; l++) {
		lane *lane = &lanes[l];

		CHECK(cudaStreamSynchronize(lane->stream));
		for (unsigned int i = 0; i < WORDS; i++)
			wrong += lane->host[i] != expected(i + round + (unsigned int)l, round);
		CHECK(cudaFree(lane->device));
	}
	return wrong;
}

static bool
input_has_ended()
{
	struct pollfd input = { 0, POLLIN, 0 };

	return poll(&input, 1, 0) > 0;
}

int
main(int argc, char **argv)
{
	size_t count = ((size_t)(argc > 1 ? atol(argv[1]) : 16) << 20) / 8;
	unsigned long long *words, *counter, wrong_words = 0;
	lane lanes[STREAMS];
	long rounds = 0, wrong = 0;
	double longest = 0;

	CHECK(cudaMalloc(&words, count * 8));
	CHECK(cudaMalloc(&counter, 8));
	CHECK(cudaMemset(counter, 0, 8));
	fill<<<64, 256>>>(words, count);
	for (lane &lane : lanes) {
		CHECK(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking));
		CHECK(cudaMallocHost(&lane.host, WORDS * sizeof(int)));
	}
	wrong += run_round(lanes, 0);
	CHECK(cudaDeviceSynchronize());
	printf("memory: %p\nrunning\n", (void *)words);
	fflush(stdout);
	while (!input_has_ended()) {
		double begin = now_us();

		wrong += run_round(lanes, (unsigned int)++rounds);
		count_wrong<<<64, 256>>>(words, count, counter);
		CHECK(cudaMemcpy(&wrong_words, counter, 8, cudaMemcpyDeviceToHost));
		longest = std::max(longest, (now_us() - begin) / 1000);
	}
	printf("{\"rounds\": %ld, \"wrong\": %ld, \"pattern_wrong\": %llu, \"longest_ms\": %.1f}\n",
	       rounds, wrong, wrong_words, longest);
	return wrong || wrong_words;
}
