/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cost and accuracy of measuring when a stream reaches a point, natively.
 *
 *   stamps [COUNT [EVERY]]
 *       The step of the GPU's clock. The time that a single-thread kernel which writes that clock
 * (a GPU timestamp) takes its caller, compared with an event and a written word. The length of an
 *       interval of known length by two timestamps and by two events, alone and while other blocks
 *       fill the GPU, there also with timestamps of the highest priority. Then COUNT (200000) empty
 *       kernels by 1 to 64 threads with a stream each, with a pair of marks around every EVERY
 * (16): launches per second until all are done, medians of 3.
 */
#include "measure.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <cuda_runtime.h>
#include <functional>
#include <thread>
#include <vector>

#define WORDS 512
#define TRIES 201

typedef unsigned long long word;

static __device__ word
clock_of_gpu()
{
	word now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	return now;
}

static __global__ void
write_clock(volatile word *to)
{
	*to = clock_of_gpu();
}

static __global__ void
empty()
{
}

static __global__ void
spin(word nanoseconds)
{
	word start = clock_of_gpu();

	while (clock_of_gpu() - start < nanoseconds)
		;
}

/* The smallest and the largest step between two different readings. */
static __global__ void
steps(word *least_p, word *most_p)
{
	word last = clock_of_gpu(), least = ~0ull, most = 0;

	for (int i = 0; i < 100000; i++) {
		word now = clock_of_gpu();

		if (now != last) {
			least = now - last < least ? now - last : least;
			most = now - last > most ? now - last : most;
		}
		last = now;
	}
	*least_p = least;
	*most_p = most;
}

static cudaStream_t
make_stream()
{
	cudaStream_t stream;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	return stream;
}

static word *
pinned_words(size_t count)
{
	word *words;

	CHECK(cudaHostAlloc(&words, count * sizeof(word), cudaHostAllocMapped));
	return words;
}

static cudaEvent_t
make_event(unsigned int flags)
{
	cudaEvent_t event;

	CHECK(cudaEventCreateWithFlags(&event, flags));
	return event;
}

template <class T>
static T
median(std::vector<T> values)
{
	std::sort(values.begin(), values.end());
	return values[values.size() / 2];
}

static void
launch_timestamp(cudaStream_t stream, word *to, bool first = false)
{
	static int greatest = [] {
		int least, most;

		CHECK(cudaDeviceGetStreamPriorityRange(&least, &most));
		return most;
	}();
	cudaLaunchAttribute attribute = {};
	cudaLaunchConfig_t config = {};

	attribute.id = cudaLaunchAttributePriority;
	attribute.val.priority = greatest;
	config.gridDim = config.blockDim = dim3(1);
	config.stream = stream;
	config.attrs = &attribute;
	config.numAttrs = first;
	CHECK(cudaLaunchKernelEx(&config, write_clock, (volatile word *)to));
}

static void
write_word(cudaStream_t stream, word *to)
{
	CHECK(cuStreamWriteValue32(stream, (CUdeviceptr)to, 1, CU_STREAM_WRITE_VALUE_DEFAULT));
}

static void
print_steps()
{
	word *words = pinned_words(2);

	steps<<<1, 1>>>(words, words + 1);
	CHECK(cudaDeviceSynchronize());
	printf("the clock's steps: %llu to %llu ns\n", words[0], words[1]);
}

/* Prints the time that a call takes its caller; the queue never fills. */
static void
print_cost(const char *name, cudaStream_t stream, const std::function<void()> &call)
{
	double took = 0;

	for (int i = 0; i < 40; i++) {
		double begin = now_us();

		for (int j = 0; j < 250; j++)
			call();
		took += now_us() - begin;
		CHECK(cudaStreamSynchronize(stream));
	}
	printf("%s: %.2f us\n", name, took / 10000);
}

static void
print_costs()
{
	cudaStream_t stream = make_stream();
	cudaEvent_t timed = make_event(0), untimed = make_event(cudaEventDisableTiming);
	word *words = pinned_words(2);

	print_cost("an empty kernel", stream, [&] { empty<<<1, 1, 0, stream>>>(); });
	print_cost("a timestamp", stream, [&] { launch_timestamp(stream, words); });
	print_cost("a timestamp of greatest priority", stream,
		   [&] { launch_timestamp(stream, words, true); });
	print_cost("a written word", stream, [&] { write_word(stream, words); });
	print_cost("an event that takes the time", stream,
		   [&] { CHECK(cudaEventRecord(timed, stream)); });
	print_cost("an event that does not", stream,
		   [&] { CHECK(cudaEventRecord(untimed, stream)); });
}

/* Nanoseconds between two marks around `work`; kind 0: by events. */
static double
measure_length(int kind, cudaStream_t stream, const std::function<void()> &work)
{
	static cudaEvent_t from = make_event(0), to = make_event(0);
	static word *words = pinned_words(2);
	float ms = 0;

	if (kind)
		launch_timestamp(stream, words, kind == 2);
	else
		CHECK(cudaEventRecord(from, stream));
	work();
	if (kind)
		launch_timestamp(stream, words + 1, kind == 2);
	else
		CHECK(cudaEventRecord(to, stream));
	CHECK(cudaStreamSynchronize(stream));
	if (kind)
		return (double)(words[1] - words[0]);
	CHECK(cudaEventElapsedTime(&ms, from, to));
	return ms * 1e6;
}

static void
print_lengths(const char *name, int tries, const std::function<void()> &others)
{
	static const char *const kinds[] = { "events", "timestamps",
					     "timestamps of greatest priority" };
	cudaStream_t stream = make_stream();

	for (int kind = 0; kind < 3; kind++) {
		std::vector<double> nothing, kernel;

		for (int i = 0; i < tries; i++) {
			others();
			nothing.push_back(measure_length(kind, stream, [] {}));
			others();
			kernel.push_back(measure_length(kind, stream,
							[&] { spin<<<1, 1, 0, stream>>>(50000); }));
		}
		printf("%s, by %s: nothing takes %.0f ns (at most %.0f), a kernel of 50 us %.0f "
		       "(at most %.0f)\n",
		       name, kinds[kind], median(nothing),
		       *std::max_element(nothing.begin(), nothing.end()), median(kernel),
		       *std::max_element(kernel.begin(), kernel.end()));
	}
}

static void
print_all_lengths()
{
	cudaStream_t other = make_stream();
	cudaDeviceProp prop;
	int full, queued = 0;

	CHECK(cudaGetDeviceProperties(&prop, 0));
	full = prop.multiProcessorCount * (prop.maxThreadsPerMultiProcessor / 1024);
	print_lengths("alone", TRIES, [] {});
	/* Blocks of 100 us, some of which always wait for a multiprocessor. */
	print_lengths("beside a full GPU", TRIES / 10, [&] {
		if (cudaStreamQuery(other) == cudaSuccess || ++queued % 4 == 0)
			spin<<<full * 8, 1024, 0, other>>>(100000);
	});
	CHECK(cudaDeviceSynchronize());
}

/* Marks that a thread puts around its launches. */
struct method {
	const char *name;
	std::function<void(cudaStream_t, word *, cudaEvent_t *, int)> mark;
};

static double
launch_by(int threads, int count, int every, const std::vector<cudaStream_t> &streams,
	  const method &method)
{
	static word *words = pinned_words(64 * WORDS);
	std::vector<std::thread> running;
	std::atomic<int> ready(0);
	std::atomic<bool> go(false);
	int each = count / threads;
	double begin;

	for (int t = 0; t < threads; t++) {
		running.emplace_back([&, t] {
			cudaEvent_t events[] = { make_event(0),
						 make_event(cudaEventDisableTiming) };

			CHECK(cudaSetDevice(0));
			ready++;
			while (!go)
				;
			for (int i = 0; i < each; i++) {
				if (i % every == 0)
					method.mark(streams[t], words + t * WORDS + i % WORDS,
						    events, 0);
				empty<<<1, 1, 0, streams[t]>>>();
				if (i % every == every - 1)
					method.mark(streams[t], words + t * WORDS + i % WORDS,
						    events, 1);
			}
			CHECK(cudaStreamSynchronize(streams[t]));
		});
	}
	while (ready < threads)
		;
	begin = now_us();
	go = true;
	for (std::thread &thread : running)
		thread.join();
	return each * threads / (now_us() - begin) * 1e6;
}

static void
print_threads(int count, int every)
{
	const method all[] = {
		{ "nothing", [](cudaStream_t, word *, cudaEvent_t *, int) {} },
		{ "events that take the time", [](cudaStream_t s, word *, cudaEvent_t *e,
						  int) { CHECK(cudaEventRecord(e[0], s)); } },
		{ "timestamps",
		  [](cudaStream_t s, word *w, cudaEvent_t *, int) { launch_timestamp(s, w); } },
		{ "events that do not, after",
		  [](cudaStream_t s, word *, cudaEvent_t *e, int end) {
			  if (end)
				  CHECK(cudaEventRecord(e[1], s));
		  } },
		{ "written words, after",
		  [](cudaStream_t s, word *w, cudaEvent_t *, int end) {
			  if (end)
				  write_word(s, w);
		  } },
	};
	std::vector<cudaStream_t> streams;

	while (streams.size() < 64)
		streams.push_back(make_stream());
	for (int threads : { 1, 8, 16, 64 }) {
		std::vector<double> paces[5];

		for (int turn = 0; turn < 3; turn++) {
			for (int i = 0; i < 5; i++)
				paces[i].push_back(
					launch_by(threads, count, every, streams, all[i]));
		}
		for (int i = 0; i < 5; i++)
			printf("%d threads, around %d launches %s: %.0f launches/s\n", threads,
			       every, all[i].name, median(paces[i]));
	}
}

int
main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 200000, every = argc > 2 ? atoi(argv[2]) : 16;

	if (count < 64 || every < 1) {
		fprintf(stderr, "usage: stamps [COUNT [EVERY]]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(cudaSetDevice(0));
	CHECK(cudaFree(NULL));
	print_steps();
	print_costs();
	print_all_lengths();
	print_threads(count, every);
	return 0;
}
