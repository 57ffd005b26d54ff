/* SPDX-License-Identifier: Apache-2.0 */
/* Stored messages about errors, and how they are printed. */
#include "client/base/log.h"
#include "client/base/log_history.h"
#include "tests/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static char text[GPC_LOG_LINE_MAX * (GPC_LOG_HISTORY_MAX + 1)];

static unsigned int
lines_of(const char *dump)
{
	unsigned int count = 0;

	for (; *dump; dump++)
		count += *dump == '\n';
	return count;
}

UNIT_TEST(lines_come_in_the_drivers_format)
{
	unsigned int hour, minute, second, ms;
	uint32_t next = gpc_log_history_next();
	size_t size = sizeof(text);
	unsigned long thread;
	int end = 0;

	gpc_log_history_add("something is wrong");
	assert_int_equal(gpc_log_history_dump(next, text, &size, &next), 0);
	assert_int_equal(size, strlen(text));
	assert_int_equal(sscanf(text, "[%2u:%2u:%2u.%3u][%lu][CUDA][E] something is wrong\n%n",
				&hour, &minute, &second, &ms, &thread, &end),
			 5);
	assert_int_equal((size_t)end, size);
	size = sizeof(text);
	assert_int_equal(gpc_log_history_dump(next, text, &size, &next), 0);
	assert_int_equal(size, 0);
	assert_string_equal(text, "");
}

UNIT_TEST(what_is_said_is_kept_whatever_is_wanted)
{
	uint32_t next = gpc_log_history_next();
	size_t size = sizeof(text);

	gpc_log(GPC_LOG_ERROR, "a call failed with %d", 7);
	gpc_log(GPC_LOG_INFO, "a session is open");
	assert_int_equal(gpc_log_history_dump(next, text, &size, &next), 0);
	assert_int_equal(lines_of(text), 1);
	assert_non_null(strstr(text, "a call failed with 7\n"));
}

UNIT_TEST(last_ones_are_kept)
{
	uint32_t next = gpc_log_history_next(), after;
	size_t size = sizeof(text);
	char line[1000];

	for (unsigned int i = 0; i < GPC_LOG_HISTORY_MAX + 20; i++) {
		snprintf(line, sizeof(line), "%u %0*d", i, 900, 0);
		gpc_log_history_add(line);
	}
	assert_int_equal(gpc_log_history_dump(next, text, &size, &after), 0);
	assert_int_equal(lines_of(text), GPC_LOG_HISTORY_MAX + 1);
	assert_int_equal(strncmp(text, "earlier lines", 13), 0);
	assert_null(strstr(text, "[E] 19 "));
	assert_non_null(strstr(text, "[E] 20 "));
	assert_non_null(strstr(text, "[E] 119 "));
	assert_int_equal(after, next + GPC_LOG_HISTORY_MAX + 20);
}

UNIT_TEST(little_room_has_the_last_ones)
{
	uint32_t next = gpc_log_history_next(), after = 0;
	size_t size = 200;

	for (unsigned int i = 0; i < 10; i++)
		gpc_log_history_add(i < 9 ? "before" : "the last");
	assert_int_equal(gpc_log_history_dump(next, text, &size, &after), 0);
	assert_true(size < 200 && size == strlen(text));
	assert_non_null(strstr(text, "the last\n"));
	assert_int_equal(strncmp(text, "earlier lines", 13), 0);
	size = 10;
	assert_int_equal(gpc_log_history_dump(next, text, &size, &after), -ENOSPC);
	assert_int_equal(size, 0);
	/* One that is not there yet. */
	size = 10;
	assert_int_equal(gpc_log_history_dump(after + 5, text, &size, &after), 0);
	assert_int_equal(size, 0);
}

static void
hear(void *data, CUlogLevel level, char *message, size_t length)
{
	assert_int_equal(level, CU_LOG_LEVEL_ERROR);
	assert_int_equal(strlen(message), length);
	++*(unsigned int *)data;
	/* This is not reported. */
	gpc_log_history_add("wrong again");
}

UNIT_TEST(listeners_are_told)
{
	unsigned int heard[2] = { 0, 0 };
	void *first = gpc_log_add_listener(hear, &heard[0]),
	     *second = gpc_log_add_listener(hear, &heard[1]);
	void *all[32];
	unsigned int more = 0;

	gpc_log_history_add("one");
	assert_int_equal(heard[0], 1);
	assert_int_equal(heard[1], 1);
	assert_int_equal(gpc_log_remove_listener(first), 0);
	assert_int_equal(gpc_log_remove_listener(first), -ENOENT);
	assert_int_equal(gpc_log_remove_listener(heard), -ENOENT);
	gpc_log_history_add("two");
	assert_int_equal(heard[0], 1);
	assert_int_equal(heard[1], 2);
	assert_int_equal(gpc_log_remove_listener(second), 0);
	while (more < 32 && (all[more] = gpc_log_add_listener(hear, heard)))
		more++;
	assert_true(more > 0 && more < 32);
	while (more)
		assert_int_equal(gpc_log_remove_listener(all[--more]), 0);
}

UNIT_TEST_MAIN(NULL, NULL)
