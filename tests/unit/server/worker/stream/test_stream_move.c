/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of a session whose share of the multiprocessors changes during their work. */
#include "gpd_calls.h"
#include "server/worker/stream/responder.h"
#include "tests/test.h"
#include "tests/unit/server/move_fixture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TEST(test) UNIT_TEST_WITH(test, move_setup, move_teardown)

TEST(kernels_run_on_the_sessions_share)
{
	struct move_fixture *f = *state;

	assert_int_equal(move_spread(f, A), move_all);
	move_set_share(f, 8);
	assert_int_equal(move_spread(f, A), 8);
	assert_int_equal(move_spread(f, LEGACY), 8);
	move_make_stream(f, 9, CU_STREAM_NON_BLOCKING);
	assert_int_equal(move_spread(f, 9), 8);
	move_set_share(f, 20);
	assert_int_equal(move_spread(f, FREE), 20);
	move_set_share(f, 0);
	assert_int_equal(move_spread(f, B), move_all);
	assert_true(move_within_seconds(move_none_is_leaving, f));
}

TEST(two_sessions_run_on_different_multiprocessors)
{
	struct move_fixture *f = *state, *g;
	unsigned int ran[2][BLOCKS], users[256] = { 0 }, count[4] = { 0 };
	CUdeviceptr out[2] = { move_memory + (1 << 18), move_memory + (1 << 19) };

	assert_int_equal(move_setup((void **)&g), 0);
	move_set_share(f, move_all / 4 * 2);
	move_set_share(g, move_all / 4 * 2);
	/* Green contexts are made while nothing runs. */
	(void)move_begin(f, A);
	(void)move_begin(g, A);
	move_launch(move_where, BLOCKS, move_begin(f, A), (void *[]){ &out[0] });
	move_launch(move_where, BLOCKS, move_begin(g, A), (void *[]){ &out[1] });
	move_synchronize(f);
	move_synchronize(g);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(move_driver.cuMemcpyDtoH_v2(ran[i], out[i], sizeof(ran[i])),
				 CUDA_SUCCESS);
		for (unsigned int k = 0; k < BLOCKS; k++)
			users[ran[i][k] & 255] |= 1u << i;
	}
	for (int i = 0; i < 256; i++)
		count[users[i]]++;
	assert_int_equal(count[1], move_all / 4 * 2);
	assert_int_equal(count[2], move_all / 4 * 2);
	assert_int_equal(count[3], 0);
	assert_int_equal(move_teardown((void **)&g), 0);
}

TEST(stream_without_work_moves_at_once)
{
	struct move_fixture *f = *state;
	CUstream before;

	move_append_value(f, A, 0);
	move_synchronize(f);
	before = gpd_stream_get(&f->session, A)->driver;
	move_set_share(f, 8);
	assert_ptr_equal(gpd_stream_get(&f->session, A)->driver, before);
	assert_ptr_not_equal(move_begin(f, A)->driver, before);
	assert_true(move_none_is_leaving(f));
}

TEST(stream_whose_work_is_done_is_done_after_the_move)
{
	struct move_fixture *f = *state;
	const struct gpd_stream *stream = gpd_stream_get(&f->session, A);

	for (unsigned int i = 0; i < 20; i++) {
		CUstream before = stream->driver;

		move_append_value(f, A, i);
		/* The responder is about to note it; or nobody has told the session. */
		if (i % 2)
			move_synchronize(f);
		else
			assert_int_equal(gpd_driver.cuStreamSynchronize(before), CUDA_SUCCESS);
		move_set_share(f, i % 2 ? 4 : 8);
		(void)move_begin(f, FREE);
		assert_ptr_not_equal(stream->driver, before);
		assert_int_equal(gpd_driver.cuStreamQuery(stream->driver), CUDA_SUCCESS);
	}
}

TEST(work_goes_on_where_it_is_and_new_work_follows)
{
	struct move_fixture *f = *state;
	CUstream before;

	move_wait_at_gate(f, A, 0);
	for (unsigned int i = 0; i < 50; i++)
		move_append_value(f, A, i);
	before = move_begin(f, A)->driver;
	move_set_share(f, 8);
	for (unsigned int i = 50; i < 100; i++)
		move_append_value(f, A, i);
	assert_ptr_not_equal(move_begin(f, A)->driver, before);
	move_set_share(f, 4);
	for (unsigned int i = 100; i < 150; i++)
		move_append_value(f, A, i);
	assert_false(move_none_is_leaving(f));
	assert_false(gpd_stream_is_idle(gpd_stream_get(&f->session, A)));
	move_open_gate(0);
	move_synchronize(f);
	move_check_list(0, 150);
	assert_true(move_within_seconds(move_none_is_leaving, f));
}

TEST(who_waits_for_a_stream_waits_for_what_it_had)
{
	struct move_fixture *f = *state;

	move_wait_at_gate(f, A, 0);
	assert_int_equal(gpd_wait_add(&f->session, gpd_stream_get(&f->session, A), move_tell, f),
			 CUDA_SUCCESS);
	move_set_share(f, 8);
	(void)move_begin(f, A);
	usleep(20000);
	assert_int_equal(atomic_load(&f->told), 0);
	move_open_gate(0);
	assert_true(move_within_seconds(move_is_told, f));
	assert_int_equal(f->result, CUDA_SUCCESS);
	move_synchronize(f);
}

TEST(events_recorded_before_stay_valid)
{
	struct move_fixture *f = *state;
	CUevent event;

	assert_int_equal(gpd_driver.cuEventCreate(&event, 0), CUDA_SUCCESS);
	move_wait_at_gate(f, A, 0);
	move_append_value(f, A, 0);
	assert_int_equal(gpd_driver.cuEventRecord(event, move_begin(f, A)->driver), CUDA_SUCCESS);
	move_set_share(f, 8);
	assert_int_equal(gpd_driver.cuStreamWaitEvent(move_begin(f, FREE)->driver, event, 0),
			 CUDA_SUCCESS);
	move_append_value(f, FREE, 1);
	move_set_share(f, 0);
	assert_int_equal(gpd_driver.cuStreamWaitEvent(move_begin(f, B)->driver, event, 0),
			 CUDA_SUCCESS);
	assert_int_equal(gpd_driver.cuEventQuery(event), CUDA_ERROR_NOT_READY);
	move_open_gate(0);
	move_synchronize(f);
	assert_true(move_within_seconds(move_none_is_leaving, f));
	assert_int_equal(gpd_driver.cuEventQuery(event), CUDA_SUCCESS);
	move_check_list(0, 2);
	assert_int_equal(gpd_driver.cuEventDestroy_v2(event), CUDA_SUCCESS);
}

TEST(legacy_stream_keeps_its_order)
{
	struct move_fixture *f = *state;

	move_wait_at_gate(f, A, 0);
	move_append_value(f, A, 0);
	move_set_share(f, 8);
	move_append_value(f, LEGACY, 1);
	move_set_share(f, 4);
	move_append_value(f, B, 2);
	move_append_value(f, LEGACY, 3);
	move_set_share(f, 0);
	move_append_value(f, A, 4);
	usleep(20000);
	move_open_gate(0);
	move_synchronize(f);
	move_check_list(0, 5);
}

static CUresult
ask_stream(struct move_fixture *f, uint32_t id)
{
	const struct gp_args_cuStreamQuery args = { .hStream = id };

	return gpd_cuStreamQuery(&f->session, &args);
}

static CUresult asked_when_told;

/* Like a client that sends the next request when it has the reply. */
static void
ask_when_told(struct gpd_session *session, void *arg, CUresult result)
{
	asked_when_told = gpd_stream_query_work(gpd_stream_get(session, A));
	move_tell(session, arg, result);
}

/* Also if other work follows it. */
TEST(stream_is_done_when_the_legacy_stream_that_waited_for_it_is)
{
	struct move_fixture *f = *state;

	move_append_value(f, A, 0);
	move_append_value(f, LEGACY, 1);
	move_wait_at_gate(f, B, 0);
	assert_int_equal(move_driver.cuStreamWaitValue32_v2(gpd_stream_get(&f->session, A)->driver,
							    move_gate(0), 1,
							    CU_STREAM_WAIT_VALUE_EQ),
			 CUDA_SUCCESS);
	assert_int_equal(
		gpd_wait_add(&f->session, gpd_stream_get(&f->session, LEGACY), ask_when_told, f),
		CUDA_SUCCESS);
	assert_true(move_within_seconds(move_is_told, f));
	assert_int_equal(asked_when_told, CUDA_SUCCESS);
	while (!gpd_wait_is_empty(&f->session))
		usleep(1000);
	assert_int_equal(ask_stream(f, A), CUDA_SUCCESS);
	assert_int_equal(ask_stream(f, B), CUDA_ERROR_NOT_READY);
	assert_int_equal(ask_stream(f, LEGACY), CUDA_ERROR_NOT_READY);
	move_append_value(f, A, 2);
	assert_int_equal(ask_stream(f, A), CUDA_ERROR_NOT_READY);
	move_open_gate(0);
	move_synchronize(f);
	move_check_list(0, 3);
}

TEST(barrier_holds_for_streams_that_moved)
{
	struct move_fixture *f = *state;
	struct gpd_stream *stream;

	move_wait_at_gate(f, A, 0);
	move_append_value(f, A, 0);
	stream = move_begin(f, A);
	assert_int_equal(gpd_stream_barrier(&f->session, stream), CUDA_SUCCESS);
	move_set_share(f, 8);
	move_append_value(f, FREE, 1);
	stream = move_begin(f, FREE);
	assert_int_equal(gpd_stream_barrier(&f->session, stream), CUDA_SUCCESS);
	move_set_share(f, 4);
	move_append_value(f, B, 2);
	usleep(20000);
	move_open_gate(0);
	move_synchronize(f);
	move_check_list(0, 3);
}

static CUevent appended;

static bool
is_appended(struct move_fixture *f)
{
	return gpd_driver.cuEventQuery(appended) == CUDA_SUCCESS;
}

TEST(dropped_stream_finishes_where_it_is)
{
	struct move_fixture *f = *state;

	assert_int_equal(gpd_driver.cuEventCreate(&appended, 0), CUDA_SUCCESS);
	move_wait_at_gate(f, A, 0);
	move_append_value(f, A, 0);
	assert_int_equal(gpd_driver.cuEventRecord(appended, move_begin(f, A)->driver),
			 CUDA_SUCCESS);
	gpd_stream_drop(&f->session, gpd_stream_get(&f->session, A));
	move_set_share(f, 8);
	(void)move_begin(f, FREE);
	move_wait_at_gate(f, B, 1);
	move_append_value(f, B, 1);
	move_set_share(f, 4);
	move_append_value(f, B, 2);
	gpd_stream_drop(&f->session, gpd_stream_get(&f->session, B));
	move_open_gate(0);
	/* Nothing else orders the two streams. */
	assert_true(move_within_seconds(is_appended, f));
	move_open_gate(1);
	move_synchronize(f);
	move_check_list(0, 3);
	assert_true(move_within_seconds(move_none_is_leaving, f));
	assert_int_equal(gpd_driver.cuEventDestroy_v2(appended), CUDA_SUCCESS);
}

/* Of LEGACY, A, B and FREE. */
static bool
three_streams_are_left(struct move_fixture *f)
{
	gpd_stream_reap(&f->session);
	return f->session.streams->count == 3;
}

/* Measurements may follow the work, in a page that another session gets. */
TEST(a_destroyed_idle_stream_stays_until_its_driver_has_nothing_left)
{
	struct move_fixture *f = *state;
	struct gpd_stream *stream = gpd_stream_get(&f->session, FREE);

	assert_int_equal(move_driver.cuStreamWaitValue32_v2(stream->driver, move_gate(0), 1,
							    CU_STREAM_WAIT_VALUE_EQ),
			 CUDA_SUCCESS);
	assert_true(gpd_stream_is_idle(stream));
	gpd_stream_drop(&f->session, stream);
	assert_false(three_streams_are_left(f));
	move_open_gate(0);
	assert_true(move_within_seconds(three_streams_are_left, f));
}

/* The next session may get the page of its markers. */
TEST(cancelling_a_session_drops_markers_of_idle_streams)
{
	struct move_fixture *f = *state;
	struct gpd_stream *stream = gpd_stream_get(&f->session, FREE);

	if (!gpd_driver.gpSoftStreamCancel)
		skip();
	/* Not counted as work of the client's. */
	assert_int_equal(move_driver.cuStreamWaitValue32_v2(stream->driver, move_gate(0), 1,
							    CU_STREAM_WAIT_VALUE_EQ),
			 CUDA_SUCCESS);
	assert_int_equal(gpd_wait_add(&f->session, stream, move_tell, f), CUDA_SUCCESS);
	assert_true(gpd_stream_is_idle(stream));
	assert_int_equal(gpd_driver.cuStreamQuery(stream->driver), CUDA_ERROR_NOT_READY);
	gpd_stream_cancel_all(&f->session);
	assert_int_equal(gpd_driver.cuStreamQuery(stream->driver), CUDA_SUCCESS);
	assert_int_equal(f->told, 0);
}

/* The teardown must not hang, and nothing may run after it. */
TEST(session_may_end_while_a_stream_is_left)
{
	struct move_fixture *f = *state;

	move_wait_at_gate(f, A, 0);
	move_append_value(f, A, 0);
	move_set_share(f, 8);
	move_append_value(f, A, 1);
	move_set_share(f, 4);
	move_append_value(f, A, 2);
	assert_false(move_none_is_leaving(f));
	/* What cannot be cancelled is waited for. */
	if (!gpd_driver.gpSoftStreamCancel)
		move_open_gate(0);
}

static uint64_t
now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

TEST(moving_does_not_wait_for_kernels)
{
	struct move_fixture *f = *state, *g;
	CUdeviceptr word = move_memory + 65536;
	uint64_t begun, first, again, last;
	CUstream plain;

	assert_int_equal(move_setup((void **)&g), 0);
	move_set_share(f, 10);
	move_launch(move_spin, 1, move_begin(f, A), (void *[]){ &word });
	begun = now_us();
	move_set_share(f, 12);
	move_append_value(f, FREE, 0);
	move_set_share(g, 6);
	move_append_value(g, A, 1);
	move_synchronize(g);
	first = now_us() - begun;
	/* With green contexts that there are by now. */
	begun = now_us();
	move_set_share(f, 10);
	move_append_value(f, FREE, 1);
	again = now_us() - begun;
	/* And none is kept. */
	gpd_partition_idle_max = 0;
	begun = now_us();
	move_set_share(f, 0);
	move_append_value(f, FREE, 2);
	move_set_share(g, 0);
	move_append_value(g, A, 3);
	move_synchronize(g);
	last = now_us() - begun;
	gpd_partition_idle_max = 16;
	assert_false(gpd_stream_is_idle(gpd_stream_get(&f->session, A)));
	assert_in_range(first + again + last, 0, 1000000);
	print_message("# moved in %u us, back in %u us, away for good in %u us\n",
		      (unsigned int)first, (unsigned int)again, (unsigned int)last);
	assert_int_equal(gpd_driver.cuStreamCreateWithPriority(&plain, CU_STREAM_NON_BLOCKING, 0),
			 CUDA_SUCCESS);
	assert_int_equal(gpd_driver.cuMemsetD32Async(word, 1, 1, plain), CUDA_SUCCESS);
	move_synchronize(f);
	assert_int_equal(gpd_driver.cuStreamDestroy_v2(plain), CUDA_SUCCESS);
	assert_int_equal(move_teardown((void **)&g), 0);
}

TEST(events_outlive_the_green_context_that_they_were_recorded_in)
{
	struct move_fixture *f = *state;
	CUevent first, last;
	float ms = -1;

	assert_int_equal(gpd_driver.cuEventCreate(&first, 0), CUDA_SUCCESS);
	assert_int_equal(gpd_driver.cuEventCreate(&last, 0), CUDA_SUCCESS);
	move_set_share(f, 28);
	assert_int_equal(gpd_driver.cuEventRecord(first, move_begin(f, A)->driver), CUDA_SUCCESS);
	move_append_value(f, A, 0);
	gpd_partition_idle_max = 2;
	for (unsigned int i = 1; i <= 25; i++) {
		move_set_share(f, i % 13 * 2 + 2);
		move_append_value(f, A, i);
		move_synchronize(f);
	}
	assert_true(move_within_seconds(move_none_is_leaving, f));
	move_set_share(f, 0);
	assert_int_equal(gpd_driver.cuEventRecord(last, move_begin(f, A)->driver), CUDA_SUCCESS);
	assert_int_equal(gpd_driver.cuStreamWaitEvent(move_begin(f, B)->driver, first, 0),
			 CUDA_SUCCESS);
	move_synchronize(f);
	assert_int_equal(gpd_driver.cuEventQuery(first), CUDA_SUCCESS);
	assert_int_equal(gpd_driver.cuEventElapsedTime_v2(&ms, first, last), CUDA_SUCCESS);
	assert_true(ms > 0);
	gpd_partition_idle_max = 16;
	move_check_list(0, 26);
	assert_int_equal(gpd_driver.cuEventDestroy_v2(first), CUDA_SUCCESS);
	assert_int_equal(gpd_driver.cuEventDestroy_v2(last), CUDA_SUCCESS);
}

static CUresult (*real_create)(CUstream *stream, CUgreenCtx ctx, unsigned int flags, int priority);
static int fails_left;

static CUresult
failing_create(CUstream *stream, CUgreenCtx ctx, unsigned int flags, int priority)
{
	if (fails_left-- > 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return real_create(stream, ctx, flags, priority);
}

TEST(streams_that_cannot_move_stay_and_try_again)
{
	struct move_fixture *f = *state;
	CUstream before = move_begin(f, A)->driver;

	real_create = gpd_driver.cuGreenCtxStreamCreate;
	gpd_driver.cuGreenCtxStreamCreate = failing_create;
	fails_left = 1;
	move_set_share(f, 8);
	assert_ptr_equal(move_begin(f, A)->driver, before);
	move_append_value(f, A, 0);
	assert_ptr_equal(move_begin(f, A)->driver, before);
	usleep(120000);
	assert_ptr_not_equal(move_begin(f, A)->driver, before);
	gpd_driver.cuGreenCtxStreamCreate = real_create;
	assert_int_equal(move_spread(f, A), 8);
	move_check_list(0, 1);
}

struct changer {
	struct move_fixture *f;
	_Atomic bool stop;
	_Atomic unsigned int changes;
};

static void *
change(void *arg)
{
	struct changer *changer = arg;
	unsigned int seed = 3;

	while (!atomic_load(&changer->stop)) {
		move_set_share(changer->f, (uint32_t)rand_r(&seed) % move_all);
		atomic_fetch_add(&changer->changes, 1);
		usleep(300);
	}
	return NULL;
}

TEST(share_changes_while_streams_work)
{
	struct changer changer = { .f = *state };
	struct move_fixture *f = *state;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, change, &changer), 0);
	for (unsigned int i = 0; i < 900; i++) {
		/* Each of these waits for all before it. */
		move_append_value(f, i % 3 ? LEGACY : i % 2 ? A : B, i);
		if (i % 100 == 99)
			move_synchronize(f);
		/* The share changes at least once for each hundred, however busy the machine is. */
		while (i % 100 == 99 && atomic_load(&changer.changes) <= i / 100)
			usleep(100);
	}
	move_synchronize(f);
	atomic_store(&changer.stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	move_check_list(0, 900);
	assert_true(move_within_seconds(move_none_is_leaving, f));
}

UNIT_TEST_MAIN(move_start, move_stop)
