// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/fixture.h"

#include <errno.h>
#include <time.h>

#define STOPPED "the peer stopped in the middle of a message, and sent nothing for 0.100 s"
#define NOTHING_TAKEN "the peer has read nothing for 0.600 s"
#define NOTHING_TAKEN_300 "the peer has read nothing for 0.300 s"

static int
send_short_ones(struct job *job)
{
	static uint8_t bytes[1000];
	struct iovec part = { bytes, sizeof(bytes) };
	int r;

	while ((r = gp_conn_send(job->conn, &part, 1, NULL, 0)) == 0)
		job->count++;
	return r;
}

static int64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

CONTRACT_TEST(a_peer_that_stops_inside_a_message_is_given_up)
{
	static const char whole[] = "\4\0\0\0\4\0\0\0databulk";
	static const size_t cuts[] = { 1, 7, 8, 11, 12, 15 };
	struct pair *pair = *state;

	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		struct gp_conn *client, *server;
		struct gp_message message;
		int64_t begin;
		int r;

		fixture_connect(pair, &client, &server);
		gp_conn_set_stall_timeout(server, 100);
		/* Which does not make it longer, nor shorter. */
		gp_conn_set_idle_timeout(server, i % 2 ? 30 : 0);
		/* A preamble has no framing: these bytes are the beginning of a message. */
		assert_int_equal(gp_conn_send_preamble(client, whole, cuts[i]), 0);
		begin = now_ms();
		r = gp_conn_recv(server, &message);
		if (cuts[i] >= 12) {
			assert_int_equal(r, 0);
			r = gp_conn_recv_bulk(server, NULL, message.bulk_size);
		}

		assert_int_equal(r, -ETIMEDOUT);
		assert_true(now_ms() - begin >= 99);
		assert_string_equal(gp_conn_error(server), STOPPED);
		assert_int_equal(gp_conn_recv(server, &message), -ETIMEDOUT);
		gp_conn_destroy(client);
		gp_conn_destroy(server);
	}
}

/* Sends the start of a message byte by byte, until the peer stops receiving. */
static int
send_slowly(struct job *job)
{
	static const char head[] = "\0\1\0\0\0\0\0\0";
	int r = 0;

	for (size_t i = 0; r == 0 && i < 40; i++) {
		r = gp_conn_send_preamble(job->conn, head + (i < 8 ? i : 7), 1);
		sleep_ms(30);
	}
	return 0;
}

CONTRACT_TEST(a_deadline_is_for_the_whole_message)
{
	struct pair *pair = *state;
	struct job sender = { .run = send_slowly, .conn = pair->client };
	struct gp_message message;
	int64_t begin;

	/* In time. */
	send_bytes(pair->client, "first", 5, NULL, 0);
	assert_int_equal(gp_conn_wait(pair->server, 1000), 1);
	gp_conn_set_deadline(pair->server, 1000);
	expect_message(pair->server, "first", 5);

	/* No time to look around makes it another one. */
	gp_conn_set_idle_timeout(pair->server, 20);
	job_start(&sender);
	begin = now_ms();
	gp_conn_set_deadline(pair->server, 250);
	assert_int_equal(gp_conn_recv(pair->server, &message), -ETIMEDOUT);
	assert_true(now_ms() - begin >= 249);
	assert_true(now_ms() - begin < 900);
	assert_string_equal(gp_conn_error(pair->server), "no whole message came in time");
	gp_conn_shutdown(pair->server);
	assert_int_equal(job_join(&sender), 0);
}

static int
send_after_a_while(struct job *job)
{
	struct iovec part = { (void *)"late", 4 };

	sleep_ms(300);
	return gp_conn_send(job->conn, &part, 1, NULL, 0);
}

CONTRACT_TEST(a_deadline_can_be_lifted)
{
	struct pair *pair = *state;
	struct job sender = { .run = send_after_a_while, .conn = pair->client };

	send_bytes(pair->client, "first", 5, NULL, 0);
	gp_conn_set_deadline(pair->server, 1000);
	expect_message(pair->server, "first", 5);
	gp_conn_set_deadline(pair->server, 100);
	gp_conn_set_deadline(pair->server, 0);
	job_start(&sender);
	expect_message(pair->server, "late", 4);
	assert_int_equal(job_join(&sender), 0);
}

CONTRACT_TEST(a_receive_that_times_out_before_a_message_loses_nothing)
{
	struct pair *pair = *state;
	struct job sender = { .run = send_after_a_while, .conn = pair->client };
	struct gp_message message;
	int64_t begin = now_ms();
	int looks = 0;

	gp_conn_set_idle_timeout(pair->server, 50);
	assert_int_equal(gp_conn_recv(pair->server, &message), GP_E_TIMEOUT);
	assert_true(now_ms() - begin >= 49);
	job_start(&sender);
	while (gp_conn_recv(pair->server, &message) == GP_E_TIMEOUT)
		looks++;
	assert_true(looks > 0);
	assert_int_equal(message.size, 4);
	assert_memory_equal(message.data, "late", 4);
	assert_int_equal(job_join(&sender), 0);

	/* A message that has arrived is returned at once, and 0 means no deadline. */
	send_bytes(pair->client, "first", 5, NULL, 0);
	expect_message(pair->server, "first", 5);
	gp_conn_set_idle_timeout(pair->server, 0);
	job_start(&sender);
	expect_message(pair->server, "late", 4);
	assert_int_equal(job_join(&sender), 0);

	gp_conn_set_idle_timeout(pair->server, 50);
	gp_conn_destroy(pair->client);
	pair->client = NULL;
	assert_int_equal(gp_conn_recv(pair->server, &message), GP_E_EOF);
}

CONTRACT_TEST(before_a_deadline_a_peer_that_stops_is_given_up)
{
	struct pair *pair = *state;
	struct gp_message message;
	int64_t begin = now_ms();

	gp_conn_set_stall_timeout(pair->server, 100);
	gp_conn_set_deadline(pair->server, 5000);
	assert_int_equal(gp_conn_send_preamble(pair->client, "\x10\0\0\0", 4), 0);
	assert_int_equal(gp_conn_recv(pair->server, &message), -ETIMEDOUT);
	assert_true(now_ms() - begin >= 99);
	assert_true(now_ms() - begin < 4000);
	assert_string_equal(gp_conn_error(pair->server), STOPPED);
}

CONTRACT_TEST(no_deadline_applies_between_messages)
{
	struct pair *pair = *state;
	struct job sender = { .run = send_after_a_while, .conn = pair->client };

	gp_conn_set_stall_timeout(pair->server, 50);
	send_bytes(pair->client, "first", 5, NULL, 0);
	expect_message(pair->server, "first", 5);
	job_start(&sender);
	expect_message(pair->server, "late", 4);
	assert_int_equal(job_join(&sender), 0);
}

CONTRACT_TEST(a_sender_waits_for_a_slow_reader)
{
	struct pair *pair = *state;
	struct job sender = { .run = send_one_large, .conn = pair->client };
	struct gp_message message;

	sender.size = fixture_scale((size_t)64 << 20);
	gp_conn_set_stall_timeout(pair->client, 50);
	gp_conn_set_stall_timeout(pair->server, 2000);
	job_start(&sender);
	sleep_ms(300);
	assert_int_equal(gp_conn_recv(pair->server, &message), 0);
	sleep_ms(300);
	assert_int_equal(gp_conn_recv_bulk(pair->server, NULL, message.bulk_size), 0);
	assert_int_equal(job_join(&sender), 0);
}

/* Whichever end sends, in long messages, which may go another way than short ones. */
CONTRACT_TEST(a_peer_that_reads_nothing_is_given_up)
{
	static int (*const kinds[])(struct job *) = { send_until_it_fails, send_short_ones };
	struct pair *pair = *state;

	for (int i = 0; i < 4; i++) {
		struct gp_conn *ends[2];
		struct gp_message message;
		struct job sender = { .run = kinds[i / 2] };
		int64_t begin = now_ms();

		fixture_connect(pair, &ends[0], &ends[1]);
		gp_conn_set_send_timeout(ends[i % 2], 600);
		sender.conn = ends[i % 2];
		job_start(&sender);

		assert_int_equal(job_join(&sender), -ETIMEDOUT);
		assert_true(now_ms() - begin >= 290);
		assert_string_equal(gp_conn_error(ends[i % 2]), NOTHING_TAKEN);
		assert_int_equal(gp_conn_send(ends[i % 2], NULL, 0, NULL, 0), -ETIMEDOUT);
		gp_conn_destroy(ends[i % 2]);
		/* It receives the sent bytes, or the end. */
		while (gp_conn_recv(ends[1 - i % 2], &message) == 0)
			;
		gp_conn_destroy(ends[1 - i % 2]);
	}
}

/* No thread sends any more, and a receiver learns of it. */
CONTRACT_TEST(what_was_sent_must_be_taken_in_time)
{
	struct pair *pair = *state;
	struct gp_message message;
	uint8_t bytes[1000] = { 0 };
	int64_t begin = now_ms();

	/* Elsewhere the kernel keeps the sent bytes. */
	if (!(gp_conn_caps(pair->server) & GP_CONN_CAP_REMOTE_MEM))
		return;
	gp_conn_set_send_timeout(pair->server, 300);
	for (int i = 0; i < 200; i++)
		send_bytes(pair->server, bytes, sizeof(bytes), NULL, 0);

	assert_int_equal(gp_conn_recv(pair->server, &message), -ETIMEDOUT);
	assert_true(now_ms() - begin >= 290);
	assert_string_equal(gp_conn_error(pair->server), NOTHING_TAKEN_300);
}

CONTRACT_TEST(a_peer_that_reads_slowly_is_not_given_up)
{
	const size_t size = (size_t)16 << 20, part = (size_t)1 << 20;
	struct pair *pair = *state;

	for (int i = 0; i < 2; i++) {
		struct gp_conn *ends[2];
		struct gp_message message;
		struct job sender = { .run = send_one_large, .size = size };
		int64_t begin = now_ms();

		fixture_connect(pair, &ends[0], &ends[1]);
		gp_conn_set_send_timeout(ends[i], 1000);
		sender.conn = ends[i];
		job_start(&sender);
		assert_int_equal(gp_conn_recv(ends[1 - i], &message), 0);
		for (size_t at = 0; at < size; at += part) {
			sleep_ms(100);
			assert_int_equal(gp_conn_recv_bulk(ends[1 - i], NULL, part), 0);
		}

		assert_int_equal(job_join(&sender), 0);
		assert_true(now_ms() - begin > 1000);
		gp_conn_destroy(ends[0]);
		gp_conn_destroy(ends[1]);
	}
}

int
main(int argc, char **argv)
{
	fixture_init(argc, argv);
	return unit_tests_run(NULL, NULL);
}
