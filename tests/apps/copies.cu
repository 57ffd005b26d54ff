/* SPDX-License-Identifier: Apache-2.0 */
/* One-dimensional copies of linear memory: every direction, kind of host memory, and odd sizes. */
#include "app.h"

static const size_t sizes[] = {
	0,
	1,
	2,
	3,
	7,
	31,
	4095,
	4096,
	4097,
	65535,
	(64 << 10) + 1,
	(1 << 20) - 1,
	(1 << 20) + 1,
	(4 << 20) + 5,
	(64 << 20) + 3,
};
static const size_t max_size = (64 << 20) + 3;
static const size_t guard = 64;

static void
fill(unsigned char *bytes, size_t size, unsigned int seed)
{
	for (size_t i = 0; i + 4 <= size; i += 4) {
		seed = seed * 1664525u + 1013904223u;
		memcpy(bytes + i, &seed, 4);
	}
	for (size_t i = size & ~(size_t)3; i < size; i++)
		bytes[i] = (unsigned char)(seed >> (8 * (i & 3))) ^ 0x5a;
}

struct buffers {
	unsigned char *host, *back, *device, *other;
};

/* Copies to the device, on the device, and back. Nothing beyond the size may change. */
static void
round_trip(const buffers &b, size_t size, bool async, bool use_default, cudaStream_t stream)
{
	cudaMemcpyKind up = use_default ? cudaMemcpyDefault : cudaMemcpyHostToDevice;
	cudaMemcpyKind across = use_default ? cudaMemcpyDefault : cudaMemcpyDeviceToDevice;
	cudaMemcpyKind down = use_default ? cudaMemcpyDefault : cudaMemcpyDeviceToHost;

	fill(b.host, size, (unsigned int)size + 1);
	memset(b.back, 0xee, size + guard);
	CHECK(cudaMemsetAsync(b.device, 0x11, size + guard, stream));
	CHECK(cudaMemsetAsync(b.other, 0x22, size + guard, stream));
	CHECK(cudaStreamSynchronize(stream));
	if (async) {
		CHECK(cudaMemcpyAsync(b.device, b.host, size, up, stream));
		CHECK(cudaMemcpyAsync(b.other, b.device, size, across, stream));
		CHECK(cudaMemcpyAsync(b.back, b.other, size, down, stream));
		CHECK(cudaStreamSynchronize(stream));
	} else {
		CHECK(cudaMemcpy(b.device, b.host, size, up));
		CHECK(cudaMemcpy(b.other, b.device, size, across));
		CHECK(cudaMemcpy(b.back, b.other, size, down));
	}
	REQUIRE(memcmp(b.host, b.back, size) == 0);
	for (size_t i = 0; i < guard; i++)
		REQUIRE(b.back[size + i] == 0xee);

	unsigned char beyond[guard];
	CHECK(cudaMemcpy(beyond, b.device + size, guard, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < guard; i++)
		REQUIRE(beyond[i] == 0x11);
	CHECK(cudaMemcpy(beyond, b.other + size, guard, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < guard; i++)
		REQUIRE(beyond[i] == 0x22);
}

static void
all_sizes(const buffers &b, const char *kind, cudaStream_t stream)
{
	for (size_t size : sizes) {
		bool large = size > (size_t)(8 << 20);
		round_trip(b, size, false, false, stream);
		round_trip(b, size, true, true, stream);
		if (large)
			continue;
		round_trip(b, size, false, true, stream);
		round_trip(b, size, true, false, stream);
	}
	printf("%s memory: every size, synchronous and not\n", kind);
}

static void
unaligned(const buffers &b)
{
	fill(b.host, 10000, 9);
	for (size_t from = 0; from < 5; from++) {
		for (size_t to = 0; to < 5; to++) {
			CHECK(cudaMemcpy(b.device + to, b.host + from, 9000, cudaMemcpyDefault));
			CHECK(cudaMemcpy(b.back + from, b.device + to, 9000, cudaMemcpyDefault));
			REQUIRE(memcmp(b.host + from, b.back + from, 9000) == 0);
		}
	}
	printf("odd addresses\n");
}

/* The source of a copy from pageable memory may be overwritten when the call returns. */
static void
reuse_pageable(const buffers &b, cudaStream_t stream)
{
	std::vector<unsigned char> source(300001), expected;

	for (unsigned int i = 0; i < 20; i++) {
		fill(source.data(), source.size(), i);
		expected = source;
		CHECK(cudaMemcpyAsync(b.device, source.data(), source.size(),
				      cudaMemcpyHostToDevice, stream));
		memset(source.data(), 0, source.size());
		std::vector<unsigned char> back(source.size());
		/* A copy to pageable memory is complete when the call returns. */
		CHECK(cudaMemcpyAsync(back.data(), b.device, back.size(), cudaMemcpyDeviceToHost,
				      stream));
		REQUIRE(back == expected);
	}
	CHECK(cudaStreamSynchronize(stream));
	printf("pageable memory may be reused at once\n");
}

/* Copies to a pinned buffer and from it again, queued on one stream. */
static void
bounce(unsigned char *pinned, const buffers &b, cudaStream_t stream)
{
	const size_t step = (1 << 20) + 1;
	const int steps = 8;

	fill(b.host, step * steps, 77);
	CHECK(cudaMemcpy(b.device, b.host, step * steps, cudaMemcpyHostToDevice));
	CHECK(cudaMemset(b.other, 0, step * steps));
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < steps; i++) {
		CHECK(cudaMemcpyAsync(pinned, b.device + i * step, step, cudaMemcpyDeviceToHost,
				      stream));
		CHECK(cudaMemcpyAsync(b.other + i * step, pinned, step, cudaMemcpyHostToDevice,
				      stream));
	}
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpy(b.back, b.other, step * steps, cudaMemcpyDeviceToHost));
	REQUIRE(memcmp(b.host, b.back, step * steps) == 0);
	printf("a pinned buffer carries several copies in order\n");
}

static void
between_hosts(const buffers &b, cudaStream_t stream)
{
	fill(b.host, 100001, 3);
	memset(b.back, 0, 100001);
	CHECK(cudaMemcpy(b.back, b.host, 100001, cudaMemcpyHostToHost));
	REQUIRE(memcmp(b.host, b.back, 100001) == 0);
	memset(b.back, 0, 100001);
	CHECK(cudaMemcpyAsync(b.back, b.host, 100001, cudaMemcpyDefault, stream));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(memcmp(b.host, b.back, 100001) == 0);
	printf("from host to host\n");
}

int
main()
{
	cudaStream_t stream;
	std::vector<unsigned char> pageable(max_size + guard), pageable_back(max_size + guard);
	unsigned char *pinned, *pinned_back;
	unsigned char *device = app_malloc<unsigned char>(max_size + guard);
	unsigned char *other = app_malloc<unsigned char>(max_size + guard);

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMallocHost(&pinned, max_size + guard));
	CHECK(cudaMallocHost(&pinned_back, max_size + guard));

	buffers b = { pageable.data(), pageable_back.data(), device, other };
	all_sizes(b, "pageable", stream);
	unaligned(b);
	reuse_pageable(b, stream);
	between_hosts(b, stream);
	bounce(pinned, b, stream);
	b.host = pinned;
	b.back = pinned_back;
	all_sizes(b, "pinned", stream);

	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFreeHost(pinned_back));
	CHECK(cudaFree(device));
	CHECK(cudaFree(other));
	CHECK(cudaStreamDestroy(stream));
	return app_ok("copies");
}
