/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/base/log.h"

#include "protocol/printable.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum gpd_log_level gpd_log_level = GPD_LOG_INFO;
int gpd_log_fd = STDERR_FILENO;

static bool has_stamps, in_journal;

static const char *const names[] = {
	[GPD_LOG_ERROR] = "error",
	[GPD_LOG_WARNING] = "warning",
	[GPD_LOG_INFO] = "info",
	[GPD_LOG_DEBUG] = "debug",
};

bool
gpd_log_level_parse(const char *text, enum gpd_log_level *level_p)
{
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) == 0) {
			*level_p = (enum gpd_log_level)i;
			return true;
		}
	}
	return false;
}

const char *
gpd_log_level_name(enum gpd_log_level level)
{
	return names[level];
}

/* "2026-11-26 14:35:02.123 gpupoold[PID]: ", in local time.  The journal has its own of both, and
 * takes a number for the level, which it does not show: sd-daemon(3). */
static size_t
stamp(enum gpd_log_level level, char *text, size_t size)
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
	if (has_stamps && timespec_get(&now, TIME_UTC) == TIME_UTC &&
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
	has_stamps = !in_journal;
}

void
gpd_log(enum gpd_log_level level, const char *format, ...)
{
	char text[1024], line[2 * sizeof(text)];
	va_list args;
	size_t used;
	int length;

	if (level > gpd_log_level)
		return;
	va_start(args, format);
	length = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (length < 0)
		return;
	used = stamp(level, line, sizeof(line));
	used += (size_t)snprintf(line + used, sizeof(line) - used, "%s: ", names[level]);
	/* Names and texts come from clients. */
	used += gp_printable(line + used, sizeof(line) - used - 1, text);
	line[used++] = '\n';
	/* It may be gone; there is nobody to tell. */
	if (write(gpd_log_fd, line, used) < 0)
		return;
}
