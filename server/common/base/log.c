/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/base/log.h"

#include "protocol/printable.h"

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
	used = (size_t)snprintf(line, sizeof(line), "gpupoold[%d]: %s: ", (int)getpid(),
				names[level]);
	/* Names and texts come from clients. */
	used += gp_printable(line + used, sizeof(line) - used - 1, text);
	line[used++] = '\n';
	/* It may be gone; there is nobody to tell. */
	if (write(gpd_log_fd, line, used) < 0)
		return;
}
