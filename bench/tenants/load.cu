/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load: keeps the GPU busy in a chosen way for a while, and prints the results as one line of JSON.
 *
 * Throughput: kernels of N blocks that do ITERATIONS multiply-adds per thread, a few in flight, for
 * SECONDS from time START on; counts the kernels that end in that time. With -spin-us a kernel
 * takes that long regardless of other work on its multiprocessors. With -period-us a single kernel
 * at a time is launched and waited for; prints the times from launch to end, and when they became
 * much shorter than at the start. With -leftovers-mib new memory is searched for nonzero words, and
 * then filled. With -captures graphs are captured and launched one after the other, each capture
 * open for a millisecond.
 */
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <thread>
#include <vector>

#define CHECK(call) check(call, #call)

static void
check(cudaError_t error, const char *call)
{
	if (error == cudaSuccess)
		return;
	printf("{\"error\": \"%s\", \"code\": %d, \"call\": \"%s\"}\n", cudaGetErrorName(error),
	       (int)error, call);
	exit(1);
}

static __global__ void
multiply(float *out, long iterations, unsigned int *sms)
{
	float a = threadIdx.x, b = 1.000001f, c = blockIdx.x, d = 0.5f;

	for (long i = 0; i < iterations; i++) {
		a = a * b + d;
		c = c * b + d;
	}
	if (a + c == 12345.0f)
		*out = a;
	if (threadIdx.x == 0) {
		unsigned int sm;

		asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
		atomicOr(&sms[sm / 32 % 64], 1u << sm % 32);
	}
}

static __global__ void
spin(float *out, long nanoseconds, unsigned int *sms)
{
	unsigned long long start, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
	do
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	while (now - start < (unsigned long long)nanoseconds);
	if (threadIdx.x == 0) {
		unsigned int sm;

		asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
		atomicOr(&sms[sm / 32 % 64], 1u << sm % 32);
	}
}

static __global__ void
triad(float *a, long count, unsigned int *)
{
	for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count;
	     i += (long)gridDim.x * blockDim.x)
		a[i] = a[i + count] + 3.0f * a[i + 2 * count];
}

static __global__ void
count_words(const unsigned long long *words, long count, unsigned long long *nonzero)
{
	unsigned long long found = 0;

	for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count;
	     i += (long)gridDim.x * blockDim.x)
		found += words[i] != 0;
	if (found)
		atomicAdd(nonzero, found);
}

struct options {
	int blocks = 1056, threads = 256, inflight = 4, priority = 0;
	long iterations = 20000, spin_us = 0, period_us = 0, triad_mib = 0, launches = 0,
	     copy_mib = 0, leftovers_mib = 0;
	double seconds = 5, start = 0;
	bool per_second = false, null_stream = false, sync_each = false, out = false,
	     pinned = false, captures = false;
};

static double
wall()
{
	return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
		.count();
}

static bool
parse_option(const char *argument, const char *name, double *value)
{
	size_t length = strlen(name);

	if (strncmp(argument, name, length) != 0 || argument[length] != '=')
		return false;
	*value = atof(argument + length + 1);
	return true;
}

static options
parse(int argc, char **argv)
{
	options o;

	for (int i = 1; i < argc; i++) {
		double value = 0;

		if (parse_option(argv[i], "-blocks", &value))
			o.blocks = (int)value;
		else if (parse_option(argv[i], "-threads", &value))
			o.threads = (int)value;
		else if (parse_option(argv[i], "-iterations", &value))
			o.iterations = (long)value;
		else if (parse_option(argv[i], "-spin-us", &value))
			o.spin_us = (long)value;
		else if (parse_option(argv[i], "-triad-mib", &value))
			o.triad_mib = (long)value;
		else if (parse_option(argv[i], "-copy-mib", &value))
			o.copy_mib = (long)value;
		else if (parse_option(argv[i], "-leftovers-mib", &value))
			o.leftovers_mib = (long)value;
		else if (parse_option(argv[i], "-period-us", &value))
			o.period_us = (long)value;
		else if (parse_option(argv[i], "-inflight", &value))
			o.inflight = (int)value;
		else if (parse_option(argv[i], "-priority", &value))
			o.priority = (int)value;
		else if (parse_option(argv[i], "-launches", &value))
			o.launches = (long)value;
		else if (parse_option(argv[i], "-seconds", &value))
			o.seconds = value;
		else if (parse_option(argv[i], "-start", &value))
			o.start = value;
		else if (strcmp(argv[i], "-out") == 0)
			o.out = true;
		else if (strcmp(argv[i], "-captures") == 0)
			o.captures = true;
		else if (strcmp(argv[i], "-pinned") == 0)
			o.pinned = true;
		else if (strcmp(argv[i], "-per-second") == 0)
			o.per_second = true;
		else if (strcmp(argv[i], "-null-stream") == 0)
			o.null_stream = true;
		else if (strcmp(argv[i], "-sync-each") == 0)
			o.sync_each = true;
		else {
			fprintf(stderr, "load: what is %s?\n", argv[i]);
			exit(2);
		}
	}
	return o;
}

struct work {
	options o;
	cudaStream_t stream = nullptr;
	float *out = nullptr;
	unsigned int *sms = nullptr;
	long elements = 0;

	void launch() const
	{
		if (o.triad_mib)
			triad<<<o.blocks, o.threads, 0, stream>>>(out, elements, sms);
		else if (o.spin_us)
			spin<<<o.blocks, o.threads, 0, stream>>>(out, o.spin_us * 1000, sms);
		else
			multiply<<<o.blocks, o.threads, 0, stream>>>(out, o.iterations, sms);
		CHECK(cudaGetLastError());
	}
};

static void
wait_until(double time)
{
	while (wall() < time)
		std::this_thread::sleep_for(std::chrono::microseconds(200));
}

/* Returns the number of kernels that ended between start and end; optionally per second. */
static long
measure(const work &w, double start, std::vector<long> *seconds)
{
	std::vector<cudaEvent_t> events(w.o.inflight);
	long launched = 0, ended = 0, counted = 0;
	double end = start + w.o.seconds;

	for (auto &event : events)
		CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	for (;;) {
		double now;

		if (launched - ended == w.o.inflight) {
			CHECK(cudaEventSynchronize(events[ended % w.o.inflight]));
			ended++;
			now = wall();
			if (now >= start && now < end) {
				counted++;
				(*seconds)[(size_t)(now - start)]++;
			}
			if (now >= end || (w.o.launches && counted >= w.o.launches))
				break;
		}
		w.launch();
		CHECK(cudaEventRecord(events[launched % w.o.inflight], w.stream));
		launched++;
		if (w.o.sync_each)
			CHECK(cudaDeviceSynchronize());
	}
	CHECK(cudaStreamSynchronize(w.stream));
	return counted;
}

/* Returns the number of nonzero words in new memory, and leaves no word zero. */
static unsigned long long
find_leftovers(long mib)
{
	unsigned long long *words, *nonzero, found;
	size_t size = (size_t)mib << 20;

	CHECK(cudaMalloc(&words, size));
	CHECK(cudaMalloc(&nonzero, sizeof(*nonzero)));
	CHECK(cudaMemset(nonzero, 0, sizeof(*nonzero)));
	count_words<<<1056, 256>>>(words, (long)(size / 8), nonzero);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(&found, nonzero, sizeof(found), cudaMemcpyDeviceToHost));
	CHECK(cudaMemset(words, 0xa5, size));
	CHECK(cudaDeviceSynchronize());
	return found;
}

/* Returns when the first kernel ended that took much less time than those at the start; 0: none
 * did. */
static double
find_faster(const std::vector<double> &times, const std::vector<double> &ends)
{
	const size_t first = 20;

	if (times.size() < first)
		return 0;
	std::vector<double> early(times.begin(), times.begin() + first);
	std::sort(early.begin(), early.end());
	for (size_t i = first; i < times.size(); i++) {
		if (times[i] < 0.6 * early[first / 2])
			return ends[i];
	}
	return 0;
}

/* From launch to end, in microseconds. */
static std::vector<double>
measure_latency(const work &w, double start, double *faster)
{
	std::vector<double> times, ends;
	double end = start + w.o.seconds;

	for (double next = start; wall() < end; next += w.o.period_us * 1e-6) {
		wait_until(next);
		double begin = wall();
		w.launch();
		CHECK(cudaStreamSynchronize(w.stream));
		ends.push_back(wall());
		times.push_back((ends.back() - begin) * 1e6);
		if (next < wall() - 0.1)
			next = wall();
	}
	*faster = find_faster(times, ends);
	std::sort(times.begin(), times.end());
	return times;
}

/* Copies from or to pageable or pinned memory, one after the other: GB/s; ends: end times in
 * seconds from the start. */
static double
measure_copies(const work &w, double start, std::vector<double> &ends)
{
	size_t size = (size_t)w.o.copy_mib << 20, sum = 0;
	std::vector<char> ordinary(w.o.pinned ? 0 : size);
	char *device, *host = ordinary.data();

	if (w.o.pinned) {
		CHECK(cudaMallocHost(&host, size));
		memset(host, 1, size);
	}
	CHECK(cudaMalloc(&device, size));
	CHECK(cudaMemcpy(device, host, size, cudaMemcpyHostToDevice));
	wait_until(start);
	double begin = wall();
	while (wall() < start + w.o.seconds) {
		if (w.o.out)
			CHECK(cudaMemcpyAsync(host, device, size, cudaMemcpyDeviceToHost));
		else
			CHECK(cudaMemcpyAsync(device, host, size, cudaMemcpyHostToDevice));
		CHECK(cudaStreamSynchronize(0));
		sum += size;
		ends.push_back(wall() - start);
	}
	CHECK(cudaDeviceSynchronize());
	return sum * 1e-9 / (wall() - begin);
}

static int
count_sms(const work &w)
{
	unsigned int bits[64];
	int count = 0;

	CHECK(cudaMemcpy(bits, w.sms, sizeof(bits), cudaMemcpyDeviceToHost));
	for (unsigned int word : bits)
		count += __builtin_popcount(word);
	return count;
}

/* Returns the number of graphs captured and run until then. */
static long
capture_graphs(const work &w, double end)
{
	long count = 0;

	for (; wall() < end; count++) {
		cudaGraph_t graph;
		cudaGraphExec_t exec;

		CHECK(cudaStreamBeginCapture(w.stream, cudaStreamCaptureModeGlobal));
		w.launch();
		std::this_thread::sleep_for(std::chrono::milliseconds(1));
		CHECK(cudaStreamEndCapture(w.stream, &graph));
		CHECK(cudaGraphInstantiate(&exec, graph, 0));
		CHECK(cudaGraphLaunch(exec, w.stream));
		CHECK(cudaStreamSynchronize(w.stream));
		CHECK(cudaGraphExecDestroy(exec));
		CHECK(cudaGraphDestroy(graph));
	}
	return count;
}

int
main(int argc, char **argv)
{
	work w;
	int device_sms;
	size_t size = sizeof(float);

	w.o = parse(argc, argv);
	CHECK(cudaDeviceGetAttribute(&device_sms, cudaDevAttrMultiProcessorCount, 0));
	if (w.o.triad_mib) {
		w.elements = w.o.triad_mib * (1 << 20) / 4;
		size = (size_t)w.elements * 3 * sizeof(float);
	}
	CHECK(cudaMalloc(&w.out, size));
	CHECK(cudaMalloc(&w.sms, 64 * sizeof(unsigned int)));
	CHECK(cudaMemset(w.sms, 0, 64 * sizeof(unsigned int)));
	if (!w.o.null_stream)
		CHECK(cudaStreamCreateWithPriority(&w.stream, cudaStreamNonBlocking, w.o.priority));
	w.launch();
	CHECK(cudaDeviceSynchronize());
	double start = w.o.start > 0 ? w.o.start : wall();
	if (w.o.start > 0 && wall() > start)
		fprintf(stderr, "load: started %.3f s late\n", wall() - start);
	printf("{\"multiprocessors\": %d", device_sms);
	if (w.o.leftovers_mib) {
		printf(", \"leftovers\": %llu", find_leftovers(w.o.leftovers_mib));
	} else if (w.o.captures) {
		printf(", \"captures\": %ld", capture_graphs(w, start + w.o.seconds));
	} else if (w.o.copy_mib) {
		std::vector<double> ends;

		printf(", \"gbytes\": %.4f", measure_copies(w, start, ends));
		for (size_t i = 0; w.o.per_second && i < ends.size(); i++)
			printf("%s%.6f", i ? ", " : ", \"ends\": [", ends[i]);
		if (w.o.per_second && !ends.empty())
			printf("]");
	} else if (w.o.period_us) {
		wait_until(start);
		double faster;
		auto times = measure_latency(w, start, &faster);
		size_t n = times.size();

		printf(", \"count\": %zu, \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f", n,
		       times[n / 2], times[n * 99 / 100], times[n - 1]);
		printf(", \"faster_at\": %.6f", faster);
	} else {
		std::vector<long> seconds((size_t)ceil(w.o.seconds) + 1);

		if (w.o.launches)
			wait_until(start);
		double begin = wall();
		long count = measure(w, w.o.launches ? begin : start, &seconds);
		double took = w.o.launches ? wall() - begin : w.o.seconds;
		double operations = 4.0 * w.o.iterations * w.o.threads * w.o.blocks * count;

		printf(", \"kernels\": %ld, \"seconds\": %.6f, \"gflops\": %.3f", count, took,
		       w.o.spin_us || w.o.triad_mib ? 0 : operations / took * 1e-9);
		if (w.o.triad_mib)
			printf(", \"gbytes\": %.3f", 3.0 * w.elements * 4 * count / took * 1e-9);
		if (w.o.per_second) {
			printf(", \"by_second\": [");
			for (size_t i = 0; i + 1 < seconds.size(); i++)
				printf("%s%ld", i ? ", " : "", seconds[i]);
			printf("]");
		}
	}
	printf(", \"distinct_multiprocessors\": %d}\n", count_sms(w));
	return 0;
}
