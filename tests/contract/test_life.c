/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/contract/fixture.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void
close_client(struct pair *pair)
{
	gp_conn_destroy(pair->client);
	pair->client = NULL;
}

static void
closing_between_messages_is_the_end_behind_the_last_one(void **state)
{
	struct pair *pair = *state;
	struct gp_message message;

	send_bytes(pair->client, "last", 4, NULL, 0);
	close_client(pair);

	expect_message(pair->server, "last", 4);
	assert_int_equal(gp_conn_recv(pair->server, &message), GP_E_EOF);
	assert_int_equal(gp_conn_recv(pair->server, &message), GP_E_EOF);
	assert_string_equal(gp_conn_error(pair->server), "");
}

static int
send_until_it_fails(struct job *job)
{
	static uint8_t bytes[100000];
	struct iovec part = { bytes, sizeof(bytes) };

	for (;;) {
		int r = gp_conn_send(job->conn, &part, 1, &part, 1);

		if (r)
			return r;
		job->count++;
	}
}

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

static void
sending_to_a_peer_that_is_gone_fails(void **state)
{
	struct pair *pair = *state;
	struct job sender = { .run = send_until_it_fails, .conn = pair->server };
	int r;

	close_client(pair);
	job_start(&sender);
	r = job_join(&sender);

	assert_true(r == -EPIPE || r == -ECONNRESET);
	assert_string_not_equal(gp_conn_error(pair->server), "");
	assert_int_equal(gp_conn_send(pair->server, NULL, 0, NULL, 0), r);
}

static void
a_blocked_sender_wakes_when_the_peer_vanishes(void **state)
{
	struct pair *pair = *state;
	struct job sender = { .run = send_until_it_fails, .conn = pair->server };
	int r;

	job_start(&sender);
	sleep_ms(60);
	close_client(pair);
	r = job_join(&sender);

	assert_true(r == -EPIPE || r == -ECONNRESET);
}

static int
recv_one(struct job *job)
{
	struct gp_message message;

	return gp_conn_recv(job->conn, &message);
}

static void
a_blocked_receiver_wakes_when_the_peer_closes(void **state)
{
	struct pair *pair = *state;
	struct job receiver = { .run = recv_one, .conn = pair->server };

	job_start(&receiver);
	sleep_ms(30);
	close_client(pair);

	assert_int_equal(job_join(&receiver), GP_E_EOF);
}

static void
shutdown_wakes_a_blocked_receiver(void **state)
{
	struct pair *pair = *state;
	struct job receiver = { .run = recv_one, .conn = pair->server };

	job_start(&receiver);
	sleep_ms(30);
	gp_conn_shutdown(pair->server);

	assert_int_equal(job_join(&receiver), -ESHUTDOWN);
}

static void
shutdown_wakes_a_spinning_receiver(void **state)
{
	struct pair *pair = *state;
	struct job receiver = { .run = recv_one, .conn = pair->server };

	gp_conn_set_spin(pair->server, 100000000);
	job_start(&receiver);
	sleep_ms(30);
	gp_conn_shutdown(pair->server);

	assert_int_equal(job_join(&receiver), -ESHUTDOWN);
}

static int
wait_forever(struct job *job)
{
	return gp_conn_wait(job->conn, -1);
}

static void
shutdown_wakes_a_waiter(void **state)
{
	struct pair *pair = *state;
	struct job waiter = { .run = wait_forever, .conn = pair->server };
	int r;

	job_start(&waiter);
	sleep_ms(30);
	gp_conn_shutdown(pair->server);
	r = job_join(&waiter);

	assert_true(r == 1 || r == -ESHUTDOWN);
	assert_int_equal(gp_conn_wait(pair->server, -1), -ESHUTDOWN);
}

static void
shutdown_wakes_a_blocked_sender(void **state)
{
	struct pair *pair = *state;
	struct job sender = { .run = send_until_it_fails, .conn = pair->server };

	job_start(&sender);
	sleep_ms(60);
	gp_conn_shutdown(pair->server);

	assert_int_equal(job_join(&sender), -ESHUTDOWN);
}

static void
after_a_shutdown_every_call_says_so(void **state)
{
	struct pair *pair = *state;
	struct gp_message message;

	gp_conn_shutdown(pair->server);
	gp_conn_shutdown(pair->server);

	assert_int_equal(gp_conn_recv(pair->server, &message), -ESHUTDOWN);
	assert_int_equal(gp_conn_send(pair->server, NULL, 0, NULL, 0), -ESHUTDOWN);
	assert_int_equal(gp_conn_recv(pair->client, &message), GP_E_EOF);
	assert_string_not_equal(gp_conn_error(pair->server), "");
}

static void
what_was_sent_before_a_shutdown_arrives(void **state)
{
	struct pair *pair = *state;
	struct gp_message message;
	char bulk[5];

	send_bytes(pair->server, "goodbye", 7, NULL, 0);
	send_bytes(pair->server, "bulk", 4, "12345", 5);
	gp_conn_shutdown(pair->server);
	gp_conn_destroy(pair->server);
	pair->server = NULL;

	expect_message(pair->client, "goodbye", 7);
	assert_int_equal(gp_conn_recv(pair->client, &message), 0);
	assert_int_equal(gp_conn_recv_bulk(pair->client, bulk, 5), 0);
	assert_memory_equal(bulk, "12345", 5);
	assert_int_equal(gp_conn_recv(pair->client, &message), GP_E_EOF);
}

static int
send_one_large(struct job *job)
{
	uint8_t *bytes = calloc(1, job->size);
	struct iovec bulk = { bytes, job->size };
	int r = gp_conn_send(job->conn, NULL, 0, &bulk, 1);

	free(bytes);
	return r;
}

static void
closing_inside_a_message_is_an_error(void **state)
{
	struct pair *pair = *state;
	struct job sender = { .run = send_one_large, .conn = pair->client };
	struct gp_message message;
	int r;

	sender.size = fixture_scale((size_t)64 << 20);
	job_start(&sender);
	assert_int_equal(gp_conn_recv(pair->server, &message), 0);
	gp_conn_shutdown(pair->client);
	assert_int_equal(job_join(&sender), -ESHUTDOWN);
	r = gp_conn_recv_bulk(pair->server, NULL, message.bulk_size);

	assert_int_equal(r, -ECONNRESET);
	assert_string_not_equal(gp_conn_error(pair->server), "");
	assert_int_equal(gp_conn_recv(pair->server, &message), -ECONNRESET);
}

static int64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void
a_peer_that_stops_inside_a_message_is_given_up(void **state)
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
		gp_conn_set_stall(server, 100);
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
		assert_string_equal(gp_conn_error(server),
				    "the peer stopped in the middle of a message");
		assert_int_equal(gp_conn_recv(server, &message), -ETIMEDOUT);
		gp_conn_destroy(client);
		gp_conn_destroy(server);
	}
}

/* The beginning of a message, a byte each time, or until nobody takes it. */
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

static void
a_deadline_is_for_the_whole_message(void **state)
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

static void
a_deadline_can_be_lifted(void **state)
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

static void
before_a_deadline_a_peer_that_stops_is_given_up(void **state)
{
	struct pair *pair = *state;
	struct gp_message message;
	int64_t begin = now_ms();

	gp_conn_set_stall(pair->server, 100);
	gp_conn_set_deadline(pair->server, 5000);
	assert_int_equal(gp_conn_send_preamble(pair->client, "\x10\0\0\0", 4), 0);
	assert_int_equal(gp_conn_recv(pair->server, &message), -ETIMEDOUT);
	assert_true(now_ms() - begin >= 99);
	assert_true(now_ms() - begin < 4000);
	assert_string_equal(gp_conn_error(pair->server),
			    "the peer stopped in the middle of a message");
}

static void
between_messages_a_peer_may_take_its_time(void **state)
{
	struct pair *pair = *state;
	struct job sender = { .run = send_after_a_while, .conn = pair->client };

	gp_conn_set_stall(pair->server, 50);
	send_bytes(pair->client, "first", 5, NULL, 0);
	expect_message(pair->server, "first", 5);
	job_start(&sender);
	expect_message(pair->server, "late", 4);
	assert_int_equal(job_join(&sender), 0);
}

static void
a_sender_waits_for_a_slow_reader_as_long_as_it_takes(void **state)
{
	struct pair *pair = *state;
	struct job sender = { .run = send_one_large, .conn = pair->client };
	struct gp_message message;

	sender.size = fixture_scale((size_t)64 << 20);
	gp_conn_set_stall(pair->client, 50);
	gp_conn_set_stall(pair->server, 2000);
	job_start(&sender);
	sleep_ms(300);
	assert_int_equal(gp_conn_recv(pair->server, &message), 0);
	sleep_ms(300);
	assert_int_equal(gp_conn_recv_bulk(pair->server, NULL, message.bulk_size), 0);
	assert_int_equal(job_join(&sender), 0);
}

/* Whichever end sends, in long messages, which may go another way than short ones. */
static void
a_peer_that_takes_nothing_is_given_up(void **state)
{
	static int (*const kinds[])(struct job *) = { send_until_it_fails, send_short_ones };
	struct pair *pair = *state;

	for (int i = 0; i < 4; i++) {
		struct gp_conn *ends[2];
		struct gp_message message;
		struct job sender = { .run = kinds[i / 2] };
		int64_t begin = now_ms();

		fixture_connect(pair, &ends[0], &ends[1]);
		gp_conn_set_unread(ends[i % 2], 600);
		sender.conn = ends[i % 2];
		job_start(&sender);

		assert_int_equal(job_join(&sender), -ETIMEDOUT);
		assert_true(now_ms() - begin >= 290);
		assert_string_equal(gp_conn_error(ends[i % 2]),
				    "the peer is gone, or does not take what it is sent");
		assert_int_equal(gp_conn_send(ends[i % 2], NULL, 0, NULL, 0), -ETIMEDOUT);
		gp_conn_destroy(ends[i % 2]);
		/* What it gets is what was sent, or the news of the end. */
		while (gp_conn_recv(ends[1 - i % 2], &message) == 0)
			;
		gp_conn_destroy(ends[1 - i % 2]);
	}
}

/* No thread sends any more, and a receiver learns of it. */
static void
what_was_sent_must_be_taken_in_time(void **state)
{
	struct pair *pair = *state;
	struct gp_message message;
	uint8_t bytes[1000] = { 0 };
	int64_t begin = now_ms();

	/* Elsewhere the system keeps what was sent. */
	if (!(gp_conn_caps(pair->server) & GP_CONN_CAP_REMOTE_MEM))
		return;
	gp_conn_set_unread(pair->server, 300);
	for (int i = 0; i < 200; i++)
		send_bytes(pair->server, bytes, sizeof(bytes), NULL, 0);

	assert_int_equal(gp_conn_recv(pair->server, &message), -ETIMEDOUT);
	assert_true(now_ms() - begin >= 290);
	assert_string_equal(gp_conn_error(pair->server),
			    "the peer is gone, or does not take what it is sent");
}

static void
a_peer_that_takes_little_at_a_time_is_not_given_up(void **state)
{
	const size_t size = (size_t)16 << 20, part = (size_t)1 << 20;
	struct pair *pair = *state;

	for (int i = 0; i < 2; i++) {
		struct gp_conn *ends[2];
		struct gp_message message;
		struct job sender = { .run = send_one_large, .size = size };
		int64_t begin = now_ms();

		fixture_connect(pair, &ends[0], &ends[1]);
		gp_conn_set_unread(ends[i], 1000);
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

static void
two_hundred_connections_leave_nothing_behind(void **state)
{
	struct pair *pair = *state;
	int before = count_open_fds();

	for (size_t i = 0; i < fixture_scale(200); i++) {
		struct gp_conn *client, *server;

		fixture_connect(pair, &client, &server);
		send_bytes(client, &i, sizeof(i), NULL, 0);
		if (i % 3)
			expect_message(server, &i, sizeof(i));
		gp_conn_destroy(i % 2 ? client : server);
		gp_conn_destroy(i % 2 ? server : client);
	}

	assert_int_equal(count_open_fds(), before);
}

static void
accept_waits_no_longer_than_told(void **state)
{
	struct pair *pair = *state;
	struct gp_conn *conn;

	assert_int_equal(gp_accept(pair->listener, 0, &conn), GP_E_TIMEOUT);
	assert_int_equal(gp_accept(pair->listener, 20, &conn), GP_E_TIMEOUT);
}

static void
a_second_listener_on_the_same_url_is_refused(void **state)
{
	struct pair *pair = *state;
	char error[400] = "", expected[400], url[GP_URL_TEXT_MAX];
	struct gp_listener *second;

	gp_url_format(gp_listener_url(pair->listener), url, sizeof(url));
	snprintf(expected, sizeof(expected), "cannot listen on %s: Address already in use", url);

	assert_int_equal(gp_listen(gp_listener_url(pair->listener), &second, error, sizeof(error)),
			 -EADDRINUSE);
	assert_string_equal(error, expected);
}

static void
connecting_to_nobody_says_so(void **state)
{
	struct pair *pair = *state;
	struct gp_url url = *gp_listener_url(pair->listener);
	char error[400] = "", expected[400], text[GP_URL_TEXT_MAX];
	struct gp_conn *conn;

	gp_listener_destroy(pair->listener);
	pair->listener = NULL;
	gp_url_format(&url, text, sizeof(text));
	snprintf(expected, sizeof(expected), "cannot connect to %s: %s", text,
		 strcmp(url.scheme, "unix") == 0 ? "No such file or directory"
						 : "Connection refused");

	assert_int_equal(gp_connect(&url, NULL, 0, 1000, &conn, error, sizeof(error)),
			 -ECONNREFUSED);
	assert_string_equal(error, expected);
}

static int
connect_with_preamble(struct job *job)
{
	char error[400];

	return gp_connect(gp_listener_url((struct gp_listener *)job->conn), "who I am", 8, 5000,
			  &job->conn, error, sizeof(error));
}

static void
the_preamble_comes_before_the_messages_and_can_be_answered(void **state)
{
	struct pair *pair = *state;
	struct job connecting = { .run = connect_with_preamble };
	struct gp_conn *server;
	char bytes[8];

	connecting.conn = (struct gp_conn *)pair->listener;
	job_start(&connecting);
	assert_int_equal(gp_accept(pair->listener, 5000, &server), 0);
	assert_int_equal(job_join(&connecting), 0);
	/* TLS begins when both preambles are exchanged; else a message may come right behind. */
	if (!fixture_is_tls())
		send_bytes(connecting.conn, "first", 5, NULL, 0);

	assert_int_equal(gp_conn_recv_preamble(server, bytes, 8, 5000), 0);
	assert_memory_equal(bytes, "who I am", 8);
	assert_int_equal(gp_conn_send_preamble(server, "answer", 6), 0);
	if (!fixture_is_tls())
		send_bytes(server, "second", 6, NULL, 0);
	assert_int_equal(gp_conn_recv_preamble(connecting.conn, bytes, 6, 5000), 0);
	assert_memory_equal(bytes, "answer", 6);
	if (fixture_is_tls()) {
		fixture_secure(connecting.conn, server);
		send_bytes(connecting.conn, "first", 5, NULL, 0);
		send_bytes(server, "second", 6, NULL, 0);
	}
	expect_message(server, "first", 5);
	expect_message(connecting.conn, "second", 6);
	gp_conn_destroy(connecting.conn);
	gp_conn_destroy(server);
}

static void
a_missing_preamble_is_a_timeout_and_a_closed_one_the_end(void **state)
{
	struct pair *pair = *state;
	char bytes[8];

	assert_int_equal(gp_conn_recv_preamble(pair->server, bytes, 8, 0), GP_E_TIMEOUT);
	assert_int_equal(gp_conn_recv_preamble(pair->server, bytes, 8, 20), GP_E_TIMEOUT);
	close_client(pair);
	assert_int_equal(gp_conn_recv_preamble(pair->server, bytes, 8, 5000), GP_E_EOF);
}

static int
poll_for_reading(struct gp_conn *conn, int timeout_ms)
{
	struct pollfd poll_fd = { .fd = gp_conn_fd(conn), .events = POLLIN };

	return poll(&poll_fd, 1, timeout_ms);
}

static void
the_descriptor_becomes_readable_with_a_message(void **state)
{
	struct pair *pair = *state;

	if (!(gp_conn_caps(pair->server) & GP_CONN_CAP_FD)) {
		assert_int_equal(gp_conn_fd(pair->server), -1);
		return;
	}
	assert_int_equal(poll_for_reading(pair->server, 0), 0);
	send_bytes(pair->client, "x", 1, NULL, 0);
	assert_int_equal(poll_for_reading(pair->server, 5000), 1);
	expect_message(pair->server, "x", 1);
	assert_int_equal(poll_for_reading(pair->server, 0), 0);
	close_client(pair);
	assert_int_equal(poll_for_reading(pair->server, 5000), 1);
}

/* Through a socket, as the supervisor hands a connection to a worker. */
static int
pass_descriptor(int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	int ends[2], passed;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	message.msg_control = &control;
	message.msg_controllen = sizeof(control);
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	assert_int_equal(sendmsg(ends[0], &message, 0), 1);
	close(fd);
	assert_int_equal(recvmsg(ends[1], &message, MSG_CMSG_CLOEXEC), 1);
	memcpy(&passed, CMSG_DATA(&control.header), sizeof(passed));
	close(ends[0]);
	close(ends[1]);
	return passed;
}

static void
a_connection_can_move_behind_its_preamble(void **state)
{
	struct pair *pair = *state;
	char bytes[6];
	int fd;

	if (!(gp_conn_caps(pair->server) & GP_CONN_CAP_ADOPT)) {
		assert_int_equal(gp_conn_release_fd(pair->server, &fd), GP_E_UNSUPPORTED);
		/* A connection of tls could move before it was secured. */
		if (!fixture_is_tls())
			assert_int_equal(gp_conn_adopt(fixture_url.scheme, 0, &pair->server),
					 GP_E_UNSUPPORTED);
		return;
	}
	assert_int_equal(gp_conn_send_preamble(pair->client, "ticket", 6), 0);
	send_bytes(pair->client, "call", 4, "bulk", 4);
	assert_int_equal(gp_conn_recv_preamble(pair->server, bytes, 6, 5000), 0);
	assert_int_equal(gp_conn_release_fd(pair->server, &fd), 0);
	pair->server = NULL;
	assert_int_equal(gp_conn_adopt(fixture_url.scheme, pass_descriptor(fd), &pair->server), 0);

	struct gp_message message;

	assert_int_equal(gp_conn_recv(pair->server, &message), 0);
	assert_memory_equal(message.data, "call", 4);
	assert_int_equal(gp_conn_recv_bulk(pair->server, bytes, 4), 0);
	assert_memory_equal(bytes, "bulk", 4);
	send_bytes(pair->server, "reply", 5, NULL, 0);
	expect_message(pair->client, "reply", 5);
	assert_string_not_equal(gp_conn_peer(pair->server), "");
}

static void
a_connection_with_bytes_read_ahead_cannot_move(void **state)
{
	struct pair *pair = *state;
	bool movable = gp_conn_caps(pair->server) & GP_CONN_CAP_ADOPT;
	int fd;

	send_bytes(pair->client, "one", 3, NULL, 0);
	send_bytes(pair->client, "two", 3, NULL, 0);
	sleep_ms(50);
	expect_message(pair->server, "one", 3);

	assert_int_equal(gp_conn_release_fd(pair->server, &fd),
			 movable ? GP_E_INVALID : GP_E_UNSUPPORTED);
	expect_message(pair->server, "two", 3);
}

static void
the_peer_on_this_machine_has_a_user(void **state)
{
	struct pair *pair = *state;
	uid_t client = (uid_t)-2, server = (uid_t)-2;

	if (!(gp_conn_caps(pair->server) & GP_CONN_CAP_LOCAL)) {
		assert_int_equal(gp_conn_peer_uid(pair->server, &client), GP_E_UNSUPPORTED);
		return;
	}
	assert_int_equal(gp_conn_peer_uid(pair->server, &client), 0);
	assert_int_equal(gp_conn_peer_uid(pair->client, &server), 0);
	assert_int_equal(client, getuid());
	assert_int_equal(server, getuid());
}

static void
the_last_word_arrives_although_the_speaker_did_not_listen(void **state)
{
	struct pair *pair = *state;

	for (int i = 0; i < 100; i++)
		send_bytes(pair->client, &i, sizeof(i), NULL, 0);
	send_bytes(pair->server, "refused", 7, NULL, 0);
	gp_conn_destroy(pair->server);
	pair->server = NULL;

	expect_message(pair->client, "refused", 7);

	struct gp_message message;

	assert_int_equal(gp_conn_recv(pair->client, &message), GP_E_EOF);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CONTRACT_TEST(closing_between_messages_is_the_end_behind_the_last_one),
		CONTRACT_TEST(sending_to_a_peer_that_is_gone_fails),
		CONTRACT_TEST(a_blocked_sender_wakes_when_the_peer_vanishes),
		CONTRACT_TEST(a_blocked_receiver_wakes_when_the_peer_closes),
		CONTRACT_TEST(shutdown_wakes_a_blocked_receiver),
		CONTRACT_TEST(shutdown_wakes_a_spinning_receiver),
		CONTRACT_TEST(shutdown_wakes_a_waiter),
		CONTRACT_TEST(shutdown_wakes_a_blocked_sender),
		CONTRACT_TEST(after_a_shutdown_every_call_says_so),
		CONTRACT_TEST(what_was_sent_before_a_shutdown_arrives),
		CONTRACT_TEST(closing_inside_a_message_is_an_error),
		CONTRACT_TEST(a_peer_that_stops_inside_a_message_is_given_up),
		CONTRACT_TEST(a_deadline_is_for_the_whole_message),
		CONTRACT_TEST(a_deadline_can_be_lifted),
		CONTRACT_TEST(before_a_deadline_a_peer_that_stops_is_given_up),
		CONTRACT_TEST(between_messages_a_peer_may_take_its_time),
		CONTRACT_TEST(a_sender_waits_for_a_slow_reader_as_long_as_it_takes),
		CONTRACT_TEST(a_peer_that_takes_nothing_is_given_up),
		CONTRACT_TEST(what_was_sent_must_be_taken_in_time),
		CONTRACT_TEST(a_peer_that_takes_little_at_a_time_is_not_given_up),
		CONTRACT_TEST(two_hundred_connections_leave_nothing_behind),
		CONTRACT_TEST(accept_waits_no_longer_than_told),
		CONTRACT_TEST(a_second_listener_on_the_same_url_is_refused),
		CONTRACT_TEST(connecting_to_nobody_says_so),
		CONTRACT_TEST(the_preamble_comes_before_the_messages_and_can_be_answered),
		CONTRACT_TEST(a_missing_preamble_is_a_timeout_and_a_closed_one_the_end),
		CONTRACT_TEST(the_descriptor_becomes_readable_with_a_message),
		CONTRACT_TEST(a_connection_can_move_behind_its_preamble),
		CONTRACT_TEST(a_connection_with_bytes_read_ahead_cannot_move),
		CONTRACT_TEST(the_peer_on_this_machine_has_a_user),
		CONTRACT_TEST(the_last_word_arrives_although_the_speaker_did_not_listen),
	};

	fixture_init(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
