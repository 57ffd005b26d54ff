/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostmemory: cost of host memory that kernels access, and of managed memory. Prints a figure per
 * line: name, number, unit.
 *
 *   hostmemory copies [MIB]       of pinned memory that no kernel uses, and of registered memory
 *   hostmemory managed [MIB]      an array that migrates to the device and back
 *   hostmemory rounds [COUNT]     a running kernel replies to the program; how often the program
 *                                 sees a new value of a word that a kernel increments
 *   hostmemory launches SECONDS   launch and wait, repeatedly; also the start of slow launches
 *   hostmemory churn SECONDS [MS] register, allocate, access and free, repeatedly; with a pause
 *                                 after each call also the start of each call
 *   hostmemory registering        cost of registering pages, and of a concurrent launch by another
 *                                 thread; result of a copy across two registrations
 */
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <functional>
#include <sched.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

#define CHECK(call) check(call, #call)

static void
check(cudaError_t error, const char *call)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "hostmemory: %s: %s\n", call, cudaGetErrorString(error));
	exit(1);
}

static double
now_us()
{
	using namespace std::chrono;

	return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

static void
print(const char *name, double value, const char *unit)
{
	printf("%s %.6g %s\n", name, value, unit);
}

/* Returns the quantile p (0 to 1) of the times. */
static double
at(std::vector<double> &times, double p)
{
	std::sort(times.begin(), times.end());
	return times[(size_t)((double)(times.size() - 1) * p)];
}

/* Copies of one kind of memory, in one direction. */
struct copied {
	const char *name;
	void *to;
	const void *from;
	std::vector<double> times;
};

static double
copy_us(const copied &one, size_t size)
{
	double begin = now_us();

	CHECK(cudaMemcpyAsync(one.to, one.from, size, cudaMemcpyDefault));
	CHECK(cudaStreamSynchronize(0));
	return now_us() - begin;
}

/* Alternates between the kinds, each first in every other round: a connection is slow until it has
 * determined the link's capacity, which would penalize the first kind. The first two rounds are not
 * counted. */
static void
copies(size_t size)
{
	char *device, *pinned, *plain = (char *)aligned_alloc(4096, size);

	CHECK(cudaMalloc(&device, size));
	CHECK(cudaMallocHost(&pinned, size));
	CHECK(cudaHostRegister(plain, size, cudaHostRegisterDefault));
	memset(pinned, 1, size);
	memset(plain, 1, size);
	copied all[] = { { "pinned_in", device, pinned, {} },
			 { "registered_in", device, plain, {} },
			 { "pinned_out", pinned, device, {} },
			 { "registered_out", plain, device, {} } };
	for (int turn = 0; turn < 14; turn++) {
		for (int i = 0; i < 4; i++) {
			copied &one = all[i ^ (turn & 1)];
			double took = copy_us(one, size);

			if (turn >= 2)
				one.times.push_back(took);
		}
	}
	for (copied &one : all)
		print(one.name, (double)size / at(one.times, 0.5) / 1000, "GB/s");
	CHECK(cudaHostUnregister(plain));
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFree(device));
	free(plain);
}

static __global__ void
increase(unsigned int *data, size_t count)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
	     i += (size_t)gridDim.x * blockDim.x)
		data[i] += 1;
}

static void
managed(size_t size)
{
	size_t count = size / sizeof(unsigned int);
	std::vector<double> there, back;
	unsigned int *data;

	CHECK(cudaMallocManaged(&data, size));
	for (int turn = 0; turn < 3; turn++) {
		double begin;

		for (size_t i = 0; i < count; i++)
			data[i] = (unsigned int)i;
		begin = now_us();
		increase<<<1024, 256>>>(data, count);
		CHECK(cudaDeviceSynchronize());
		there.push_back(now_us() - begin);
		begin = now_us();
		/* A word of each page, because memory migrates by page. */
		for (size_t i = 0; i < count; i += 1024) {
			if (data[i] != (unsigned int)i + 1) {
				fprintf(stderr, "hostmemory: word %zu is %u\n", i, data[i]);
				exit(1);
			}
		}
		back.push_back(now_us() - begin);
	}
	print("managed_there", (double)size / at(there, 0.5) / 1000, "GB/s");
	print("managed_back", (double)size / at(back, 0.5) / 1000, "GB/s");
	CHECK(cudaFree(data));
}

static __global__ void
answer(const volatile unsigned int *question, volatile unsigned int *reply, unsigned int rounds)
{
	for (unsigned int round = 1; round <= rounds; round++) {
		while (*question != round)
			continue;
		*reply = round;
		__threadfence_system();
	}
}

static __global__ void
count_up(const volatile unsigned int *stop, volatile unsigned int *word)
{
	for (unsigned int i = 1; *stop == 0; i++) {
		*word = i;
		__threadfence_system();
	}
}

static unsigned int
load(const unsigned int *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void
rounds(unsigned int count)
{
	std::vector<double> round_times, seen_times;
	unsigned int *words, last = 0;
	double before;

	/* Each word is in a page of its own. */
	CHECK(cudaHostAlloc(&words, 4 * 4096, cudaHostAllocMapped));
	memset(words, 0, 4 * 4096);
	answer<<<1, 1>>>(words, words + 1024, count);
	for (unsigned int round = 1; round <= count; round++) {
		double begin = now_us();

		__atomic_store_n(words, round, __ATOMIC_RELEASE);
		while (load(words + 1024) != round)
			sched_yield();
		if (round > count / 10)
			round_times.push_back(now_us() - begin);
	}
	CHECK(cudaDeviceSynchronize());
	count_up<<<1, 1>>>(words + 2048, words + 3072);
	before = 0;
	for (unsigned int seen = 0; seen < count;) {
		unsigned int now = load(words + 3072);

		if (now == last) {
			sched_yield();
			continue;
		}
		if (seen++ > count / 10)
			seen_times.push_back(now_us() - before);
		before = now_us();
		last = now;
	}
	__atomic_store_n(words + 2048, 1, __ATOMIC_RELEASE);
	CHECK(cudaDeviceSynchronize());
	print("round", at(round_times, 0.5), "us");
	print("round_p99", at(round_times, 0.99), "us");
	print("exchange", at(seen_times, 0.5), "us");
	print("exchange_p99", at(seen_times, 0.99), "us");
	CHECK(cudaFreeHost(words));
}

/* The first launches load code, and are not counted. */
#define WARM_US 300000.0
/* Launches that take this much longer than usual are listed. */
#define SLOW_US 500.0

struct timed {
	double begin, took;
};

static void
show_launches(const std::vector<timed> &launches)
{
	std::vector<double> times;
	double usual;

	for (const timed &one : launches)
		times.push_back(one.took);
	usual = at(times, 0.5);
	for (const timed &one : launches) {
		if (one.took > usual + SLOW_US)
			printf("slow at %.0f took %.1f us\n", one.begin, one.took);
	}
	print("launch", usual, "us");
	print("launch_p99", at(times, 0.99), "us");
	print("launch_worst", at(times, 1), "us");
	print("launch_late",
	      (double)std::count_if(times.begin(), times.end(),
				    [=](double took) { return took > usual + 1000; }),
	      "launches");
}

static void
launches(double seconds)
{
	std::vector<timed> all;
	unsigned int *data;
	double end, warm;

	CHECK(cudaMalloc(&data, 4096));
	CHECK(cudaMemset(data, 0, 4096));
	warm = now_us() + WARM_US;
	for (end = warm + seconds * 1e6; now_us() < end;) {
		double begin = now_us();

		increase<<<1, 256>>>(data, 1024);
		CHECK(cudaStreamSynchronize(0));
		if (begin >= warm)
			all.push_back({ begin, now_us() - begin });
	}
	show_launches(all);
	CHECK(cudaFree(data));
}

/* Prints the start of this call, and lets its effects at the daemon complete. */
static void
churn_step(const char *name, size_t size, double pause_ms, const std::function<void()> &call)
{
	double begin = now_us();

	call();
	if (pause_ms <= 0)
		return;
	printf("step %s %zu KiB at %.0f\n", name, size >> 10, begin);
	usleep((useconds_t)(pause_ms * 1000));
}

static void
churn(double seconds, double pause_ms)
{
	const size_t sizes[] = { 4096, (size_t)1 << 20, (size_t)16 << 20, (size_t)64 << 20 };
	double end = now_us() + seconds * 1e6;
	unsigned int turns = 0;

	for (; now_us() < end; turns++) {
		size_t size = sizes[turns % 4];
		char *block, *plain = (char *)aligned_alloc(4096, size), *there;
		auto step = [&](const char *name, const std::function<void()> &call) {
			churn_step(name, size, pause_ms, call);
		};

		step("allocate", [&] { CHECK(cudaHostAlloc(&block, size, cudaHostAllocMapped)); });
		step("register", [&] {
			CHECK(cudaHostRegister(plain, size, cudaHostRegisterMapped));
			CHECK(cudaHostGetDevicePointer(&there, plain, 0));
		});
		step("launch", [&] {
			increase<<<1, 256>>>((unsigned int *)block, 1024);
			increase<<<1, 256>>>((unsigned int *)there, 1024);
			CHECK(cudaStreamSynchronize(0));
		});
		step("unregister", [&] { CHECK(cudaHostUnregister(plain)); });
		step("free", [&] { CHECK(cudaFreeHost(block)); });
		free(plain);
	}
	print("churn", turns / seconds, "turns/s");
}

/* Launches and waits until stopped; returns the longest time in microseconds. */
static double
worst_launch(const std::atomic<bool> &stopped)
{
	cudaStream_t stream;
	double worst = 0;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	while (!stopped) {
		double begun = now_us();

		increase<<<1, 1, 0, stream>>>(nullptr, 0);
		CHECK(cudaStreamSynchronize(stream));
		worst = std::max(worst, now_us() - begun);
	}
	CHECK(cudaStreamDestroy(stream));
	return worst;
}

static void
beside_launches(const char *name, size_t size, const std::function<void()> &call)
{
	std::atomic<bool> stopped{ false };
	double begun, took, worst = 0;

	std::thread other([&] { worst = worst_launch(stopped); });
	usleep(20000);
	begun = now_us();
	call();
	took = now_us() - begun;
	usleep(2000);
	stopped = true;
	other.join();
	printf("%-34s %4zu MiB %10.1f us, a launch %10.1f us\n", name, size >> 20, took, worst);
}

struct pages {
	const char *name;
	bool shared, there, huge;
};

static char *
map_pages(const pages &kind, size_t size)
{
	int flags = kind.shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd = -1;
	void *at;

	if (kind.shared) {
		fd = memfd_create("hostmemory", 0);
		if (fd < 0 || ftruncate(fd, size)) {
			perror("hostmemory: a file in memory");
			exit(1);
		}
	}
	at = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (at == MAP_FAILED) {
		perror("hostmemory: mmap");
		exit(1);
	}
	if (fd >= 0)
		close(fd);
	if (kind.huge)
		(void)madvise(at, size, MADV_HUGEPAGE);
	if (kind.there)
		memset(at, 0, size);
	return (char *)at;
}

static void
register_by_pieces(char *at, size_t size, size_t piece)
{
	for (size_t done = 0; done < size; done += piece)
		CHECK(cudaHostRegister(at + done, piece, cudaHostRegisterMapped));
}

static void
unregister_by_pieces(char *at, size_t size, size_t piece, useconds_t pause_us)
{
	for (size_t done = 0; done < size; done += piece) {
		CHECK(cudaHostUnregister(at + done));
		if (pause_us)
			usleep(pause_us);
	}
}

/* Whether the driver accepts a copy from memory that was registered in pieces. */
static void
copy_over_pieces(char *from, size_t size, size_t piece)
{
	cudaStream_t stream;
	cudaError_t error;
	double begun;
	char *to;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&to, size));
	for (int way = 0; way < 2; way++) {
		for (int i = 0; i < 3; i++) {
			begun = now_us();
			error = way ? cudaMemcpyAsync(from, to, size, cudaMemcpyDeviceToHost,
						      stream)
				    : cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice,
						      stream);
			printf("a copy %s %zu MiB of pieces of %zu MiB: %s, called for %.1f us, ",
			       way ? "to" : "from", size >> 20, piece >> 20,
			       cudaGetErrorName(error), now_us() - begun);
			CHECK(cudaStreamSynchronize(stream));
			printf("done after %.1f us\n", now_us() - begun);
			(void)cudaGetLastError();
		}
	}
	CHECK(cudaFree(to));
	CHECK(cudaStreamDestroy(stream));
}

static void
registering()
{
	const pages kinds[] = {
		{ "private, untouched", false, false, false },
		{ "private, there", false, true, false },
		{ "private, there, huge", false, true, true },
		{ "a file, untouched", true, false, false },
		{ "a file, there", true, true, false },
		{ "a file, there, huge", true, true, true },
	};
	size_t mib = (size_t)1 << 20;

	for (const pages &kind : kinds) {
		for (size_t size = 2 * mib; size <= 64 * mib; size *= size == 2 * mib ? 4 : 8) {
			char *at = map_pages(kind, size);

			beside_launches(kind.name, size, [&] {
				CHECK(cudaHostRegister(at, size, cudaHostRegisterMapped));
			});
			beside_launches("  unregistered", size,
					[&] { CHECK(cudaHostUnregister(at)); });
			(void)munmap(at, size);
		}
	}
	/* At addresses that are new to the driver, then at the same addresses again. */
	for (int i = 0; i < 6; i++) {
		uintptr_t address = 0x140000000000 + (uintptr_t)(i % 3) * (64ull << 30);
		char *at = (char *)mmap((void *)address, 8 * mib, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		if (at == MAP_FAILED) {
			perror("hostmemory: mmap");
			exit(1);
		}
		memset(at, 0, 8 * mib);
		beside_launches(i < 3 ? "at a new address" : "there again", 8 * mib, [&] {
			CHECK(cudaHostRegister(at, 8 * mib, cudaHostRegisterMapped));
		});
		CHECK(cudaHostUnregister(at));
		(void)munmap(at, 8 * mib);
	}
	for (size_t piece = 2 * mib; piece <= 16 * mib; piece *= 2) {
		char *at = map_pages(kinds[1], 64 * mib);

		beside_launches("private, there, by pieces", piece,
				[&] { register_by_pieces(at, 64 * mib, piece); });
		copy_over_pieces(at, 64 * mib, piece);
		beside_launches("  unregistered", piece,
				[&] { unregister_by_pieces(at, 64 * mib, piece, 0); });
		register_by_pieces(at, 64 * mib, piece);
		beside_launches("  unregistered, with pauses", piece,
				[&] { unregister_by_pieces(at, 64 * mib, piece, 200); });
		beside_launches("  unmapped", 64 * mib, [&] { (void)munmap(at, 64 * mib); });
	}
}

int
main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	double number = argc > 2 ? atof(argv[2]) : 0;
	size_t mib = (size_t)1 << 20;

	CHECK(cudaFree(nullptr));
	if (strcmp(what, "copies") == 0) {
		copies((number > 0 ? (size_t)number : 256) * mib);
	} else if (strcmp(what, "managed") == 0) {
		managed((number > 0 ? (size_t)number : 1024) * mib);
	} else if (strcmp(what, "rounds") == 0) {
		rounds(number > 0 ? (unsigned int)number : 2000);
	} else if (strcmp(what, "launches") == 0 && number > 0) {
		launches(number);
	} else if (strcmp(what, "churn") == 0 && number > 0) {
		churn(number, argc > 3 ? atof(argv[3]) : 0);
	} else if (strcmp(what, "registering") == 0) {
		registering();
	} else {
		fprintf(stderr, "usage: hostmemory copies [MIB] | managed [MIB] | rounds [COUNT] | "
				"launches SECONDS | churn SECONDS [MS] | registering\n");
		return 2;
	}
	return 0;
}
