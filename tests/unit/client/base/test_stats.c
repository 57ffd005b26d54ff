/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/thread.h"
#include "client/base/stats.h"
#include "gp_calls.h"
#include "tests/test.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS 1000000
#define THREADS 4
#define WAITS 1000

/* Differences of the counters since the last call. The counters belong to the process, and each
 * test adds to them. */
static uint64_t
more_waits(unsigned int cause, uint64_t *ns_p)
{
	static uint64_t seen[GPC_WAIT_END], seen_ns[GPC_WAIT_END];
	uint64_t count, ns;

	gpc_stats_get_wait(cause, &count, &ns);
	count -= seen[cause];
	ns -= seen_ns[cause];
	seen[cause] += count;
	seen_ns[cause] += ns;
	*ns_p = ns;
	return count;
}

static uint64_t
all_waits(void)
{
	struct gpc_stats stats;

	gpc_stats_get(&stats);
	return stats.waits;
}

UNIT_TEST(a_wait_counts_with_its_cause_and_its_time)
{
	uint64_t before = all_waits(), ns;

	gpc_stats_wait_start(GP_CALL_gpFence);
	gp_clock_advance(5 * NS_PER_MS);
	gpc_stats_wait_stop();
	assert_int_equal(all_waits(), before + 1);
	assert_int_equal(more_waits(GP_CALL_gpFence, &ns), 1);
	assert_true(ns >= 5 * NS_PER_MS);
	assert_int_equal(more_waits(GPC_WAIT_CONNECT, &ns), 0);
	assert_int_equal(ns, 0);
}

UNIT_TEST(a_wait_inside_another_is_part_of_it)
{
	uint64_t before = all_waits(), ns;

	gpc_stats_wait_start(GPC_WAIT_HELLO);
	for (int i = 0; i < 3; i++) {
		gpc_stats_wait_start(GP_CALL_gpFence);
		gp_clock_advance(NS_PER_MS);
		gpc_stats_wait_stop();
	}
	gpc_stats_wait_stop();
	assert_int_equal(all_waits(), before + 1);
	assert_int_equal(more_waits(GPC_WAIT_HELLO, &ns), 1);
	assert_true(ns >= 3 * NS_PER_MS);
	assert_int_equal(more_waits(GP_CALL_gpFence, &ns), 0);
	assert_int_equal(ns, 0);
}

static void *
wait_often(void *arg)
{
	for (int i = 0; i < WAITS; i++) {
		gpc_stats_wait_start(GPC_WAIT_ROOM);
		gpc_stats_wait_stop();
	}
	return NULL;
}

UNIT_TEST(each_thread_has_waits_of_its_own)
{
	pthread_t threads[THREADS];
	uint64_t ns;

	gpc_stats_wait_start(GPC_WAIT_WINDOW);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
			gp_thread_start_joinable(&threads[i], "waits", 0, wait_often, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	gpc_stats_wait_stop();
	assert_int_equal(more_waits(GPC_WAIT_ROOM, &ns), THREADS * WAITS);
	assert_int_equal(more_waits(GPC_WAIT_WINDOW, &ns), 1);
}

UNIT_TEST(waits_before_the_first_kernel_are_told_apart)
{
	struct gpc_stats stats;
	uint64_t before = all_waits();

	gpc_stats_launch();
	gpc_stats_wait_start(GP_CALL_gpFence);
	gpc_stats_wait_stop();
	gpc_stats_get(&stats);
	assert_int_equal(stats.waits, before + 1);
	assert_int_equal(stats.waits_before_launch, before);
}

UNIT_TEST(every_cause_is_printed_with_its_count_time_and_name)
{
	char *text = NULL, line[128];
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	gpc_stats_print(file);
	assert_int_equal(fclose(file), 0);
	(void)snprintf(line, sizeof(line), "%10d waits ", THREADS * WAITS);
	assert_non_null(strstr(text, line));
	assert_non_null(strstr(text, " ms room for calls\n"));
	assert_non_null(strstr(text, " ms welcome\n"));
	assert_non_null(strstr(text, " ms gpFence\n"));
	assert_null(strstr(text, "connection"));
	free(text);
}

static void *
wait_as_the_library(void *arg)
{
	gpc_stats_set_own_thread();
	gpc_stats_wait_start(GP_CALL_gpFence);
	gpc_stats_wait_stop();
	return arg;
}

/* The program does not wait for it. */
UNIT_TEST(waits_of_the_librarys_threads_are_counted_apart)
{
	uint64_t count, again, ns;
	struct gpc_stats before, after;
	pthread_t thread;

	gpc_stats_get(&before);
	gpc_stats_get_wait(GP_CALL_gpFence, &count, &ns);
	assert_int_equal(pthread_create(&thread, NULL, wait_as_the_library, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	gpc_stats_get(&after);
	gpc_stats_get_wait(GP_CALL_gpFence, &again, &ns);
	assert_int_equal(after.waits, before.waits);
	assert_int_equal(again, count);
	assert_int_equal(after.own_waits, before.own_waits + 1);
}

UNIT_TEST_MAIN(NULL, NULL)
