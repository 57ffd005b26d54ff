/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory in a program that has its own handler for SIGSEGV, on its own stack, installed
 * earlier or later; that forks; and that passes memory to system calls which it has not used on the
 * device.
 */
#include "app.h"

#include <atomic>
#include <cerrno>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

static __global__ void
add(int *data, int count)
{
	for (int i = threadIdx.x; i < count; i += blockDim.x)
		data[i] += 1;
}

static sigjmp_buf back;
static int early, late;
static void *expected;

static void
early_handler(int, siginfo_t *info, void *)
{
	early += info->si_addr == expected;
	siglongjmp(back, 1);
}

static void
late_handler(int)
{
	late++;
	siglongjmp(back, 1);
}

/* Whether the program's handler is called for the fault. */
static bool
faults(volatile int *address)
{
	expected = (void *)address;
	if (sigsetjmp(back, 1))
		return true;
	(void)*address;
	return false;
}

static void
handlers(int *data, int count)
{
	struct sigaction action = {};
	int *nothing = (int *)mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	REQUIRE(nothing != MAP_FAILED);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < count; i++)
			data[i] = i + round;
		add<<<1, 256>>>(data, count);
		CHECK(cudaDeviceSynchronize());
		REQUIRE(!faults(data + count / 2));
		REQUIRE(data[count / 2] == count / 2 + round + 1);
		REQUIRE(faults(nothing));
	}
	REQUIRE(early == 3);
	action.sa_handler = late_handler;
	REQUIRE(sigaction(SIGSEGV, &action, nullptr) == 0);
	add<<<1, 256>>>(data, count);
	CHECK(cudaDeviceSynchronize());
	REQUIRE(data[7] == 7 + 2 + 2 && data[count - 1] == count - 1 + 4);
	REQUIRE(faults(nothing));
	REQUIRE(early == 3 && late == 1);
	REQUIRE(munmap(nothing, 4096) == 0);
	printf("handlers\n");
}

static void
forks(int *data, int count)
{
	int status, concurrent;

	CHECK(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
	add<<<1, 256>>>(data, count);
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < count; i++)
		data[i] = 3 * i;
	fflush(stdout);
	pid_t child = fork();
	REQUIRE(child >= 0);
	if (child == 0) {
		/* Contents that the parent had on the host, which now belong to the child. If the
		 * driver migrates pages itself, a child has none of them. */
		usleep(100000);
		for (int i = 0; i < count && !concurrent; i++) {
			if (data[i] != 3 * i)
				_exit(1);
			data[i] = 0;
		}
		_exit(42);
	}
	for (int i = 0; i < count; i++)
		data[i] += 5;
	add<<<1, 256>>>(data, count);
	CHECK(cudaDeviceSynchronize());
	REQUIRE(waitpid(child, &status, 0) == child);
	REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 42);
	for (int i = 0; i < count; i++)
		REQUIRE(data[i] == 3 * i + 6);
	printf("a fork\n");
}

/* All threads access the same pages at once. */
static void
crowd(int *data, int count)
{
	const int number = 12;
	std::vector<std::thread> threads;
	std::atomic<int> wrong(0), ready(0);

	for (int i = 0; i < count; i++)
		data[i] = i;
	for (int round = 0; round < 4; round++) {
		add<<<1, 256>>>(data, count);
		CHECK(cudaDeviceSynchronize());
		ready = 0;
		threads.clear();
		for (int t = 0; t < number; t++) {
			threads.emplace_back([&, t] {
				ready++;
				while (ready < number)
					std::this_thread::yield();
				for (int i = t; i < count; i += number) {
					wrong += data[i] != i + 2 * round + 1;
					data[i] += 1;
				}
			});
		}
		for (auto &thread : threads)
			thread.join();
	}
	REQUIRE(wrong == 0);
	printf("a crowd\n");
}

static void
system_calls()
{
	const size_t size = 3 << 20;
	char *memory;
	int ends[2];

	CHECK(cudaMallocManaged(&memory, size));
	REQUIRE(pipe(ends) == 0);
	std::thread writer([&] {
		std::vector<char> bytes(size, 'x');

		for (size_t at = 0; at < size;)
			at += (size_t)write(ends[1], bytes.data() + at, size - at);
	});
	for (size_t at = 0; at < size;) {
		ssize_t got = read(ends[0], memory + at, size - at);

		REQUIRE(got > 0);
		at += (size_t)got;
	}
	writer.join();
	add<<<1, 256>>>((int *)memory, size / sizeof(int));
	CHECK(cudaDeviceSynchronize());
	for (size_t i = 0; i < size; i++)
		REQUIRE(memory[i] == (i % 4 == 0 ? 'y' : 'x'));
	REQUIRE(write(ends[1], memory + 5, 4) == 4);
	/* The system writes out what the program has written. */
	memory[0] = 0;
	REQUIRE(read(ends[0], memory, 4) == 4 && memory[3] == 'y');
	CHECK(cudaFree(memory));
	printf("system calls\n");
}

/* Contents on the device: a system call can access them after the program has touched them;
 * otherwise it fails. */
static void
system_calls_after_a_kernel()
{
	const size_t size = 200000, page = 4096;
	char *memory, *file = (char *)MAP_FAILED;
	int fd = memfd_create("managed", 0);
	ssize_t got;

	REQUIRE(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	file = (char *)mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	REQUIRE(file != MAP_FAILED);
	CHECK(cudaMallocManaged(&memory, size));
	memset(memory, 0, size);
	for (int round = 1; round <= 3; round++) {
		add<<<1, 256>>>((int *)memory, size / sizeof(int));
		CHECK(cudaDeviceSynchronize());
		got = pwrite(fd, memory, size, 0);
		REQUIRE((got > 0 && got <= (ssize_t)size) || (got < 0 && errno == EFAULT));
		/* For memory that the system reads, a read by the program is sufficient. */
		for (size_t at = 0; at < size; at += page)
			REQUIRE(*(volatile char *)(memory + at) == round);
		REQUIRE(pwrite(fd, memory, size, 0) == (ssize_t)size);
		REQUIRE(memcmp(file, memory, size) == 0);
	}
	memset(file, 7, size);
	add<<<1, 256>>>((int *)memory, size / sizeof(int));
	CHECK(cudaDeviceSynchronize());
	got = pread(fd, memory, size, 0);
	REQUIRE((got > 0 && got <= (ssize_t)size) || (got < 0 && errno == EFAULT));
	/* Memory that the system writes must be written by the program before. */
	for (size_t at = 0; at < size; at += page)
		*(volatile char *)(memory + at) = 0;
	REQUIRE(pread(fd, memory, size, 0) == (ssize_t)size);
	add<<<1, 256>>>((int *)memory, size / sizeof(int));
	CHECK(cudaDeviceSynchronize());
	REQUIRE(memory[0] == 8 && memory[1] == 7 && memory[size - 4] == 8 && memory[size - 1] == 7);
	CHECK(cudaFree(memory));
	REQUIRE(munmap(file, size) == 0 && close(fd) == 0);
	printf("system calls behind a kernel\n");
}

int
main()
{
	const int count = 300000;
	struct sigaction action = {};
	stack_t stack = {};
	int *data;

	/* The minimum size of a stack. */
	stack.ss_size = SIGSTKSZ;
	stack.ss_sp = malloc(stack.ss_size);
	REQUIRE(sigaltstack(&stack, nullptr) == 0);
	action.sa_flags = SA_SIGINFO | SA_ONSTACK;
	action.sa_sigaction = early_handler;
	REQUIRE(sigaction(SIGSEGV, &action, nullptr) == 0);
	CHECK(cudaMallocManaged(&data, count * sizeof(int)));
	handlers(data, count);
	forks(data, count);
	crowd(data, count);
	system_calls();
	system_calls_after_a_kernel();
	CHECK(cudaFree(data));
	return app_ok("managedsignals");
}
