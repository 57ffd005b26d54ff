/* SPDX-License-Identifier: Apache-2.0 */
/* Data lanes of the client, with a daemon's end that follows the protocol or violates it. */
#include "base/clock.h"
#include "client/session/lane.h"
#include "client/session/lane_internal.h"
#include "client/session/session_internal.h"
#include "protocol/preamble.h"
#include "tests/test.h"
#include "tests/unit/client/fake_daemon.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LANES 3
#define CHUNK GP_CHUNK_MAX

struct fixture {
	struct fake_daemon daemon;
	struct gpc_session *session;
	struct gp_listener *listener;
	struct gp_conn *far[LANES];
	struct gpc_scope scope;
};

static int
set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct gpc_lanes_config source = { .max = LANES, .exact = true };
	struct gp_url url;
	char error[200];

	assert_int_equal(gp_url_parse("tcp://127.0.0.1:0", &url, error, sizeof(error)), 0);
	assert_int_equal(gp_listen(&url, &fixture->listener, error, sizeof(error)), 0);
	fake_daemon_start(&fixture->daemon, "unix", 100, &fixture->session);
	source.url = *gp_listener_url(fixture->listener);
	memset(source.ticket, 0x5a, sizeof(source.ticket));
	gpc_lanes_configure(fixture->session, &source);
	fixture->scope.session = fixture->session;
	*state = fixture;
	return 0;
}

static int
tear_down(void **state)
{
	struct fixture *fixture = *state;

	fake_daemon_stop(&fixture->daemon, fixture->session);
	for (int i = 0; i < LANES; i++)
		gp_conn_destroy(fixture->far[i]);
	gp_listener_destroy(fixture->listener);
	free(fixture);
	return 0;
}

/* By the number in its preamble. */
static void
accept_lane(struct fixture *fixture)
{
	uint8_t bytes[GP_PREAMBLE_SIZE], ticket[GP_TICKET_SIZE];
	struct gp_preamble preamble;
	struct gp_conn *conn;

	assert_int_equal(gp_accept(fixture->listener, 5000, &conn), 0);
	assert_int_equal(gp_conn_recv_preamble(conn, bytes, sizeof(bytes), 5000), 0);
	assert_int_equal(gp_preamble_decode(bytes, &preamble), 0);
	assert_int_equal(preamble.kind, GP_PREAMBLE_LANE);
	memset(ticket, 0x5a, sizeof(ticket));
	assert_memory_equal(preamble.ticket, ticket, sizeof(ticket));
	assert_in_range(preamble.lane, 1, LANES - 1);
	assert_null(fixture->far[preamble.lane]);
	fixture->far[preamble.lane] = conn;
}

static void
open_lanes(struct fixture *fixture)
{
	assert_true(gpc_lanes_open_for_copy(fixture->session, GPC_LANE_COPY_MIN, false));
	for (int i = 1; i < LANES; i++)
		accept_lane(fixture);
}

static void
send_chunk(struct gp_conn *conn, uint32_t copy, uint64_t offset, const void *bytes, size_t size)
{
	const struct gp_chunk chunk = { .copy = copy, .offset = offset, .size = size };
	struct iovec bulk = { (void *)bytes, size };
	uint8_t header[GP_CHUNK_SIZE];
	struct iovec data = { header, sizeof(header) };

	gp_chunk_encode(&chunk, header);
	assert_int_equal(gp_conn_send(conn, &data, 1, &bulk, 1), 0);
}

static bool
has_ended(struct fixture *fixture)
{
	for (int i = 0; i < 500 && gpc_session_status(fixture->session) == CUDA_SUCCESS; i++)
		(void)usleep(10000);
	return gpc_session_status(fixture->session) != CUDA_SUCCESS;
}

#define TEST(test) UNIT_TEST_WITH(test, set_up, tear_down)

TEST(lanes_are_opened_once_with_the_ticket_and_their_numbers)
{
	struct fixture *fixture = *state;
	struct gp_conn *conn;

	assert_false(gpc_lanes_open_for_copy(fixture->session, GPC_LANE_COPY_MIN - 1, false));
	assert_int_equal(gp_accept(fixture->listener, 0, &conn), GP_E_TIMEOUT);
	open_lanes(fixture);
	assert_true(gpc_lanes_open_for_copy(fixture->session, GPC_LANE_COPY_MIN, false));
	assert_int_equal(gp_accept(fixture->listener, 0, &conn), GP_E_TIMEOUT);
}

TEST(daemon_that_allows_one_lane_gets_no_other)
{
	struct fixture *fixture = *state;
	struct gpc_lanes_config source = { .url = *gp_listener_url(fixture->listener), .max = 1 };
	struct gp_conn *conn;

	gpc_lanes_configure(fixture->session, &source);
	assert_false(gpc_lanes_open_for_copy(fixture->session, UINT64_MAX, false));
	assert_int_equal(gp_accept(fixture->listener, 0, &conn), GP_E_TIMEOUT);
}

TEST(lanes_that_cannot_be_opened_are_done_without)
{
	struct fixture *fixture = *state;

	gp_listener_destroy(fixture->listener);
	fixture->listener = NULL;

	assert_false(gpc_lanes_open_for_copy(fixture->session, GPC_LANE_COPY_MIN, false));
	assert_int_equal(gpc_session_status(fixture->session), CUDA_SUCCESS);
}

/* Takes this many bytes of a copy, from whichever lane. */
static void
take_chunks(struct fixture *fixture, uint32_t copy, uint8_t *bytes, uint64_t size)
{
	for (uint64_t left = size; left > 0;) {
		for (int i = 1; i < LANES; i++) {
			struct gp_message message;
			struct gp_chunk chunk;

			if (gp_conn_wait(fixture->far[i], 1) != 1)
				continue;
			assert_int_equal(gp_conn_recv(fixture->far[i], &message), 0);
			assert_int_equal(gp_chunk_decode(&chunk, message.data, message.size,
							 message.bulk_size),
					 0);
			assert_int_equal(chunk.copy, copy);
			assert_int_equal(
				gp_chunk_get_expected_size(size, GP_CHUNK_MAX, chunk.offset),
				chunk.size);
			assert_int_equal(gp_conn_recv_bulk(fixture->far[i], bytes + chunk.offset,
							   chunk.size),
					 0);
			left -= chunk.size;
		}
	}
}

TEST(bytes_of_a_copy_go_out_once_behind_its_record)
{
	struct fixture *fixture = *state;
	const uint64_t size = 5 * CHUNK + 3;
	uint8_t *from = malloc(size), *to = calloc(1, size);
	unsigned int wait = 0;

	for (uint64_t i = 0; i < size; i++)
		from[i] = (uint8_t)(i * 7 + i / CHUNK);
	open_lanes(fixture);
	for (uint32_t copy = 1; copy <= 2; copy++) {
		assert_int_equal(gpc_lanes_send(&fixture->scope, 1, 77, from, size, 0, &wait),
				 CUDA_SUCCESS);
		take_chunks(fixture, copy, to, size);
		assert_int_equal(gpc_lanes_wait_sent(fixture->session, &wait), CUDA_SUCCESS);
		assert_memory_equal(from, to, size);
		assert_true(fake_daemon_wait_records(&fixture->daemon, copy));
		assert_int_equal(fixture->daemon.records[copy - 1].header.call,
				 GP_CALL_gpCopyInLanes);
		memset(to, 0, size);
	}
	gpc_lanes_settle(from, size);
	free(from);
	free(to);
}

TEST(copy_behind_a_host_function_is_not_sent)
{
	struct fixture *fixture = *state;
	uint8_t byte = 0;

	open_lanes(fixture);
	(void)pthread_mutex_lock(&fixture->session->sender.lock);
	fixture->session->functions.unanswered++;
	(void)pthread_mutex_unlock(&fixture->session->sender.lock);

	assert_int_equal(gpc_lanes_send(&fixture->scope, 1, 77, &byte, 1, 0, NULL),
			 CUDA_ERROR_NOT_READY);

	assert_int_equal(fixture->daemon.count, 0);
	assert_int_equal(gp_conn_wait(fixture->far[1], 50), 0);
	(void)pthread_mutex_lock(&fixture->session->sender.lock);
	fixture->session->functions.unanswered--;
	(void)pthread_mutex_unlock(&fixture->session->sender.lock);
}

TEST(bytes_for_a_copy_are_taken_from_any_lane)
{
	struct fixture *fixture = *state;
	uint8_t memory[20] = { 0 };
	struct gpc_incoming_copy in = { .memory = memory, .size = sizeof(memory) }, other = in;

	open_lanes(fixture);
	gpc_lanes_expect(fixture->session, &in);
	gpc_lanes_expect(fixture->session, &other);
	assert_int_not_equal(in.copy, other.copy);
	send_chunk(fixture->far[2], in.copy, 12, "01234567", 8);
	send_chunk(fixture->far[1], in.copy, 0, "abcdefghijkl", 12);

	gpc_lanes_finish(fixture->session, &in, 20);
	gpc_lanes_finish(fixture->session, &other, 0);

	assert_memory_equal(memory, "abcdefghijkl01234567", 20);
	assert_int_equal(in.received, 20);
	assert_int_equal(other.received, 0);
	assert_int_equal(gpc_session_status(fixture->session), CUDA_SUCCESS);
}

/* Two copies to the same memory, of which the second one waits for the first. */
struct two_copies {
	uint8_t memory[40];
	struct gpc_incoming_copy earlier, later;
};

static void
expect_two(struct fixture *fixture, struct two_copies *copies, uint64_t stream)
{
	*copies = (struct two_copies){
		.earlier = { .memory = copies->memory, .size = 20, .stream = 7 },
		.later = { .memory = copies->memory + 10,
			   .size = 30,
			   .stream = stream,
			   .ordered = true },
	};
	open_lanes(fixture);
	gpc_lanes_expect(fixture->session, &copies->earlier);
	gpc_lanes_posted(fixture->session, &copies->earlier);
	gpc_lanes_expect(fixture->session, &copies->later);
	gpc_lanes_posted(fixture->session, &copies->later);
}

/* How much of a copy is there, as soon as that is so much or a lane has a chunk of it. */
static uint64_t
await_chunk(struct fixture *fixture, const struct gpc_incoming_copy *in, uint64_t received)
{
	struct gpc_lanes *lanes = fixture->session->lanes;
	uint64_t deadline = gp_deadline_ns(10000), had;

	(void)pthread_mutex_lock(&lanes->lock);
	while (in->received < received && in->busy == 0 && gp_now_ns() < deadline) {
		(void)pthread_mutex_unlock(&lanes->lock);
		(void)usleep(1000);
		(void)pthread_mutex_lock(&lanes->lock);
	}
	(void)pthread_mutex_unlock(&lanes->lock);
	/* It would be stored by now if it did not wait. */
	(void)usleep(20000);
	(void)pthread_mutex_lock(&lanes->lock);
	had = in->received;
	(void)pthread_mutex_unlock(&lanes->lock);
	return had;
}

TEST(chunk_of_a_later_copy_is_stored_after_the_bytes_of_the_earlier_one)
{
	struct fixture *fixture = *state;
	struct two_copies copies;

	expect_two(fixture, &copies, 7);
	/* Beyond the earlier copy. */
	send_chunk(fixture->far[1], copies.later.copy, 10, "klmnopqrstuvwxyzABCD", 20);
	while (await_chunk(fixture, &copies.later, 20) < 20)
		assert_int_equal(gpc_session_status(fixture->session), CUDA_SUCCESS);
	send_chunk(fixture->far[1], copies.later.copy, 0, "abcdefghij", 10);
	assert_int_equal(await_chunk(fixture, &copies.later, 30), 20);
	send_chunk(fixture->far[2], copies.earlier.copy, 10, "9876543210", 10);
	assert_int_equal(await_chunk(fixture, &copies.earlier, 10), 10);
	assert_int_equal(await_chunk(fixture, &copies.later, 30), 20);
	send_chunk(fixture->far[2], copies.earlier.copy, 0, "0123456789", 10);

	gpc_lanes_finish(fixture->session, &copies.earlier, 20);
	gpc_lanes_finish(fixture->session, &copies.later, 30);

	assert_memory_equal(copies.memory, "0123456789abcdefghijklmnopqrstuvwxyzABCD", 40);
}

TEST(chunk_of_another_stream_or_of_a_copy_posted_first_does_not_wait)
{
	struct fixture *fixture = *state;
	struct two_copies copies;
	struct gpc_incoming_copy same = { .memory = copies.memory, .size = 4, .stream = 7 };

	expect_two(fixture, &copies, 8);
	send_chunk(fixture->far[1], copies.later.copy, 0, "abcdefghijklmnopqrstuvwxyzABCD", 30);
	gpc_lanes_finish(fixture->session, &copies.later, 30);
	/* Nothing says which copy of the stream was posted first. */
	same.ordered = false;
	gpc_lanes_expect(fixture->session, &same);
	send_chunk(fixture->far[1], same.copy, 0, "wxyz", 4);
	gpc_lanes_finish(fixture->session, &same, 4);
	gpc_lanes_finish(fixture->session, &copies.earlier, 0);

	assert_memory_equal(copies.memory + 10, "abcdefghijklmnopqrstuvwxyzABCD", 30);
	assert_memory_equal(copies.memory, "wxyz", 4);
}

TEST(chunk_does_not_wait_for_a_copy_that_failed)
{
	struct fixture *fixture = *state;
	struct two_copies copies;

	expect_two(fixture, &copies, 7);
	send_chunk(fixture->far[1], copies.later.copy, 0, "abcdefghijklmnopqrstuvwxyzABCD", 30);
	assert_int_equal(await_chunk(fixture, &copies.later, 30), 0);
	gpc_lanes_finish(fixture->session, &copies.earlier, 0);
	gpc_lanes_finish(fixture->session, &copies.later, 30);

	assert_memory_equal(copies.memory + 10, "abcdefghijklmnopqrstuvwxyzABCD", 30);
}

TEST(session_that_ends_wakes_a_lane_with_a_chunk_that_waits)
{
	struct fixture *fixture = *state;
	struct two_copies copies;

	expect_two(fixture, &copies, 7);
	send_chunk(fixture->far[1], copies.later.copy, 0, "abcdefghij", 10);
	assert_int_equal(await_chunk(fixture, &copies.later, 10), 0);
	gpc_session_fail(fixture->session, CUDA_ERROR_ILLEGAL_ADDRESS, "by the test");
	gpc_lanes_finish(fixture->session, &copies.later, 30);
	gpc_lanes_finish(fixture->session, &copies.earlier, 20);

	assert_int_equal(copies.earlier.received, 0);
}

TEST(chunk_that_was_not_asked_for_ends_the_session)
{
	struct fixture *fixture = *state;

	open_lanes(fixture);
	send_chunk(fixture->far[1], 5, 0, "x", 1);
	assert_true(has_ended(fixture));
}

TEST(chunk_beyond_its_copy_ends_the_session_and_writes_nothing)
{
	struct fixture *fixture = *state;
	uint8_t memory[20] = { 0 }, zeros[20] = { 0 };
	struct gpc_incoming_copy in = { .memory = memory, .size = 10 };

	open_lanes(fixture);
	gpc_lanes_expect(fixture->session, &in);
	send_chunk(fixture->far[1], in.copy, 8, "xyz", 3);
	gpc_lanes_finish(fixture->session, &in, 10);

	assert_true(has_ended(fixture));
	assert_int_equal(in.received, 0);
	assert_memory_equal(memory, zeros, sizeof(zeros));
}

TEST(message_that_is_no_chunk_ends_the_session)
{
	struct fixture *fixture = *state;
	struct iovec data = { (void *)"no chunk", 8 };

	open_lanes(fixture);
	assert_int_equal(gp_conn_send(fixture->far[2], &data, 1, NULL, 0), 0);
	assert_true(has_ended(fixture));
}

TEST(lane_that_closes_ends_the_session_and_wakes_who_waits)
{
	struct fixture *fixture = *state;
	uint8_t memory[20];
	struct gpc_incoming_copy in = { .memory = memory, .size = sizeof(memory) };

	open_lanes(fixture);
	gpc_lanes_expect(fixture->session, &in);
	send_chunk(fixture->far[1], in.copy, 0, "x", 1);
	gp_conn_destroy(fixture->far[2]);
	fixture->far[2] = NULL;
	gpc_lanes_finish(fixture->session, &in, 20);

	assert_true(has_ended(fixture));
	assert_false(gp_conn_wait(fixture->far[1], 5000) == 0);
}

static void *
end_later(void *arg)
{
	(void)usleep(100000);
	gpc_session_fail(arg, CUDA_ERROR_ILLEGAL_ADDRESS, "by the test");
	return NULL;
}

TEST(session_that_ends_wakes_who_sends)
{
	struct fixture *fixture = *state;
	const uint64_t size = 64 * CHUNK;
	uint8_t *memory = calloc(1, size);
	unsigned int wait = 0;
	pthread_t thread;

	open_lanes(fixture);
	assert_int_equal(pthread_create(&thread, NULL, end_later, fixture->session), 0);
	/* Nobody reads so much. */
	assert_int_equal(gpc_lanes_send(&fixture->scope, 1, 77, memory, size, 0, &wait),
			 CUDA_SUCCESS);
	assert_int_equal(gpc_lanes_wait_sent(fixture->session, &wait), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(gpc_lanes_send(&fixture->scope, 1, 77, memory, 1, 0, &wait),
			 CUDA_ERROR_ILLEGAL_ADDRESS);
	gpc_lanes_settle(memory, size);
	assert_int_equal(wait, 0);
	(void)pthread_join(thread, NULL);
	free(memory);
}

UNIT_TEST_MAIN(NULL, NULL)
