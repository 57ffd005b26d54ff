/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of tcp that the contract suite cannot test with every transport. */
#include "tests/connection_pair.h"
#include "tests/test.h"
#include "transport/socket/socket_owner.h"
#include "transport/transport.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct gp_listener *
listen_on(const char *text)
{
	struct gp_listener *listener = NULL;
	char error[400] = "";
	struct gp_url url;

	if (gp_url_parse(text, &url, error, sizeof(error)) ||
	    gp_listen(&url, &listener, error, sizeof(error)))
		fail_msg("%s", error);
	return listener;
}

static int
try_connect(const char *host, const struct gp_listener *listener, struct gp_conn **conn_p)
{
	struct gp_url url = *gp_listener_url(listener);
	char error[400];

	snprintf(url.host, sizeof(url.host), "%s", host);
	return gp_connect(&url, NULL, 0, 5000, conn_p, error, sizeof(error));
}

UNIT_TEST(port_zero_becomes_a_real_one)
{
	struct gp_listener *a = listen_on("127.0.0.1:0"), *b = listen_on("127.0.0.1:0");

	assert_int_not_equal(gp_listener_url(a)->port, 0);
	assert_int_not_equal(gp_listener_url(a)->port, gp_listener_url(b)->port);
	assert_string_equal(gp_listener_url(a)->host, "127.0.0.1");
	gp_listener_destroy(a);
	gp_listener_destroy(b);
}

UNIT_TEST(a_further_connection_goes_where_the_first_one_did)
{
	struct gp_listener *listener = listen_on("127.0.0.1:0");
	struct gp_conn *first, *server, *further, *accepted, *one, *other;
	char text[4] = "";
	int fd;

	assert_int_equal(try_connect("127.0.0.1", listener, &first), 0);
	assert_int_equal(gp_accept(listener, 5000, &server), 0);
	assert_int_equal(gp_connect_start(first, &fd), 0);
	assert_int_equal(gp_connect_finish(first, fd, 5000, &further), 0);
	assert_int_equal(gp_accept(listener, 5000, &accepted), 0);
	assert_int_equal(gp_conn_send_preamble(further, "abc", 4), 0);
	assert_int_equal(gp_conn_recv_preamble(accepted, text, 4, 5000), 0);
	assert_string_equal(text, "abc");
	assert_string_equal(gp_conn_peer(further), gp_conn_peer(first));
	gp_listener_destroy(listener);
	/* Nobody listens any more. */
	if (gp_connect_start(first, &fd) == 0)
		assert_int_equal(gp_connect_finish(first, fd, 5000, &one), -ECONNREFUSED);
	gp_conn_destroy(first);
	gp_conn_destroy(server);
	gp_conn_destroy(further);
	gp_conn_destroy(accepted);

	assert_int_equal(connection_pair_create(&one, &other), 0);
	assert_int_equal(gp_connect_start(one, &fd), GP_E_UNSUPPORTED);
	gp_conn_destroy(one);
	gp_conn_destroy(other);
}

UNIT_TEST(a_star_listens_for_both_families)
{
	static const char *const hosts[] = { "127.0.0.1", "::1", "localhost" };
	struct gp_listener *listener = listen_on("*:0");

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		struct gp_conn *client, *server;
		uid_t uid = (uid_t)-2;

		/* A machine without IPv6 has no ::1 to connect to. */
		if (try_connect(hosts[i], listener, &client)) {
			assert_string_equal(hosts[i], "::1");
			continue;
		}
		assert_int_equal(gp_accept(listener, 5000, &server), 0);
		assert_true(gp_conn_caps(server) & GP_CONN_CAP_LOCAL);
		assert_int_equal(gp_conn_peer_uid(server, &uid), 0);
		assert_int_equal(uid, getuid());
		uid = (uid_t)-2;
		assert_int_equal(gp_peer_query_owner(gp_conn_fd(server), &uid), 0);
		assert_int_equal(uid, getuid());
		gp_conn_destroy(client);
		gp_conn_destroy(server);
	}
	gp_listener_destroy(listener);
}

UNIT_TEST(another_user_is_recognised)
{
	struct gp_listener *listener = listen_on("127.0.0.1:0");
	struct gp_conn *conn;
	int status, go[2];
	uid_t uid = 0;
	pid_t child;

	/* Only root can change its user. */
	if (getuid() != 0) {
		gp_listener_destroy(listener);
		return;
	}
	assert_int_equal(pipe(go), 0);
	child = fork();
	if (child == 0) {
		char byte;

		close(go[1]);
		if (setuid(65534) || try_connect("127.0.0.1", listener, &conn))
			_exit(1);
		_exit(read(go[0], &byte, 1) != 0);
	}
	close(go[0]);
	assert_int_equal(gp_accept(listener, 5000, &conn), 0);
	assert_int_equal(gp_conn_peer_uid(conn, &uid), 0);
	assert_int_equal(uid, 65534);
	uid = 0;
	assert_int_equal(gp_peer_query_owner(gp_conn_fd(conn), &uid), 0);
	assert_int_equal(uid, 65534);
	close(go[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);

	/* The socket of a process that has ended belongs to no user, not to root. */
	assert_int_equal(gp_conn_wait(conn, 5000), 1);
	assert_int_equal(gp_conn_peer_uid(conn, &uid), GP_E_UNSUPPORTED);
	assert_int_equal(gp_peer_query_owner(gp_conn_fd(conn), &uid), GP_E_UNSUPPORTED);
	gp_conn_destroy(conn);
	gp_listener_destroy(listener);
}

UNIT_TEST(an_unknown_host_is_named)
{
	static const char expected[] = "cannot connect to tcp://no-such-host.invalid:4833: ";
	struct gp_conn *conn;
	char error[400] = "";
	struct gp_url url;

	assert_int_equal(gp_url_parse("no-such-host.invalid", &url, error, sizeof(error)), 0);
	assert_true(gp_connect(&url, NULL, 0, 1000, &conn, error, sizeof(error)) < 0);
	assert_memory_equal(error, expected, sizeof(expected) - 1);
	assert_null(strstr(error, "Success"));
}

static int
option(const struct gp_conn *conn, int level, int name)
{
	int value = -1;
	socklen_t size = sizeof(value);

	assert_int_equal(getsockopt(gp_conn_fd(conn), level, name, &value, &size), 0);
	return value;
}

UNIT_TEST(both_ends_send_at_once_and_watch_for_a_dead_peer)
{
	struct gp_listener *listener = listen_on("127.0.0.1:0");
	struct gp_conn *ends[2];

	assert_int_equal(try_connect("127.0.0.1", listener, &ends[0]), 0);
	assert_int_equal(gp_accept(listener, 5000, &ends[1]), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(option(ends[i], IPPROTO_TCP, TCP_NODELAY), 1);
		assert_int_equal(option(ends[i], SOL_SOCKET, SO_KEEPALIVE), 1);
		assert_in_range(option(ends[i], IPPROTO_TCP, TCP_KEEPIDLE), 1, 60);
		gp_conn_destroy(ends[i]);
	}
	gp_listener_destroy(listener);
}

UNIT_TEST(an_idle_connection_is_probed_in_the_second_half_of_the_time)
{
	static const struct {
		unsigned int ms;
		int idle, interval, count, user_ms;
	} cases[] = {
		{ 0, 15, 5, 3, 0 },
		{ 30000, 15, 5, 3, 30000 },
		/* One probe may be lost: there is time for two. */
		{ 1, 1, 1, 2, 3000 },
		{ 2000, 1, 1, 2, 3000 },
		{ 3000, 1, 1, 2, 3000 },
		{ 10000, 5, 1, 3, 10000 },
		{ INT_MAX, 32767, 32767, 3, INT_MAX },
	};
	struct gp_listener *listener = listen_on("127.0.0.1:0");
	struct gp_conn *client, *server;

	assert_int_equal(try_connect("127.0.0.1", listener, &client), 0);
	assert_int_equal(gp_accept(listener, 5000, &server), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		gp_conn_set_timeout(client, cases[i].ms);
		assert_int_equal(option(client, IPPROTO_TCP, TCP_KEEPIDLE), cases[i].idle);
		assert_int_equal(option(client, IPPROTO_TCP, TCP_KEEPINTVL), cases[i].interval);
		assert_int_equal(option(client, IPPROTO_TCP, TCP_KEEPCNT), cases[i].count);
		assert_int_equal(option(client, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
		gp_conn_set_send_timeout(server, cases[i].ms);
		assert_int_equal(option(server, IPPROTO_TCP, TCP_KEEPIDLE), cases[i].idle);
		assert_int_equal(option(server, IPPROTO_TCP, TCP_USER_TIMEOUT), cases[i].user_ms);
	}
	gp_conn_destroy(client);
	gp_conn_destroy(server);
	gp_listener_destroy(listener);
}

/* Its machine acknowledges: that its window stays closed ends nothing. */
UNIT_TEST(a_peer_that_only_acknowledges_is_not_silent)
{
	struct gp_listener *listener = listen_on("127.0.0.1:0");
	const struct iovec part = { calloc(1, 1 << 20), 1 << 20 };
	struct gp_conn *client, *server;

	assert_int_equal(try_connect("127.0.0.1", listener, &client), 0);
	assert_int_equal(gp_accept(listener, 5000, &server), 0);
	gp_conn_set_send_timeout(client, 1000);
	/* Else the system, too, would end it. */
	assert_int_equal(setsockopt(gp_conn_fd(client), IPPROTO_TCP, TCP_USER_TIMEOUT, &(int){ 0 },
				    sizeof(int)),
			 0);
	assert_int_equal(gp_conn_get_unacknowledged_ms(client), 0);
	for (int i = 0; i < 64; i++) {
		if (gp_conn_send(client, &(struct iovec){ 0 }, 0, &part, 1) != 0)
			break;
	}
	assert_string_equal(gp_conn_error(client), "the peer has read nothing for 1 s");
	for (int i = 0; i < 20; i++) {
		assert_int_equal(gp_conn_get_unacknowledged_ms(client), 0);
		assert_false(gp_conn_is_silent(client, 1000));
		(void)usleep(50000);
	}
	free(part.iov_base);
	gp_conn_destroy(client);
	gp_conn_destroy(server);
	gp_listener_destroy(listener);
}

UNIT_TEST(without_descriptors_accept_says_so_and_goes_on_later)
{
	struct gp_listener *listener = listen_on("127.0.0.1:0");
	struct gp_conn *client, *server;
	struct rlimit before, none;

	assert_int_equal(try_connect("127.0.0.1", listener, &client), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(gp_accept(listener, 5000, &server), GP_E_RESOURCE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);

	assert_int_equal(gp_accept(listener, 5000, &server), 0);
	gp_conn_destroy(client);
	gp_conn_destroy(server);
	gp_listener_destroy(listener);
}

/* The system says so once, and here the sender hears it. */
UNIT_TEST(a_receiver_knows_that_the_system_gave_the_peer_up)
{
	struct gp_listener *listener = listen_on("127.0.0.1:0");
	const struct iovec part = { calloc(1, 65536), 65536 };
	struct gp_conn *client, *server;
	struct gp_message message;
	unsigned int soon = 200;
	int r = 0;

	assert_int_equal(try_connect("127.0.0.1", listener, &client), 0);
	assert_int_equal(gp_accept(listener, 5000, &server), 0);
	gp_conn_set_send_timeout(server, 60000);
	assert_int_equal(
		setsockopt(gp_conn_fd(server), IPPROTO_TCP, TCP_USER_TIMEOUT, &soon, sizeof(soon)),
		0);
	while (r == 0)
		r = gp_conn_send(server, &part, 1, NULL, 0);
	assert_int_equal(r, -ETIMEDOUT);
	assert_int_equal(gp_conn_recv(server, &message), -ETIMEDOUT);
	assert_string_equal(gp_conn_error(server), "the peer has read nothing for 60 s");
	free(part.iov_base);
	gp_conn_destroy(client);
	gp_conn_destroy(server);
	gp_listener_destroy(listener);
}

UNIT_TEST(what_a_program_opens_under_its_number_stays_its_own)
{
	static const char words[] = "from one end to the other";
	struct iovec part = { (void *)words, sizeof(words) };
	struct gp_listener *listener = listen_on("127.0.0.1:0");
	struct gp_conn *client, *server;
	struct gp_message message;
	char there[2 * sizeof(words)];
	int fd, pair[2];

	assert_int_equal(try_connect("127.0.0.1", listener, &client), 0);
	assert_int_equal(gp_accept(listener, 5000, &server), 0);
	gp_conn_set_spin(client, 50);
	fd = gp_conn_fd(client);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(send(pair[1], words, sizeof(words), 0), sizeof(words));
	assert_int_equal(dup2(pair[0], fd), fd);

	assert_int_equal(gp_conn_fd(client), -1);
	assert_int_equal(gp_conn_wait(client, -1), -EBADF);
	assert_int_equal(gp_conn_recv(client, &message), -EBADF);
	assert_int_equal(gp_conn_send(client, &part, 1, NULL, 0), -EBADF);
	assert_string_equal(gp_conn_error(client),
			    "the program has closed descriptors of the library");
	gp_conn_shutdown(client);
	gp_conn_destroy(client);

	assert_int_equal(recv(fd, there, sizeof(there), MSG_DONTWAIT), sizeof(words));
	assert_string_equal(there, words);
	assert_int_equal(recv(pair[1], there, sizeof(there), MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(gp_conn_recv(server, &message), GP_E_EOF);
	close(fd);
	close(pair[0]);
	close(pair[1]);
	gp_conn_destroy(server);
	gp_listener_destroy(listener);
}

UNIT_TEST_MAIN(NULL, NULL)
