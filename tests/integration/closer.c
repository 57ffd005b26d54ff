/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closer FOLDER BYTES KIND...: a program that closes all descriptors, as daemons do, in the middle
 * of its use of CUDA, and gives their numbers to "files", "eventfds" or connected "sockets" of its
 * own, or to "nothing". In a child for each, and a line for each says how copies of so many bytes
 * there and back and a call that waits end, and how much of what is the program's was written to or
 * read from, or was closed when it forked.
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
/* An emulated machine may take its time, but what waits in vain takes more. */
#define SECONDS 5
#define CPU_SECONDS 3
/* Who has not come back by then does not. */
#define SECONDS_MAX 20
/* The library's threads look for more for less than this, and sleep then. */
#define QUIET_US 200000

static const char words[] = "from one end to the other";

static char memory[SIZE];
static int own[OWN], others[OWN]; /* the other ends of sockets */

/* Who closes the descriptors of threads that are at work races with these: that is the test.  What
 * the thread sanitizer asks at its start. */
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

/* Whether anything but the words is there to be read, or somebody has ended it. */
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

/* In a child whatever the library has of its parent's is given up. */
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
	/* Between a look at whose a descriptor is and the use of it there is a gap, so who takes it
	 * from a thread of the library's that is at work may meet that. */
	(void)usleep(QUIET_US);
	for (int fd = 3; fd < NUMBERS; fd++)
		(void)close(fd);
	for (int i = 0; i < OWN && strcmp(kind, "nothing") != 0; i++)
		own[i] = open_one(kind, folder, i);
	begin = now();
	processor = processor_time();
	/* A few bytes to the device are posted: they cannot tell. */
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
