/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "client/trace/gpu_trace.h"
#include "gp_calls.h"
#include "tests/test.h"
#include "tests/unit/client/fake_daemon.h"

#include <stdlib.h>
#include <string.h>

#define KERNEL 0x1234500000002
#define SECOND_NS 1000000000

static struct gpc_gpu_trace *gpu;
static struct gpc_trace_text text;
static _Alignas(8) uint8_t memory[4096];

static int
setup(void **unused)
{
	gpu = calloc(1, sizeof(*gpu));
	text = (struct gpc_trace_text){ 0 };
	if (gpu)
		gpu->pid = 9;
	return gpu ? 0 : -1;
}

static int
teardown(void **unused)
{
	gpc_gpu_trace_fini(gpu);
	free(gpu);
	gpc_trace_text_fini(&text);
	return 0;
}

/* Writes these, and the file has these words. */
static void
check(const struct gp_trace_event *events, int count, const char *words)
{
	struct gp_enc enc;

	text.size = 0;
	gp_enc_init(&enc, memory, sizeof(memory));
	for (int i = 0; i < count; i++)
		gp_trace_event_encode(&enc, &events[i]);
	assert_true(
		gpc_gpu_trace_write(&text, gpu, (struct gp_bytes){ memory, gp_enc_size(&enc) }));
	gpc_trace_text_name(&text, (struct gpc_trace_track){ 0, 0 }, "end", "");
	text.data[text.size - 1] = '\0';
	if (!strstr(text.data, words))
		fail_msg("no %s in %s", words, text.data);
}

#define CASE(test) UNIT_TEST_WITH(test, setup, teardown)

CASE(the_shortest_round_trip_tells_the_time)
{
	gpc_gpu_trace_sync_clock(gpu, 1000, 500, 1400);
	assert_int_equal(gpu->ahead_ns, 700);
	assert_int_equal(gpc_gpu_trace_clock_error(gpu, 1400), 200);
	gpc_gpu_trace_sync_clock(gpu, 2000, 1350, 2020);
	assert_int_equal(gpu->ahead_ns, 660);
	assert_int_equal(gpc_gpu_trace_clock_error(gpu, 2020), 10);
	gpc_gpu_trace_sync_clock(gpu, 3000, 9000, 3400);
	assert_int_equal(gpu->ahead_ns, 660);
	/* With time it is no longer the best, for the clocks drift apart. */
	assert_int_equal(gpc_gpu_trace_clock_error(gpu, 2020 + SECOND_NS), 10 + 50000);
	gpc_gpu_trace_sync_clock(gpu, SECOND_NS, SECOND_NS + 100, SECOND_NS + 1000);
	assert_int_equal(gpu->ahead_ns, 400);
	assert_int_equal(gpu->error_ns, 500);
}

CASE(work_is_put_on_the_client_s_clock)
{
	const struct gp_trace_event fill = {
		.begin_ns = 5000, .end_ns = 6500, .stream = 7, .device = 2, .call = GP_CALL_gpFill
	};

	/* The daemon's clock is ahead of ours. */
	gpc_gpu_trace_sync_clock(gpu, 1000, 3000, 1000);
	check(&fill, 1,
	      "{\"ph\":\"X\",\"pid\":9,\"tid\":7,\"name\":\"fill\",\"ts\":3.000,\"dur\":1.500,"
	      "\"cat\":\"gpu\"}");
	assert_non_null(strstr(text.data, "\"name\":\"GPU 2, stream 0x7\""));
	check(&fill, 1, "\"fill\"");
	assert_null(strstr(text.data, "GPU 2"));
}

CASE(a_stream_s_work_stays_in_order_when_the_clock_is_set)
{
	const struct gp_trace_event work[] = { { .begin_ns = 1000, .end_ns = 9000, .stream = 1 },
					       { .begin_ns = 9000, .end_ns = 9500, .stream = 1 } };

	check(&work[0], 1, "\"ts\":1.000,\"dur\":8.000");
	gpu->ahead_ns = (uint64_t)-200;
	check(&work[1], 1, "\"ts\":9.000,\"dur\":0.300");
	gpu->ahead_ns = (uint64_t)-5000;
	check(&work[1], 1, "\"ts\":9.300,\"dur\":0.000");
}

CASE(a_kernel_s_name_is_told_once)
{
	struct gp_trace_event launch = {
		.kernel = KERNEL, .call = GP_CALL_gpLaunch, .stream = 1, .name = { "_Z3addv", 7 }
	};

	check(&launch, 1, "\"name\":\"_Z3addv\"");
	launch.name = (struct gp_bytes){ 0 };
	launch.joined = 3;
	check(&launch, 1, "\"name\":\"_Z3addv\"");
	assert_non_null(strstr(text.data, "{\"not measured before it\":3}"));
	/* Another kernel of the same place takes it over. */
	launch.kernel += GP_TRACE_NAME_SLOTS;
	assert_int_equal(gp_trace_get_name_slot(launch.kernel), gp_trace_get_name_slot(KERNEL));
	check(&launch, 1, "\"name\":\"a kernel\"");
	launch.name = (struct gp_bytes){ "other", 5 };
	check(&launch, 1, "\"name\":\"other\"");
	launch.kernel = KERNEL;
	launch.name = (struct gp_bytes){ 0 };
	check(&launch, 1, "\"name\":\"a kernel\"");
}

CASE(what_is_malformed_is_refused)
{
	memset(memory, 0xff, sizeof(memory));
	assert_false(gpc_gpu_trace_write(&text, gpu, (struct gp_bytes){ memory, 100 }));
	assert_false(gpc_gpu_trace_write(&text, gpu, (struct gp_bytes){ memory, 7 }));
	assert_true(gpc_gpu_trace_write(&text, gpu, (struct gp_bytes){ memory, 0 }));
}

/* Its clock stands still, and the first answer is not all. */
static int
tell_work(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
	  size_t size)
{
	const struct gp_trace_event fill = { .stream = 7, .call = GP_CALL_gpFill };
	struct gp_reply_gpTraceTake reply = { .now = 1, .missed = 4, .left = daemon->count == 1 };
	_Alignas(8) uint8_t work[128], bytes[256];
	struct gp_enc enc;

	gp_enc_init(&enc, work, sizeof(work));
	gp_trace_event_encode(&enc, &fill);
	reply.events = (struct gp_bytes){ work, gp_enc_size(&enc) };
	gp_enc_init(&enc, bytes, sizeof(bytes));
	gp_reply_gpTraceTake_encode(&enc, &reply);
	fake_daemon_reply(daemon, header, CUDA_SUCCESS, bytes, gp_enc_size(&enc));
	return 0;
}

static int
tell_nonsense(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
	      size_t size)
{
	struct gp_reply_gpTraceTake reply = { .events = { "nonsense", 8 } };
	_Alignas(8) uint8_t bytes[256];
	struct gp_enc enc;

	gp_enc_init(&enc, bytes, sizeof(bytes));
	gp_reply_gpTraceTake_encode(&enc, &reply);
	fake_daemon_reply(daemon, header, CUDA_SUCCESS, bytes, gp_enc_size(&enc));
	return 0;
}

static int
know_nothing(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
	     size_t size)
{
	fake_daemon_reply(daemon, header, CUDA_ERROR_NOT_SUPPORTED, NULL, 0);
	return 0;
}

/* Till there is no more; how often the daemon was asked. */
static size_t
ask_all(int (*answer)(struct fake_daemon *daemon, const struct gp_header *header,
		      const void *fields, size_t size))
{
	struct fake_daemon daemon = { .answer = answer };
	struct gpc_session *session;
	size_t count;

	fake_daemon_start(&daemon, "tcp", 16, &session);
	gpc_gpu_trace_request(gpu);
	while (!gpc_gpu_trace_poll(&text, gpu, session))
		gp_sleep_ns(100000);
	assert_int_equal(gpc_session_status(session), CUDA_SUCCESS);
	count = daemon.count;
	fake_daemon_stop(&daemon, session);
	gpc_trace_text_name(&text, (struct gpc_trace_track){ 0, 0 }, "end", "");
	text.data[text.size - 1] = '\0';
	return count;
}

CASE(a_daemon_is_asked_often_at_first)
{
	assert_int_equal(ask_all(tell_work), 8);
	assert_non_null(strstr(text.data, "\"name\":\"fill\""));
	assert_non_null(strstr(text.data, "\"clock error\""));
	assert_non_null(strstr(text.data, "\"args\":{\"operations\":4}"));
	assert_null(strstr(text.data, "not known"));
	assert_int_equal(ask_all(tell_work), 2);
}

CASE(one_that_cannot_tell_is_asked_once)
{
	assert_int_equal(ask_all(know_nothing), 1);
	assert_non_null(strstr(text.data, "(GPU times are not known)"));
	assert_int_equal(ask_all(know_nothing), 0);
}

CASE(one_that_tells_nonsense_is_asked_once)
{
	assert_int_equal(ask_all(tell_nonsense), 1);
	assert_int_equal(ask_all(tell_nonsense), 0);
}

UNIT_TEST_MAIN(NULL, NULL)
