/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/device/driver_stderr.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "server/common/base/log.h"
#include "server/common/ledger/log_budget.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* A sanitizer's report must not pass through a thread of the process that it terminates. */
void __sanitizer_set_report_fd(void *fd);
#endif

/* Older text is unrelated to a present failure. */
#define FRESH_MS 3000
/* Longer lines, which no driver writes, are split in the log. */
#define LINE_MAX_SIZE 512
/* Time to wait for the rest of a line. */
#define REST_MS 200

static struct {
	pthread_mutex_t lock;
	int fd;
	gpd_driver_stderr_whose_func *whose;
	size_t used;
	int64_t last_ms;
	char text[GPD_DRIVER_STDERR_MAX];
	size_t line_used;
	char line[LINE_MAX_SIZE];
} complaints = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

/* Stores the start of what is written within FRESH_MS; the start describes the cause. */
static void
text_remember(const char *text, size_t size) GP_LOCKED(complaints.lock)
{
	int64_t now = gp_now_ms();

	if (now - complaints.last_ms > FRESH_MS)
		complaints.used = 0;
	complaints.last_ms = now;
	if (size > sizeof(complaints.text) - complaints.used)
		size = sizeof(complaints.text) - complaints.used;
	memcpy(complaints.text + complaints.used, text, size);
	complaints.used += size;
}

/* Logs the line as far as it has arrived. */
static void
line_flush(void) GP_LOCKED(complaints.lock)
{
	char whose[GPD_DRIVER_STDERR_WHOSE_MAX];
	uint32_t budget;

	if (complaints.line_used == 0)
		return;
	complaints.line[complaints.line_used] = 0;
	complaints.line_used = 0;
	budget = complaints.whose(whose, sizeof(whose));
	gpd_log_budget_log(budget, GPD_LOG_WARNING, "the driver, with work of %s: %s", whose,
			   complaints.line);
}

static void
log_lines(const char *text, size_t size) GP_LOCKED(complaints.lock)
{
	for (size_t i = 0; i < size; i++) {
		if (text[i] == '\n' || complaints.line_used == sizeof(complaints.line) - 1)
			line_flush();
		if (text[i] != '\n')
			complaints.line[complaints.line_used++] = text[i] ? text[i] : '?';
	}
}

/*
 * Reads all data in the pipe. Reading and storing are one step under the lock, so that a thread
 * that finds the pipe empty also finds everything stored. Returns false at the end of the pipe.
 */
static bool
pipe_read(void)
{
	char text[GPD_DRIVER_STDERR_MAX];
	ssize_t size;

	pthread_mutex_lock(&complaints.lock);
	while ((size = read(complaints.fd, text, sizeof(text))) > 0) {
		text_remember(text, (size_t)size);
		log_lines(text, (size_t)size);
	}
	pthread_mutex_unlock(&complaints.lock);
	return size < 0 && (errno == EAGAIN || errno == EINTR);
}

static void
line_flush_last(void)
{
	pthread_mutex_lock(&complaints.lock);
	line_flush();
	pthread_mutex_unlock(&complaints.lock);
}

static void *
stderr_run(void *arg)
{
	struct pollfd pipe_fd = { .fd = complaints.fd, .events = POLLIN };
	int timeout_ms = -1;
	bool open = true;

	while (open) {
		if (poll(&pipe_fd, 1, timeout_ms) == 0) {
			line_flush_last();
			timeout_ms = -1;
		} else {
			open = pipe_read();
			timeout_ms = REST_MS;
		}
	}
	return NULL;
}

int
gpd_driver_stderr_start(gpd_driver_stderr_whose_func *whose)
{
	int fds[2], before, r;

	if (complaints.fd >= 0)
		return 0;
	before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (before < 0)
		return 0; /* there is no standard error to capture */
	if (pipe2(fds, O_CLOEXEC)) {
		r = -errno;
		close(before);
		return r;
	}
	/* The driver's end stays blocking, as a standard error is. */
	(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
	complaints.fd = fds[0];
	complaints.whose = whose;
	gpd_log_fd = before;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	__sanitizer_set_report_fd((void *)(intptr_t)before);
#endif
	(void)dup2(fds[1], STDERR_FILENO);
	close(fds[1]);
	return gp_thread_start("driver-stderr", 0, stderr_run, NULL);
}

void
gpd_driver_stderr_flush(void)
{
	(void)fflush(stderr);
	if (complaints.fd >= 0)
		(void)pipe_read();
	line_flush_last();
}

size_t
gpd_driver_stderr_read(char *text, size_t size)
{
	size_t used;

	gpd_driver_stderr_flush();
	pthread_mutex_lock(&complaints.lock);
	used = gp_now_ms() - complaints.last_ms > FRESH_MS ? 0 : complaints.used;
	if (used > size - 1)
		used = size - 1;
	memcpy(text, complaints.text, used);
	complaints.used = 0;
	pthread_mutex_unlock(&complaints.lock);
	text[used] = '\0';
	return used;
}
