/* SPDX-License-Identifier: Apache-2.0 */
#include "server/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum gpd_log_level gpd_log_level = GPD_LOG_INFO;
int gpd_log_fd = STDERR_FILENO;

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

/* Names and texts come from clients: nothing that a terminal would act on. */
static void
make_printable(char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
	}
}

void
gpd_log(enum gpd_log_level level, const char *format, ...)
{
	char line[1024];
	va_list args;
	int used, more;

	if (level > gpd_log_level)
		return;
	used = snprintf(line, sizeof(line), "gpupoold[%d]: %s: ", (int)getpid(), names[level]);
	va_start(args, format);
	more = vsnprintf(line + used, sizeof(line) - (size_t)used - 1, format, args);
	va_end(args);
	if (more < 0)
		return;
	make_printable(line);
	used = (int)strlen(line);
	line[used++] = '\n';
	/* It may be gone; there is nobody to tell. */
	if (write(gpd_log_fd, line, (size_t)used) < 0)
		return;
}
