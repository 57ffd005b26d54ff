/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/contract/fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static size_t
nth_size(int n)
{
	static const size_t sizes[] = { 0, 1, 7, 8, 9, 64, 1000, 4096, 65528, 65537, 200001 };

	return sizes[(size_t)n % (sizeof(sizes) / sizeof(sizes[0]))];
}

static int
send_many(struct job *job)
{
	uint8_t *bytes = malloc(GP_CONN_MESSAGE_MAX);
	int r = bytes ? 0 : -ENOMEM;

	for (int i = 0; i < job->count && r == 0; i++) {
		struct iovec part = { .iov_base = bytes,
				      .iov_len = job->size ? job->size : nth_size(i) };

		fill_pattern(bytes, part.iov_len, (unsigned int)i + job->seed);
		r = gp_conn_send(job->conn, &part, 1, NULL, 0);
	}
	free(bytes);
	return r;
}

static int
recv_many(struct job *job)
{
	for (int i = 0; i < job->count; i++) {
		struct gp_message message;
		int r = gp_conn_recv(job->conn, &message);

		if (r)
			return r;
		if (message.size != (job->size ? job->size : nth_size(i)) || message.bulk_size)
			return -EPROTO;
		if ((uintptr_t)message.data % 8)
			return -EFAULT;
		if (check_pattern(message.data, message.size, (unsigned int)i + job->seed))
			return -EBADMSG;
	}
	return 0;
}

CONTRACT_TEST(messages_arrive_whole_and_in_order)
{
	struct pair *pair = *state;
	struct job sender = { .run = send_many,
			      .conn = pair->client,
			      .count = (int)fixture_scale(1000) };
	struct job receiver = { .run = recv_many,
				.conn = pair->server,
				.count = (int)fixture_scale(1000) };

	job_start(&sender);
	job_start(&receiver);

	assert_int_equal(job_join(&sender), 0);
	assert_int_equal(job_join(&receiver), 0);
}

CONTRACT_TEST(small_messages_sent_before_a_receive_all_arrive)
{
	struct pair *pair = *state;
	struct job both = { .conn = pair->client, .count = 200, .size = 20, .seed = 5 };

	assert_int_equal(send_many(&both), 0);
	both.conn = pair->server;

	assert_int_equal(recv_many(&both), 0);
	assert_false(gp_conn_pending(pair->server));
}

CONTRACT_TEST(both_ends_can_send_a_lot_at_once)
{
	struct pair *pair = *state;
	struct gp_conn *ends[] = { pair->client, pair->server };
	struct job senders[2], receivers[2];

	for (unsigned int i = 0; i < 2; i++) {
		senders[i] = (struct job){ .run = send_many,
					   .conn = ends[i],
					   .count = (int)fixture_scale(300) };
		senders[i].size = GP_CONN_MESSAGE_MAX - i;
		senders[i].seed = i;
		receivers[i] = senders[i];
		receivers[i].run = recv_many;
		receivers[i].conn = ends[!i];
		job_start(&senders[i]);
	}
	/* Both senders are blocked now, each because the other does not receive. */
	sleep_ms(50);
	for (int i = 0; i < 2; i++)
		job_start(&receivers[i]);

	for (int i = 0; i < 2; i++) {
		assert_int_equal(job_join(&senders[i]), 0);
		assert_int_equal(job_join(&receivers[i]), 0);
	}
}

CONTRACT_TEST(an_empty_message_is_a_message)
{
	struct pair *pair = *state;

	assert_int_equal(gp_conn_send(pair->client, NULL, 0, NULL, 0), 0);
	send_bytes(pair->client, "x", 1, NULL, 0);

	expect_message(pair->server, NULL, 0);
	expect_message(pair->server, "x", 1);
}

CONTRACT_TEST(the_largest_message_passes)
{
	struct pair *pair = *state;
	struct job sender = { .run = send_many, .conn = pair->client, .count = 3 };
	struct job receiver = { .conn = pair->server, .count = 3 };

	sender.size = receiver.size = GP_CONN_MESSAGE_MAX;
	job_start(&sender);

	assert_int_equal(recv_many(&receiver), 0);
	assert_int_equal(job_join(&sender), 0);
}

CONTRACT_TEST(a_message_over_the_limit_is_refused_and_harms_nothing)
{
	struct pair *pair = *state;
	static uint8_t bytes[GP_CONN_MESSAGE_MAX + 1];
	struct iovec whole = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	struct iovec halves[2] = { { bytes, GP_CONN_MESSAGE_MAX }, { bytes, 1 } };
	struct iovec huge[2] = { { bytes, SIZE_MAX }, { bytes, SIZE_MAX } };

	assert_int_equal(gp_conn_send(pair->client, &whole, 1, NULL, 0), GP_E_TOO_BIG);
	assert_int_equal(gp_conn_send(pair->client, halves, 2, NULL, 0), GP_E_TOO_BIG);
	assert_int_equal(gp_conn_send(pair->client, huge, 2, NULL, 0), GP_E_TOO_BIG);
	assert_int_equal(gp_conn_send(pair->client, NULL, 0, huge, 1), GP_E_TOO_BIG);
	assert_int_equal(gp_conn_send(pair->client, NULL, 0, huge, 2), GP_E_TOO_BIG);

	send_bytes(pair->client, "still alive", 11, NULL, 0);
	expect_message(pair->server, "still alive", 11);
	assert_string_equal(gp_conn_error(pair->client), "");
}

CONTRACT_TEST(parts_are_joined_however_many)
{
	enum {
		PARTS = 3000
	};
	struct pair *pair = *state;
	static struct iovec parts[PARTS];
	uint8_t *bytes = pattern(PARTS * 5, 3);
	size_t used = 0;

	for (size_t i = 0; i < PARTS; i++) {
		parts[i].iov_base = bytes + used;
		parts[i].iov_len = i % 6;
		used += i % 6;
	}
	assert_int_equal(gp_conn_send(pair->client, parts, PARTS, NULL, 0), 0);

	expect_message(pair->server, bytes, used);
	free(bytes);
}

static double
seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

CONTRACT_TEST(wait_returns_whether_a_message_has_arrived)
{
	struct pair *pair = *state;
	double before = seconds();

	assert_int_equal(gp_conn_wait(pair->server, 0), 0);
	assert_int_equal(gp_conn_wait(pair->server, 60), 0);
	assert_true(seconds() - before >= 0.055);

	send_bytes(pair->client, "one", 3, NULL, 0);
	assert_int_equal(gp_conn_wait(pair->server, -1), 1);
	expect_message(pair->server, "one", 3);
	assert_int_equal(gp_conn_wait(pair->server, 0), 0);
}

CONTRACT_TEST(wait_reports_a_message_that_was_read_ahead)
{
	struct pair *pair = *state;

	send_bytes(pair->client, "one", 3, NULL, 0);
	send_bytes(pair->client, "two", 3, NULL, 0);
	sleep_ms(50);

	expect_message(pair->server, "one", 3);
	assert_int_equal(gp_conn_wait(pair->server, 0), 1);
	expect_message(pair->server, "two", 3);
	assert_false(gp_conn_pending(pair->server));
	assert_int_equal(gp_conn_wait(pair->server, 0), 0);
}

CONTRACT_TEST(wait_ends_when_the_peer_closes)
{
	struct pair *pair = *state;
	struct gp_message message;

	gp_conn_destroy(pair->client);
	pair->client = NULL;

	assert_int_equal(gp_conn_wait(pair->server, -1), 1);
	assert_int_equal(gp_conn_recv(pair->server, &message), GP_E_EOF);
	assert_int_equal(gp_conn_wait(pair->server, -1), 1);
}

static int
echo(struct job *job)
{
	for (int i = 0; i < job->count; i++) {
		struct gp_message message;
		struct iovec part;
		int r = gp_conn_recv(job->conn, &message);

		if (r)
			return r;
		part = (struct iovec){ (void *)message.data, message.size };
		r = gp_conn_send(job->conn, &part, 1, NULL, 0);
		if (r)
			return r;
	}
	return 0;
}

CONTRACT_TEST(a_spinning_receiver_gets_the_same_messages)
{
	struct pair *pair = *state;
	struct job peer = { .run = echo, .conn = pair->server, .count = 200 };

	gp_conn_set_spin(pair->client, 20);
	gp_conn_set_spin(pair->server, 20);
	job_start(&peer);
	for (int i = 0; i < 200; i++) {
		send_bytes(pair->client, &i, sizeof(i), NULL, 0);
		expect_message(pair->client, &i, sizeof(i));
	}

	assert_int_equal(job_join(&peer), 0);
}

int
main(int argc, char **argv)
{
	fixture_init(argc, argv);
	return unit_tests_run(NULL, NULL);
}
