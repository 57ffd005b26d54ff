/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/contract/fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LARGE fixture_scale((size_t)64 << 20)

/* `count` messages: "head" and a bulk of `size` bytes in uneven parts. */
static int
send_bulks(struct job *job)
{
	uint8_t *bytes = malloc(job->size + 1);
	int r = bytes ? 0 : -ENOMEM;

	for (int i = 0; i < job->count && r == 0; i++) {
		struct iovec head = { (void *)"head", 4 };
		struct iovec parts[3] = { { bytes, job->size / 3 } };

		parts[1].iov_base = bytes + job->size / 3;
		parts[2].iov_base = bytes + job->size / 3;
		parts[2].iov_len = job->size - job->size / 3;
		fill_pattern(bytes, job->size, (unsigned int)i);
		r = gp_conn_send(job->conn, &head, 1, parts, 3);
	}
	free(bytes);
	return r;
}

static size_t
expect_head(struct gp_conn *conn)
{
	struct gp_message message;

	assert_int_equal(gp_conn_recv(conn, &message), 0);
	assert_int_equal(message.size, 4);
	assert_memory_equal(message.data, "head", 4);
	return message.bulk_size;
}

CONTRACT_TEST(bulk_of_any_size_arrives)
{
	static const size_t sizes[] = { 0,      1,     2,     8,      4095,
					65535,  65536, 65537, 262145, (1 << 20) + 3,
					3333333 };
	struct pair *pair = *state;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct job sender = { .run = send_bulks, .conn = pair->client, .count = 3 };
		uint8_t *to = malloc(sizes[i] + 1);

		sender.size = sizes[i];
		job_start(&sender);
		for (unsigned int n = 0; n < 3; n++) {
			assert_int_equal(expect_head(pair->server), sizes[i]);
			to[sizes[i]] = 0x5a;
			assert_int_equal(gp_conn_recv_bulk(pair->server, to, sizes[i]), 0);
			assert_int_equal(check_pattern(to, sizes[i], n), 0);
			assert_int_equal(to[sizes[i]], 0x5a);
		}
		assert_int_equal(job_join(&sender), 0);
		free(to);
	}
}

CONTRACT_TEST(large_bulk_can_be_drained_in_pieces)
{
	struct pair *pair = *state;
	struct job sender = { .run = send_bulks, .conn = pair->client, .size = LARGE, .count = 1 };
	uint8_t *to = malloc(LARGE);
	size_t piece = 1, done = 0;

	job_start(&sender);
	assert_int_equal(expect_head(pair->server), LARGE);
	while (done < LARGE) {
		size_t take = piece < LARGE - done ? piece : LARGE - done;

		assert_int_equal(gp_conn_recv_bulk(pair->server, to + done, take), 0);
		done += take;
		piece = piece * 3 % 7000001;
	}

	assert_int_equal(check_pattern(to, LARGE, 0), 0);
	assert_int_equal(job_join(&sender), 0);
	free(to);
}

CONTRACT_TEST(bulk_can_be_thrown_away)
{
	struct pair *pair = *state;
	struct job sender = { .run = send_bulks, .conn = pair->client, .size = 700001, .count = 3 };
	uint8_t byte;

	job_start(&sender);
	assert_int_equal(expect_head(pair->server), 700001);
	assert_int_equal(gp_conn_recv_bulk(pair->server, NULL, 700001), 0);
	assert_int_equal(expect_head(pair->server), 700001);
	assert_int_equal(gp_conn_recv_bulk(pair->server, &byte, 1), 0);
	assert_int_equal(check_pattern(&byte, 1, 1), 0);
	assert_int_equal(expect_head(pair->server), 700001);
	assert_int_equal(gp_conn_recv_bulk(pair->server, NULL, 700000), 0);
	assert_int_equal(job_join(&sender), 0);

	send_bytes(pair->client, "next", 4, NULL, 0);
	expect_message(pair->server, "next", 4);
}

CONTRACT_TEST(taking_more_than_is_left_is_refused)
{
	struct pair *pair = *state;
	char to[8];

	send_bytes(pair->client, "head", 4, "bulk", 4);
	assert_int_equal(expect_head(pair->server), 4);

	assert_int_equal(gp_conn_recv_bulk(pair->server, to, 5), GP_E_INVALID);
	assert_int_equal(gp_conn_recv_bulk(pair->server, to, 4), 0);
	assert_memory_equal(to, "bulk", 4);
	assert_int_equal(gp_conn_recv_bulk(pair->server, to, 1), GP_E_INVALID);
	assert_int_equal(gp_conn_recv_bulk(pair->server, to, 0), 0);
}

/* One message of `size` bytes and 5000 of bulk, then `count` small ones. */
static int
send_data_then_bulks(struct job *job)
{
	uint8_t *data = malloc(job->size), *bulk = malloc(5000);
	struct iovec parts[2] = { { data, job->size }, { bulk, 5000 } };
	struct job tail = { .conn = job->conn, .size = 9, .count = job->count };
	int r = -ENOMEM;

	if (data && bulk) {
		fill_pattern(data, job->size, 1);
		fill_pattern(bulk, 5000, 2);
		r = gp_conn_send(job->conn, parts, 1, parts + 1, 1);
	}
	free(data);
	free(bulk);
	return r ? r : send_bulks(&tail);
}

CONTRACT_TEST(data_stays_valid_while_the_bulk_is_drained)
{
	static const size_t sizes[] = { 1, 7, 100, 65535, 200003, GP_CONN_MESSAGE_MAX };
	struct pair *pair = *state;
	uint8_t to[5000];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct job sender = { .run = send_data_then_bulks, .conn = pair->client };
		struct gp_message message;

		sender.size = sizes[i];
		sender.count = 50;
		job_start(&sender);
		assert_int_equal(gp_conn_recv(pair->server, &message), 0);
		assert_int_equal(message.bulk_size, sizeof(to));
		assert_int_equal(gp_conn_recv_bulk(pair->server, to, 1000), 0);
		/* Lets what follows arrive, so that there is something to read ahead. */
		sleep_ms(5);
		assert_int_equal(gp_conn_recv_bulk(pair->server, to + 1000, 4000), 0);

		assert_int_equal(message.size, sizes[i]);
		assert_int_equal(check_pattern(message.data, sizes[i], 1), 0);
		assert_int_equal(check_pattern(to, sizeof(to), 2), 0);
		for (unsigned int n = 0; n < 50; n++) {
			assert_int_equal(expect_head(pair->server), 9);
			assert_int_equal(gp_conn_recv_bulk(pair->server, to, 9), 0);
			assert_int_equal(check_pattern(to, 9, n), 0);
		}
		assert_int_equal(job_join(&sender), 0);
	}
}

static int
recv_bulks(struct job *job)
{
	uint8_t *to = malloc(job->size);
	int r = to ? 0 : -ENOMEM;

	for (int i = 0; i < job->count && r == 0; i++) {
		struct gp_message message;

		r = gp_conn_recv(job->conn, &message);
		if (r == 0 && message.bulk_size != job->size)
			r = -EPROTO;
		if (r == 0)
			r = gp_conn_recv_bulk(job->conn, to, job->size);
		if (r == 0)
			r = check_pattern(to, job->size, (unsigned int)i);
	}
	free(to);
	return r;
}

CONTRACT_TEST(bulk_flows_both_ways_at_once)
{
	struct pair *pair = *state;
	struct gp_conn *ends[] = { pair->client, pair->server };
	struct job senders[2], receivers[2];

	for (int i = 0; i < 2; i++) {
		senders[i] = (struct job){ .run = send_bulks,
					   .conn = ends[i],
					   .count = (int)fixture_scale(20) };
		senders[i].size = 1500001;
		receivers[i] = senders[i];
		receivers[i].run = recv_bulks;
		job_start(&senders[i]);
	}
	sleep_ms(50);
	for (int i = 0; i < 2; i++)
		job_start(&receivers[i]);

	for (int i = 0; i < 2; i++) {
		assert_int_equal(job_join(&senders[i]), 0);
		assert_int_equal(job_join(&receivers[i]), 0);
	}
}

/* One message with `size` bytes of bulk from registered memory, and a part from outside of it. */
static int
send_kept(struct job *job)
{
	uint8_t *bytes = malloc(job->size);
	struct iovec bulk = { bytes, job->size };
	int r;

	if (!bytes)
		return -ENOMEM;
	fill_pattern(bytes, job->size, job->seed);
	gp_memory_register(bytes, job->size - job->seed % 3 * 100000);
	r = gp_conn_send(job->conn, NULL, 0, &bulk, 1);
	gp_memory_unregister(bytes);
	/* A later read of the memory gets other bytes. */
	memset(bytes, 0x77, job->size);
	free(bytes);
	return r;
}

CONTRACT_TEST(kept_memory_can_be_sent_from_and_received_to)
{
	static const size_t sizes[] = { 200001, 1 << 20, 5000003 };
	struct pair *pair = *state;

	for (unsigned int i = 0; i < 6; i++) {
		struct gp_conn *to = i % 2 ? pair->client : pair->server;
		struct job sender = { .run = send_kept, .seed = i };
		size_t size = sizes[i / 2], first = 70000 + i;
		uint8_t *bytes = malloc(size + 1);
		struct gp_message message;

		sender.conn = i % 2 ? pair->server : pair->client;
		sender.size = size;
		gp_memory_register(bytes, size);
		bytes[size] = 0x5a;
		job_start(&sender);
		assert_int_equal(gp_conn_recv(to, &message), 0);
		assert_int_equal(message.bulk_size, size);
		assert_int_equal(gp_conn_recv_bulk(to, bytes, first), 0);
		assert_int_equal(gp_conn_recv_bulk(to, bytes + first, size - first), 0);
		assert_int_equal(job_join(&sender), 0);
		gp_memory_unregister(bytes);
		assert_int_equal(check_pattern(bytes, size, i), 0);
		assert_int_equal(bytes[size], 0x5a);
		free(bytes);
	}
}

CONTRACT_TEST(memory_is_not_touched_when_its_receive_has_failed)
{
	struct pair *pair = *state;
	struct gp_conn *ends[] = { pair->client, pair->server };

	for (int i = 0; i < 2; i++) {
		struct gp_conn *from, *to;
		struct job sender = { .run = send_bulks, .count = 1, .size = 3000001 };
		uint8_t *bytes = malloc(sender.size);
		struct gp_message message;

		fixture_connect(pair, &ends[0], &ends[1]);
		from = ends[i];
		to = ends[!i];
		sender.conn = from;
		gp_memory_register(bytes, sender.size);
		job_start(&sender);
		assert_int_equal(gp_conn_recv(to, &message), 0);
		assert_int_equal(gp_conn_recv_bulk(to, bytes, 100000), 0);
		gp_conn_shutdown(from);
		while (gp_conn_recv_bulk(to, bytes, 100000) == 0)
			;
		memset(bytes, 0x5a, sender.size);
		(void)job_join(&sender);
		assert_int_equal(bytes[0], 0x5a);
		assert_memory_equal(bytes, bytes + 1, sender.size - 1);
		gp_memory_unregister(bytes);
		free(bytes);
		gp_conn_destroy(from);
		gp_conn_destroy(to);
	}
}

int
main(int argc, char **argv)
{
	fixture_init(argc, argv);
	return unit_tests_run(NULL, NULL);
}
