/* SPDX-License-Identifier: Apache-2.0 */
/* Waits that have nothing to wait for send nothing. */
#include "tests/unit/client/idle_fixture.h"

UNIT_TEST(stream_without_work_is_not_waited_for)
{
	struct fixture *fixture = begin_idle(state);

	for (int i = 0; i < 3; i++) {
		assert_int_equal(gpc_cuStreamSynchronize(NULL), CUDA_SUCCESS);
		assert_int_equal(gpc_cuStreamQuery(NULL), CUDA_SUCCESS);
		assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	}
	assert_int_equal(atomic_load(&fixture->daemon.count), 0);
	for (int i = 0; i < 3; i++) {
		give_work(&legacy);
		assert_int_equal(gpc_cuStreamSynchronize(NULL), CUDA_SUCCESS);
		assert_int_equal(gpc_cuStreamSynchronize(NULL), CUDA_SUCCESS);
		assert_int_equal(gpc_cuStreamQuery(NULL), CUDA_SUCCESS);
	}
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 3);
	assert_int_equal(received(fixture, GP_CALL_cuStreamQuery), 0);
	end_idle(fixture);
}

UNIT_TEST(stream_is_idle_by_its_own_work)
{
	struct fixture *fixture = begin_idle(state);

	give_work(&streams[0]);
	give_work(&streams[1]);
	assert_int_equal(gpc_stream_fence(&streams[0]), CUDA_SUCCESS);
	give_work(&streams[1]);
	assert_int_equal(gpc_stream_fence(&streams[0]), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 1);
	/* The legacy stream stands for all. */
	assert_int_equal(gpc_stream_fence(&legacy), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 2);
	assert_int_equal(gpc_stream_fence(&streams[1]), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 3);
	/* The context's wait is all streams' wait. */
	give_work(&streams[0]);
	give_work(&streams[1]);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(gpc_stream_fence(&streams[0]), CUDA_SUCCESS);
	assert_int_equal(gpc_stream_fence(&streams[1]), CUDA_SUCCESS);
	assert_int_equal(gpc_stream_fence(&legacy), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 3);
	assert_int_equal(received(fixture, GP_CALL_gpContextSynchronize), 1);
	end_idle(fixture);
}

/* The claim stands for another thread, which has begun to destroy the object. */
UNIT_TEST(object_that_another_thread_destroys_is_invalid)
{
	struct fixture *fixture = begin_idle(state);
	CUevent event;
	CUstream stream;

	assert_int_equal(gpc_cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
	assert_int_equal(gpc_cuStreamCreateWithPriority(&stream, CU_STREAM_DEFAULT, 0),
			 CUDA_SUCCESS);
	assert_true(gpc_handle_claim(GPC_KIND_EVENT, event));
	assert_true(gpc_handle_claim(GPC_KIND_STREAM, stream));
	assert_int_equal(gpc_cuEventDestroy_v2(event), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(gpc_cuStreamDestroy_v2(stream), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(received(fixture, GP_CALL_cuEventDestroy_v2), 0);
	assert_int_equal(received(fixture, GP_CALL_cuStreamDestroy_v2), 0);
	gpc_handle_unclaim(gpc_handle_from_token(GPC_KIND_EVENT, event));
	gpc_handle_unclaim(gpc_handle_from_token(GPC_KIND_STREAM, stream));
	assert_int_equal(gpc_cuEventDestroy_v2(event), CUDA_SUCCESS);
	assert_int_equal(gpc_cuStreamDestroy_v2(stream), CUDA_SUCCESS);
	end_idle(fixture);
}

#define ROUNDS 500

/* One of the threads that destroy the same objects at the same time. */
struct destroyer {
	pthread_barrier_t *barrier;
	const CUevent *events;
	const CUstream *streams;
	unsigned int destroyed;
};

static void *
destroy_all(void *arg)
{
	struct destroyer *destroyer = arg;

	for (int i = 0; i < ROUNDS; i++) {
		(void)pthread_barrier_wait(destroyer->barrier);
		destroyer->destroyed += gpc_cuEventDestroy_v2(destroyer->events[i]) == CUDA_SUCCESS;
		destroyer->destroyed +=
			gpc_cuStreamDestroy_v2(destroyer->streams[i]) == CUDA_SUCCESS;
	}
	return NULL;
}

UNIT_TEST(object_is_destroyed_by_one_of_two_threads)
{
	struct fixture *fixture = begin_idle(state);
	CUevent events[ROUNDS];
	CUstream objects[ROUNDS];
	pthread_barrier_t barrier;
	struct destroyer destroyers[2];
	pthread_t threads[2];

	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(gpc_cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING),
				 CUDA_SUCCESS);
		assert_int_equal(gpc_cuStreamCreateWithPriority(&objects[i], CU_STREAM_DEFAULT, 0),
				 CUDA_SUCCESS);
	}
	assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
	for (int i = 0; i < 2; i++) {
		destroyers[i] = (struct destroyer){ &barrier, events, objects, 0 };
		assert_int_equal(pthread_create(&threads[i], NULL, destroy_all, &destroyers[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		(void)pthread_join(threads[i], NULL);
	(void)pthread_barrier_destroy(&barrier);
	assert_int_equal(destroyers[0].destroyed + destroyers[1].destroyed, 2 * ROUNDS);
	assert_int_equal(received(fixture, GP_CALL_cuEventDestroy_v2), ROUNDS);
	assert_int_equal(received(fixture, GP_CALL_cuStreamDestroy_v2), ROUNDS);
	end_idle(fixture);
}

static CUevent
record_event(const struct gpc_stream *stream)
{
	CUevent event;

	assert_int_equal(gpc_cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
	assert_int_equal(gpc_cuEventRecord(event, stream->handle.token), CUDA_SUCCESS);
	return event;
}

static void
expect_done(CUevent event)
{
	assert_int_equal(gpc_cuEventQuery(event), CUDA_SUCCESS);
	assert_int_equal(gpc_cuEventSynchronize(event), CUDA_SUCCESS);
}

static void
expect_event_calls(struct fixture *fixture, size_t waits)
{
	assert_int_equal(received(fixture, GP_CALL_cuEventSynchronize), waits);
	assert_int_equal(received(fixture, GP_CALL_cuEventQuery), 0);
}

UNIT_TEST(event_is_done_with_what_comes_behind_it)
{
	struct fixture *fixture = begin_idle(state);
	CUevent first = record_event(&streams[0]), second = record_event(&streams[0]);
	CUevent other = record_event(&streams[1]);

	assert_int_equal(gpc_cuEventSynchronize(second), CUDA_SUCCESS);
	expect_done(first);
	expect_event_calls(fixture, 1);
	/* Nothing is known of another stream, nor of a later record. */
	assert_int_equal(gpc_cuEventSynchronize(other), CUDA_SUCCESS);
	assert_int_equal(gpc_cuEventRecord(first, streams[0].handle.token), CUDA_SUCCESS);
	assert_int_equal(gpc_cuEventSynchronize(first), CUDA_SUCCESS);
	expect_event_calls(fixture, 3);
	assert_int_equal(gpc_cuEventRecord(first, streams[0].handle.token), CUDA_SUCCESS);
	assert_int_equal(gpc_stream_fence(&streams[0]), CUDA_SUCCESS);
	expect_done(first);
	assert_int_equal(gpc_cuEventRecord(first, NULL), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	expect_done(first);
	expect_event_calls(fixture, 3);
	end_idle(fixture);
}

UNIT_TEST(stream_is_done_with_an_event_that_is_its_last_work)
{
	struct fixture *fixture = begin_idle(state);
	CUevent event = record_event(&streams[0]);

	assert_int_equal(gpc_cuEventSynchronize(event), CUDA_SUCCESS);
	assert_int_equal(gpc_stream_fence(&streams[0]), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 0);
	assert_int_equal(gpc_cuEventRecord(event, streams[0].handle.token), CUDA_SUCCESS);
	give_work(&streams[0]);
	assert_int_equal(gpc_cuEventSynchronize(event), CUDA_SUCCESS);
	assert_int_equal(gpc_stream_fence(&streams[0]), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 1);
	end_idle(fixture);
}

UNIT_TEST(context_is_done_with_its_streams)
{
	struct fixture *fixture = begin_idle(state);
	CUstream stream;

	give_work(&legacy);
	give_work(&streams[0]);
	assert_int_equal(gpc_stream_fence(&legacy), CUDA_SUCCESS);
	assert_int_equal(gpc_stream_fence(&streams[0]), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_gpContextSynchronize), 0);
	give_work(&legacy);
	give_work(&streams[0]);
	assert_int_equal(gpc_stream_fence(&legacy), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_gpContextSynchronize), 1);
	/* A stream that is gone may have left work. */
	assert_int_equal(gpc_cuStreamCreate(&stream, 0), CUDA_SUCCESS);
	give_work(gpc_handle_from_token(GPC_KIND_STREAM, stream));
	assert_int_equal(gpc_cuStreamDestroy_v2(stream), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_gpContextSynchronize), 2);
	end_idle(fixture);
}

/* A thread has got its place, and nothing is in it yet. */
UNIT_TEST(stream_that_is_being_made_has_no_work)
{
	struct fixture *fixture = begin_idle(state);
	struct gpc_stream *young = gpc_handle_new(GPC_KIND_STREAM, sizeof(*young));
	bool here;

	assert_non_null(young);
	(void)gpc_stream_session_is_idle(session);
	assert_true(gpc_stream_are_all_done(&context, &here));
	gpc_handle_remove(&young->handle);
	end_idle(fixture);
}

UNIT_TEST(new_stream_has_not_the_work_of_one_that_is_gone)
{
	struct fixture *fixture = begin_idle(state);

	for (int i = 0; i < 3; i++) {
		CUstream stream;

		assert_int_equal(gpc_cuStreamCreate(&stream, 0), CUDA_SUCCESS);
		assert_int_equal(gpc_cuStreamSynchronize(stream), CUDA_SUCCESS);
		assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), i);
		give_work(gpc_handle_from_token(GPC_KIND_STREAM, stream));
		assert_int_equal(gpc_cuStreamSynchronize(stream), CUDA_SUCCESS);
		assert_int_equal(gpc_cuStreamDestroy_v2(stream), CUDA_SUCCESS);
	}
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_gpContextSynchronize), 0);
	end_idle(fixture);
}

/* One behind the other in a stream, as who times runs records them. */
UNIT_TEST(times_are_asked_for_together)
{
	struct fixture *fixture = begin_idle(state);
	CUevent events[20];
	float ms;

	for (int i = 0; i < 20; i++) {
		assert_int_equal(gpc_cuEventCreate(&events[i], 0), CUDA_SUCCESS);
		assert_int_equal(gpc_cuEventRecord(events[i], NULL), CUDA_SUCCESS);
	}
	/* Of what is not known to be done nothing is asked that the program does not ask. */
	assert_int_equal(gpc_cuEventElapsedTime_v2(&ms, events[0], events[19]), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuEventElapsedTime_v2), 1);
	assert_int_equal(gpc_cuEventElapsedTime_v2(&ms, events[0], events[1]), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuEventElapsedTime_v2), 2);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	for (int i = 1; i < 20; i++)
		assert_int_equal(gpc_cuEventElapsedTime_v2(&ms, events[i - 1], events[i]),
				 CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuEventElapsedTime_v2), 20);
	/* Only of the same two records. */
	assert_int_equal(gpc_cuEventRecord(events[5], NULL), CUDA_SUCCESS);
	assert_int_equal(gpc_cuEventElapsedTime_v2(&ms, events[4], events[5]), CUDA_SUCCESS);
	assert_int_equal(gpc_cuEventElapsedTime_v2(&ms, events[5], events[6]), CUDA_SUCCESS);
	assert_int_equal(gpc_cuEventElapsedTime_v2(&ms, events[6], events[7]), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuEventElapsedTime_v2), 22);
	end_idle(fixture);
}

UNIT_TEST(stream_that_waits_for_an_event_has_work)
{
	struct fixture *fixture = begin_idle(state);
	CUevent event = make_event();
	struct gp_args_cuStreamWaitEvent args = { .hStream = streams[1].handle.id };

	assert_int_equal(gpc_event_id(event, &args.hEvent), CUDA_SUCCESS);
	assert_int_equal(gpc_post_cuStreamWaitEvent(&context, &args), CUDA_SUCCESS);
	assert_int_equal(gpc_stream_fence(&streams[1]), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 1);
	end_idle(fixture);
}

static int
take_nothing(struct gpc_request *request, struct gp_conn *conn, uint64_t offset, uint64_t size)
{
	return 0;
}

UNIT_TEST(answer_to_a_read_says_that_the_stream_is_idle)
{
	struct fixture *fixture = begin_idle(state);
	struct gp_args_gpCopyOut args = { .stream = legacy.handle.id };
	struct gpc_request request = { .data = take_nothing };

	give_work(&legacy);
	assert_int_equal(gpc_start_gpCopyOut(&context, &args, &request), CUDA_SUCCESS);
	assert_int_equal(gpc_request_wait(&request), CUDA_SUCCESS);
	gpc_stream_set_done(&legacy, request.issued);
	assert_int_equal(gpc_cuStreamSynchronize(NULL), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 0);
	give_work(&legacy);
	gpc_stream_set_done(&legacy, request.issued);
	assert_int_equal(gpc_cuStreamSynchronize(NULL), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 1);
	end_idle(fixture);
}

/* Started as an asynchronous copy to pinned memory is. */
static void
copy_out(const struct gpc_stream *stream)
{
	static uint64_t bytes;
	const struct gpc_copy copy = {
		.src = { .base = 64 },
		.dst = { .base = (uintptr_t)&bytes, .host = true, .pinned = true },
		.width = sizeof(bytes),
		.height = 1,
		.depth = 1,
	};

	assert_int_equal(gpc_copy_out_async((struct gpc_stream *)stream, &copy), CUDA_SUCCESS);
}

UNIT_TEST(answer_to_a_copy_under_way_says_so_too)
{
	struct fixture *fixture = begin_idle(state);

	give_work(&streams[0]);
	copy_out(&streams[0]);
	assert_int_equal(gpc_stream_fence(&streams[0]), CUDA_SUCCESS);
	assert_int_equal(gpc_stream_fence(&streams[0]), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 0);
	/* Neither of an earlier copy, nor of another stream's. */
	copy_out(&streams[0]);
	give_work(&streams[0]);
	assert_int_equal(gpc_stream_fence(&streams[0]), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 1);
	give_work(&streams[0]);
	copy_out(&streams[1]);
	assert_int_equal(gpc_stream_fence(&streams[0]), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 2);
	end_idle(fixture);
}

/* Its work before may still be under way. */
UNIT_TEST(copy_that_failed_says_nothing_of_the_stream)
{
	struct fixture *fixture = begin_idle(state);

	give_work(&streams[0]);
	atomic_store(&copies_fail, true);
	copy_out(&streams[0]);
	assert_int_equal(gpc_stream_fence(&streams[0]), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 1);
	atomic_store(&copies_fail, false);
	end_idle(fixture);
}

UNIT_TEST(late_error_is_told_by_a_wait_for_nothing_once)
{
	struct fixture *fixture = begin_idle(state);

	gpc_session_defer(fixture->session, CUDA_ERROR_INVALID_CLUSTER_SIZE);
	assert_int_equal(gpc_cuStreamSynchronize(NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	assert_int_equal(gpc_cuStreamSynchronize(NULL), CUDA_SUCCESS);
	end_idle(fixture);
}

int
main(void)
{
	return run_over_both(unit_tests.tests, unit_tests.count);
}
