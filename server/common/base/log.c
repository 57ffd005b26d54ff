/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/base/log.h"

#include "base/fd_poll.h"
#include "protocol/printable.h"
#include "server/common/base/nonblocking.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TEXT_MAX 1024

enum gpd_log_level gpd_log_level = GPD_LOG_INFO;
int gpd_log_fd = STDERR_FILENO;

static bool has_timestamps, in_journal;

static const char *const level_names[] = {
	[GPD_LOG_ERROR] = "error",
	[GPD_LOG_WARNING] = "warning",
	[GPD_LOG_INFO] = "info",
	[GPD_LOG_DEBUG] = "debug",
};

bool
gpd_log_level_parse(const char *text, enum gpd_log_level *level_p)
{
	for (unsigned int i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++) {
		if (strcmp(text, level_names[i]) == 0) {
			*level_p = (enum gpd_log_level)i;
			return true;
		}
	}
	return false;
}

const char *
gpd_log_level_name(enum gpd_log_level level)
{
	return level_names[level];
}

/* Writes "2026-11-26 14:35:02.123 gpupoold[PID]: ", in local time. The journal adds both itself,
 * and reads the level from a numeric prefix that it does not display: see sd-daemon(3). */
static size_t
line_prefix(enum gpd_log_level level, char *text, size_t size)
{
	static const int priorities[] = {
		[GPD_LOG_ERROR] = 3,
		[GPD_LOG_WARNING] = 4,
		[GPD_LOG_INFO] = 6,
		[GPD_LOG_DEBUG] = 7,
	};
	struct timespec now;
	struct tm when;
	size_t used = 0;

	if (in_journal)
		return (size_t)snprintf(text, size, "<%d>", priorities[level]);
	if (has_timestamps && timespec_get(&now, TIME_UTC) == TIME_UTC &&
	    localtime_r(&now.tv_sec, &when)) {
		used = strftime(text, size, "%Y-%m-%d %H:%M:%S", &when);
		used += (size_t)snprintf(text + used, size - used, ".%03ld ",
					 now.tv_nsec / 1000000);
	}
	return used + (size_t)snprintf(text + used, size - used, "gpupoold[%d]: ", (int)getpid());
}

void
gpd_log_start(void)
{
	const char *journal = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat status;

	in_journal = journal && sscanf(journal, "%llu:%llu", &device, &inode) == 2 &&
		     fstat(STDERR_FILENO, &status) == 0 && status.st_dev == device &&
		     status.st_ino == inode;
	has_timestamps = !in_journal;
}

/* Writes without blocking: a pipe or the journal may have no reader for a while. */
static bool
line_write(const char *line, size_t size)
{
	struct pollfd log = { .fd = gpd_log_fd, .events = POLLOUT };
	unsigned int depth;
	ssize_t done = send(gpd_log_fd, line, size, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (done >= 0 || errno != ENOTSOCK)
		return done >= 0;
	if (gp_fd_poll(&log, 1, 0) <= 0)
		return false;
	/* A pipe that polls as writable has room for a whole line. */
	depth = gpd_nonblocking_leave();
	done = write(gpd_log_fd, line, size);
	gpd_nonblocking_reenter(depth);
	return done >= 0;
}

static bool
line_log(enum gpd_log_level level, const char *text)
{
	char line[2 * TEXT_MAX];
	size_t used = line_prefix(level, line, sizeof(line));

	used += (size_t)snprintf(line + used, sizeof(line) - used, "%s: ", level_names[level]);
	/* The text may contain names and strings from clients. */
	used += gp_printable_text(line + used, sizeof(line) - used - 1, text);
	line[used++] = '\n';
	return line_write(line, used);
}

void
gpd_log(enum gpd_log_level level, const char *format, ...)
{
	static atomic_uint lost;
	char text[TEXT_MAX], note[64];
	unsigned int count;
	va_list args;
	int length;

	if (level > gpd_log_level)
		return;
	va_start(args, format);
	length = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (length < 0)
		return;
	count = atomic_exchange(&lost, 0);
	if (count) {
		(void)snprintf(note, sizeof(note),
			       "log: %u lines dropped: the reader did not keep up", count);
		if (line_log(GPD_LOG_WARNING, note))
			count = 0;
	}
	if (count || !line_log(level, text))
		atomic_fetch_add(&lost, count + 1);
}
