/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overhead of gpupool's call path over the driver's own time, measured without gpupool:
 *
 *   latency calls
 *       A launch, and copies of 64 KiB and 1 MiB, until the caller knows of their end, in us: by
 * the driver alone; with a polled marker; with a thread that issues the call, as the worker's
 *       executor does, and replies itself; and with a further thread that waits and replies, as the
 *       responder does. Waiting threads poll in a tight loop, or pause between polls.
 *   latency pieces
 *       Copies of 256 MiB, in GB/s, by the kind of host memory: the driver's; shared with another
 *       process and registered at once; registered and copied by pieces of 8 MiB, as the worker
 *       does; the same in huge pages, if the system has any.
 */
#include "measure.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <functional>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

#define MIB ((size_t)1 << 20)
#define SIZE (256 * MIB)
#define PIECE (8 * MIB)
/* From linux/mman.h; missing in older systems. */
#define COLLAPSE 25

static __global__ void
empty()
{
}

/* Each word has a cache line of its own, as in the real hand-over between threads. */
struct alignas(128) word {
	std::atomic<uint32_t> value{ 0 };
};

struct path {
	bool pauses;
	word asked, given, answered;
	std::atomic<bool> over{ false };
	cudaStream_t stream;
	volatile uint32_t *marker; /* written by the GPU */
	CUdeviceptr marker_there;
	uint32_t marked;
	std::function<void()> work;
};

static void
spin_pause(const path *path)
{
#if defined(__x86_64__)
	if (path->pauses)
		__builtin_ia32_pause();
#endif
}

static void
wait_word(const path *path, const word *word, uint32_t value)
{
	while (word->value.load(std::memory_order_acquire) != value && !path->over)
		spin_pause(path);
}

static void
wait_marker(const path *path, uint32_t value)
{
	while (*path->marker != value && !path->over)
		spin_pause(path);
}

static void
give(path *path, uint32_t value)
{
	path->work();
	CHECK(cuStreamWriteValue32(path->stream, path->marker_there, value, 0));
}

static void
execute(path *path, bool answers)
{
	CHECK(cudaSetDevice(0));
	for (uint32_t turn = path->marked + 1;; turn++) {
		wait_word(path, &path->asked, turn);
		if (path->over)
			return;
		give(path, turn);
		if (answers) {
			wait_marker(path, turn);
			path->answered.value.store(turn, std::memory_order_release);
		} else {
			path->given.value.store(turn, std::memory_order_release);
		}
	}
}

static void
respond(path *path)
{
	for (uint32_t turn = path->marked + 1; !path->over; turn++) {
		wait_word(path, &path->given, turn);
		wait_marker(path, turn);
		path->answered.value.store(turn, std::memory_order_release);
	}
}

/* Runs for at most about a second. */
static double
measure_median(const std::function<void()> &once)
{
	std::vector<double> took;
	double end;

	for (int i = 0; i < 20; i++)
		once();
	end = now_us() + 1e6;
	while (took.size() < 10 || (took.size() < 1000 && now_us() < end)) {
		double begin = now_us();

		once();
		took.push_back(now_us() - begin);
	}
	std::sort(took.begin(), took.end());
	return took[took.size() / 2];
}

/* With one or two threads between the caller and the driver. */
static double
handed_over(path *path, bool responder)
{
	std::vector<std::thread> threads;
	uint32_t turn = path->marked;
	double took;

	path->over = false;
	path->asked.value = path->given.value = path->answered.value = turn;
	threads.emplace_back(execute, path, !responder);
	if (responder)
		threads.emplace_back(respond, path);
	took = measure_median([&] {
		path->asked.value.store(++turn, std::memory_order_release);
		wait_word(path, &path->answered, turn);
	});
	path->over = true;
	for (std::thread &thread : threads)
		thread.join();
	path->marked = turn;
	return took;
}

static void
measure_calls(path *path, const char *name)
{
	double native = measure_median([&] {
		path->work();
		CHECK(cuStreamSynchronize(path->stream));
	});

	for (bool pauses : { false, true }) {
		double polled, own, responder;

		path->pauses = pauses;
		path->over = false;
		polled = measure_median([&] {
			give(path, ++path->marked);
			wait_marker(path, path->marked);
		});
		own = handed_over(path, false);
		responder = handed_over(path, true);
		printf("%-22s %-6s native %6.2f us, marker %6.2f, executor answers %6.2f, "
		       "responder answers %6.2f\n",
		       name, pauses ? "pauses" : "tight", native, polled, own, responder);
	}
}

static char *
share()
{
	int fd = memfd_create("latency", MFD_CLOEXEC);
	char *room =
		(char *)mmap(NULL, SIZE + 2 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *place = (char *)(((uintptr_t)room + 2 * MIB - 1) & ~(uintptr_t)(2 * MIB - 1));

	if (fd < 0 || ftruncate(fd, SIZE) || room == MAP_FAILED ||
	    mmap(place, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		    MAP_FAILED) {
		perror("latency: shared memory");
		exit(1);
	}
	(void)close(fd);
	memset(place, 1, SIZE);
	return place;
}

static void
register_by(char *host, size_t piece)
{
	for (size_t at = 0; at < SIZE; at += piece)
		CHECK(cuMemHostRegister(host + at, piece,
					CU_MEMHOSTREGISTER_PORTABLE |
						CU_MEMHOSTREGISTER_DEVICEMAP));
}

static void
calls()
{
	static path path;
	CUdeviceptr device, shared;
	void *host, *marker;
	char *memory = share();

	CHECK(cudaStreamCreateWithFlags(&path.stream, cudaStreamNonBlocking));
	CHECK(cuMemHostAlloc(&marker, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	CHECK(cuMemHostGetDevicePointer(&path.marker_there, marker, 0));
	path.marker = (volatile uint32_t *)marker;
	*path.marker = 0;
	CHECK(cuMemAlloc(&device, MIB));
	CHECK(cuMemHostAlloc(&host, MIB, CU_MEMHOSTALLOC_DEVICEMAP));
	register_by(memory, PIECE);
	shared = (CUdeviceptr)memory;
	path.work = [&] { empty<<<1, 32, 0, path.stream>>>(); };
	measure_calls(&path, "launch");
	for (size_t size : { MIB / 16, MIB }) {
		std::string kib = std::to_string(size >> 10) + " KiB";

		path.work = [&] { CHECK(cuMemcpyHtoDAsync(device, host, size, path.stream)); };
		measure_calls(&path, (kib + " to the device").c_str());
		path.work = [&] { CHECK(cuMemcpyDtoHAsync(host, device, size, path.stream)); };
		measure_calls(&path, (kib + " from the device").c_str());
		/* As the worker issues copies of memory that it shares with a client. */
		path.work = [&] { CHECK(cuMemcpyDtoDAsync(device, shared, size, path.stream)); };
		measure_calls(&path, (kib + " there, as DtoD").c_str());
		path.work = [&] { CHECK(cuMemcpyDtoDAsync(shared, device, size, path.stream)); };
		measure_calls(&path, (kib + " back, as DtoD").c_str());
	}
}

static double
rate(const std::function<void()> &copy, cudaStream_t stream)
{
	std::vector<double> took(15);

	for (double &one : took) {
		double begin = now_us();

		copy();
		CHECK(cuStreamSynchronize(stream));
		one = now_us() - begin;
	}
	std::sort(took.begin(), took.end());
	return (double)SIZE / took[took.size() / 2] / 1e3;
}

static void
measure_pieces(const char *name, char *host, size_t piece, CUdeviceptr device, cudaStream_t stream)
{
	const auto by_pieces = [&](const std::function<void(size_t)> &copy) {
		return rate(
			[&] {
				for (size_t at = 0; at < SIZE; at += piece)
					copy(at);
			},
			stream);
	};
	double in = by_pieces([&](size_t at) {
		CHECK(cuMemcpyHtoDAsync(device + at, host + at, piece, stream));
	});
	double in_there = by_pieces([&](size_t at) {
		CUdeviceptr there;

		CHECK(cuMemHostGetDevicePointer(&there, host + at, 0));
		CHECK(cuMemcpyDtoDAsync(device + at, there, piece, stream));
	});
	double out = by_pieces([&](size_t at) {
		CHECK(cuMemcpyDtoHAsync(host + at, device + at, piece, stream));
	});
	double out_there = by_pieces([&](size_t at) {
		CUdeviceptr there;

		CHECK(cuMemHostGetDevicePointer(&there, host + at, 0));
		CHECK(cuMemcpyDtoDAsync(there, device + at, piece, stream));
	});

	printf("%-34s HtoD %5.1f GB/s, as DtoD %5.1f; DtoH %5.1f, as DtoD %5.1f\n", name, in,
	       in_there, out, out_there);
}

/* Uses a memory file at an address that is suitable for huge pages. */
static void
pieces()
{
	cudaStream_t stream;
	CUdeviceptr device;
	void *host;
	char *whole = share(), *cut = share(), *huge = share();

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cuMemAlloc(&device, SIZE));
	CHECK(cuMemHostAlloc(&host, SIZE, CU_MEMHOSTALLOC_DEVICEMAP));
	memset(host, 1, SIZE);
	measure_pieces("the driver's", (char *)host, SIZE, device, stream);
	measure_pieces("the driver's, by pieces", (char *)host, PIECE, device, stream);
	register_by(whole, SIZE);
	measure_pieces("shared", whole, SIZE, device, stream);
	measure_pieces("shared, copied by pieces", whole, PIECE, device, stream);
	register_by(cut, PIECE);
	measure_pieces("shared, registered by pieces", cut, PIECE, device, stream);
	if (madvise(huge, SIZE, COLLAPSE)) {
		perror("shared, in huge pages: there are none");
		return;
	}
	register_by(huge, PIECE);
	measure_pieces("shared, by pieces, in huge pages", huge, PIECE, device, stream);
}

int
main(int argc, char **argv)
{
	bool is_calls = argc == 2 && strcmp(argv[1], "calls") == 0;

	if (!is_calls && (argc != 2 || strcmp(argv[1], "pieces") != 0)) {
		fprintf(stderr, "usage: latency calls | latency pieces\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(cudaSetDevice(0));
	CHECK(cudaFree(NULL));
	if (is_calls)
		calls();
	else
		pieces();
	return 0;
}
