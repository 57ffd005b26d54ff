/* SPDX-License-Identifier: Apache-2.0 */
/* Waits that have nothing to wait for send nothing, and queries in a loop ask once. */
#include "client/context/lifecycle.h"
#include "client/copy/copy_out.h"
#include "client/stream/event.h"
#include "client/stream/stream.h"
#include "client/stream/watch.h"
#include "client/wire/session_inside.h"
#include "tests/unit/client/call_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 20000

static struct gpc_device device;
static struct gpc_context context;
static struct gpc_stream legacy, streams[2];
/* Whether work is done; until then waits stay open. */
static atomic_bool done;
/* Queries of events are answered when the test posts daemon.proceed. */
static atomic_bool held;
static struct gpc_session *session;
static atomic_bool copies_fail;
static struct gp_header open_waits[2 * GPC_WATCHES_MAX];
static atomic_uint open_count;

static bool
is_waited_for(void)
{
	bool waits;

	(void)pthread_mutex_lock(&session->receiver.lock);
	waits = session->receiver.waiters != NULL;
	(void)pthread_mutex_unlock(&session->receiver.lock);
	return waits;
}

/* A copy is under way until somebody waits, for it or for something else. */
static int
answer_copy(struct fake_daemon *daemon, const struct gp_header *header)
{
	static const uint64_t bytes;

	for (int i = 0; i < PATIENCE_MS && !is_waited_for(); i++)
		(void)usleep(1000);
	if (!atomic_load(&copies_fail))
		fake_note_data(daemon, header->request, 0, &bytes, sizeof(bytes));
	fake_reply(daemon, header,
		   atomic_load(&copies_fail) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS, NULL, 0);
	return 0;
}

/* In the daemon's thread. */
static int
answer(struct fake_daemon *daemon, const struct gp_header *header, const void *fields, size_t size)
{
	const bool asks =
		header->call == GP_CALL_cuEventQuery || header->call == GP_CALL_cuStreamQuery;
	const bool waits = header->call == GP_CALL_cuEventSynchronize ||
			   header->call == GP_CALL_cuStreamSynchronize;
	static const uint64_t time; /* a float, padded */

	if (header->call == GP_CALL_gpCopyOut)
		return answer_copy(daemon, header);
	if (header->call == GP_CALL_cuEventElapsedTime_v2) {
		fake_reply(daemon, header, CUDA_SUCCESS, &time, sizeof(time));
		return 0;
	}
	if (atomic_load(&done) || !(asks || waits))
		return fake_answer(daemon, header, fields, size);
	if (asks) {
		if (atomic_load(&held))
			(void)sem_wait(&daemon->proceed);
		fake_reply(daemon, header, CUDA_ERROR_NOT_READY, NULL, 0);
		return 0;
	}
	assert_in_range(open_count, 0, 2 * GPC_WATCHES_MAX - 1);
	open_waits[atomic_load(&open_count)] = *header;
	atomic_fetch_add(&open_count, 1);
	return 0;
}

static void
add_stream(struct gpc_stream *stream)
{
	memset(stream, 0, sizeof(*stream));
	stream->context = &context;
	assert_int_equal(gpc_handle_add(GPC_KIND_STREAM, &stream->handle), 0);
	gpc_handle_show(&stream->handle);
}

static struct fixture *
begin_idle(void **state)
{
	struct fixture *fixture;

	atomic_store(&done, true);
	atomic_store(&open_count, 0);
	fixture = begin(state, answer);
	session = fixture->session;
	device = (struct gpc_device){ .session = fixture->session };
	memset(&context, 0, sizeof(context));
	context.device = &device;
	context.scope = (struct gpc_scope){ fixture->session, 1 };
	add_stream(&legacy);
	legacy.legacy = true;
	context.legacy = &legacy;
	for (unsigned int i = 0; i < 2; i++)
		add_stream(&streams[i]);
	atomic_store(&gpc_lifecycle, CUDA_SUCCESS);
	assert_int_equal(gpc_context_set_current(&context), CUDA_SUCCESS);
	return fixture;
}

static void
end_idle(struct fixture *fixture)
{
	gpc_stream_forget_context(&context);
	gpc_event_forget_context(&context);
	assert_int_equal(gpc_context_set_current(NULL), CUDA_SUCCESS);
	atomic_store(&gpc_lifecycle, CUDA_ERROR_NOT_INITIALIZED);
	end(fixture);
}

/* What was open is answered, and what comes will be at once. */
static void
finish_work(struct fixture *fixture)
{
	assert_int_equal(fence(), CUDA_SUCCESS);
	atomic_store(&done, true);
	for (unsigned int i = 0; i < atomic_load(&open_count); i++)
		fake_reply(&fixture->daemon, &open_waits[i], CUDA_SUCCESS, NULL, 0);
}

static void
give_work(const struct gpc_stream *stream)
{
	struct gp_args_gpFill args = { .stream = stream->handle.id };

	assert_int_equal(gpc_post_gpFill(&context, &args), CUDA_SUCCESS);
}

/* How many of these the daemon has got. */
static size_t
received(struct fixture *fixture, uint16_t call)
{
	return fake_received(&fixture->daemon, call);
}

static CUresult
query(struct gpc_stream *stream)
{
	struct gpc_stream *legacy_before = context.legacy;
	CUresult result;

	/* The NULL stream is whichever the test means: it has no tokens. */
	context.legacy = stream;
	result = gpc_cuStreamQuery(NULL);
	context.legacy = legacy_before;
	return result;
}

static CUevent
make_event(void)
{
	CUevent event;

	assert_int_equal(gpc_cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
	assert_int_equal(gpc_cuEventRecord(event, NULL), CUDA_SUCCESS);
	return event;
}

static void
stream_without_work_is_not_waited_for(void **state)
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

static void
stream_is_idle_by_its_own_work(void **state)
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

static void
event_is_done_with_what_comes_behind_it(void **state)
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

static void
stream_is_done_with_an_event_that_is_its_last_work(void **state)
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

static void
context_is_done_with_its_streams(void **state)
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
	give_work(gpc_handle_get(GPC_KIND_STREAM, stream));
	assert_int_equal(gpc_cuStreamDestroy_v2(stream), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_gpContextSynchronize), 2);
	end_idle(fixture);
}

/* A thread has got its place, and nothing is in it yet. */
static void
stream_that_is_being_made_has_no_work(void **state)
{
	struct fixture *fixture = begin_idle(state);
	struct gpc_stream *young = gpc_handle_new(GPC_KIND_STREAM, sizeof(*young));
	bool here;

	assert_non_null(young);
	(void)gpc_stream_knows_done(session);
	assert_true(gpc_stream_are_all_done(&context, &here));
	gpc_handle_remove(&young->handle);
	end_idle(fixture);
}

static void
new_stream_has_not_the_work_of_one_that_is_gone(void **state)
{
	struct fixture *fixture = begin_idle(state);

	for (int i = 0; i < 3; i++) {
		CUstream stream;

		assert_int_equal(gpc_cuStreamCreate(&stream, 0), CUDA_SUCCESS);
		assert_int_equal(gpc_cuStreamSynchronize(stream), CUDA_SUCCESS);
		assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), i);
		give_work(gpc_handle_get(GPC_KIND_STREAM, stream));
		assert_int_equal(gpc_cuStreamSynchronize(stream), CUDA_SUCCESS);
		assert_int_equal(gpc_cuStreamDestroy_v2(stream), CUDA_SUCCESS);
	}
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_gpContextSynchronize), 0);
	end_idle(fixture);
}

/* One behind the other in a stream, as who times runs records them. */
static void
times_are_asked_for_together(void **state)
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

static void
stream_that_waits_for_an_event_has_work(void **state)
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

static void
answer_to_a_read_says_that_the_stream_is_idle(void **state)
{
	struct fixture *fixture = begin_idle(state);
	struct gp_args_gpCopyOut args = { .stream = legacy.handle.id };
	struct gpc_request request = { .data = take_nothing };

	give_work(&legacy);
	assert_int_equal(gpc_start_gpCopyOut(&context, &args, &request), CUDA_SUCCESS);
	assert_int_equal(gpc_request_wait(&request), CUDA_SUCCESS);
	gpc_stream_set_done(&legacy, request.given);
	assert_int_equal(gpc_cuStreamSynchronize(NULL), CUDA_SUCCESS);
	assert_int_equal(received(fixture, GP_CALL_cuStreamSynchronize), 0);
	give_work(&legacy);
	gpc_stream_set_done(&legacy, request.given);
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

static void
answer_to_a_copy_under_way_says_so_too(void **state)
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
static void
copy_that_failed_says_nothing_of_the_stream(void **state)
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

static void
late_error_is_told_by_a_wait_for_nothing_once(void **state)
{
	struct fixture *fixture = begin_idle(state);

	gpc_session_defer(fixture->session, CUDA_ERROR_INVALID_CLUSTER_SIZE);
	assert_int_equal(gpc_cuStreamSynchronize(NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	assert_int_equal(gpc_cuStreamSynchronize(NULL), CUDA_SUCCESS);
	end_idle(fixture);
}

static void
stream_that_is_queried_in_a_loop_is_asked_once(void **state)
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

static void
event_is_asked_once_and_again_when_it_was_recorded_again(void **state)
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

static void
event_that_is_asked_for_by_turns_is_waited_for_once(void **state)
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

static void
only_so_many_are_watched(void **state)
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
	assert_true(fake_wait_records(&fixture->daemon, before + 1));
	assert_int_equal(gpc_cuEventDestroy_v2(event), CUDA_SUCCESS);
	while (next_p && is != was) {
		*next_p = make_event();
		assert_int_equal(gpc_event_lookup(*next_p, &is), CUDA_SUCCESS);
	}
	assert_int_equal(sem_post(&fixture->daemon.proceed), 0);
	assert_int_equal(pthread_join(asks, &result), 0);
	assert_int_equal((uintptr_t)result, CUDA_ERROR_NOT_READY);
}

static void
event_destroyed_while_asked_leaves_no_watch(void **state)
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

static void
watch_of_an_event_destroyed_while_asked_is_not_the_next_ones(void **state)
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

static void
lost_session_ends_what_is_watched(void **state)
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
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stream_without_work_is_not_waited_for),
		cmocka_unit_test(stream_is_idle_by_its_own_work),
		cmocka_unit_test(event_is_done_with_what_comes_behind_it),
		cmocka_unit_test(stream_is_done_with_an_event_that_is_its_last_work),
		cmocka_unit_test(context_is_done_with_its_streams),
		cmocka_unit_test(stream_that_is_being_made_has_no_work),
		cmocka_unit_test(new_stream_has_not_the_work_of_one_that_is_gone),
		cmocka_unit_test(times_are_asked_for_together),
		cmocka_unit_test(stream_that_waits_for_an_event_has_work),
		cmocka_unit_test(answer_to_a_read_says_that_the_stream_is_idle),
		cmocka_unit_test(answer_to_a_copy_under_way_says_so_too),
		cmocka_unit_test(copy_that_failed_says_nothing_of_the_stream),
		cmocka_unit_test(late_error_is_told_by_a_wait_for_nothing_once),
		cmocka_unit_test(stream_that_is_queried_in_a_loop_is_asked_once),
		cmocka_unit_test(event_is_asked_once_and_again_when_it_was_recorded_again),
		cmocka_unit_test(event_that_is_asked_for_by_turns_is_waited_for_once),
		cmocka_unit_test(only_so_many_are_watched),
		cmocka_unit_test(event_destroyed_while_asked_leaves_no_watch),
		cmocka_unit_test(watch_of_an_event_destroyed_while_asked_is_not_the_next_ones),
		cmocka_unit_test(lost_session_ends_what_is_watched),
	};

	return run_over_both(tests, sizeof(tests) / sizeof(tests[0]));
}
