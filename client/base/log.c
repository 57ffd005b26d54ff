/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/log.h"

#include "base/environment.h"
#include "base/file_limit.h"
#include "client/base/log_kept.h"
#include "client/guard/guard.h"
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

/* 0: there is no such word. */
static unsigned int
find_word(const char *text, size_t len)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i].name) == len && strncmp(text, words[i].name, len) == 0)
			return words[i].word;
	}
	return 0;
}

unsigned int
gpc_log_parse(const char *list)
{
	unsigned int wanted = 0;

	while (list && *list) {
		size_t len = strcspn(list, ", ");

		wanted |= find_word(list, len);
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
		if (len > 0 && !find_word(list, len))
			break;
	}
	if (!*list)
		return 0;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		(void)snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			       i ? ", " : "", words[i].name);
	(void)snprintf(error, error_size, "\"%.*s\" is none of %s", (int)len, list, known);
	return GP_E_INVALID;
}

static unsigned int wanted_words;

static void
read_environment(void)
{
	wanted_words = gpc_log_parse(gp_environment_get("GPUPOOL_LOG"));
}

bool
gpc_log_wants(enum gpc_log word)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, read_environment);
	return wanted_words & word;
}

/* One line, whatever has come into it. */
static void
make_line(char *line, size_t room, const char *text, va_list arguments)
{
	char said[LINE_MAX_SIZE];

	if (vsnprintf(said, sizeof(said), text, arguments) < 0)
		said[0] = '\0';
	line[gp_printable(line, room - 1, said)] = '\0';
}

/* In one write, so that lines of several threads and processes do not mix. */
static void
put_line(const char *said)
{
	char line[2 * LINE_MAX_SIZE + 16];
	int size = snprintf(line, sizeof(line), "gpupool: %s\n", said);
	struct gp_file_limit limit;

	gpc_guard_block();
	gp_file_limit_begin(&limit);
	(void)!write(STDERR_FILENO, line, (size_t)size);
	gp_file_limit_end(&limit);
}

void
gpc_log(enum gpc_log word, const char *text, ...)
{
	char line[2 * LINE_MAX_SIZE];
	va_list arguments;

	/* What went wrong is kept for the program, too. */
	if (word != GPC_LOG_ERROR && !gpc_log_wants(word))
		return;
	va_start(arguments, text);
	make_line(line, sizeof(line), text, arguments);
	va_end(arguments);
	if (word == GPC_LOG_ERROR)
		gpc_log_keep(line);
	if (gpc_log_wants(word))
		put_line(line);
}

/* Whether the text differs from the last one that was asked about. */
static bool
is_new(const char *line)
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
	make_line(line, sizeof(line), text, arguments);
	va_end(arguments);
	gpc_log_keep(line);
	if (is_new(line))
		put_line(line);
}

void
gpc_warn(const char *text, ...)
{
	char line[2 * LINE_MAX_SIZE];
	va_list arguments;

	if (gpc_log_wants(GPC_LOG_QUIET))
		return;
	va_start(arguments, text);
	make_line(line, sizeof(line), text, arguments);
	va_end(arguments);
	if (is_new(line))
		put_line(line);
}
