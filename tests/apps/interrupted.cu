/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal handler interrupts CUDA calls and leaves the program, forks or calls CUDA itself.
 *
 *   interrupted WAY TRIES   WAY: exit, quick_exit, _exit, exec, timer, init; each try is a process
 *                           that a handler ends, at another point of its calls
 *   interrupted fork STEP   every STEP-th point forks; the child ends in several ways
 *   interrupted call STEP   every STEP-th point calls CUDA
 *   interrupted cancel ROUNDS     threads are canceled in their calls; others continue
 *   interrupted hostexit 0        a host function calls exit()
 *   interrupted hostnever 0       exit() while a host function does not return
 *
 * A point is a moment after the thread has acquired a lock in libcuda.so.1, and before it waits,
 * sends or receives: this program defines these functions of the C library. timer: a moment of a
 * timer. A try that does not end is ended by SIGALRM.
 */
#include "app.h"

#include <atomic>
#include <csignal>
#include <ctime>
#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Limit of a try; nothing is measured here. */
#define TRY_SECONDS 100
#define AT_ONCE 4
#define LEFT 7 /* exit status of a try that the handler has ended */

static const char *self, *way;
static uintptr_t library_begin, library_end;
static thread_local bool watched, in_handler;
static long points, first_point, step;
static int checks, *managed;

static int
find_library(struct dl_phdr_info *info, size_t, void *)
{
	if (!strstr(info->dlpi_name, "libcuda.so"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		if (!library_begin || begin < library_begin)
			library_begin = begin;
		if (begin + info->dlpi_phdr[i].p_memsz > library_end)
			library_end = begin + info->dlpi_phdr[i].p_memsz;
	}
	return 1;
}

static void
point(void *caller)
{
	if (!watched || in_handler || (uintptr_t)caller < library_begin ||
	    (uintptr_t)caller >= library_end)
		return;
	points++;
	if (points < first_point || (points - first_point) % step)
		return;
	in_handler = true;
	(void)raise(SIGUSR1);
	in_handler = false;
}

template <typename F>
static F *
next(const char *name)
{
	return (F *)dlsym(RTLD_NEXT, name);
}

#define NEXT(name)                                                                                 \
	static decltype(name) *const real = next<decltype(name)>(#name);                           \
	void *caller = __builtin_return_address(0)

extern "C" int
pthread_mutex_lock(pthread_mutex_t *lock) noexcept
{
	NEXT(pthread_mutex_lock);
	int r = real(lock);

	point(caller);
	return r;
}

extern "C" int
pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	NEXT(pthread_cond_wait);

	point(caller);
	return real(cond, lock);
}

extern "C" int
poll(struct pollfd *fds, nfds_t count, int timeout)
{
	NEXT(poll);

	point(caller);
	return real(fds, count, timeout);
}

extern "C" ssize_t
sendmsg(int fd, const struct msghdr *message, int flags)
{
	NEXT(sendmsg);

	point(caller);
	return real(fd, message, flags);
}

extern "C" ssize_t
recvmsg(int fd, struct msghdr *message, int flags)
{
	NEXT(recvmsg);

	point(caller);
	return real(fd, message, flags);
}

extern "C" ssize_t
recv(int fd, void *data, size_t size, int flags)
{
	NEXT(recv);

	point(caller);
	return real(fd, data, size, flags);
}

static __global__ void
add(int *data, int value)
{
	data[blockIdx.x * blockDim.x + threadIdx.x] += value;
}

static void CUDART_CB
count_up(void *counter)
{
	__atomic_fetch_add((int *)counter, 1, __ATOMIC_SEQ_CST);
}

/* Many kinds of calls with checked results; used only where no error is expected. */
static void
work()
{
	static int host[1 << 18], functions;
	int *device = app_malloc<int>(1 << 18), *pinned, *more;
	cudaStream_t stream;
	cudaEvent_t event;
	int before = functions;

	CHECK(cudaMallocHost(&pinned, sizeof(host)));
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaEventCreate(&event));
	for (int i = 0; i < 1 << 18; i++)
		host[i] = i;
	CHECK(cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice));
	for (int i = 0; i < 20; i++)
		add<<<64, 256, 0, stream>>>(device, 1);
	CHECK(cudaEventRecord(event, stream));
	CHECK(cudaLaunchHostFunc(stream, count_up, &functions));
	CHECK(cudaMemcpyAsync(pinned, device, sizeof(host), cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(functions == before + 1 && pinned[5] == 25 && pinned[16384] == 16384);
	CHECK(cudaMallocAsync(&more, 1 << 16, stream));
	CHECK(cudaMemsetAsync(more, 1, 1 << 16, stream));
	CHECK(cudaMemcpyAsync(host, more, 1 << 16, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaFreeAsync(more, stream));
	if (managed) {
		for (int i = 0; i < 1 << 16; i++)
			managed[i] = i;
		add<<<256, 256>>>(managed, 1);
	}
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; managed && i < 1 << 16; i++)
		REQUIRE(managed[i] == i + 1);
	REQUIRE(host[0] == 0x01010101 && host[(1 << 14) - 1] == 0x01010101);
	CHECK(cudaEventSynchronize(event));
	CHECK(cudaEventDestroy(event));
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFree(device));
	checks++;
}

static void
run_self(const char *argument)
{
	(void)execl(self, self, "child", argument, (char *)NULL);
	_exit(3);
}

static void
leave(int)
{
	in_handler = true;
	if (strcmp(way, "_exit") == 0)
		_exit(LEFT);
	if (strcmp(way, "quick_exit") == 0)
		quick_exit(LEFT);
	if (strcmp(way, "exec") == 0)
		run_self("descriptors");
	exit(LEFT);
}

static void
fork_here(int)
{
	static int children;
	int status;
	pid_t child = fork();

	REQUIRE(child >= 0);
	if (child == 0) {
		(void)alarm(TRY_SECONDS);
		switch (children % 3) {
		case 0:
			exit(LEFT);
		case 1:
			_exit(LEFT);
		default:
			run_self("descriptors");
		}
	}
	children++;
	REQUIRE(waitpid(child, &status, 0) == child);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != LEFT)
		printf("a child at point %ld ended with %#x\n", points, status);
	REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == LEFT);
}

/* The call is rejected or performed, but does not wait. */
static void
call_here(int)
{
	size_t free_bytes, total;
	cudaError_t error = cudaMemGetInfo(&free_bytes, &total);

	REQUIRE(error == cudaErrorNotPermitted);
	REQUIRE(cudaStreamSynchronize(cudaStreamPerThread) == cudaErrorNotPermitted);
	/* The interrupted call must not return an error. */
	(void)cudaGetLastError();
}

static void
handle(void (*handler)(int))
{
	struct sigaction action = {};

	action.sa_handler = handler;
	action.sa_flags = SA_NODEFER;
	REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
	REQUIRE(sigaction(SIGPROF, &action, NULL) == 0);
}

/* One try: a process that the handler ends. */
[[noreturn]] static void
one_try(long number)
{
	(void)alarm(TRY_SECONDS);
	handle(leave);
	/* The library is loaded before, because the linker and sanitizers have locks, too. */
	if (strcmp(way, "init") != 0)
		work();
	else
		REQUIRE(dlopen("libcuda.so.1", RTLD_NOW));
	if (strcmp(way, "timer") == 0) {
		/* The timer measures real time, because a waiting program uses little processor
		 * time. */
		const struct itimerspec in = { { 0, 0 },
					       { 0, 1000 + number * 7919000 % 60000000 } };
		struct sigevent event = {};
		timer_t timer;

		event.sigev_notify = SIGEV_SIGNAL;
		event.sigev_signo = SIGPROF;
		REQUIRE(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
		REQUIRE(timer_settime(timer, 0, &in, NULL) == 0);
		for (;;)
			work();
	}
	(void)dl_iterate_phdr(find_library, NULL);
	step = 1L << 40;
	first_point = 1 + number;
	watched = true;
	/* The number of points differs between runs. */
	for (;;)
		work();
}

/* Estimates the number of points. */
static long
count_points()
{
	int pipes[2], status;
	long count = 0;
	pid_t child;

	REQUIRE(pipe(pipes) == 0 && (child = fork()) >= 0);
	if (child == 0) {
		(void)alarm(TRY_SECONDS);
		(void)dup2(pipes[1], 5);
		(void)execl(self, self, "child", "count", way, (char *)NULL);
		_exit(3);
	}
	REQUIRE(waitpid(child, &status, 0) == child && status == 0);
	REQUIRE(read(pipes[0], &count, sizeof(count)) == sizeof(count));
	(void)close(pipes[0]);
	(void)close(pipes[1]);
	return count;
}

static void
start_try(long number)
{
	char text[32];
	pid_t child = fork();

	REQUIRE(child >= 0);
	if (child > 0)
		return;
	(void)snprintf(text, sizeof(text), "%ld", number);
	(void)execl(self, self, "child", "try", way, text, (char *)NULL);
	_exit(3);
}

static int
try_all(long tries)
{
	long count = strcmp(way, "timer") == 0 ? tries : count_points();
	long started = 0, under_way = 0;

	while (started < tries || under_way > 0) {
		int status;

		if (started < tries && under_way < AT_ONCE) {
			start_try(started * count / tries);
			started++;
			under_way++;
			continue;
		}
		REQUIRE(wait(&status) > 0);
		under_way--;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != LEFT)
			printf("a try ended with %#x\n", status);
		REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == LEFT);
	}
	return app_ok("interrupted");
}

/* Descriptors that are open after exec must not include any of the library's. */
static int
check_descriptors()
{
	for (int fd = 3; fd < 1024; fd++) {
		char name[64], target[256] = "";

		(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		if (readlink(name, target, sizeof(target) - 1) > 0 && strstr(target, "socket:")) {
			printf("descriptor %d is left open: %s\n", fd, target);
			return 1;
		}
	}
	return LEFT;
}

static int
child(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[2], "descriptors") == 0)
		return check_descriptors();
	way = argv[3];
	if (argc == 5)
		one_try(atol(argv[4]));
	if (strcmp(way, "init") != 0)
		work();
	else
		REQUIRE(dlopen("libcuda.so.1", RTLD_NOW));
	(void)dl_iterate_phdr(find_library, NULL);
	step = first_point = 1L << 40;
	watched = true;
	work();
	watched = false;
	REQUIRE(points > 0);
	REQUIRE(write(5, &points, sizeof(points)) == sizeof(points));
	return 0;
}

static std::atomic<bool> working;

static void *
work_for_ever(void *)
{
	for (;;) {
		working = true;
		work();
		pthread_testcancel();
	}
}

static int
cancel_threads(long rounds)
{
	work();
	for (long i = 0; i < rounds; i++) {
		pthread_t thread;
		void *result;

		working = false;
		REQUIRE(pthread_create(&thread, NULL, work_for_ever, NULL) == 0);
		while (!working)
			(void)sched_yield();
		(void)usleep((useconds_t)(i * 7919 % 3000));
		REQUIRE(pthread_cancel(thread) == 0);
		REQUIRE(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
		CHECK(cudaDeviceSynchronize());
		work();
	}
	return app_ok("interrupted");
}

static std::atomic<bool> in_function;

static void CUDART_CB
exit_or_stay(void *stay)
{
	in_function = true;
	if (!stay)
		exit(LEFT);
	for (;;)
		(void)pause();
}

/* Ends with status LEFT. */
[[noreturn]] static void
exit_with_function(bool stay)
{
	work();
	CHECK(cudaLaunchHostFunc(0, exit_or_stay, stay ? &in_function : NULL));
	while (!in_function)
		(void)usleep(1000);
	if (stay)
		exit(LEFT);
	for (;;)
		(void)pause();
}

int
main(int argc, char **argv)
{
	REQUIRE(argc >= 3);
	self = argv[0];
	way = argv[1];
	if (strcmp(way, "child") == 0)
		return child(argc, argv);
	if (strcmp(way, "cancel") == 0)
		return cancel_threads(atol(argv[2]));
	if (strncmp(way, "host", 4) == 0)
		exit_with_function(strcmp(way, "hostnever") == 0);
	if (strcmp(way, "fork") != 0 && strcmp(way, "call") != 0)
		return try_all(atol(argv[2]));
	step = atol(argv[2]);
	first_point = 1;
	handle(strcmp(way, "fork") == 0 ? fork_here : call_here);
	/* A child gets a copy of managed memory if this does not need a lock. */
	CHECK(cudaMallocManaged(&managed, sizeof(int) << 16));
	work();
	(void)dl_iterate_phdr(find_library, NULL);
	watched = true;
	work();
	work();
	watched = false;
	work();
	REQUIRE(points >= step && checks == 4);
	return app_ok("interrupted");
}
