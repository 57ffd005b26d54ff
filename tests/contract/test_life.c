/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/contract/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static void
close_client(struct pair *pair)
{
	gp_conn_destroy(pair->client);
	pair->client = NULL;
}

CONTRACT_TEST(closing_between_messages_is_the_end_after_the_last_one)
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

CONTRACT_TEST(sending_to_a_peer_that_is_gone_fails)
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

CONTRACT_TEST(a_blocked_sender_wakes_when_the_peer_vanishes)
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

/* The end is seen past unread bytes, where the socket reports it. */
CONTRACT_TEST(a_closed_peer_is_seen_without_reading)
{
	struct pair *pair = *state;
	bool tells = strcmp(fixture_url.scheme, "rdma");

	assert_false(gp_conn_peer_closed(pair->server));
	send_bytes(pair->client, "unread", 6, NULL, 0);
	assert_int_equal(gp_conn_wait(pair->server, -1), 1);
	assert_false(gp_conn_peer_closed(pair->server));
	close_client(pair);

	while (tells && !gp_conn_peer_closed(pair->server))
		sleep_ms(1);
	assert_int_equal(gp_conn_peer_closed(pair->server), tells);
	expect_message(pair->server, "unread", 6);
}

static int
recv_one(struct job *job)
{
	struct gp_message message;

	return gp_conn_recv(job->conn, &message);
}

CONTRACT_TEST(a_blocked_receiver_wakes_when_the_peer_closes)
{
	struct pair *pair = *state;
	struct job receiver = { .run = recv_one, .conn = pair->server };

	job_start(&receiver);
	sleep_ms(30);
	close_client(pair);

	assert_int_equal(job_join(&receiver), GP_E_EOF);
}

CONTRACT_TEST(shutdown_wakes_a_blocked_receiver)
{
	struct pair *pair = *state;
	struct job receiver = { .run = recv_one, .conn = pair->server };

	job_start(&receiver);
	sleep_ms(30);
	gp_conn_shutdown(pair->server);

	assert_int_equal(job_join(&receiver), -ESHUTDOWN);
}

CONTRACT_TEST(shutdown_wakes_a_spinning_receiver)
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

CONTRACT_TEST(shutdown_wakes_a_waiter)
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

CONTRACT_TEST(shutdown_wakes_a_blocked_sender)
{
	struct pair *pair = *state;
	struct job sender = { .run = send_until_it_fails, .conn = pair->server };

	job_start(&sender);
	sleep_ms(60);
	gp_conn_shutdown(pair->server);

	assert_int_equal(job_join(&sender), -ESHUTDOWN);
}

CONTRACT_TEST(after_a_shutdown_every_call_fails)
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

CONTRACT_TEST(what_was_sent_before_a_shutdown_arrives)
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

CONTRACT_TEST(closing_inside_a_message_is_an_error)
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

CONTRACT_TEST(two_hundred_connections_leak_nothing)
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

CONTRACT_TEST(accept_waits_no_longer_than_its_timeout)
{
	struct pair *pair = *state;
	struct gp_conn *conn;

	assert_int_equal(gp_accept(pair->listener, 0, &conn), GP_E_TIMEOUT);
	assert_int_equal(gp_accept(pair->listener, 20, &conn), GP_E_TIMEOUT);
}

CONTRACT_TEST(a_second_listener_on_the_same_url_is_refused)
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

CONTRACT_TEST(connecting_without_a_listener_fails)
{
	struct pair *pair = *state;
	struct gp_url url = *gp_listener_url(pair->listener);
	char error[400] = "", expected[400], text[GP_URL_TEXT_MAX];
	struct gp_conn *conn;

	gp_listener_destroy(pair->listener);
	pair->listener = NULL;
	gp_url_format(&url, text, sizeof(text));
	snprintf(expected, sizeof(expected), "cannot connect to %s: %s", text,
		 url.host[0] == '/' ? "No such file or directory" : "Connection refused");

	assert_int_equal(gp_connect(&url, NULL, 0, 1000, &conn, error, sizeof(error)),
			 -ECONNREFUSED);
	assert_string_equal(error, expected);
}

static int
connect_with_preamble(struct job *job)
{
	char error[400];

	return gp_connect(gp_listener_url((struct gp_listener *)job->conn), "identity", 8, 5000,
			  &job->conn, error, sizeof(error));
}

CONTRACT_TEST(the_preamble_comes_before_the_messages_and_can_be_answered)
{
	struct pair *pair = *state;
	struct job connecting = { .run = connect_with_preamble };
	struct gp_conn *server;
	char bytes[8];

	connecting.conn = (struct gp_conn *)pair->listener;
	job_start(&connecting);
	assert_int_equal(gp_accept(pair->listener, 5000, &server), 0);
	assert_int_equal(job_join(&connecting), 0);
	/* TLS starts after both preambles are exchanged. Without TLS a message may follow at
	 * once. */
	if (!fixture_is_tls())
		send_bytes(connecting.conn, "first", 5, NULL, 0);

	assert_int_equal(gp_conn_recv_preamble(server, bytes, 8, 5000), 0);
	assert_memory_equal(bytes, "identity", 8);
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

CONTRACT_TEST(a_missing_preamble_is_a_timeout_and_a_closed_one_the_end)
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

/* There is nothing to receive. A device may report at any time that an earlier message has gone,
 * which makes the descriptor readable, too. */
static void
expect_idle(struct gp_conn *conn)
{
	bool is_quiet = false;

	for (int i = 0; i < 1000 && !is_quiet; i++) {
		is_quiet = poll_for_reading(conn, 10) == 0;
		assert_int_equal(gp_conn_wait(conn, 0), 0);
	}
	assert_true(is_quiet);
}

CONTRACT_TEST(the_descriptor_becomes_readable_with_a_message)
{
	struct pair *pair = *state;

	if (!(gp_conn_caps(pair->server) & GP_CONN_CAP_FD)) {
		assert_int_equal(gp_conn_fd(pair->server), -1);
		return;
	}
	expect_idle(pair->server);
	send_bytes(pair->client, "x", 1, NULL, 0);
	assert_int_equal(poll_for_reading(pair->server, 5000), 1);
	expect_message(pair->server, "x", 1);
	expect_idle(pair->server);
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

CONTRACT_TEST(a_connection_can_move_after_its_preamble)
{
	struct pair *pair = *state;
	char bytes[6];
	int fd;

	if (!(gp_conn_caps(pair->server) & GP_CONN_CAP_ADOPT)) {
		assert_int_equal(gp_conn_release_fd(pair->server, &fd), GP_E_UNSUPPORTED);
		/* A connection of tls could move before it was secured; of shm, before it had its
		 * memory. */
		if (!fixture_is_tls() && strcmp(fixture_url.scheme, "shm") != 0)
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

CONTRACT_TEST(a_connection_with_bytes_read_ahead_cannot_move)
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

CONTRACT_TEST(the_peer_on_this_machine_has_a_user)
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

/* A file of one page that contains its number. */
static int
numbered_file(int number)
{
	int fd = memfd_create("contract", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &number, sizeof(number), 0), sizeof(number));
	return fd;
}

static void
expect_file(struct gp_conn *conn, int number)
{
	int fd = gp_conn_recv_fd(conn), read = -1;

	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(pread(fd, &read, sizeof(read), 0), sizeof(read));
	assert_int_equal(read, number);
	assert_int_equal(close(fd), 0);
}

CONTRACT_TEST(descriptors_come_before_the_messages_that_are_sent_later)
{
	struct pair *pair = *state;
	bool passes = gp_conn_caps(pair->server) & GP_CONN_CAP_PASS_FD;
	int files[10];

	assert_int_equal(gp_conn_recv_fd(pair->client), -ENOENT);
	for (int i = 0; i < 10; i++)
		files[i] = numbered_file(i);
	assert_int_equal(gp_conn_pass_fd(pair->client, files[0]), GP_E_UNSUPPORTED);
	if (!passes)
		assert_int_equal(gp_conn_pass_fd(pair->server, files[0]), GP_E_UNSUPPORTED);
	for (int i = 0; passes && i < 3; i++) {
		assert_int_equal(gp_conn_pass_fd(pair->server, files[i]), 0);
		send_bytes(pair->server, &i, sizeof(i), NULL, 0);
	}
	for (int i = 0; passes && i < 3; i++) {
		expect_message(pair->client, &i, sizeof(i));
		/* One is taken later than it could be. */
		if (i != 1)
			expect_file(pair->client, i / 2);
	}
	if (passes)
		expect_file(pair->client, 2);
	assert_int_equal(gp_conn_recv_fd(pair->client), -ENOENT);
	/* Descriptors that are not received are closed, with or without a message. */
	for (int i = 0; passes && i < 10; i++) {
		assert_int_equal(gp_conn_pass_fd(pair->server, files[i]), 0);
		send_bytes(pair->server, &i, sizeof(i), NULL, 0);
		expect_message(pair->client, &i, sizeof(i));
		assert_int_equal(gp_conn_wait(pair->client, 1), 0);
	}
	if (passes)
		expect_file(pair->client, 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(close(files[i]), 0);
}

CONTRACT_TEST(the_last_word_arrives_although_the_speaker_did_not_listen)
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

/* Of memory that both ends share nothing is read as zeros when it is gone. */
CONTRACT_TEST(what_a_discard_leaves_is_whole_or_is_not_there)
{
	struct pair *pair = *state;
	struct job sender = { .run = send_until_it_fails, .conn = pair->client };
	struct gp_message message;
	int r;

	send_bytes(pair->server, "read", 4, NULL, 0);
	expect_message(pair->client, "read", 4);
	send_bytes(pair->server, "unread", 6, NULL, 0);
	gp_conn_shutdown(pair->server);
	gp_conn_discard(pair->server);
	gp_conn_destroy(pair->server);
	pair->server = NULL;
	if (strcmp(fixture_url.scheme, "shm") != 0)
		expect_message(pair->client, "unread", 6);
	assert_int_equal(gp_conn_recv(pair->client, &message), GP_E_EOF);

	job_start(&sender);
	r = job_join(&sender);
	assert_true(r == -EPIPE || r == -ECONNRESET);
}

int
main(int argc, char **argv)
{
	fixture_init(argc, argv);
	return unit_tests_run(NULL, NULL);
}
