/* SPDX-License-Identifier: Apache-2.0 */
#include "server/complain.h"

#include "server/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* A report must not pass through a thread of the process that it ends. */
void __sanitizer_set_report_fd(void *fd);
#endif

/* Older than this, it has nothing to do with what happens now. */
#define FRESH_MS 3000

static struct {
	pthread_mutex_t lock;
	int fd;
	size_t used;
	int64_t last_ms;
	char text[GPD_COMPLAINT_MAX];
} complaints = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static int64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Under the lock.  Keeps the beginning of what is written at one time: that says what happened. */
static void
remember(const char *text, size_t size)
{
	int64_t now = now_ms();

	if (now - complaints.last_ms > FRESH_MS)
		complaints.used = 0;
	complaints.last_ms = now;
	if (size > sizeof(complaints.text) - complaints.used)
		size = sizeof(complaints.text) - complaints.used;
	memcpy(complaints.text + complaints.used, text, size);
	complaints.used += size;
}

/*
 * Reads what the pipe holds.  Reading and remembering are one step under the lock, so that who
 * finds the pipe empty finds remembered all that ever was in it.  False at the end of the pipe.
 */
static bool
take_in(void)
{
	char text[GPD_COMPLAINT_MAX];
	ssize_t size;

	pthread_mutex_lock(&complaints.lock);
	while ((size = read(complaints.fd, text, sizeof(text))) > 0) {
		remember(text, (size_t)size);
		/* It may be closed at the other end; the complaint is remembered all the same. */
		if (write(gpd_log_fd, text, (size_t)size) < 0)
			continue;
	}
	pthread_mutex_unlock(&complaints.lock);
	return size < 0 && (errno == EAGAIN || errno == EINTR);
}

static void *
pass_on(void *arg)
{
	struct pollfd pipe_fd = { .fd = complaints.fd, .events = POLLIN };

	do
		(void)poll(&pipe_fd, 1, -1);
	while (take_in());
	return NULL;
}

int
gpd_complain_start(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int fds[2], before, r;

	if (complaints.fd >= 0)
		return 0;
	before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (before < 0)
		return 0; /* there is none: whatever is written goes nowhere */
	if (pipe2(fds, O_CLOEXEC)) {
		r = -errno;
		close(before);
		return r;
	}
	/* The driver's end blocks, as a standard error does. */
	(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
	complaints.fd = fds[0];
	gpd_log_fd = before;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	__sanitizer_set_report_fd((void *)(intptr_t)before);
#endif
	(void)dup2(fds[1], STDERR_FILENO);
	close(fds[1]);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&thread, &attributes, pass_on, NULL);
	pthread_attr_destroy(&attributes);
	return -r;
}

size_t
gpd_complain_take(char *text, size_t size)
{
	size_t used;

	(void)fflush(stderr);
	if (complaints.fd >= 0)
		(void)take_in();
	pthread_mutex_lock(&complaints.lock);
	used = now_ms() - complaints.last_ms > FRESH_MS ? 0 : complaints.used;
	if (used > size - 1)
		used = size - 1;
	memcpy(text, complaints.text, used);
	complaints.used = 0;
	pthread_mutex_unlock(&complaints.lock);
	text[used] = '\0';
	return used;
}
