/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hoststress [ROUNDS [SEED]]: memory that the program and kernels use at the same time.
 * messages: a kernel that keeps running and the program exchange data and a flag, ROUNDS times for
 * each placement of data and flag. A reader that sees the flag must see the data.
 * words: threads and a kernel write different words of the same pages. No write may be lost.
 * by turns: mapped, registered and managed memory is compared with a model, while the process
 * forks, receives signals, and is short of memory.
 */
#include "app.h"

#include <atomic>
#include <csignal>
#include <ctime>
#include <random>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

static unsigned int seed = 1;

static __host__ __device__ unsigned int
mixed(unsigned int value)
{
	value = (value ^ value >> 16) * 0x45d9f3bu;
	value = (value ^ value >> 16) * 0x45d9f3bu;
	return value ^ value >> 16;
}

/* Returns word i of a round's message, which differs from that of the previous round. */
static __host__ __device__ unsigned int
get_word(unsigned int round, unsigned int i, unsigned int seed)
{
	return mixed(round * 2654435761u + i * 97 + seed) << 8 | (round & 255);
}

static __host__ __device__ unsigned int
get_length(unsigned int round, unsigned int least, unsigned int most, unsigned int seed)
{
	return least + mixed(round + seed) % (most - least + 1);
}

/* One direction: data and its flag. */
struct way {
	volatile unsigned int *flag, *data;
};

struct ways {
	way in, out;
};

static ways
between(unsigned int *const flag[2], unsigned int *const data[2])
{
	return { { flag[0], data[0] }, { flag[1], data[1] } };
}

/* Returns the addresses of the flag and the data with these indices, for both sides. */
static ways
within(unsigned int *const memory[2], unsigned int flag, unsigned int data)
{
	return { { memory[0] + flag, memory[0] + data }, { memory[1] + flag, memory[1] + data } };
}

static __global__ void
converse(way in, way out, unsigned int least, unsigned int most, unsigned int rounds,
	 unsigned int seed, unsigned int *wrong)
{
	for (unsigned int round = 1; round <= rounds; round++) {
		unsigned int length = get_length(round, least, most, seed);

		if (threadIdx.x == 0) {
			while (*in.flag != round)
				continue;
			__threadfence_system();
		}
		__syncthreads();
		for (unsigned int i = threadIdx.x; i < length; i += blockDim.x) {
			if (in.data[i] != get_word(round, i, seed))
				atomicAdd(wrong, 1);
			out.data[i] = get_word(round, i, ~seed);
		}
		__threadfence_system();
		__syncthreads();
		if (threadIdx.x == 0)
			*out.flag = round;
	}
}

static void
await(volatile unsigned int *flag, unsigned int value)
{
	time_t begin = time(nullptr);

	for (long tries = 0; __atomic_load_n(flag, __ATOMIC_ACQUIRE) != value; tries++) {
		if (tries % 64 == 63) {
			REQUIRE(time(nullptr) - begin < 100);
			(void)usleep(20);
		}
	}
}

static void
hold_conversation(const char *name, const ways &both, unsigned int least, unsigned int most,
		  unsigned int rounds)
{
	const way &in = both.in, &out = both.out;
	unsigned int *wrong = app_malloc<unsigned int>(1), there = 0, here = 0;

	*in.flag = *out.flag = 0;
	CHECK(cudaMemset(wrong, 0, sizeof(*wrong)));
	converse<<<1, 64>>>(in, out, least, most, rounds, seed, wrong);
	for (unsigned int round = 1; round <= rounds; round++) {
		unsigned int length = get_length(round, least, most, seed);

		for (unsigned int i = 0; i < length; i++)
			in.data[i] = get_word(round, i, seed);
		__atomic_store_n(in.flag, round, __ATOMIC_RELEASE);
		await(out.flag, round);
		for (unsigned int i = 0; i < length; i++)
			here += out.data[i] != get_word(round, i, ~seed);
	}
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(&there, wrong, sizeof(there), cudaMemcpyDeviceToHost));
	if (here || there)
		printf("%s: %u words came behind the flag here, %u there\n", name, here, there);
	REQUIRE(here == 0 && there == 0);
	CHECK(cudaFree(wrong));
}

static unsigned int *
mapped(size_t words)
{
	unsigned int *memory;

	CHECK(cudaHostAlloc(&memory, words * sizeof(*memory), cudaHostAllocMapped));
	memset(memory, 0, words * sizeof(*memory));
	return memory;
}

static void
messages(unsigned int rounds)
{
	const unsigned int page = 1024, most = 3000;
	unsigned int *front[2], *data[2], *back[2], *pages[2];

	for (int i = 0; i < 2; i++) {
		front[i] = mapped(16);
		data[i] = mapped(most);
		back[i] = mapped(16);
		pages[i] = mapped(8 * page);
	}
	hold_conversation("a buffer before", between(front, data), 3, most, rounds);
	hold_conversation("a buffer behind", between(back, data), 3, most, rounds);
	hold_conversation("a page before", within(pages, 100, 3 * page), 3, 2 * page, rounds);
	hold_conversation("a page behind", within(pages, 7 * page, 3 * page), 3, 2 * page, rounds);
	hold_conversation("in front", within(pages, 64, 66), 3, 40, rounds);
	hold_conversation("behind", within(pages, 64, 20), 3, 40, rounds);
	hold_conversation("right behind", within(pages, 64, 24), 40, 40, rounds);
	hold_conversation("beside", within(pages, 65, 64), 1, 1, rounds);
	hold_conversation("beside, in front", within(pages, 64, 65), 1, 1, rounds);
	for (int i = 0; i < 2; i++) {
		for (unsigned int *memory : { front[i], data[i], back[i], pages[i] })
			CHECK(cudaFreeHost(memory));
	}
	printf("messages\n");
}

/* More bytes than one transfer carries. */
static void
large_messages(unsigned int rounds)
{
	const unsigned int most = 1500000;
	unsigned int *flag[2] = { mapped(16), mapped(16) };
	unsigned int *data[2] = { mapped(most), mapped(most) };

	hold_conversation("much", between(flag, data), most / 8, most, rounds / 500 + 3);
	for (int i = 0; i < 2; i++) {
		CHECK(cudaFreeHost(flag[i]));
		CHECK(cudaFreeHost(data[i]));
	}
	printf("large messages\n");
}

/* Owner of the word: 0 is the device, other values are threads. */
static __host__ __device__ unsigned int
get_owner(unsigned int i, unsigned int seed)
{
	return mixed(i * 31 + seed) % 3;
}

static __global__ void
write_own(volatile unsigned int *data, unsigned int count, unsigned int passes, unsigned int seed)
{
	for (unsigned int pass = 0; pass < passes; pass++) {
		for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
		     i += gridDim.x * blockDim.x) {
			if (get_owner(i, seed) == 0)
				data[i] = data[i] * 5 + 1;
		}
		__syncthreads();
	}
}

static void
words(unsigned int rounds)
{
	const unsigned int count = 20000, passes = 8;
	unsigned int *data = mapped(count), turns = rounds / 100 + 3;
	std::vector<unsigned int> model(count);
	std::atomic<unsigned int> wrong(0);
	std::atomic<bool> over(false);
	std::vector<std::thread> threads;

	for (unsigned int t = 1; t < 3; t++) {
		threads.emplace_back([&, t] {
			std::minstd_rand random(seed + t);
			volatile unsigned int *seen = data;

			while (!over) {
				unsigned int i = (unsigned int)random() % count;

				if (get_owner(i, seed) != t)
					continue;
				wrong += seen[i] != model[i];
				seen[i] = model[i] = (unsigned int)random();
			}
		});
	}
	for (unsigned int turn = 0; turn < turns; turn++) {
		write_own<<<2, 128>>>(data, count, passes, seed);
		for (unsigned int i = 0; i < count; i++) {
			for (unsigned int pass = 0; pass < passes && get_owner(i, seed) == 0;
			     pass++)
				model[i] = model[i] * 5 + 1;
		}
		CHECK(cudaDeviceSynchronize());
		for (unsigned int i = 0; i < count; i++)
			wrong += get_owner(i, seed) == 0 && data[i] != model[i];
	}
	over = true;
	for (auto &thread : threads)
		thread.join();
	REQUIRE(wrong == 0);
	write_own<<<2, 128>>>(data, count, 0, seed);
	CHECK(cudaDeviceSynchronize());
	for (unsigned int i = 0; i < count; i++)
		REQUIRE(data[i] == model[i]);
	CHECK(cudaFreeHost(data));
	printf("words\n");
}

static __global__ void
change(unsigned int *data, unsigned int from, unsigned int to, unsigned int by)
{
	for (unsigned int i = from + blockIdx.x * blockDim.x + threadIdx.x; i < to;
	     i += gridDim.x * blockDim.x)
		data[i] = data[i] * 3 + by + i;
}

struct tested {
	unsigned int *memory; /* address for the program, and address for kernels */
	std::vector<unsigned int> model;
};

/* A part is changed by the device or the host; then some of it is compared. */
static void
step(tested &one, std::minstd_rand &random)
{
	unsigned int count = (unsigned int)one.model.size(), from = (unsigned int)random() % count;
	unsigned int to = from + (unsigned int)random() % (count - from) + 1;
	unsigned int by = (unsigned int)random();

	if (random() % 3) {
		change<<<2, 128>>>(one.memory, from, to, by);
		for (unsigned int i = from; i < to; i++)
			one.model[i] = one.model[i] * 3 + by + i;
		if (random() % 2)
			return;
	}
	CHECK(cudaDeviceSynchronize());
	for (unsigned int i = from; i < to; i += 1 + (unsigned int)random() % 64) {
		REQUIRE(one.memory[i] == one.model[i]);
		if (random() % 4 == 0)
			one.memory[i] = one.model[i] = (unsigned int)random();
	}
}

static volatile unsigned int *signalled;
static std::atomic<unsigned int> signals;

/* Called by any thread, with a word that no other thread uses. */
static void
handler(int)
{
	int error = errno;

	*signalled = ++signals;
	errno = error;
}

static void
start_signals(unsigned int *word)
{
	const struct itimerval each = { { 0, 2000 }, { 0, 2000 } };
	struct sigaction action = {};

	signalled = word;
	action.sa_handler = handler;
	action.sa_flags = SA_RESTART;
	REQUIRE(sigaction(SIGALRM, &action, nullptr) == 0);
	REQUIRE(setitimer(ITIMER_REAL, &each, nullptr) == 0);
}

/* Allocates and frees memory of the system and memory of kernels. */
static void
press(const std::atomic<bool> &over)
{
	for (unsigned int turn = 0; !over; turn++) {
		const size_t size = (size_t)48 << 20;
		void *plain = mmap(nullptr, size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		unsigned int *block = mapped(1000 + turn % 5 * 100000);

		REQUIRE(plain != MAP_FAILED);
		memset(plain, 1, size);
		block[999] = turn;
		CHECK(cudaFreeHost(block));
		REQUIRE(munmap(plain, size) == 0);
		usleep(20000);
	}
}

/* The child's memory has the contents of the fork; then the child exits. */
static void
fork_once(const std::vector<unsigned int> &model)
{
	unsigned int sum = 0, again = 0;
	int status;
	pid_t child;

	for (unsigned int value : model)
		sum += value;
	child = fork();
	REQUIRE(child >= 0);
	if (child == 0) {
		for (unsigned int value : model)
			again += value;
		_exit(sum == again ? 42 : 1);
	}
	REQUIRE(waitpid(child, &status, 0) == child);
	REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

static void
by_turns(unsigned int rounds)
{
	const unsigned int count = 30000;
	const struct itimerval none = {};
	std::minstd_rand random(seed);
	std::vector<unsigned int> registered(count);
	std::atomic<bool> over(false);
	unsigned int *own = mapped(1), steps = rounds / 10 + 30;
	tested all[3];

	all[0].memory = mapped(count);
	CHECK(cudaMallocManaged(&all[1].memory, count * sizeof(unsigned int)));
	memset(all[1].memory, 0, count * sizeof(unsigned int));
	all[2].memory = registered.data();
	CHECK(cudaHostRegister(registered.data(), count * sizeof(unsigned int),
			       cudaHostRegisterMapped));
	for (tested &one : all)
		one.model.resize(count);
	start_signals(own);
	std::thread presser(press, std::cref(over));
	for (unsigned int i = 0; i < steps; i++) {
		step(all[random() % 3], random);
		if (i % 40 == 20)
			fork_once(all[0].model);
	}
	over = true;
	presser.join();
	REQUIRE(setitimer(ITIMER_REAL, &none, nullptr) == 0);
	CHECK(cudaDeviceSynchronize());
	for (const tested &one : all)
		REQUIRE(std::equal(one.model.begin(), one.model.end(), one.memory));
	REQUIRE(*own > 0 && *own <= signals);
	CHECK(cudaHostUnregister(registered.data()));
	CHECK(cudaFree(all[1].memory));
	CHECK(cudaFreeHost(all[0].memory));
	CHECK(cudaFreeHost(own));
	printf("by turns\n");
}

int
main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? (unsigned int)strtoul(argv[1], nullptr, 10) : 60;

	if (argc > 2)
		seed = (unsigned int)strtoul(argv[2], nullptr, 10);
	messages(rounds);
	large_messages(rounds);
	words(rounds);
	by_turns(rounds);
	return app_ok("hoststress");
}
