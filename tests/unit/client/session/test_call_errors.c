/* SPDX-License-Identifier: Apache-2.0 */
/* The call stream when calls fail, the connection breaks, or the daemon sends nonsense. */
#include "client/session/session_internal.h"
#include "protocol/control.h"
#include "tests/control_messages.h"
#include "tests/test.h"
#include "tests/unit/client/call_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int
fail_fills(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
	   size_t size)
{
	if (header->call == GP_CALL_gpFill)
		fake_daemon_note_error(daemon, CUDA_ERROR_INVALID_VALUE, false);
	return refuse_memory_info(daemon, header, fields, size);
}

UNIT_TEST(error_of_a_posted_call_is_told_once_by_the_next_wait)
{
	struct fixture *fixture = begin(state, fail_fills);

	assert_int_equal(post(1), CUDA_SUCCESS);
	assert_int_equal(fence(), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(fence(), CUDA_SUCCESS);
	assert_int_equal(gpc_session_status(fixture->session), CUDA_SUCCESS);
	end(fixture);
}

UNIT_TEST(own_error_of_a_wait_comes_before_a_deferred_one)
{
	struct fixture *fixture = begin(state, fail_fills);
	struct gp_reply_gpMemoryInfo reply;

	assert_int_equal(post(1), CUDA_SUCCESS);
	assert_int_equal(ask(0, &reply), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(fence(), CUDA_ERROR_INVALID_VALUE);
	end(fixture);
}

static int
fault_on_fill(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
	      size_t size)
{
	if (header->call == GP_CALL_gpFill)
		fake_daemon_note_error(daemon, CUDA_ERROR_ILLEGAL_ADDRESS, true);
	return 0;
}

UNIT_TEST(sticky_error_ends_the_session_with_its_code)
{
	struct fixture *fixture = begin(state, fault_on_fill);

	assert_int_equal(post(1), CUDA_SUCCESS);
	assert_int_equal(fence(), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(fence(), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(post(1), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(gpc_session_status(fixture->session), CUDA_ERROR_ILLEGAL_ADDRESS);
	end(fixture);
}

UNIT_TEST(sticky_error_wakes_everybody_who_waits)
{
	struct fixture *fixture = begin(state, fault_on_fill);
	CUresult results[4];
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fence_in_thread, &results[i]),
				 0);
	assert_true(fake_daemon_wait_records(&fixture->daemon, 4));
	assert_int_equal(post(1), CUDA_SUCCESS);
	for (int i = 0; i < 4; i++) {
		(void)pthread_join(threads[i], NULL);
		assert_int_equal(results[i], CUDA_ERROR_ILLEGAL_ADDRESS);
	}
	end(fixture);
}

static int
hang_up(struct fake_daemon *daemon, const struct gp_header *header, const void *fields, size_t size)
{
	return header->call == GP_CALL_gpFence ? 1
					       : fake_daemon_answer(daemon, header, fields, size);
}

UNIT_TEST(lost_connection_is_an_error_of_the_wait_and_of_all_that_follows)
{
	struct fixture *fixture = begin(state, hang_up);

	assert_int_equal(fence(), CUDA_ERROR_DEVICE_UNAVAILABLE);
	assert_int_equal(fence(), CUDA_ERROR_DEVICE_UNAVAILABLE);
	assert_int_equal(post(1), CUDA_ERROR_DEVICE_UNAVAILABLE);
	assert_int_equal(copy_in("x", 1), CUDA_ERROR_DEVICE_UNAVAILABLE);
	end(fixture);
}

/* The session's control connection; the daemon's end of it. */
static int
add_control(struct fixture *fixture)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	/* The receiver is there already, and looks at it. */
	(void)pthread_mutex_lock(&fixture->session->reason_lock);
	assert_int_equal(gp_conn_adopt("unix", ends[0], &fixture->session->control), 0);
	(void)pthread_mutex_unlock(&fixture->session->reason_lock);
	return ends[1];
}

static double
seconds(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* For five seconds, or until the peer stops receiving. */
static void *
talk_on(void *arg)
{
	struct gp_conn *control = arg;

	for (int i = 0; i < 100 && gp_control_send_pong(control, 5) == 0; i++)
		(void)usleep(50000);
	return NULL;
}

UNIT_TEST(who_loses_a_session_does_not_wait_for_all_that_the_daemon_says)
{
	struct fixture *fixture = begin(state, hang_up);
	struct gp_conn *control;
	double start = seconds();
	pthread_t thread;

	assert_int_equal(gp_conn_adopt("unix", add_control(fixture), &control), 0);
	assert_int_equal(pthread_create(&thread, NULL, talk_on, control), 0);
	assert_int_equal(fence(), CUDA_ERROR_DEVICE_UNAVAILABLE);
	assert_true(seconds() - start < 2);
	end(fixture);
	(void)pthread_join(thread, NULL);
	gp_conn_destroy(control);
}

UNIT_TEST(who_loses_a_session_does_not_wait_for_the_rest_of_a_message)
{
	static const char half[] = { 100, 0, 0, 0, 0, 0, 0, 0, 'h', 'a', 'l', 'f' };
	struct fixture *fixture = begin(state, hang_up);
	int control = add_control(fixture);
	double start = seconds();

	assert_int_equal(write(control, half, sizeof(half)), sizeof(half));
	assert_int_equal(fence(), CUDA_ERROR_DEVICE_UNAVAILABLE);
	assert_true(seconds() - start < 2);
	end(fixture);
	close(control);
}

/* Parts of a long message, for five seconds or until the peer stops receiving. */
static void *
talk_slowly(void *arg)
{
	static const uint8_t head[] = { 0, 16, 0, 0, 0, 0, 0, 0 };
	int fd = *(int *)arg;

	for (size_t i = 0; i < 100; i++) {
		uint8_t byte = i < sizeof(head) ? head[i] : 'x';

		if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
			break;
		(void)usleep(50000);
	}
	return NULL;
}

UNIT_TEST(who_loses_a_session_does_not_wait_for_a_message_byte_by_byte)
{
	struct fixture *fixture = begin(state, hang_up);
	int control = add_control(fixture);
	double start = seconds();
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, talk_slowly, &control), 0);
	assert_int_equal(fence(), CUDA_ERROR_DEVICE_UNAVAILABLE);
	assert_true(seconds() - start < 2);
	end(fixture);
	(void)pthread_join(thread, NULL);
	close(control);
}

UNIT_TEST(reason_that_the_daemon_gives_is_the_error)
{
	struct fixture *fixture = begin(state, hang_up);
	struct gp_conn *control;

	assert_int_equal(gp_conn_adopt("unix", add_control(fixture), &control), 0);
	assert_int_equal(gp_control_send_pong(control, 5), 0);
	assert_int_equal(gp_control_send_session_error(control, CUDA_ERROR_MPS_CLIENT_TERMINATED,
						       "terminated"),
			 0);
	assert_int_equal(fence(), CUDA_ERROR_MPS_CLIENT_TERMINATED);
	end(fixture);
	gp_conn_destroy(control);
}

UNIT_TEST(lost_connection_wakes_everybody_who_waits)
{
	struct fixture *fixture = begin(state, answer_when_told);
	CUresult results[4];
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fence_in_thread, &results[i]),
				 0);
	assert_true(fake_daemon_wait_records(&fixture->daemon, 1));
	gp_conn_shutdown(fixture->daemon.conn);
	for (int i = 0; i < 4; i++) {
		(void)pthread_join(threads[i], NULL);
		assert_int_equal(results[i], CUDA_ERROR_DEVICE_UNAVAILABLE);
	}
	end(fixture);
}

UNIT_TEST(lost_connection_completes_requests_nobody_waits_for)
{
	struct fixture *fixture = begin(state, hang_up);
	struct gp_args_gpFence args = { 0 };
	sem_t done;
	struct gpc_request request = { .done = tell, .arg = &done };

	(void)sem_init(&done, 0, 0);
	assert_int_equal(gpc_start_gpFence(NULL, &args, &request), CUDA_SUCCESS);
	(void)sem_wait(&done);
	assert_int_equal(request.result, CUDA_ERROR_DEVICE_UNAVAILABLE);
	end(fixture);
	(void)sem_destroy(&done);
}

UNIT_TEST(lost_connection_ends_posts_that_are_held_up)
{
	struct fixture *fixture = begin(state, NULL);
	CUresult result = CUDA_SUCCESS;

	atomic_store(&fixture->daemon.hold, true);
	assert_int_equal(post(0), CUDA_SUCCESS);
	(void)usleep(10000);
	gp_conn_shutdown(fixture->daemon.conn);
	for (int i = 0; i < 1000000 && result == CUDA_SUCCESS; i++)
		result = post(1);
	assert_int_equal(result, CUDA_ERROR_DEVICE_UNAVAILABLE);
	end(fixture);
}

UNIT_TEST(lost_connection_ends_a_large_copy)
{
	struct fixture *fixture = begin(state, hang_up);
	const size_t size = 64 << 20;
	uint8_t *data = calloc(1, size);
	CUresult result = CUDA_SUCCESS;

	atomic_store(&fixture->daemon.hold, true);
	gp_conn_shutdown(fixture->daemon.conn);
	for (int i = 0; i < 8 && result == CUDA_SUCCESS; i++)
		result = copy_in(data, size);
	assert_int_equal(result, CUDA_ERROR_DEVICE_UNAVAILABLE);
	free(data);
	end(fixture);
}

struct nonsense {
	struct gp_header header; /* size 0: no message at all, request 0: the question's */
	size_t cut;              /* number of header bytes to send */
	uint32_t fields[4];
	size_t field_size;
	size_t bulk_size;
	int copies;
};

/* Each is one message that no daemon of ours sends. */
static const struct nonsense nonsense[] = {
	{ .header = { .size = 16,
		      .call = GP_CALL_gpFence,
		      .flags = GP_FRAME_REPLY,
		      .request = 0x7777 } },
	{ .header = { .size = 16, .call = GP_CALL_gpFill, .flags = GP_FRAME_REPLY } },
	{ .header = { .size = 16, .call = GP_CALL_gpFence, .flags = GP_FRAME_REPLY | 0x8000 } },
	{ .header = { .size = 16, .call = GP_CALL_gpFence, .flags = 0 } },
	{ .header = { .size = 16, .call = GP_CALL_gpFence, .flags = GP_FRAME_REPLY }, .cut = 8 },
	{ .header = { .size = 8, .call = GP_CALL_gpFence, .flags = GP_FRAME_REPLY } },
	{ .header = { .size = 17, .call = GP_CALL_gpFence, .flags = GP_FRAME_REPLY },
	  .field_size = 16 },
	{ .header = { .size = 0x7ffffff8, .call = GP_CALL_gpFence, .flags = GP_FRAME_REPLY } },
	{ .header = { .size = 24,
		      .call = GP_CALL_gpFence,
		      .flags = GP_FRAME_REPLY | GP_FRAME_BULK },
	  .field_size = 8,
	  .bulk_size = 8 },
	{ .header = { .size = 16, .call = GP_CALL_gpFence, .flags = GP_FRAME_REPLY },
	  .bulk_size = 8 },
	{ .header = { .size = 16,
		      .call = GP_CALL_gpFence,
		      .flags = GP_FRAME_REPLY | GP_FRAME_BULK },
	  .copies = 2 },
	{ .header = { .size = 16, .call = GP_CALL_gpFence, .flags = GP_FRAME_REPLY }, .copies = 2 },
	{ .header = { .size = 16, .call = GP_NOTE_DATA, .flags = GP_FRAME_BULK }, .bulk_size = 8 },
	{ .header = { .size = 32, .call = GP_NOTE_DATA, .flags = GP_FRAME_BULK },
	  .fields = { 0, 0, 8, 0 },
	  .field_size = 16,
	  .bulk_size = 8 },
	{ .header = { .size = 32, .call = GP_NOTE_ERROR }, .field_size = 16 },
	{ .header = { .size = 24, .call = GP_NOTE_ERROR }, .fields = { 1, 1 }, .field_size = 8 },
	{ .header = { .size = 32, .call = GP_NOTE_ERROR },
	  .fields = { 0x7fffffff, 1 },
	  .field_size = 16 },
	{ .header = { .size = 24, .call = GP_NOTE_PRINT }, .fields = { 1000 }, .field_size = 8 },
	{ .header = { .size = 16, .call = 0xff7f } },
	{ .header = { .size = 0 } },
};

static int
send_nonsense(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
	      size_t size)
{
	const struct nonsense *what = daemon->arg;
	struct gp_header wrong = what->header;
	uint8_t wire[2][32];
	size_t one = (what->cut ? what->cut : sizeof(wrong)) + what->field_size;
	struct iovec data[2] = { { wire[0], one }, { wire[1], one } };
	static uint8_t bulk[8];
	struct iovec tail = { bulk, what->bulk_size };
	int count = what->copies ? what->copies : 1;

	if (!wrong.request)
		wrong.request = header->request;
	for (int i = 0; i < 2; i++) {
		gp_header_encode(&wrong, wire[i]);
		memcpy(wire[i] + sizeof(wrong), what->fields, sizeof(what->fields));
	}
	if (what->header.size == 0)
		count = 0;
	(void)!gp_conn_send(daemon->conn, data, count, &tail, what->bulk_size ? 1 : 0);
	return 0;
}

UNIT_TEST(nonsense_ends_the_session_and_nothing_else)
{
	for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
		struct fixture *fixture = begin(state, send_nonsense);
		CUresult result;

		fixture->daemon.arg = (void *)&nonsense[i];
		result = fence();
		/* The first of two replies is a good one. */
		if (nonsense[i].copies == 2 && result == CUDA_SUCCESS)
			result = fence();
		if (result != CUDA_ERROR_DEVICE_UNAVAILABLE)
			print_error("message %zu\n", i);
		assert_int_equal(result, CUDA_ERROR_DEVICE_UNAVAILABLE);
		assert_int_equal(fence(), CUDA_ERROR_DEVICE_UNAVAILABLE);
		end(fixture);
	}
}

static int
reply_too_short(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
		size_t size)
{
	uint64_t number = 1;

	fake_daemon_reply(daemon, header, CUDA_SUCCESS, &number, sizeof(number));
	return 0;
}

UNIT_TEST(reply_that_lacks_a_field_ends_the_session)
{
	struct fixture *fixture = begin(state, reply_too_short);
	struct gp_reply_gpMemoryInfo reply;

	assert_int_equal(ask(1, &reply), CUDA_ERROR_DEVICE_UNAVAILABLE);
	assert_int_equal(reply.free, 0);
	assert_int_equal(gpc_session_status(fixture->session), CUDA_ERROR_DEVICE_UNAVAILABLE);
	end(fixture);
}

static int
reply_in_bulk(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
	      size_t size)
{
	struct gp_header reply = { .size = sizeof(reply),
				   .call = header->call,
				   .flags = GP_FRAME_REPLY | GP_FRAME_BULK,
				   .request = header->request };
	uint64_t numbers[2] = { 17, 18 };
	struct iovec bulk = { numbers, sizeof(numbers) };
	uint8_t wire[sizeof(reply)];
	struct iovec data = { wire, sizeof(wire) };

	gp_header_encode(&reply, wire);
	(void)!gp_conn_send(daemon->conn, &data, 1, &bulk, 1);
	return 0;
}

UNIT_TEST(fields_of_a_reply_may_be_its_bulk)
{
	struct fixture *fixture = begin(state, reply_in_bulk);
	struct gp_reply_gpMemoryInfo reply;

	assert_int_equal(ask(1, &reply), CUDA_SUCCESS);
	assert_int_equal(reply.free, 17);
	assert_int_equal(reply.total, 18);
	end(fixture);
}

static int
refuse_data(struct gpc_request *request, struct gp_conn *conn, uint64_t offset, uint64_t size)
{
	return -1;
}

UNIT_TEST(data_that_the_request_refuses_ends_the_session)
{
	struct fixture *fixture = begin(state, answer_with_data);
	struct gp_args_gpCopyOut args = { .stream = 1, .width = 1, .height = 1 };
	struct gpc_request request = { .data = refuse_data };

	assert_int_equal(gpc_start_gpCopyOut(NULL, &args, &request), CUDA_SUCCESS);
	assert_int_equal(gpc_request_wait(&request), CUDA_ERROR_DEVICE_UNAVAILABLE);
	end(fixture);
}

UNIT_TEST(close_sends_what_was_posted)
{
	struct fixture *fixture = begin(state, NULL);

	for (int i = 0; i < 1000; i++)
		assert_int_equal(post(1), CUDA_SUCCESS);
	gpc_session_close(fixture->session, 2000);
	assert_true(fake_daemon_wait_records(&fixture->daemon, 1000));
	assert_int_equal(post(1), CUDA_ERROR_DEINITIALIZED);
	end(fixture);
}

UNIT_TEST(close_does_not_wait_for_a_daemon_that_hangs)
{
	struct fixture *fixture = begin(state, NULL);
	static const uint8_t data[1 << 16];
	CUresult waited;
	pthread_t thread;

	atomic_store(&fixture->daemon.hold, true);
	assert_int_equal(copy_in(data, sizeof(data)), CUDA_SUCCESS);
	assert_int_equal(pthread_create(&thread, NULL, fence_in_thread, &waited), 0);
	(void)usleep(20000);
	gpc_session_close(fixture->session, 100);
	(void)pthread_join(thread, NULL);
	assert_int_not_equal(waited, CUDA_SUCCESS);
	end(fixture);
}

int
main(void)
{
	return run_over_both(unit_tests.tests, unit_tests.count);
}
