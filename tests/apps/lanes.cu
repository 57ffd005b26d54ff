/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large copies, which may use several connections at once: many sizes, both directions, pinned and
 * pageable memory, several streams and threads, with kernels and host functions in between. "loop":
 * copies until it is stopped. "part SIZE": starts a copy of SIZE bytes and exits without waiting
 * for it. "short": runs a small part of all tests.
 */
#include "app.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <unistd.h>

static const size_t MIB = 1 << 20;

static void
fill(uint8_t *bytes, size_t size, uint64_t seed)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15 + 1;

	for (size_t i = 0; i + 8 <= size; i += 8) {
		x = x * 6364136223846793005 + 1442695040888963407;
		memcpy(bytes + i, &x, 8);
	}
	for (size_t i = size & ~(size_t)7; i < size; i++)
		bytes[i] = (uint8_t)(seed + i);
}

/* In parts that are too small for more than one connection. */
static void
require_device(const uint8_t *device, const uint8_t *expected, size_t size)
{
	std::vector<uint8_t> piece(MIB);

	for (size_t at = 0; at < size; at += MIB) {
		size_t part = size - at < MIB ? size - at : MIB;

		CHECK(cudaMemcpy(piece.data(), device + at, part, cudaMemcpyDeviceToHost));
		REQUIRE(memcmp(piece.data(), expected + at, part) == 0);
	}
}

static void
one_size(size_t size, bool pinned, bool async)
{
	uint8_t *source, *target, *device = app_malloc<uint8_t>(size + 16);
	cudaStream_t stream;

	if (pinned) {
		CHECK(cudaMallocHost(&source, size + 16));
		CHECK(cudaMallocHost(&target, size + 16));
	} else {
		source = (uint8_t *)malloc(size + 16);
		target = (uint8_t *)malloc(size + 16);
	}
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMemset(device, 0xcc, size + 16));
	fill(source, size, size);
	memset(target, 0xaa, size + 16);
	/* Neither end is aligned. */
	if (async) {
		CHECK(cudaMemcpyAsync(device + 3, source, size, cudaMemcpyHostToDevice, stream));
		if (!pinned)
			source[0] ^= 1;
		CHECK(cudaMemcpyAsync(target + 5, device + 3, size, cudaMemcpyDeviceToHost,
				      stream));
		CHECK(cudaStreamSynchronize(stream));
		if (!pinned)
			source[0] ^= 1;
	} else {
		CHECK(cudaMemcpy(device + 3, source, size, cudaMemcpyHostToDevice));
		source[0] ^= 1;
		CHECK(cudaMemcpy(target + 5, device + 3, size, cudaMemcpyDeviceToHost));
		source[0] ^= 1;
	}
	REQUIRE(memcmp(target + 5, source, size) == 0);
	REQUIRE(target[4] == 0xaa && target[size + 5] == 0xaa);
	require_device(device + 3, source, size);
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(device));
	if (pinned) {
		CHECK(cudaFreeHost(source));
		CHECK(cudaFreeHost(target));
	} else {
		free(source);
		free(target);
	}
}

static void
sizes()
{
	static const size_t all[] = { 4 * MIB - 1, 4 * MIB,     4 * MIB + 1,  5 * MIB + 13,
				      8 * MIB,     8 * MIB + 1, 16 * MIB - 1, 21 * MIB + 77 };

	for (size_t size : all) {
		for (int kind = 0; kind < 4; kind++)
			one_size(size, kind & 1, kind & 2);
	}
	printf("sizes\n");
}

static __global__ void
add(uint32_t *values, size_t count, uint32_t number)
{
	size_t step = (size_t)gridDim.x * blockDim.x;

	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
		values[i] += number;
}

/* Each stream's copies and kernels stay in order, independent of other streams. */
static void
streams(unsigned int seed, int rounds)
{
	const int count = 3;
	const size_t size = 6 * MIB;
	uint32_t *in[count], *out[count], *device[count];
	cudaStream_t stream[count];

	for (int i = 0; i < count; i++) {
		CHECK(cudaMallocHost(&in[i], size));
		CHECK(cudaMallocHost(&out[i], size));
		device[i] = app_malloc<uint32_t>(size / 4);
		CHECK(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
		fill((uint8_t *)in[i], size, seed + i);
	}
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < count; i++) {
			CHECK(cudaMemcpyAsync(device[i], in[i], size, cudaMemcpyHostToDevice,
					      stream[i]));
			add<<<4, 64, 0, stream[i]>>>(device[i], 1000, round + 1);
			CHECK(cudaGetLastError());
			CHECK(cudaMemcpyAsync(out[i], device[i], size, cudaMemcpyDeviceToHost,
					      stream[i]));
		}
		for (int i = 0; i < count; i++) {
			CHECK(cudaStreamSynchronize(stream[i]));
			for (size_t k = 0; k < 1000; k++)
				REQUIRE(out[i][k] == in[i][k] + round + 1);
			REQUIRE(memcmp(out[i] + 1000, in[i] + 1000, size - 4000) == 0);
			memset(out[i], 0, size);
		}
	}
	for (int i = 0; i < count; i++) {
		CHECK(cudaStreamDestroy(stream[i]));
		CHECK(cudaFree(device[i]));
		CHECK(cudaFreeHost(in[i]));
		CHECK(cudaFreeHost(out[i]));
	}
}

static void
threads()
{
	std::vector<std::thread> all;

	for (unsigned int i = 0; i < 3; i++)
		all.emplace_back(streams, 100 * i, 4);
	for (std::thread &thread : all)
		thread.join();
	printf("threads\n");
}

static std::atomic<bool> go;
static std::atomic<int> ran;

static void
wait_for_go(void *)
{
	while (!go)
		std::this_thread::sleep_for(std::chrono::milliseconds(1));
	ran++;
}

/* Copies after a function that waits for this thread. Copies of other streams overtake them; those
 * of the same stream run after the function. */
static void
functions()
{
	const size_t size = 5 * MIB;
	uint8_t *device[2] = { app_malloc<uint8_t>(size), app_malloc<uint8_t>(size) };
	uint8_t *pinned, *back;
	std::vector<uint8_t> pageable(size);
	cudaStream_t stream[2];

	CHECK(cudaMallocHost(&pinned, size));
	CHECK(cudaMallocHost(&back, size));
	for (cudaStream_t &s : stream)
		CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	fill(pinned, size, 1);
	fill(pageable.data(), size, 2);
	go = false;
	memset(back, 0, size);
	CHECK(cudaLaunchHostFunc(stream[0], wait_for_go, NULL));
	CHECK(cudaMemcpyAsync(device[0], pageable.data(), size, cudaMemcpyHostToDevice, stream[0]));
	CHECK(cudaMemcpyAsync(back, device[0], size, cudaMemcpyDeviceToHost, stream[0]));
	CHECK(cudaMemcpyAsync(device[1], pageable.data(), size, cudaMemcpyHostToDevice, stream[1]));
	CHECK(cudaStreamSynchronize(stream[1]));
	REQUIRE(ran == 0 && back[size / 2] == 0 && back[0] == 0);
	CHECK(cudaMemcpyAsync(device[1], pinned, size, cudaMemcpyHostToDevice, stream[1]));
	go = true;
	CHECK(cudaDeviceSynchronize());
	REQUIRE(ran == 1);
	REQUIRE(memcmp(back, pageable.data(), size) == 0);
	require_device(device[0], pageable.data(), size);
	require_device(device[1], pinned, size);
	/* Freed while the copy may still be in flight. */
	CHECK(cudaMemcpyAsync(device[1], back, size, cudaMemcpyHostToDevice, stream[1]));
	CHECK(cudaFreeHost(back));
	CHECK(cudaStreamSynchronize(stream[1]));
	require_device(device[1], pageable.data(), size);
	CHECK(cudaFreeHost(pinned));
	for (int i = 0; i < 2; i++) {
		CHECK(cudaStreamDestroy(stream[i]));
		CHECK(cudaFree(device[i]));
	}
	printf("functions\n");
}

static void
loop()
{
	const size_t size = 16 * MIB;
	uint8_t *host, *device = app_malloc<uint8_t>(size);

	CHECK(cudaMallocHost(&host, size));
	for (unsigned int i = 0;; i++) {
		cudaError_t error = cudaMemcpyAsync(device, host, size, cudaMemcpyHostToDevice, 0);

		if (error == cudaSuccess)
			error = cudaMemcpyAsync(host, device, size, cudaMemcpyDeviceToHost, 0);
		if (error == cudaSuccess)
			error = cudaDeviceSynchronize();
		if (error != cudaSuccess) {
			printf("%s\n", cudaGetErrorName(error));
			return;
		}
		if (i == 0)
			printf("looping\n");
		fflush(stdout);
	}
}

static void
part(size_t size)
{
	uint8_t *host, *device = app_malloc<uint8_t>(size);

	CHECK(cudaMallocHost(&host, size));
	CHECK(cudaMemcpyAsync(device, host, size, cudaMemcpyHostToDevice, 0));
	CHECK(cudaMemcpyAsync(host, device, size, cudaMemcpyDeviceToHost, 0));
	printf("left\n");
	fflush(stdout);
	_exit(0);
}

int
main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "loop") == 0) {
		loop();
		return 0;
	}
	if (argc > 2 && strcmp(argv[1], "part") == 0)
		part(strtoul(argv[2], NULL, 10));
	if (argc == 1)
		sizes();
	streams(7, argc > 1 ? 2 : 4);
	if (argc > 1)
		return app_ok("lanes");
	threads();
	functions();
	return app_ok("lanes");
}
