/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/thread.h"
#include "client/base/stats.h"
#include "client/base/trace.h"
#include "gp_calls.h"
#include "tests/test.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PID 42
#define MANY 40000
#define THREADS 4
#define ROUNDS 200

static struct gpc_trace_text text = { .pid = PID };

/* Events recorded since the last call. */
static const char *
take(uint64_t *lost_p)
{
	text.size = 0;
	*lost_p = gpc_trace_flush(&text);
	gpc_trace_text_name(&text, (struct gpc_trace_track){ 0, 0 }, "end", "");
	assert_false(text.lost);
	text.data[text.size - 1] = '\0';
	return text.data;
}

static unsigned int
count(const char *all, const char *part)
{
	size_t size = strlen(part);
	unsigned int found = 0;

	/* Not strstr(): a sanitizer reads the whole text for each that is found. */
	for (; *all; all++)
		found += *all == *part && strncmp(all, part, size) == 0;
	return found;
}

static int
begin(void **unused)
{
	uint64_t lost;

	setenv("GPUPOOL_TRACE", "file", 1);
	if (!gpc_trace_is_on() && !gpc_trace_init())
		return -1;
	text.begun_ns = gp_now_ns();
	(void)take(&lost);
	return 0;
}

UNIT_TEST(nothing_is_recorded_without_a_file)
{
	uint64_t lost;

	unsetenv("GPUPOOL_TRACE");
	assert_false(gpc_trace_init());
	setenv("GPUPOOL_TRACE", "", 1);
	assert_false(gpc_trace_init());
	gpc_trace_call("cuInit", 1, CUDA_SUCCESS);
	gpc_stats_received(8);
	assert_int_equal(count(take(&lost), "cuInit") + count(text.data, "received"), 0);
	assert_int_equal(lost, 0);
}

UNIT_TEST(calls_waits_and_bytes_are_recorded)
{
	struct gpc_stats stats;
	char expected[128];
	uint64_t lost;
	const char *all;

	(void)begin(state);
	gpc_trace_call("cuInit", gp_now_ns(), CUDA_SUCCESS);
	gpc_trace_call("cuMemAlloc_v2", gp_now_ns(), CUDA_ERROR_OUT_OF_MEMORY);
	gpc_stats_wait_start(GP_CALL_gpFence);
	gpc_stats_wait_stop();
	gpc_stats_received(100);
	gpc_stats_sent(20, NULL, 0);
	gpc_stats_get(&stats);
	all = take(&lost);
	assert_int_equal(lost, 0);
	assert_int_equal(count(all, "\"name\":\"cuInit\""), 1);
	assert_int_equal(count(all, "\"args\":{\"result\":2}"), 1);
	assert_int_equal(count(all, "\"cat\":\"wait\""), 1);
	assert_non_null(strstr(all, "\"name\":\"wait: gpFence\""));
	snprintf(expected, sizeof(expected), "\"name\":\"received\",\"ts\":");
	assert_non_null(strstr(all, expected));
	snprintf(expected, sizeof(expected), "\"args\":{\"bytes\":%llu}}",
		 (unsigned long long)stats.bytes_received);
	assert_non_null(strstr(all, expected));
	snprintf(expected, sizeof(expected), "\"args\":{\"bytes\":%llu}}",
		 (unsigned long long)stats.bytes_sent);
	assert_non_null(strstr(all, expected));
	/* Each event is written once, and so is the name of the thread. */
	assert_int_equal(count(all, "thread_name"), 1);
	assert_int_equal(count(take(&lost), "\n"), 1);
}

UNIT_TEST(a_wait_in_a_wait_is_none_of_its_own)
{
	uint64_t lost;

	(void)begin(state);
	gpc_stats_wait_start(GPC_WAIT_HELLO);
	gpc_stats_wait_start(GP_CALL_gpFence);
	gpc_stats_wait_stop();
	gpc_stats_wait_stop();
	assert_int_equal(count(take(&lost), "\"cat\":\"wait\""), 1);
	assert_non_null(strstr(text.data, "wait: welcome"));
}

static void
check_text(struct gpc_trace_text *out, const char *expected)
{
	assert_int_equal(out->size, strlen(expected));
	assert_memory_equal(out->data, expected, out->size);
	out->size = 0;
}

UNIT_TEST(text_is_escaped_and_times_are_microseconds)
{
	struct gpc_trace_text out = { .begun_ns = 1000000 };

	gpc_trace_text_span(&out, (struct gpc_trace_track){ 1, 2 }, 1001005, 2002010, "gpu",
			    "a\"b\\c\n\xc3\xa9", NULL, 0);
	check_text(&out, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"name\":\"a\\\"b\\\\c\\u000a"
			 "\\u00c3\\u00a9\",\"ts\":1.005,\"dur\":1001.005,\"cat\":\"gpu\"}");
	/* What came before the beginning is told at the beginning, and nothing ends before. */
	gpc_trace_text_span(&out, (struct gpc_trace_track){ 1, 2 }, 999, 998, "gpu", "x", "n", 7);
	check_text(&out, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"name\":\"x\",\"ts\":0.000,"
			 "\"dur\":0.000,\"cat\":\"gpu\",\"args\":{\"n\":7}}");
	gpc_trace_text_fini(&out);
}

UNIT_TEST(a_full_buffer_counts_what_it_cannot_take)
{
	uint64_t before, lost;

	(void)begin(state);
	(void)take(&before);
	for (int i = 0; i < MANY; i++)
		gpc_trace_call("cuCtxGetCurrent", 1, CUDA_SUCCESS);
	(void)take(&lost);
	assert_int_equal(count(text.data, "cuCtxGetCurrent") + lost - before, MANY);
	assert_true(lost > before);
	gpc_trace_call("cuInit", 1, CUDA_SUCCESS);
	assert_int_equal(count(take(&lost), "cuInit"), 1);
}

static void *
call_often(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		gpc_trace_call("cuCtxGetCurrent", gp_now_ns(), CUDA_SUCCESS);
	return arg;
}

UNIT_TEST(threads_that_come_and_go_lose_nothing)
{
	unsigned int found = 0;
	uint64_t before, lost;

	(void)begin(state);
	(void)take(&before);
	for (int round = 0; round < 20; round++) {
		pthread_t threads[THREADS];

		for (int i = 0; i < THREADS; i++)
			assert_int_equal(gp_thread_start_joinable(&threads[i], "caller", 0,
								  call_often, NULL),
					 0);
		/* Taken while they are at it, and when they are gone. */
		found += count(take(&lost), "cuCtxGetCurrent");
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
	}
	found += count(take(&lost), "cuCtxGetCurrent");
	assert_int_equal(found, 20 * THREADS * ROUNDS);
	assert_int_equal(lost, before);
}

UNIT_TEST(a_child_has_nothing_of_its_parent)
{
	uint64_t lost;
	int status;
	pid_t pid;

	(void)begin(state);
	gpc_trace_call("cuInit", 1, CUDA_SUCCESS);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		bool fine;

		gpc_trace_after_fork();
		fine = count(take(&lost), "cuInit") == 0;
		gpc_trace_call("cuCtxGetCurrent", 1, CUDA_SUCCESS);
		fine = fine && count(take(&lost), "cuCtxGetCurrent") == 1;
		_exit(fine ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(count(take(&lost), "cuInit"), 1);
}

static int
end(void **unused)
{
	gpc_trace_text_fini(&text);
	return 0;
}

UNIT_TEST_MAIN(NULL, end)
