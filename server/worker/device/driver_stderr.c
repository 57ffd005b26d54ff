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
/* Longer lines, which no driver writes, are split. */
#define LINE_MAX_SIZE 2048
/* Maximum text about one assertion, and about everything else. */
#define PART_MAX (GPD_DRIVER_STDERR_MAX / GPD_DRIVER_STDERR_PARTS)
/* Time to wait for the rest of a line. */
#define REST_MS 200

static struct {
	pthread_mutex_t lock;
	int fd;
	gpd_driver_stderr_whose_func *whose;
	int64_t last_ms;
	struct part {
		size_t key_size; /* the text starts with the key of its lines; 0: no assertion */
		size_t used;
		char text[PART_MAX];
	} parts[GPD_DRIVER_STDERR_PARTS];
	size_t line_used;
	char line[LINE_MAX_SIZE];
} complaints = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static void
parts_clear(void) GP_LOCKED(complaints.lock)
{
	for (size_t i = 0; i < GPD_DRIVER_STDERR_PARTS; i++)
		complaints.parts[i].used = complaints.parts[i].key_size = 0;
}

/* Returns the size of "FILE:LINE: FUNCTION" at the start of a line about an assertion, else 0. */
static size_t
key_measure(const char *line, size_t size)
{
	static const char end[] = ": block: [";
	const char *found = memmem(line, size, end, sizeof(end) - 1);

	return found ? (size_t)(found - line) : 0;
}

/* Returns the part for the line; NULL: there is none left. The first part has no key. */
static struct part *
part_find(const char *line, size_t key_size) GP_LOCKED(complaints.lock)
{
	for (size_t i = 0; i < GPD_DRIVER_STDERR_PARTS; i++) {
		struct part *part = &complaints.parts[i];

		if (i && !part->used)
			part->key_size = key_size;
		else if (part->key_size != key_size || memcmp(part->text, line, key_size) != 0)
			continue;
		if ((i == 0) == (key_size == 0))
			return part;
	}
	return NULL;
}

/* Stores the first lines about each assertion that are written within FRESH_MS; they describe the
 * cause. One assertion that fails in many threads leaves room for the others. */
static void
line_remember(bool ended) GP_LOCKED(complaints.lock)
{
	size_t size = complaints.line_used;
	int64_t now = gp_now_ms();
	struct part *part;

	if (now - complaints.last_ms > FRESH_MS)
		parts_clear();
	complaints.last_ms = now;
	part = part_find(complaints.line, key_measure(complaints.line, size));
	if (!part || part->used + size + ended > PART_MAX)
		return;
	memcpy(part->text + part->used, complaints.line, size);
	if (ended)
		part->text[part->used + size] = '\n';
	part->used += size + ended;
}

/* Stores and logs the line as far as it has arrived. */
static void
line_flush(bool ended) GP_LOCKED(complaints.lock)
{
	char whose[GPD_DRIVER_STDERR_WHOSE_MAX];
	uint32_t budget;

	if (complaints.line_used || ended)
		line_remember(ended);
	if (complaints.line_used == 0)
		return;
	complaints.line[complaints.line_used] = 0;
	complaints.line_used = 0;
	budget = complaints.whose(whose, sizeof(whose));
	gpd_log_budget_log(budget, GPD_LOG_WARNING, "the driver, with work of %s: %s", whose,
			   complaints.line);
}

static void
split_lines(const char *text, size_t size) GP_LOCKED(complaints.lock)
{
	for (size_t i = 0; i < size; i++) {
		if (text[i] == '\n' || complaints.line_used == sizeof(complaints.line) - 1)
			line_flush(text[i] == '\n');
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
	char text[4096];
	ssize_t size;

	pthread_mutex_lock(&complaints.lock);
	while ((size = read(complaints.fd, text, sizeof(text))) > 0)
		split_lines(text, (size_t)size);
	pthread_mutex_unlock(&complaints.lock);
	return size < 0 && (errno == EAGAIN || errno == EINTR);
}

static void
line_flush_last(void)
{
	pthread_mutex_lock(&complaints.lock);
	line_flush(false);
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

/* Stores and logs everything that has been written, including an unfinished line. */
static void
stderr_flush(void)
{
	(void)fflush(stderr);
	if (complaints.fd >= 0)
		(void)pipe_read();
	line_flush_last();
}

size_t
gpd_driver_stderr_read(char *text, size_t size)
{
	size_t used = 0;

	stderr_flush();
	pthread_mutex_lock(&complaints.lock);
	if (gp_now_ms() - complaints.last_ms > FRESH_MS)
		parts_clear();
	for (size_t i = 0; i < GPD_DRIVER_STDERR_PARTS; i++) {
		const struct part *part = &complaints.parts[i];
		size_t more = part->used < size - 1 - used ? part->used : size - 1 - used;

		memcpy(text + used, part->text, more);
		used += more;
	}
	parts_clear();
	pthread_mutex_unlock(&complaints.lock);
	text[used] = '\0';
	return used;
}
