/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many launches on several streams at once, faster than they are executed, together with events,
 * the legacy stream, copies, rejected launches and other threads. The results show the order,
 * because the steps do not commute.
 */
#include "app.h"

#include <thread>

const int stream_count = 8;
const int burst = 60;

struct large {
	unsigned int words[256];
};

static __global__ void
step(unsigned int *cell, unsigned int i)
{
	*cell = *cell * 3 + i;
}

static __global__ void
step_large(unsigned int *cell, large many)
{
	*cell = *cell * 3 + many.words[0] + many.words[255];
}

static __global__ void
combine(unsigned int *cell, const unsigned int *from)
{
	*cell = *cell * 5 + *from;
}

static __global__ void
combine_all(unsigned int *cells, int count)
{
	unsigned int sum = 0;

	for (int i = 0; i < count; i++)
		sum = sum * 7 + cells[i];
	for (int i = 0; i < count; i++)
		cells[i] += sum;
}

/* The expected value of each cell, computed on the host. */
static std::vector<unsigned int> model(stream_count);

static void
steps(cudaStream_t *streams, unsigned int *cells, int rounds)
{
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < stream_count; i++) {
			step<<<1, 1, 0, streams[i]>>>(cells + i, round + i);
			model[i] = model[i] * 3 + round + i;
		}
	}
}

static void
compare(const unsigned int *cells)
{
	std::vector<unsigned int> found(stream_count);

	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(found.data(), cells, stream_count * sizeof(*cells),
			 cudaMemcpyDeviceToHost));
	for (int i = 0; i < stream_count; i++)
		REQUIRE(found[i] == model[i]);
}

static void
within_streams(cudaStream_t *streams, unsigned int *cells)
{
	steps(streams, cells, 10 * burst);
	compare(cells);
	printf("each stream runs in order\n");
}

/* A chain over all streams: each reads the value that the previous one had when its event was
 * recorded. */
static void
across_by_events(cudaStream_t *streams, unsigned int *cells)
{
	cudaEvent_t events[stream_count];

	for (auto &event : events)
		CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	for (int round = 0; round < 3 * stream_count; round++) {
		int i = round % stream_count, next = (i + 1) % stream_count;

		steps(streams, cells, round % 3 ? 2 : burst);
		CHECK(cudaEventRecord(events[i], streams[i]));
		CHECK(cudaStreamWaitEvent(streams[next], events[i], 0));
		combine<<<1, 1, 0, streams[next]>>>(cells + next, cells + i);
		model[next] = model[next] * 5 + model[i];
		/* The other stream's cell does not change until it was read. */
		CHECK(cudaEventRecord(events[next], streams[next]));
		CHECK(cudaStreamWaitEvent(streams[i], events[next], 0));
	}
	compare(cells);
	for (auto &event : events)
		CHECK(cudaEventDestroy(event));
	printf("events order streams\n");
}

static void
around_the_legacy_stream(cudaStream_t *streams, unsigned int *cells)
{
	for (int round = 0; round < 10; round++) {
		unsigned int sum = 0;

		steps(streams, cells, round % 2 ? 1 : burst);
		combine_all<<<1, 1>>>(cells, stream_count);
		for (int i = 0; i < stream_count; i++)
			sum = sum * 7 + model[i];
		for (int i = 0; i < stream_count; i++)
			model[i] += sum;
	}
	compare(cells);
	printf("the legacy stream comes between\n");
}

static void
around_copies(cudaStream_t *streams, unsigned int *cells)
{
	unsigned int *out, *in;

	CHECK(cudaMallocHost(&out, 10 * sizeof(*out)));
	CHECK(cudaMallocHost(&in, sizeof(*in)));
	*in = 12345;
	for (int round = 0; round < 10; round++) {
		int i = round % stream_count;
		unsigned int wanted;

		steps(streams, cells, burst);
		wanted = model[i];
		CHECK(cudaMemcpyAsync(out + round, cells + i, sizeof(*out), cudaMemcpyDeviceToHost,
				      streams[i]));
		steps(streams, cells, burst);
		CHECK(cudaMemcpyAsync(cells + i, in, sizeof(*in), cudaMemcpyHostToDevice,
				      streams[i]));
		model[i] = *in;
		steps(streams, cells, burst);
		CHECK(cudaMemsetAsync(cells + (i + 1) % stream_count, 1, sizeof(*cells),
				      streams[(i + 1) % stream_count]));
		model[(i + 1) % stream_count] = 0x01010101;
		CHECK(cudaStreamSynchronize(streams[i]));
		REQUIRE(out[round] == wanted);
	}
	compare(cells);
	CHECK(cudaFreeHost(out));
	CHECK(cudaFreeHost(in));
	printf("copies and fills come between\n");
}

static void
with_large_parameters(cudaStream_t *streams, unsigned int *cells)
{
	large many = {};

	for (int round = 0; round < 20; round++) {
		int i = round % stream_count;

		steps(streams, cells, 10);
		many.words[0] = round;
		many.words[255] = 3;
		step_large<<<1, 1, 0, streams[i]>>>(cells + i, many);
		model[i] = model[i] * 3 + round + 3;
	}
	compare(cells);
	printf("large parameters come between\n");
}

static void
with_refused_launches(cudaStream_t *streams, unsigned int *cells)
{
	for (int round = 0; round < 10; round++) {
		steps(streams, cells, burst);
		/* The names of these errors differ between runtimes. */
		step<<<1, 100000, 0, streams[round % stream_count]>>>(cells, 1);
		REQUIRE(cudaGetLastError() != cudaSuccess);
		step<<<0, 1, 0, streams[round % stream_count]>>>(cells, 1);
		REQUIRE(cudaGetLastError() != cudaSuccess);
		steps(streams, cells, burst);
	}
	compare(cells);
	printf("refused launches change nothing\n");
}

static void
of_threads(cudaStream_t *streams, unsigned int *cells)
{
	std::vector<std::thread> threads;

	for (int i = 0; i < stream_count; i++) {
		threads.emplace_back([=] {
			for (int round = 0; round < 5 * burst; round++)
				step<<<1, 1, 0, streams[i]>>>(cells + i, round);
			if (i % 2)
				CHECK(cudaStreamSynchronize(streams[i]));
		});
		for (int round = 0; round < 5 * burst; round++)
			model[i] = model[i] * 3 + round;
	}
	for (auto &thread : threads)
		thread.join();
	compare(cells);
	printf("threads launch on streams of their own\n");
}

static void
that_are_destroyed(unsigned int *cells)
{
	cudaStream_t streams[stream_count];

	for (auto &stream : streams)
		CHECK(cudaStreamCreate(&stream));
	steps(streams, cells, burst);
	for (auto &stream : streams)
		CHECK(cudaStreamDestroy(stream));
	compare(cells);
	printf("destroyed streams finish their work\n");
}

int
main()
{
	cudaStream_t streams[stream_count];
	unsigned int *cells = app_malloc<unsigned int>(stream_count);

	/* Blocking streams: the legacy stream is ordered between their work. */
	for (auto &stream : streams)
		CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMemset(cells, 0, stream_count * sizeof(*cells)));
	within_streams(streams, cells);
	across_by_events(streams, cells);
	around_the_legacy_stream(streams, cells);
	around_copies(streams, cells);
	with_large_parameters(streams, cells);
	with_refused_launches(streams, cells);
	of_threads(streams, cells);
	that_are_destroyed(cells);
	for (auto &stream : streams)
		CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(cells));
	return app_ok("manystreams");
}
