/* SPDX-License-Identifier: Apache-2.0 */
/* Host functions and stream callbacks, with a daemon that gives them their turns by a script. */
#include "client/context/context.h"
#include "client/context/fence.h"
#include "client/context/lifecycle.h"
#include "client/session/call.h"
#include "client/session/session_internal.h"
#include "client/stream/stream.h"
#include "tests/test.h"
#include "tests/unit/client/call_fixture.h"

#include <endian.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MANY 100
#define MIB ((size_t)1 << 20)
#define PATIENCE_MS 10000

static struct gpc_device device;
static struct gpc_context context;
static struct gpc_stream stream;
static atomic_int calls, callbacks, inside;
static _Atomic CUresult status_told;
static int order[MANY];

static struct fixture *
begin_with_stream(void **state, unsigned int max_outstanding, fake_daemon_answer_function *answer)
{
	struct fixture *fixture = begin_limited(state, max_outstanding, answer);

	device = (struct gpc_device){ .session = fixture->session };
	stream = (struct gpc_stream){ .context = &context, .handle.id = 7 };
	context = (struct gpc_context){ .device = &device,
					.scope = { fixture->session, 1 },
					.legacy = &stream };
	calls = callbacks = inside = 0;
	status_told = CUDA_SUCCESS;
	atomic_store(&gpc_lifecycle, CUDA_SUCCESS);
	assert_int_equal(gpc_context_set_current(&context), CUDA_SUCCESS);
	return fixture;
}

static void
note(struct fake_daemon *daemon, enum gp_note call, uint32_t first, uint32_t second)
{
	uint32_t fields[2] = { first, second };
	struct gp_header header = { .size = sizeof(header) + sizeof(fields),
				    .call = (uint16_t)call };

	fake_daemon_send(daemon, &header, fields, sizeof(fields), NULL, 0);
}

static void
note_turn(struct fake_daemon *daemon, uint32_t function, CUresult result)
{
	note(daemon, GP_NOTE_FUNCTION, function, (uint32_t)result);
}

static uint32_t
function_of(const void *fields)
{
	uint32_t words[2];

	memcpy(words, fields, sizeof(words));
	return words[1];
}

/* Every function has its turn at once. */
static int
take_turns(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
	   size_t size)
{
	if (header->call == GP_CALL_gpHostFunction)
		note_turn(daemon, function_of(fields), CUDA_SUCCESS);
	return fake_daemon_answer(daemon, header, fields, size);
}

static size_t
count_records(const struct fake_daemon *daemon, uint16_t call)
{
	size_t count = 0;

	for (size_t i = 0; i < atomic_load(&daemon->count); i++)
		count += daemon->records[i].header.call == call;
	return count;
}

static bool
wait_for(const atomic_int *counter, int wanted)
{
	for (int i = 0; i < PATIENCE_MS && atomic_load(counter) < wanted; i++)
		(void)usleep(1000);
	return atomic_load(counter) == wanted;
}

static bool
wait_for_answers(const struct fake_daemon *daemon, size_t wanted)
{
	for (int i = 0; i < PATIENCE_MS; i++) {
		if (count_records(daemon, GP_CALL_gpHostFunctionDone) == wanted)
			return true;
		(void)usleep(1000);
	}
	return false;
}

static void
count_call(void *data)
{
	int place = atomic_fetch_add(&calls, 1);

	if (data)
		order[place] = (int)((int *)data - order);
}

static void CUDA_CB
count_callback(CUstream handle, CUresult status, void *data)
{
	assert_null(handle);
	atomic_store(&status_told, status);
	atomic_fetch_add(&callbacks, 1);
}

UNIT_TEST(every_function_is_called_and_answered_in_order)
{
	struct fixture *fixture = begin_with_stream(state, 64, take_turns);

	for (int i = 0; i < MANY; i++)
		assert_int_equal(gpc_cuLaunchHostFunc(NULL, count_call, &order[i]), CUDA_SUCCESS);
	assert_int_equal(gpc_cuStreamAddCallback(NULL, count_callback, NULL, 0), CUDA_SUCCESS);
	assert_true(wait_for(&callbacks, 1));
	assert_int_equal(calls, MANY);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(order[i], i);
	assert_int_equal(status_told, CUDA_SUCCESS);
	assert_true(wait_for_answers(&fixture->daemon, MANY + 1));
	assert_false(gpc_session_awaits_host(fixture->session));
	end(fixture);
}

UNIT_TEST(what_cuda_refuses_is_not_posted)
{
	struct fixture *fixture = begin_with_stream(state, 64, take_turns);

	assert_int_equal(gpc_cuLaunchHostFunc(NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuStreamAddCallback(NULL, NULL, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuStreamAddCallback(NULL, count_callback, NULL, 1),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuLaunchHostFunc((CUstream)77, count_call, NULL),
			 CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(fence(), CUDA_SUCCESS);
	assert_int_equal(count_records(&fixture->daemon, GP_CALL_gpHostFunction), 0);
	end(fixture);
}

static void
call_cuda(void *data)
{
	struct gpc_context *unused;
	CUresult *results = data;

	results[0] = gpc_cuLaunchHostFunc(NULL, count_call, NULL);
	results[1] = gpc_enter(&unused);
	atomic_fetch_add(&calls, 1);
}

UNIT_TEST(cuda_is_not_to_be_called_inside)
{
	struct fixture *fixture = begin_with_stream(state, 64, take_turns);
	CUresult results[2] = { CUDA_SUCCESS, CUDA_SUCCESS };

	assert_int_equal(gpc_cuLaunchHostFunc(NULL, call_cuda, results), CUDA_SUCCESS);
	assert_true(wait_for(&calls, 1));
	assert_int_equal(results[0], CUDA_ERROR_NOT_PERMITTED);
	assert_int_equal(results[1], CUDA_ERROR_NOT_PERMITTED);
	end(fixture);
}

UNIT_TEST(a_function_is_work_until_it_has_returned)
{
	struct fixture *fixture = begin_with_stream(state, 64, fake_daemon_answer);
	struct gpc_session *session = fixture->session;

	assert_true(gpc_fence_is_redundant(session));
	assert_int_equal(gpc_cuLaunchHostFunc(NULL, count_call, NULL), CUDA_SUCCESS);
	assert_false(gpc_fence_is_redundant(session));
	gpc_session_work_set_done(session, gpc_session_work_posted(session));
	assert_true(gpc_fence_is_redundant(session));
	assert_int_equal(gpc_cuStreamAddCallback(NULL, count_callback, NULL, 0), CUDA_SUCCESS);
	assert_false(gpc_fence_is_redundant(session));
	end(fixture);
}

static int
refuse(struct fake_daemon *daemon, const struct gp_header *header, const void *fields, size_t size)
{
	if (header->call == GP_CALL_gpHostFunction)
		note_turn(daemon, function_of(fields), CUDA_ERROR_OUT_OF_MEMORY);
	return fake_daemon_answer(daemon, header, fields, size);
}

UNIT_TEST(what_the_daemon_does_not_take_is_not_answered)
{
	struct fixture *fixture = begin_with_stream(state, 64, refuse);

	assert_int_equal(gpc_cuLaunchHostFunc(NULL, count_call, NULL), CUDA_SUCCESS);
	assert_int_equal(gpc_cuStreamAddCallback(NULL, count_callback, NULL, 0), CUDA_SUCCESS);
	assert_true(wait_for(&callbacks, 1));
	assert_int_equal(status_told, CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(calls, 0);
	for (int i = 0; i < PATIENCE_MS && gpc_session_awaits_host(fixture->session); i++)
		(void)usleep(1000);
	assert_false(gpc_session_awaits_host(fixture->session));
	assert_int_equal(fence(), CUDA_SUCCESS);
	assert_int_equal(count_records(&fixture->daemon, GP_CALL_gpHostFunctionDone), 0);
	end(fixture);
}

static int
fault_on_fence(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
	       size_t size)
{
	if (header->call == GP_CALL_gpFence)
		fake_daemon_note_error(daemon, CUDA_ERROR_ILLEGAL_ADDRESS, true);
	return 0;
}

UNIT_TEST(at_a_sessions_end_callbacks_hear_of_it_and_functions_do_not)
{
	struct fixture *fixture = begin_with_stream(state, 64, fault_on_fence);

	for (int i = 0; i < 3; i++) {
		assert_int_equal(gpc_cuLaunchHostFunc(NULL, count_call, NULL), CUDA_SUCCESS);
		assert_int_equal(gpc_cuStreamAddCallback(NULL, count_callback, NULL, 0),
				 CUDA_SUCCESS);
	}
	assert_int_equal(fence(), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_true(wait_for(&callbacks, 3));
	assert_int_equal(status_told, CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(gpc_cuLaunchHostFunc(NULL, count_call, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
	end(fixture);
	assert_int_equal(calls, 0);
}

UNIT_TEST(at_the_programs_end_nothing_is_called)
{
	struct fixture *fixture = begin_with_stream(state, 64, fake_daemon_answer);

	for (int i = 0; i < 3; i++) {
		assert_int_equal(gpc_cuLaunchHostFunc(NULL, count_call, NULL), CUDA_SUCCESS);
		assert_int_equal(gpc_cuStreamAddCallback(NULL, count_callback, NULL, 0),
				 CUDA_SUCCESS);
	}
	end(fixture);
	assert_int_equal(calls, 0);
	assert_int_equal(callbacks, 0);
}

static int
turn_of_another(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
		size_t size)
{
	if (header->call == GP_CALL_gpHostFunction)
		note_turn(daemon, function_of(fields) + 1, CUDA_SUCCESS);
	return header->call == GP_CALL_gpFence ? 0
					       : fake_daemon_answer(daemon, header, fields, size);
}

UNIT_TEST(a_turn_of_no_function_ends_the_session)
{
	struct fixture *fixture = begin_with_stream(state, 64, turn_of_another);

	assert_int_equal(gpc_cuLaunchHostFunc(NULL, count_call, NULL), CUDA_SUCCESS);
	assert_int_equal(fence(), CUDA_ERROR_DEVICE_UNAVAILABLE);
	end(fixture);
	assert_int_equal(calls, 0);
}

static CUresult
wait_for_word(void)
{
	const struct gp_args_gpStreamWait args = { .stream = stream.handle.id, .size = 4 };

	return gpc_post_gpStreamWait(&context, &args);
}

/* Of two waits one is over; a fence says that the other one is, too. */
static int
end_waits(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
	  size_t size)
{
	static int waits;

	if (header->call == GP_CALL_gpStreamWait && ++waits % 2 == 0)
		note(daemon, GP_NOTE_WAITS, 1, 0);
	if (header->call == GP_CALL_gpFence)
		note(daemon, GP_NOTE_WAITS, 1, 0);
	return fake_daemon_answer(daemon, header, fields, size);
}

UNIT_TEST(waits_for_words_are_kept_behind_until_the_daemon_says_that_they_are_over)
{
	struct fixture *fixture = begin_with_stream(state, 64, end_waits);

	assert_false(gpc_session_awaits_host(fixture->session));
	assert_int_equal(wait_for_word(), CUDA_SUCCESS);
	assert_int_equal(wait_for_word(), CUDA_SUCCESS);
	assert_true(gpc_session_awaits_host(fixture->session));
	assert_false(gpc_session_has_host_functions(fixture->session));
	for (int i = 0; i < PATIENCE_MS && fixture->session->functions.unanswered == 2; i++)
		(void)usleep(1000);
	assert_int_equal(fixture->session->functions.unanswered, 1);
	assert_true(gpc_session_awaits_host(fixture->session));
	assert_int_equal(fence(), CUDA_SUCCESS);
	assert_false(gpc_session_awaits_host(fixture->session));
	assert_int_equal(count_records(&fixture->daemon, GP_CALL_gpHostFunctionDone), 0);
	end(fixture);
}

static int
end_too_many(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
	     size_t size)
{
	if (header->call == GP_CALL_gpStreamWait)
		note(daemon, GP_NOTE_WAITS, 2, 0);
	return header->call == GP_CALL_gpFence ? 0
					       : fake_daemon_answer(daemon, header, fields, size);
}

UNIT_TEST(more_waits_that_are_over_than_there_are_end_the_session)
{
	struct fixture *fixture = begin_with_stream(state, 64, end_too_many);

	assert_int_equal(wait_for_word(), CUDA_SUCCESS);
	assert_int_equal(fence(), CUDA_ERROR_DEVICE_UNAVAILABLE);
	end(fixture);
}

static void
stay_inside(void *data)
{
	atomic_store(&inside, 1);
	while (atomic_load(&inside) == 1)
		(void)usleep(1000);
	atomic_fetch_add(&calls, 1);
}

static void
reply_to(struct fake_daemon *daemon, const struct gp_header *header)
{
	static const uint64_t kept = 0;

	fake_daemon_reply(daemon, header, CUDA_SUCCESS, &kept,
			  header->call == GP_CALL_gpBacklogRoom ? sizeof(kept) : 0);
}

/* What waits is answered behind the functions alone. */
static int
answer_behind(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
	      size_t size)
{
	static struct gp_header waiting[8];
	static bool runs;
	static int count;

	if (header->call == GP_CALL_gpHostFunction) {
		runs = true;
		count = 0;
	}
	if (header->call == GP_CALL_gpHostFunctionDone)
		runs = false;
	if (header->call == GP_CALL_gpFence || header->call == GP_CALL_gpBacklogRoom) {
		if (runs)
			waiting[count++] = *header;
		else
			reply_to(daemon, header);
		return 0;
	}
	while (header->call == GP_CALL_gpHostFunctionDone && count > 0)
		reply_to(daemon, &waiting[--count]);
	return take_turns(daemon, header, fields, size);
}

UNIT_TEST(an_answer_needs_no_room_among_the_requests)
{
	struct fixture *fixture = begin_with_stream(state, 1, answer_behind);
	CUresult result = CUDA_ERROR_UNKNOWN;
	pthread_t thread;

	assert_int_equal(gpc_cuLaunchHostFunc(NULL, stay_inside, NULL), CUDA_SUCCESS);
	assert_true(wait_for(&inside, 1));
	assert_int_equal(pthread_create(&thread, NULL, fence_in_thread, &result), 0);
	assert_true(fake_daemon_wait_records(&fixture->daemon, 2));
	atomic_store(&inside, 2);
	(void)pthread_join(thread, NULL);
	assert_int_equal(result, CUDA_SUCCESS);
	end(fixture);
}

static void *
copy_much(void *arg)
{
	char *bytes = calloc(1, 8 * MIB);

	for (int i = 0; i < 12; i++)
		assert_int_equal(copy_in(bytes, 8 * MIB), CUDA_SUCCESS);
	free(bytes);
	return arg;
}

/* max_held: as the daemon says; records: how many copies it gets before the function is done, and
 * after this call, by which the client learns that there is room. */
static void
expect_kept(void **state, uint64_t max_held, int records, uint16_t query)
{
	struct fixture *fixture = begin_with_stream(state, 64, answer_behind);
	struct fake_daemon *daemon = &fixture->daemon;
	pthread_t thread;

	fixture->session->room.max = gpc_call_room(max_held);
	if (query == GP_CALL_gpFence)
		fixture->session->facts.unknown_calls[GP_CALL_gpBacklogRoom / 8] |=
			1 << GP_CALL_gpBacklogRoom % 8;
	assert_int_equal(gpc_cuLaunchHostFunc(NULL, stay_inside, NULL), CUDA_SUCCESS);
	assert_true(wait_for(&inside, 1));
	assert_int_equal(pthread_create(&thread, NULL, copy_much, NULL), 0);
	for (int i = 0;
	     i < PATIENCE_MS && (count_records(daemon, query) == 0 ||
				 count_records(daemon, GP_CALL_gpCopyIn) < (size_t)records);
	     i++)
		(void)usleep(1000);
	assert_int_equal(count_records(daemon, query), 1);
	assert_int_equal(count_records(daemon, GP_CALL_gpCopyIn), records);
	atomic_store(&inside, 2);
	(void)pthread_join(thread, NULL);
	for (int i = 0; i < PATIENCE_MS && count_records(daemon, GP_CALL_gpCopyIn) < 12; i++)
		(void)usleep(1000);
	assert_int_equal(count_records(daemon, GP_CALL_gpCopyIn), 12);
	end(fixture);
}

UNIT_TEST(no_more_is_sent_behind_a_function_than_the_daemon_keeps)
{
	expect_kept(state, 0, 7, GP_CALL_gpBacklogRoom);
}

UNIT_TEST(a_daemon_may_keep_less)
{
	expect_kept(state, 20 << 20, 2, GP_CALL_gpBacklogRoom);
}

UNIT_TEST(a_daemon_that_keeps_nothing_is_not_believed)
{
	expect_kept(state, 1, 0, GP_CALL_gpBacklogRoom);
}

UNIT_TEST(a_daemon_that_does_not_report_its_room_is_asked_by_a_fence)
{
	expect_kept(state, 0, 7, GP_CALL_gpFence);
}

static atomic_int given_twice;
static bool names[1 << 20];

/* As the daemon's table has it: one object at a place. */
static int
keep_names(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
	   size_t size)
{
	uint32_t done;

	if (header->call == GP_CALL_gpHostFunction) {
		bool *name = &names[function_of(fields) & ((1 << 20) - 1)];

		given_twice += *name;
		*name = true;
	} else if (header->call == GP_CALL_gpHostFunctionDone) {
		memcpy(&done, fields, sizeof(done));
		names[done & ((1 << 20) - 1)] = false;
	}
	return take_turns(daemon, header, fields, size);
}

UNIT_TEST(a_name_is_given_again_only_behind_the_answer)
{
	struct fixture *fixture = begin_with_stream(state, 64, keep_names);
	const int many = 20000;

	for (int i = 0; i < many; i++)
		assert_int_equal(gpc_cuLaunchHostFunc(NULL, count_call, NULL), CUDA_SUCCESS);
	assert_true(wait_for(&calls, many));
	assert_true(wait_for_answers(&fixture->daemon, (size_t)many));
	assert_int_equal(given_twice, 0);
	end(fixture);
}

/* The function's turn comes behind the reply to a fence, in one write where that can be. */
static int
answer_together(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
		size_t size)
{
	static _Atomic uint32_t function;
	struct gp_header reply = { .size = sizeof(reply),
				   .call = header->call,
				   .flags = GP_FRAME_REPLY,
				   .request = header->request };
	struct gp_header note = { .size = sizeof(note) + 8, .call = GP_NOTE_FUNCTION };
	uint32_t wire[2 + 4 + 2 + 4 + 2] = { htole32(sizeof(reply)), 0 };

	if (header->call == GP_CALL_gpHostFunction)
		function = function_of(fields);
	if (header->call != GP_CALL_gpFence)
		return fake_daemon_answer(daemon, header, fields, size);
	gp_header_encode(&reply, wire + 2);
	wire[6] = htole32(note.size);
	gp_header_encode(&note, wire + 8);
	wire[12] = htole32(function);
	assert_int_equal(write(gp_conn_fd(daemon->conn), wire, sizeof(wire)), sizeof(wire));
	return 0;
}

/* Both are read by who waits for the reply, while the receiver looks at the descriptor. */
UNIT_TEST(a_turn_that_comes_with_a_reply_is_taken_at_once)
{
	struct fixture *fixture = *state;
	struct timespec begin, now;

	if (strcmp(fixture->scheme, "tcp") != 0)
		return;
	fixture = begin_with_stream(state, 64, answer_together);
	(void)clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 1; i <= 100; i++) {
		assert_int_equal(gpc_cuLaunchHostFunc(NULL, count_call, NULL), CUDA_SUCCESS);
		(void)usleep(2000);
		assert_int_equal(fence(), CUDA_SUCCESS);
		assert_true(wait_for(&calls, i));
	}
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	/* Half a second for each third one of them would be twice that. */
	assert_true(now.tv_sec - begin.tv_sec < 8);
	end(fixture);
}

int
main(void)
{
	return run_over_both(unit_tests.tests, unit_tests.count);
}
