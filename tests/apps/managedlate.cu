/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory in a program that changes the handler of SIGSEGV, its descriptors and its child
 * processes, without a CUDA call in between.
 */
#include "app.h"

#include <atomic>
#include <csignal>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

static const int count = 300000;
static int *data, expected;

static __global__ void
add(int *numbers, int size)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x)
		numbers[i] += 1;
}

static void
use()
{
	add<<<8, 128>>>(data, count);
	CHECK(cudaDeviceSynchronize());
	expected++;
}

static void
check()
{
	for (int i = 0; i < count; i += 500)
		REQUIRE(data[i] == expected);
}

static void
late_handler(int)
{
	_exit(66);
}

static void
handlers()
{
	use();
	REQUIRE(signal(SIGSEGV, late_handler) != SIG_ERR);
	check();
	use();
	REQUIRE(signal(SIGSEGV, SIG_DFL) != SIG_ERR);
	check();
	use();
	REQUIRE(signal(SIGSEGV, SIG_IGN) != SIG_ERR);
	check();
	REQUIRE(signal(SIGSEGV, SIG_DFL) != SIG_ERR);
	printf("handlers\n");
}

static void
blocked()
{
	sigset_t all, before;

	use();
	sigfillset(&all);
	REQUIRE(pthread_sigmask(SIG_BLOCK, &all, &before) == 0);
	check();
	REQUIRE(pthread_sigmask(SIG_SETMASK, &before, nullptr) == 0);
	printf("blocked\n");
}

static std::atomic<int> seen;

static void
alarm_handler(int)
{
	seen = data[count - 1];
}

/* A handler accesses the memory, also while its thread waits for a part of it. */
static void
nested()
{
	REQUIRE(signal(SIGALRM, alarm_handler) != SIG_ERR);
	for (int round = 0; round < 20; round++) {
		pthread_t self = pthread_self();

		use();
		seen = -1;
		std::thread other([&] { pthread_kill(self, SIGALRM); });
		check();
		other.join();
		while (seen < 0)
			usleep(100);
		REQUIRE(seen == expected);
	}
	printf("nested\n");
}

/* A child process that the C library does not know of reads the right bytes, or faults. */
static void
raw_child()
{
	int status;

	use();
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
	REQUIRE(child >= 0);
	if (child == 0)
		_exit(*(volatile int *)&data[count / 2] == expected ? 0 : 1);
	REQUIRE(waitpid(child, &status, 0) == child);
	REQUIRE((WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
		(WIFSIGNALED(status) &&
		 (WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS)));
	check();
	printf("a child\n");
}

/* Like a program that closes all descriptors, including the one by which the kernel reports
 * faults. */
static void
closed()
{
	char name[64], target[64];

	for (int fd = 3; fd < 1024; fd++) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		ssize_t length = readlink(name, target, sizeof(target) - 1);

		target[length > 0 ? length : 0] = '\0';
		if (strstr(target, "userfaultfd"))
			REQUIRE(close(fd) == 0);
	}
	for (int round = 0; round < 5; round++) {
		use();
		check();
		for (int i = 0; i < count; i += 7000)
			data[i] += round;
		use();
		for (int i = 0; i < count; i += 7000) {
			REQUIRE(data[i] == expected + round);
			data[i] = expected;
		}
		check();
	}
	printf("closed\n");
}

int
main()
{
	CHECK(cudaMallocManaged(&data, count * sizeof(int)));
	memset(data, 0, count * sizeof(int));
	handlers();
	blocked();
	nested();
	raw_child();
	closed();
	CHECK(cudaFree(data));
	return app_ok("managedlate");
}
