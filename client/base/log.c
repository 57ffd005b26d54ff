/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/log.h"

#include "protocol/printable.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_SIZE 1024

static const struct {
	const char *name;
	enum gpc_log word;
} words[] = {
	{ "error", GPC_LOG_ERROR },   { "info", GPC_LOG_INFO },   { "stats", GPC_LOG_STATS },
	{ "tables", GPC_LOG_TABLES }, { "calls", GPC_LOG_CALLS }, { "quiet", GPC_LOG_QUIET },
};

unsigned int
gpc_log_parse(const char *list)
{
	unsigned int wanted = 0;

	while (list && *list) {
		size_t len = strcspn(list, ", ");

		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
			if (strlen(words[i].name) == len && strncmp(list, words[i].name, len) == 0)
				wanted |= words[i].word;
		}
		list += len;
		list += strspn(list, ", ");
	}
	return wanted;
}

static unsigned int wanted_words;

static void
read_environment(void)
{
	wanted_words = gpc_log_parse(getenv("GPUPOOL_LOG"));
}

bool
gpc_log_wants(enum gpc_log word)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, read_environment);
	return wanted_words & word;
}

/* In one write, so that lines of several threads and processes do not mix. */
static void
put_line(const char *text, va_list arguments)
{
	char said[LINE_MAX_SIZE], line[2 * LINE_MAX_SIZE];
	size_t size = (size_t)snprintf(line, sizeof(line), "gpupool: ");

	if (vsnprintf(said, sizeof(said), text, arguments) < 0)
		return;
	/* Whatever has come into it, it is one line. */
	size += gp_printable(line + size, sizeof(line) - size - 1, said);
	line[size++] = '\n';
	if (write(STDERR_FILENO, line, size) < 0)
		return;
}

void
gpc_log(enum gpc_log word, const char *text, ...)
{
	va_list arguments;

	if (!gpc_log_wants(word))
		return;
	va_start(arguments, text);
	put_line(text, arguments);
	va_end(arguments);
}

/* Whether the text differs from the last one that was asked about. */
static bool
is_new(const char *line)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char last[LINE_MAX_SIZE];
	bool differs;

	(void)pthread_mutex_lock(&lock);
	differs = strcmp(last, line) != 0;
	(void)snprintf(last, sizeof(last), "%s", line);
	(void)pthread_mutex_unlock(&lock);
	return differs;
}

static void GP_PRINTF(1, 2) put(const char *text, ...)
{
	va_list arguments;

	va_start(arguments, text);
	put_line(text, arguments);
	va_end(arguments);
}

void
gpc_log_always(const char *text, ...)
{
	char line[LINE_MAX_SIZE];
	va_list arguments;

	va_start(arguments, text);
	(void)vsnprintf(line, sizeof(line), text, arguments);
	va_end(arguments);
	if (is_new(line))
		put("%s", line);
}
