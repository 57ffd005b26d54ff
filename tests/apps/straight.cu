/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large copies that may use GPUDirect, without the stream's participation: odd sizes and addresses,
 * with kernels, fills and other streams before and after them, and memory that is freed at once.
 * "short": runs only the first part. "loop": copies until it is stopped.
 */
#include "app.h"

#include <cstdint>

static const size_t MIB = 1 << 20;
static const size_t ROOM = 9 * MIB;

static uint8_t *source, *target;

/* Each 4 bytes identify their position and the round. */
static void
fill(uint8_t *bytes, size_t size, uint32_t round)
{
	for (size_t i = 0; i < size; i += 4) {
		uint32_t word = (uint32_t)(i / 4 * 2654435761u + round * 40503u);

		memcpy(bytes + i, &word, sizeof(word));
	}
}

/* Adjacent bytes must not change. */
static void
one_size(size_t size, size_t at)
{
	uint8_t *device = app_malloc<uint8_t>(ROOM), edge[2];

	CHECK(cudaMemset(device, 0x5a, ROOM));
	CHECK(cudaDeviceSynchronize());
	memset(target, 0xaa, size + 2);
	fill(source, size, (uint32_t)(size + at));
	CHECK(cudaMemcpy(device + at, source, size, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(target + 1, device + at, size, cudaMemcpyDeviceToHost));
	REQUIRE(memcmp(source, target + 1, size) == 0);
	REQUIRE(target[0] == 0xaa && target[size + 1] == 0xaa);
	CHECK(cudaMemcpy(&edge[0], device + at - 1, 1, cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(&edge[1], device + at + size, 1, cudaMemcpyDeviceToHost));
	REQUIRE(edge[0] == 0x5a && edge[1] == 0x5a);
	CHECK(cudaFree(device));
}

static void
sizes()
{
	one_size(4 * MIB, 256);
	one_size(4 * MIB + 1, 3);
	one_size(5 * MIB - 40000, 4095);
	one_size(8 * MIB + 333333, 2);
	printf("sizes\n");
}

static __global__ void
add(uint32_t *values, size_t count, uint32_t number)
{
	size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

	if (i < count)
		values[i] += number;
}

static __global__ void
busy(unsigned long long duration, uint32_t *value, uint32_t number)
{
	app_stay(duration);
	*value = number;
}

static uint32_t
word(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* Copies after a running kernel, and work after running copies. */
static void
order(cudaStream_t stream, bool async)
{
	const unsigned long long while_busy = 60 * 1000000ull;
	const size_t size = 6 * MIB;
	uint32_t *device = app_malloc<uint32_t>(size / 4);

	fill(source, size, 1);
	busy<<<1, 1, 0, stream>>>(while_busy, device, 7);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpyAsync(device, source, size, cudaMemcpyHostToDevice, stream));
	add<<<4, 256, 0, stream>>>(device, 1000, 3);
	CHECK(cudaGetLastError());
	busy<<<1, 1, 0, stream>>>(while_busy, device + 1, 11);
	CHECK(cudaGetLastError());
	if (async) {
		/* The copy cannot be moved before the fill that overwrites its source. */
		CHECK(cudaMemcpyAsync(target, device, size, cudaMemcpyDeviceToHost, stream));
		CHECK(cudaMemsetAsync(device, 0x77, size, stream));
		CHECK(cudaStreamSynchronize(stream));
	} else {
		CHECK(cudaMemcpy(target, device, size, cudaMemcpyDeviceToHost));
		CHECK(cudaMemset(device, 0x77, size));
	}
	REQUIRE(word(target) == word(source) + 3 && word(target + 4) == 11);
	for (size_t i = 8; i < 4000; i += 4)
		REQUIRE(word(target + i) == word(source + i) + 3);
	REQUIRE(memcmp(target + 4000, source + 4000, size - 4000) == 0);
	CHECK(cudaMemcpy(target, device, size, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < size; i += 4096)
		REQUIRE(target[i] == 0x77);
	CHECK(cudaFree(device));
}

/* Other streams: one that waits for an event, and the legacy stream, which waits implicitly. */
static void
streams()
{
	const size_t size = 5 * MIB;
	uint32_t *device = app_malloc<uint32_t>(size / 4);
	cudaStream_t first, second;
	cudaEvent_t event;

	CHECK(cudaStreamCreate(&first));
	CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
	CHECK(cudaEventCreate(&event));
	order(first, true);
	order(first, false);
	fill(source, size, 2);
	busy<<<1, 1, 0, first>>>(30 * 1000000ull, device, 5);
	CHECK(cudaMemcpyAsync(device, source, size, cudaMemcpyHostToDevice, first));
	CHECK(cudaEventRecord(event, first));
	CHECK(cudaStreamWaitEvent(second, event, 0));
	add<<<4, 256, 0, second>>>(device, 1000, 9);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpyAsync(target, device, size, cudaMemcpyDeviceToHost, second));
	CHECK(cudaStreamSynchronize(second));
	REQUIRE(word(target) == word(source) + 9 && word(target + 3996) == word(source + 3996) + 9);
	REQUIRE(memcmp(target + 4000, source + 4000, size - 4000) == 0);
	CHECK(cudaEventDestroy(event));
	CHECK(cudaStreamDestroy(first));
	CHECK(cudaStreamDestroy(second));
	CHECK(cudaFree(device));
	printf("order\n");
}

/* Memory that is freed after a copy is reused by the next allocation. */
static void
freed()
{
	for (uint32_t round = 0; round < 3; round++) {
		uint8_t *device = app_malloc<uint8_t>(6 * MIB), *other;

		fill(source, 5 * MIB, round);
		CHECK(cudaMemcpyAsync(device, source, 5 * MIB, cudaMemcpyHostToDevice, 0));
		CHECK(cudaMemcpyAsync(target, device, 5 * MIB, cudaMemcpyDeviceToHost, 0));
		CHECK(cudaFree(device));
		other = app_malloc<uint8_t>(6 * MIB);
		CHECK(cudaMemset(other, 0, 6 * MIB));
		CHECK(cudaDeviceSynchronize());
		REQUIRE(memcmp(source, target, 5 * MIB) == 0);
		CHECK(cudaMemcpy(target, other, 5 * MIB, cudaMemcpyDeviceToHost));
		for (size_t i = 0; i < 5 * MIB; i += 512)
			REQUIRE(target[i] == 0);
		CHECK(cudaFree(other));
	}
	printf("freed\n");
}

static void
loop()
{
	uint8_t *device = app_malloc<uint8_t>(8 * MIB);

	for (bool said = false;; said = true) {
		if (cudaMemcpy(device, source, 8 * MIB, cudaMemcpyHostToDevice) ||
		    cudaMemcpy(target, device, 8 * MIB, cudaMemcpyDeviceToHost))
			return;
		if (!said)
			printf("running\n");
		fflush(stdout);
	}
}

int
main(int argc, char **argv)
{
	/* Both have space for whole words and for adjacent bytes. */
	CHECK(cudaMallocHost(&source, ROOM));
	CHECK(cudaMallocHost(&target, ROOM));
	if (argc > 1 && strcmp(argv[1], "loop") == 0) {
		loop();
		return 1;
	}
	sizes();
	if (argc == 1) {
		streams();
		freed();
	}
	CHECK(cudaFreeHost(source));
	CHECK(cudaFreeHost(target));
	return app_ok("straight");
}
