/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events that a program polls are queried once and then watched. */
#include "tests/unit/client/idle_fixture.h"

UNIT_TEST(stream_that_is_queried_in_a_loop_is_asked_once)
{
	struct fixture *fixture = begin_idle(state);
	CUresult result = CUDA_ERROR_NOT_READY;

	give_work(&streams[0]);
	atomic_store(&done, false);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(query(&streams[0]), CUDA_ERROR_NOT_READY);
	assert_int_equal(received(fixture, GP_CALL_cuStreamQuery), 1);
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 1);
	/* More work is another question. */
	give_work(&streams[0]);
	assert_int_equal(query(&streams[0]), CUDA_ERROR_NOT_READY);
	assert_int_equal(query(&streams[0]), CUDA_ERROR_NOT_READY);
	assert_int_equal(received(fixture, GP_CALL_cuStreamQuery), 2);
	finish_work(fixture);
	for (int i = 0; i < PATIENCE_MS && result == CUDA_ERROR_NOT_READY; i++) {
		result = query(&streams[0]);
		if (result == CUDA_ERROR_NOT_READY)
			(void)usleep(1000);
	}
	assert_int_equal(result, CUDA_SUCCESS);
	assert_int_equal(gpc_stream_fence(&streams[0]), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuStreamQuery), 2);
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 2);
	end_idle(fixture);
}

UNIT_TEST(event_is_asked_once_and_again_when_it_was_recorded_again)
{
	struct fixture *fixture = begin_idle(state);
	CUevent event = make_event();
	CUresult result = CUDA_ERROR_NOT_READY;

	atomic_store(&done, false);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(gpc_cuEventQuery(event), CUDA_ERROR_NOT_READY);
	assert_int_equal(received(fixture, GP_CALL_cuEventQuery), 1);
	assert_int_equal(gpc_cuEventRecord(event, NULL), CUDA_SUCCESS);
	/* It is watched from when it is recorded. */
	assert_int_equal(gpc_cuEventQuery(event), CUDA_ERROR_NOT_READY);
	assert_int_equal(received(fixture, GP_CALL_cuEventQuery), 1);
	finish_work(fixture);
	for (int i = 0; i < PATIENCE_MS && result == CUDA_ERROR_NOT_READY; i++) {
		result = gpc_cuEventQuery(event);
		if (result == CUDA_ERROR_NOT_READY)
			(void)usleep(1000);
	}
	assert_int_equal(result, CUDA_SUCCESS);
	assert_int_equal(gpc_cuEventQuery(event), CUDA_SUCCESS);
	assert_int_equal(gpc_cuEventSynchronize(event), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuEventQuery), 1);
	assert_int_equal(received(fixture, GP_CALL_cuEventSynchronize), 2);
	/* Recorded once more, nothing is known; who waits asks himself. */
	assert_int_equal(gpc_cuEventRecord(event, NULL), CUDA_SUCCESS);
	assert_int_equal(gpc_cuEventSynchronize(event), CUDA_SUCCESS);
	assert_int_equal(gpc_cuEventQuery(event), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuEventSynchronize), 4);
	assert_int_equal(received(fixture, GP_CALL_cuEventQuery), 1);
	end_idle(fixture);
}

UNIT_TEST(event_that_is_asked_for_by_turns_is_waited_for_once)
{
	struct fixture *fixture = begin_idle(state);
	CUevent event = make_event();

	for (int turn = 0; turn < 5; turn++) {
		CUresult result = CUDA_ERROR_NOT_READY;

		for (int i = 0; i < PATIENCE_MS && result == CUDA_ERROR_NOT_READY; i++) {
			result = gpc_cuEventQuery(event);
			if (result == CUDA_ERROR_NOT_READY)
				(void)usleep(1000);
		}
		assert_int_equal(result, CUDA_SUCCESS);
		assert_int_equal(gpc_cuEventRecord(event, NULL), CUDA_SUCCESS);
	}
	assert_int_equal(received(fixture, GP_CALL_cuEventQuery), 1);
	end_idle(fixture);
}

UNIT_TEST(only_so_many_are_watched)
{
	struct fixture *fixture = begin_idle(state);
	CUevent events[2 * GPC_WATCHES_MAX];

	for (int i = 0; i < 2 * GPC_WATCHES_MAX; i++)
		events[i] = make_event();
	atomic_store(&done, false);
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < 2 * GPC_WATCHES_MAX; i++)
			assert_int_equal(gpc_cuEventQuery(events[i]), CUDA_ERROR_NOT_READY);
	}
	assert_int_equal(received(fixture, GP_CALL_cuEventSynchronize), GPC_WATCHES_MAX);
	assert_int_equal(received(fixture, GP_CALL_cuEventQuery), 3 * GPC_WATCHES_MAX);
	/* Some go while they are watched. */
	for (int i = 0; i < GPC_WATCHES_MAX; i++)
		assert_int_equal(gpc_cuEventDestroy_v2(events[i]), CUDA_SUCCESS);
	finish_work(fixture);
	end_idle(fixture);
}

static void *
query_in_thread(void *event)
{
	return (void *)(uintptr_t)gpc_cuEventQuery(event);
}

/* Destroys an event while another thread asks for it.  *next_p: one that has its memory. */
static void
destroy_while_asked(struct fixture *fixture, CUevent event, CUevent *next_p)
{
	size_t before = atomic_load(&fixture->daemon.count);
	struct gpc_event *was, *is = NULL;
	pthread_t asks;
	void *result;

	assert_int_equal(gpc_event_lookup(event, &was), CUDA_SUCCESS);
	assert_int_equal(pthread_create(&asks, NULL, query_in_thread, event), 0);
	assert_true(fake_daemon_wait_records(&fixture->daemon, before + 1));
	assert_int_equal(gpc_cuEventDestroy_v2(event), CUDA_SUCCESS);
	while (next_p && is != was) {
		*next_p = make_event();
		assert_int_equal(gpc_event_lookup(*next_p, &is), CUDA_SUCCESS);
	}
	assert_int_equal(sem_post(&fixture->daemon.proceed), 0);
	assert_int_equal(pthread_join(asks, &result), 0);
	assert_int_equal((uintptr_t)result, CUDA_ERROR_NOT_READY);
}

UNIT_TEST(event_destroyed_while_asked_leaves_no_watch)
{
	struct fixture *fixture = begin_idle(state);
	CUevent event;
	size_t asked;

	atomic_store(&done, false);
	atomic_store(&held, true);
	for (int i = 0; i < GPC_WATCHES_MAX; i++) {
		event = make_event();
		assert_int_equal(fence(), CUDA_SUCCESS);
		destroy_while_asked(fixture, event, NULL);
	}
	atomic_store(&held, false);
	finish_work(fixture);
	assert_int_equal(fence(), CUDA_SUCCESS);
	/* There is room for another: it is asked for once. */
	atomic_store(&done, false);
	event = make_event();
	asked = received(fixture, GP_CALL_cuEventQuery);
	assert_int_equal(gpc_cuEventQuery(event), CUDA_ERROR_NOT_READY);
	assert_int_equal(gpc_cuEventQuery(event), CUDA_ERROR_NOT_READY);
	assert_int_equal(received(fixture, GP_CALL_cuEventQuery), asked + 1);
	finish_work(fixture);
	end_idle(fixture);
}

UNIT_TEST(watch_of_an_event_destroyed_while_asked_is_not_the_next_ones)
{
	struct fixture *fixture = begin_idle(state);
	CUevent first = make_event(), next = NULL;
	size_t asked;

	assert_int_equal(fence(), CUDA_SUCCESS);
	atomic_store(&done, false);
	atomic_store(&held, true);
	destroy_while_asked(fixture, first, &next);
	atomic_store(&held, false);
	finish_work(fixture);
	assert_int_equal(fence(), CUDA_SUCCESS);
	atomic_store(&done, false);
	asked = received(fixture, GP_CALL_cuEventQuery);
	/* Its work is not done, whatever was heard of the first one's. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(gpc_cuEventQuery(next), CUDA_ERROR_NOT_READY);
	assert_int_equal(received(fixture, GP_CALL_cuEventQuery), asked + 1);
	finish_work(fixture);
	end_idle(fixture);
}

UNIT_TEST(lost_session_ends_what_is_watched)
{
	struct fixture *fixture = begin_idle(state);
	CUevent event = make_event();

	atomic_store(&done, false);
	assert_int_equal(gpc_cuEventQuery(event), CUDA_ERROR_NOT_READY);
	gpc_session_fail(fixture->session, CUDA_ERROR_LAUNCH_FAILED, "test");
	assert_int_equal(gpc_cuEventQuery(event), CUDA_ERROR_LAUNCH_FAILED);
	end_idle(fixture);
}

int
main(void)
{
	return run_over_both(unit_tests.tests, unit_tests.count);
}
