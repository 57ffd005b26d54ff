/* SPDX-License-Identifier: Apache-2.0 */
#include "client/log.h"

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
	{ "tables", GPC_LOG_TABLES }, { "calls", GPC_LOG_CALLS },
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

void
gpc_log_clean(char *to, size_t size, const char *from)
{
	size_t used = 0;

	for (; *from && used < size - 1; from++)
		to[used++] = *from >= ' ' && *from < 0x7f ? *from : '?';
	to[used] = 0;
}

/* In one write, so that lines of several threads and processes do not mix. */
static void
put_line(const char *text, va_list arguments)
{
	char line[LINE_MAX_SIZE];
	int prefix = snprintf(line, sizeof(line), "gpupool: ");
	int len = vsnprintf(line + prefix, sizeof(line) - (size_t)prefix - 1, text, arguments);
	size_t size;

	if (len < 0)
		return;
	size = (size_t)prefix + (size_t)len;
	if (size > sizeof(line) - 2)
		size = sizeof(line) - 2;
	/* Whatever has come into it, it is one line. */
	for (size_t i = 0; i < size; i++) {
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	}
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
