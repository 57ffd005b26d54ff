/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/log.h"

#include "base/environment.h"
#include "base/file_limit.h"
#include "client/base/log_history.h"
#include "client/guard/guard.h"
#include "protocol/printable.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_SIZE 1024

static const struct {
	const char *name;
	enum gpc_log category;
} categories[] = {
	{ "error", GPC_LOG_ERROR },   { "info", GPC_LOG_INFO },   { "stats", GPC_LOG_STATS },
	{ "tables", GPC_LOG_TABLES }, { "calls", GPC_LOG_CALLS }, { "quiet", GPC_LOG_QUIET },
};

/* Returns 0 for an unknown word. */
static unsigned int
category_find(const char *text, size_t len)
{
	for (size_t i = 0; i < sizeof(categories) / sizeof(categories[0]); i++) {
		if (strlen(categories[i].name) == len &&
		    strncmp(text, categories[i].name, len) == 0)
			return categories[i].category;
	}
	return 0;
}

unsigned int
gpc_log_parse(const char *list)
{
	unsigned int wanted = 0;

	while (list && *list) {
		size_t len = strcspn(list, ", ");

		wanted |= category_find(list, len);
		list += len;
		list += strspn(list, ", ");
	}
	return wanted;
}

int
gpc_log_check(const char *list, char *error, size_t error_size)
{
	char known[80] = "";
	size_t len = 0;

	for (list = list ? list : ""; *list; list += len + strspn(list + len, ", ")) {
		len = strcspn(list, ", ");
		if (len > 0 && !category_find(list, len))
			break;
	}
	if (!*list)
		return 0;
	for (size_t i = 0; i < sizeof(categories) / sizeof(categories[0]); i++)
		(void)snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			       i ? ", " : "", categories[i].name);
	(void)snprintf(error, error_size, "\"%.*s\" is not one of %s", (int)len, list, known);
	return GP_E_INVALID;
}

static unsigned int enabled_categories;

static void
categories_read(void)
{
	enabled_categories = gpc_log_parse(gp_environment_get("GPUPOOL_LOG"));
}

bool
gpc_log_is_enabled(enum gpc_log category)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, categories_read);
	return enabled_categories & category;
}

/* Makes the message a single line of printable characters. */
static void
line_format(char *line, size_t capacity, const char *text, va_list arguments)
{
	char message[LINE_MAX_SIZE];

	if (vsnprintf(message, sizeof(message), text, arguments) < 0)
		message[0] = '\0';
	line[gp_printable_text(line, capacity - 1, message)] = '\0';
}

/* One write(), so that lines of several threads and processes do not mix. */
static void
line_write(const char *message)
{
	char line[2 * LINE_MAX_SIZE + 16];
	int size = snprintf(line, sizeof(line), "gpupool: %s\n", message);
	struct gp_sigxfsz limit;

	gpc_guard_block();
	gp_sigxfsz_block(&limit);
	(void)!write(STDERR_FILENO, line, (size_t)size);
	gp_sigxfsz_restore(&limit);
}

void
gpc_log(enum gpc_log category, const char *text, ...)
{
	char line[2 * LINE_MAX_SIZE];
	va_list arguments;

	/* Errors are stored even if they are not printed. */
	if (category != GPC_LOG_ERROR && !gpc_log_is_enabled(category))
		return;
	va_start(arguments, text);
	line_format(line, sizeof(line), text, arguments);
	va_end(arguments);
	if (category == GPC_LOG_ERROR)
		gpc_log_history_add(line);
	if (gpc_log_is_enabled(category))
		line_write(line);
}

/* Returns whether the line differs from the one of the last call. */
static bool
line_is_new(const char *line)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char last[2 * LINE_MAX_SIZE];
	bool differs;

	(void)pthread_mutex_lock(&lock);
	differs = strcmp(last, line) != 0;
	(void)snprintf(last, sizeof(last), "%s", line);
	(void)pthread_mutex_unlock(&lock);
	return differs;
}

void
gpc_log_always(const char *text, ...)
{
	char line[2 * LINE_MAX_SIZE];
	va_list arguments;

	va_start(arguments, text);
	line_format(line, sizeof(line), text, arguments);
	va_end(arguments);
	gpc_log_history_add(line);
	if (line_is_new(line))
		line_write(line);
}

void
gpc_log_warn(const char *text, ...)
{
	char line[2 * LINE_MAX_SIZE];
	va_list arguments;

	if (gpc_log_is_enabled(GPC_LOG_QUIET))
		return;
	va_start(arguments, text);
	line_format(line, sizeof(line), text, arguments);
	va_end(arguments);
	if (line_is_new(line))
		line_write(line);
}
