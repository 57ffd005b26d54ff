/* SPDX-License-Identifier: Apache-2.0 */
/* Implicitly synchronizing calls wait only for observable work; queries reply as if they had waited
 * for all. */
#include "client/stream/event_elapsed.h"
#include "client/stream/sync.h"
#include "tests/unit/client/idle_fixture.h"

static void
expect_waits(struct fixture *fixture, size_t waits, size_t barriers)
{
	assert_int_equal(received(fixture, GP_CALL_gpContextSynchronize), waits);
	assert_int_equal(received(fixture, GP_CALL_gpContextBarrier), barriers);
}

UNIT_TEST(work_that_nobody_sees_is_not_waited_for)
{
	struct fixture *fixture = begin_idle(state);

	gpc_sync_implicitly(&context);
	expect_waits(fixture, 0, 0);
	for (int i = 1; i <= 3; i++) {
		give_work(&streams[0]);
		give_work(&streams[1]);
		gpc_sync_implicitly(&context);
		gpc_sync_implicitly(&context);
		gpc_sync_implicitly_current();
		expect_waits(fixture, 0, (size_t)i);
	}
	/* What the program has waited for is done. */
	give_work(&streams[0]);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	gpc_sync_implicitly(&context);
	expect_waits(fixture, 1, 3);
	end_idle(fixture);
}

UNIT_TEST(work_that_is_seen_is_waited_for_once)
{
	struct fixture *fixture = begin_idle(state);

	give_work(&streams[0]);
	gpc_session_note_visible(session);
	give_work(&streams[1]);
	gpc_sync_implicitly(&context);
	expect_waits(fixture, 1, 0);
	gpc_sync_implicitly(&context);
	give_work(&streams[0]);
	gpc_sync_implicitly(&context);
	expect_waits(fixture, 1, 1);
	/* Not again if its stream has been waited for. */
	give_work(&streams[0]);
	gpc_session_note_visible(session);
	assert_int_equal(gpc_stream_fence(&streams[0]), CUDA_SUCCESS);
	assert_int_equal(gpc_stream_fence(&streams[1]), CUDA_SUCCESS);
	gpc_sync_implicitly(&context);
	expect_waits(fixture, 1, 1);
	end_idle(fixture);
}

UNIT_TEST(all_work_is_seen_while_memory_is)
{
	struct fixture *fixture = begin_idle(state);

	give_work(&streams[0]);
	gpc_session_count_visible_blocks(session, 1);
	gpc_sync_implicitly(&context);
	expect_waits(fixture, 0, 1);
	give_work(&streams[0]);
	gpc_sync_implicitly(&context);
	expect_waits(fixture, 1, 1);
	/* What was given while it was there may have written to it. */
	give_work(&streams[0]);
	gpc_session_count_visible_blocks(session, -1);
	gpc_sync_implicitly(&context);
	expect_waits(fixture, 2, 1);
	give_work(&streams[0]);
	gpc_sync_implicitly(&context);
	expect_waits(fixture, 2, 2);
	end_idle(fixture);
}

UNIT_TEST(daemon_without_barriers_is_waited_for)
{
	struct fixture *fixture = begin_idle(state);

	fake_daemon_lacks(session, GP_CALL_gpContextBarrier);
	give_work(&streams[0]);
	gpc_sync_implicitly(&context);
	expect_waits(fixture, 1, 0);
	end_idle(fixture);
}

UNIT_TEST(stream_that_is_implied_is_waited_for_by_a_query)
{
	struct fixture *fixture = begin_idle(state);

	give_work(&streams[0]);
	gpc_sync_implicitly(&context);
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 0);
	assert_int_equal(query(&streams[0]), CUDA_SUCCESS);
	assert_int_equal(query(&streams[0]), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 1);
	/* And work that was given later is not. */
	give_work(&streams[0]);
	gpc_sync_implicitly(&context);
	atomic_store(&done, false);
	give_work(&streams[0]);
	assert_int_equal(query(&streams[0]), CUDA_ERROR_NOT_READY);
	assert_int_equal(received(fixture, GP_CALL_cuStreamQuery), 1);
	finish_work(fixture);
	end_idle(fixture);
}

UNIT_TEST(legacy_stream_is_done_with_those_that_it_waits_for)
{
	struct fixture *fixture = begin_idle(state);

	streams[1].flags = CU_STREAM_NON_BLOCKING;
	give_work(&streams[0]);
	give_work(&streams[1]);
	gpc_sync_implicitly(&context);
	/* Of another stream, which the legacy one does not wait for. */
	give_work(&streams[1]);
	assert_int_equal(gpc_cuStreamQuery(NULL), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuStreamQuery), 0);
	end_idle(fixture);
}

UNIT_TEST(event_that_is_implied_is_waited_for_by_a_query)
{
	struct fixture *fixture = begin_idle(state);
	CUevent first = make_event(), second;

	gpc_sync_implicitly(&context);
	atomic_store(&done, false);
	second = make_event();
	assert_int_equal(gpc_cuEventQuery(second), CUDA_ERROR_NOT_READY);
	finish_work(fixture);
	assert_int_equal(gpc_cuEventQuery(first), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuEventQuery), 1);
	end_idle(fixture);
}

UNIT_TEST(time_between_events_that_are_implied_is_known)
{
	struct fixture *fixture = begin_idle(state);
	CUevent first, second;
	float ms;

	assert_int_equal(gpc_cuEventCreate(&first, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuEventCreate(&second, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuEventRecord(first, NULL), CUDA_SUCCESS);
	give_work(&legacy);
	assert_int_equal(gpc_cuEventRecord(second, NULL), CUDA_SUCCESS);
	gpc_sync_implicitly(&context);
	assert_int_equal(gpc_cuEventElapsedTime_v2(&ms, first, second), CUDA_SUCCESS);
	assert_int_not_equal(received(fixture, GP_CALL_cuEventSynchronize), 0);
	end_idle(fixture);
}

/* As a synchronous copy to the device does. */
UNIT_TEST(stream_is_waited_for_if_its_work_is_seen)
{
	struct fixture *fixture = begin_idle(state);

	streams[1].flags = CU_STREAM_NON_BLOCKING;
	give_work(&streams[0]);
	gpc_sync_implicitly_stream(&legacy);
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 0);
	assert_true(gpc_sync_is_implied(&streams[0], gpc_session_issued(session)));
	give_work(&streams[0]);
	gpc_session_note_visible(session);
	gpc_sync_implicitly_stream(&legacy);
	gpc_sync_implicitly_stream(&legacy);
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 1);
	/* Nothing is known of streams that do not block. */
	give_work(&streams[1]);
	gpc_session_note_visible(session);
	gpc_sync_implicitly_stream(&legacy);
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 1);
	assert_false(gpc_sync_is_implied(&streams[1], gpc_session_issued(session)));
	gpc_sync_implicitly(&context);
	assert_int_equal(received(fixture, GP_CALL_gpContextSynchronize), 1);
	assert_true(gpc_sync_is_implied(&streams[1], gpc_session_issued(session)));
	end_idle(fixture);
}

UNIT_TEST(host_function_is_waited_for)
{
	struct fixture *fixture = begin_idle(state);
	const struct gp_args_gpStreamWait args = { .stream = streams[0].handle.id };

	assert_int_equal(gpc_post_gpStreamWait(&context, &args), CUDA_SUCCESS);
	assert_int_equal(gpc_session_issued_visible(session), gpc_session_issued(session));
	give_work(&streams[0]);
	assert_int_not_equal(gpc_session_issued_visible(session), gpc_session_issued(session));
	end_idle(fixture);
}

int
main(void)
{
	return run_over_both(unit_tests.tests, unit_tests.count);
}
