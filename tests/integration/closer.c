/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closer FOLDER BYTES KIND...: a program that closes all descriptors, as daemons do, in the middle
 * of its use of CUDA, and then opens "files", "eventfds" or connected "sockets" of its own at their
 * numbers, or "nothing". A child for each KIND prints a line: the results of copies of BYTES bytes
 * in both directions and of a synchronization, the number of the program's own descriptors that
 * were written to, read from or closed, and the same number in a child of fork().
 */
#include <cuda.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define POSTED 65536
#define SIZE ((size_t)4 << 20)
#define NUMBERS 1024
#define OWN 64
/* An emulated machine may be slow, but a call that waits for a lost connection takes longer. */
#define SECONDS 5
#define CPU_SECONDS 3
/* A call that has not returned after this time hangs. */
#define SECONDS_MAX 20
/* Longer than the library's idle threads poll before they sleep. */
#define IDLE_US 200000

static const char words[] = "from one end to the other";

static char memory[SIZE];
static int own[OWN], others[OWN]; /* the other ends of sockets */

/* The thread sanitizer calls this at its start. Closing the descriptors of running threads is a
 * race with them: that is the test. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);

const char *
__tsan_default_suppressions(void)
{
	return "race:close_all\nrace:open_one\n";
}

static void
require(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	printf("%s: %d\n", what, (int)result);
	exit(1);
}

static double
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double
processor_time(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Both ends may get numbers that were the library's, and both have something to be read. */
static int
open_sockets(int number)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return -1;
	others[number] = pair[1];
	for (int i = 0; i < 2; i++) {
		if (send(pair[i], words, sizeof(words), 0) != sizeof(words))
			return -1;
	}
	return pair[0];
}

static int
open_one(const char *kind, const char *folder, int number)
{
	char path[4096];

	if (strcmp(kind, "eventfds") == 0)
		return eventfd(0, EFD_NONBLOCK);
	if (strcmp(kind, "files") == 0) {
		(void)snprintf(path, sizeof(path), "%s/%d", folder, number);
		return open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	}
	return open_sockets(number);
}

/* Whether the socket has other data to read than the words, or was shut down. */
static int
is_touched_socket(int fd)
{
	struct pollfd poller = { .fd = fd, .events = POLLRDHUP };
	char there[2 * sizeof(words)];

	return recv(fd, there, sizeof(there), MSG_PEEK | MSG_DONTWAIT) != sizeof(words) ||
	       memcmp(there, words, sizeof(words)) != 0 || poll(&poller, 1, 0) != 0;
}

/* Whether something is in it that this program has not put there, or it is closed. */
static int
is_touched(const char *kind, int number)
{
	int fd = own[number];
	uint64_t count;
	struct stat status;

	if (fstat(fd, &status))
		return 1;
	if (strcmp(kind, "eventfds") == 0)
		return read(fd, &count, sizeof(count)) >= 0;
	if (strcmp(kind, "sockets") == 0)
		return is_touched_socket(fd) || is_touched_socket(others[number]);
	return strcmp(kind, "files") == 0 && (status.st_size > 0 || lseek(fd, 0, SEEK_CUR) > 0);
}

static int
count_touched(const char *kind)
{
	int count = 0;

	for (int i = 0; i < OWN && strcmp(kind, "nothing") != 0; i++)
		count += is_touched(kind, i);
	return count;
}

/* The library closes its parent's connections in a child of fork(). */
static int
count_touched_in_child(const char *kind)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(count_touched(kind));
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int
close_all(const char *kind, const char *folder, size_t size)
{
	double begin, processor;
	CUdeviceptr device;
	CUresult results[3];
	CUcontext context;

	require(cuInit(0), "cuInit");
	require(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	require(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	require(cuMemAlloc(&device, SIZE), "cuMemAlloc");
	require(cuMemcpyHtoD(device, memory, SIZE), "cuMemcpyHtoD");
	require(cuMemcpyDtoH(memory, device, SIZE), "cuMemcpyDtoH");
	(void)alarm(SECONDS_MAX);
	/* The library checks the owner of a descriptor and then uses it. A descriptor that is
	 * replaced between the two would be touched, so wait until the threads are idle. */
	(void)usleep(IDLE_US);
	for (int fd = 3; fd < NUMBERS; fd++)
		(void)close(fd);
	for (int i = 0; i < OWN && strcmp(kind, "nothing") != 0; i++)
		own[i] = open_one(kind, folder, i);
	begin = now();
	processor = processor_time();
	/* A small copy to the device is posted and cannot return an error, so it is second. */
	results[0] = size < POSTED ? cuMemcpyDtoH(memory, device, size)
				   : cuMemcpyHtoD(device, memory, size);
	results[1] = size < POSTED ? cuMemcpyHtoD(device, memory, size)
				   : cuMemcpyDtoH(memory, device, size);
	results[2] = cuCtxSynchronize();
	begin = now() - begin;
	/* The library's threads are still there. */
	(void)usleep(300000);
	processor = processor_time() - processor;
	printf("%s: %d %d %d%s%s, touched %d", kind, (int)results[0], (int)results[1],
	       (int)results[2], begin < SECONDS ? "" : ", late",
	       processor < CPU_SECONDS ? "" : ", busy", count_touched(kind));
	/* A sanitizer writes a child's copy of this when the child ends. */
	fflush(stdout);
	printf(", in a child %d\n", count_touched_in_child(kind));
	fprintf(stderr, "%s: %.2f s, %.2f s of a processor\n", kind, begin, processor);
	return 0;
}

int
main(int argc, char **argv)
{
	size_t size = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	int status;

	if (size == 0 || size > SIZE) {
		fprintf(stderr, "usage: closer FOLDER BYTES KIND...\n");
		return 2;
	}
	for (int i = 3; i < argc; i++) {
		pid_t child = fork();

		if (child == 0) {
			status = close_all(argv[i], argv[1], size);
			fflush(stdout);
			exit(status);
		}
		if (waitpid(child, &status, 0) != child || status != 0)
			printf("%s: status %d\n", argv[i], status);
	}
	return 0;
}
