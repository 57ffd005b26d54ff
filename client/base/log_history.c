/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/log_history.h"

#include "base/lock.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LISTENERS_MAX 16
#define TRUNCATED_LINE "earlier lines were dropped\n"

struct listener {
	CUlogsCallback function;
	void *data;
};

__thread bool gpc_in_host_function __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char history[GPC_LOG_HISTORY_MAX][GPC_LOG_LINE_MAX] GP_GUARDED_BY(lock);
static uint32_t count GP_GUARDED_BY(lock);
static struct listener listeners[LISTENERS_MAX] GP_GUARDED_BY(lock);

/* "[12:46:23.854][137216327950336][CUDA][E] line" */
static void
entry_format(char *text, const char *line)
{
	struct timespec now; /* wall-clock time, for human readers */
	struct tm tm;
	int used;

	(void)timespec_get(&now, TIME_UTC);
	(void)localtime_r(&now.tv_sec, &tm);
	used = snprintf(text, GPC_LOG_LINE_MAX, "[%02d:%02d:%02d.%03d][%lu][CUDA][E] ", tm.tm_hour,
			tm.tm_min, tm.tm_sec, (int)(now.tv_nsec / 1000000),
			(unsigned long)pthread_self());
	/* Leaves room for the newline of a dump. */
	(void)snprintf(text + used, GPC_LOG_LINE_MAX - 1 - (size_t)used, "%s", line);
}

void
gpc_log_history_add(const char *line)
{
	struct listener notified[LISTENERS_MAX];
	char text[GPC_LOG_LINE_MAX];

	entry_format(text, line);
	(void)pthread_mutex_lock(&lock);
	memcpy(history[count++ % GPC_LOG_HISTORY_MAX], text, sizeof(text));
	memcpy(notified, listeners, sizeof(notified));
	(void)pthread_mutex_unlock(&lock);
	/* An error inside a listener is stored without calling listeners again. */
	if (gpc_in_host_function)
		return;
	gpc_in_host_function = true;
	for (size_t i = 0; i < LISTENERS_MAX; i++) {
		if (notified[i].function)
			notified[i].function(notified[i].data, CU_LOG_LEVEL_ERROR, text,
					     strlen(text));
	}
	gpc_in_host_function = false;
}

uint32_t
gpc_log_history_next(void)
{
	uint32_t next;

	(void)pthread_mutex_lock(&lock);
	next = count;
	(void)pthread_mutex_unlock(&lock);
	return next;
}

/* Returns the number of the first line that fits in the buffer, together with the line that reports
 * an omission. *cut: lines are omitted. */
static uint32_t
history_find_first(uint32_t from, size_t capacity, bool *cut) GP_LOCKED(lock)
{
	uint32_t oldest = count > GPC_LOG_HISTORY_MAX ? count - GPC_LOG_HISTORY_MAX : 0,
		 first = count;
	size_t needed = 1, all = 1;

	*cut = from < oldest;
	if (from < oldest)
		from = oldest;
	for (uint32_t i = from; i < count; i++)
		all += strlen(history[i % GPC_LOG_HISTORY_MAX]) + 1;
	if (!*cut && all <= capacity)
		return from;
	*cut = true;
	needed += strlen(TRUNCATED_LINE);
	while (first > from) {
		needed += strlen(history[(first - 1) % GPC_LOG_HISTORY_MAX]) + 1;
		if (needed > capacity)
			break;
		first--;
	}
	return first;
}

int
gpc_log_history_dump(uint32_t from, char *buffer, size_t *size, uint32_t *next_p)
{
	size_t capacity = *size, used = 0;
	uint32_t first, next;
	bool cut;

	*size = 0;
	(void)pthread_mutex_lock(&lock);
	next = count;
	/* A number of a line that does not exist yet. */
	if (from > next)
		from = next;
	first = history_find_first(from, capacity, &cut);
	if (from < next && first < next && cut)
		used = (size_t)snprintf(buffer, capacity, "%s", TRUNCATED_LINE);
	for (uint32_t i = first; i < next; i++)
		used += (size_t)snprintf(buffer + used, capacity - used, "%s\n",
					 history[i % GPC_LOG_HISTORY_MAX]);
	(void)pthread_mutex_unlock(&lock);
	if (from < next && first == next)
		return -ENOSPC;
	if (capacity)
		buffer[used] = '\0';
	*size = used;
	*next_p = next;
	return 0;
}

void *
gpc_log_add_listener(CUlogsCallback function, void *data)
{
	struct listener *listener = NULL;

	(void)pthread_mutex_lock(&lock);
	for (size_t i = 0; i < LISTENERS_MAX && !listener; i++) {
		if (!listeners[i].function)
			listener = &listeners[i];
	}
	if (listener)
		*listener = (struct listener){ function, data };
	(void)pthread_mutex_unlock(&lock);
	return listener;
}

int
gpc_log_remove_listener(const void *listener)
{
	int r = -ENOENT;

	(void)pthread_mutex_lock(&lock);
	for (size_t i = 0; i < LISTENERS_MAX; i++) {
		if (&listeners[i] != listener || !listeners[i].function)
			continue;
		listeners[i].function = NULL;
		r = 0;
	}
	(void)pthread_mutex_unlock(&lock);
	return r;
}
