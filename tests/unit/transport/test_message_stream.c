/* SPDX-License-Identifier: Apache-2.0 */
/* Framing against a peer that writes what it likes. */
#include "tests/test.h"
#include "transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct raw {
	struct gp_conn *conn;
	int peer;
};

static int
setup(void **state)
{
	struct raw *raw = calloc(1, sizeof(*raw));
	int ends[2];

	assert_non_null(raw);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(gp_conn_adopt("tcp", ends[0], &raw->conn), 0);
	raw->peer = ends[1];
	*state = raw;
	return 0;
}

static int
teardown(void **state)
{
	struct raw *raw = *state;

	gp_conn_destroy(raw->conn);
	if (raw->peer >= 0)
		close(raw->peer);
	free(raw);
	return 0;
}

static void
put(struct raw *raw, const void *bytes, size_t size)
{
	assert_int_equal(write(raw->peer, bytes, size), (ssize_t)size);
}

static void
put_and_close(struct raw *raw, const void *bytes, size_t size)
{
	put(raw, bytes, size);
	close(raw->peer);
	raw->peer = -1;
}

#define TEST(test) UNIT_TEST_WITH(test, setup, teardown)

TEST(the_wire_form_is_two_sizes_then_data_then_bulk)
{
	struct raw *raw = *state;
	struct iovec data = { (void *)"data!", 5 }, bulk = { (void *)"bulk", 4 };
	char bytes[64];

	assert_int_equal(gp_conn_send(raw->conn, &data, 1, &bulk, 1), 0);

	assert_int_equal(read(raw->peer, bytes, sizeof(bytes)), 17);
	assert_memory_equal(bytes, "\5\0\0\0\4\0\0\0data!bulk", 17);
}

UNIT_TEST(a_close_anywhere_inside_a_message_is_a_reset)
{
	static const char whole[] = "\4\0\0\0\4\0\0\0databulk";

	for (size_t cut = 1; cut < 16; cut++) {
		struct gp_message message;
		char bulk[4];
		void *one;
		int r;

		setup(&one);
		put_and_close(one, whole, cut);
		r = gp_conn_recv(((struct raw *)one)->conn, &message);
		if (cut >= 12) {
			assert_int_equal(r, 0);
			r = gp_conn_recv_bulk(((struct raw *)one)->conn, bulk, 4);
		}
		assert_int_equal(r, -ECONNRESET);
		assert_string_equal(gp_conn_error(((struct raw *)one)->conn),
				    "the peer closed the connection inside a message");
		assert_int_equal(gp_conn_recv(((struct raw *)one)->conn, &message), -ECONNRESET);
		teardown(&one);
	}
}

TEST(a_size_over_the_limit_ends_the_connection)
{
	struct raw *raw = *state;
	struct gp_message message;

	put(raw, "\1\0\4\0\0\0\0\0", 8);

	assert_int_equal(gp_conn_recv(raw->conn, &message), -EPROTO);
	assert_string_equal(gp_conn_error(raw->conn),
			    "the peer sent a message of 262145 bytes, over the limit");
	assert_int_equal(gp_conn_recv(raw->conn, &message), -EPROTO);
	assert_int_equal(gp_conn_wait(raw->conn, -1), -EPROTO);
}

struct trickle {
	int fd;
	const char *bytes;
	size_t size;
	long pause_ns;
};

/* Writes one byte after another. */
static void *
trickle(void *argument)
{
	const struct trickle *trickle = argument;

	for (size_t i = 0; i < trickle->size; i++) {
		if (write(trickle->fd, trickle->bytes + i, 1) != 1)
			abort();
		nanosleep(&(struct timespec){ .tv_nsec = trickle->pause_ns }, NULL);
	}
	return NULL;
}

static void
expect_message(struct gp_conn *conn, const char *text, const char *bulk)
{
	struct gp_message message;
	char got[2];

	assert_int_equal(gp_conn_recv(conn, &message), 0);
	assert_int_equal(message.size, strlen(text));
	assert_memory_equal(message.data, text, message.size);
	if (bulk) {
		assert_int_equal(gp_conn_recv_bulk(conn, got, sizeof(got)), 0);
		assert_memory_equal(got, bulk, sizeof(got));
	}
}

TEST(bytes_that_trickle_in_make_the_same_messages)
{
	struct raw *raw = *state;
	struct trickle slow = { raw->peer, "\3\0\0\0\2\0\0\0abcxy\3\0\0\0\0\0\0\0def", 24, 200000 };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, trickle, &slow), 0);
	expect_message(raw->conn, "abc", "xy");
	expect_message(raw->conn, "def", NULL);
	pthread_join(thread, NULL);
}

TEST(one_read_takes_many_messages)
{
	struct raw *raw = *state;
	struct gp_message message;

	put_and_close(raw, "\1\0\0\0\0\0\0\0a\1\0\0\0\1\0\0\0bX\0\0\0\0\0\0\0\0", 27);

	assert_int_equal(gp_conn_recv(raw->conn, &message), 0);
	assert_true(gp_conn_pending(raw->conn));
	assert_int_equal(gp_conn_recv(raw->conn, &message), 0);
	assert_int_equal(message.bulk_size, 1);
	assert_int_equal(gp_conn_recv(raw->conn, &message), 0);
	assert_int_equal(message.size, 0);
	assert_false(gp_conn_pending(raw->conn));
	assert_int_equal(gp_conn_recv(raw->conn, &message), GP_E_EOF);
}

TEST(a_preamble_is_read_to_the_byte_and_in_pieces)
{
	struct raw *raw = *state;
	char preamble[10], rest[8];
	int fd;

	put(raw, "0123", 4);
	assert_int_equal(gp_conn_recv_preamble(raw->conn, preamble, 10, 0), GP_E_TIMEOUT);
	assert_int_equal(gp_conn_release_fd(raw->conn, &fd), GP_E_INVALID);
	put(raw, "456789rest", 10);
	assert_int_equal(gp_conn_recv_preamble(raw->conn, preamble, 10, 0), 0);
	assert_memory_equal(preamble, "0123456789", 10);

	assert_int_equal(gp_conn_release_fd(raw->conn, &fd), 0);
	raw->conn = NULL;
	assert_int_equal(read(fd, rest, sizeof(rest)), 4);
	assert_memory_equal(rest, "rest", 4);
	close(fd);
}

TEST(a_close_inside_the_preamble_is_the_end)
{
	struct raw *raw = *state;
	char preamble[10];

	put_and_close(raw, "012345678", 9);

	assert_int_equal(gp_conn_recv_preamble(raw->conn, preamble, 10, 1000), GP_E_EOF);
	assert_int_equal(gp_conn_recv_preamble(raw->conn, preamble, 10, 1000), GP_E_EOF);
}

UNIT_TEST(what_is_no_connected_stream_is_not_adopted)
{
	int file = open("/dev/null", O_RDWR | O_CLOEXEC);
	int unconnected = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct gp_conn *conn;

	assert_int_equal(gp_conn_adopt("tcp", file, &conn), GP_E_INVALID);
	assert_int_equal(gp_conn_adopt("tcp", unconnected, &conn), GP_E_INVALID);
	assert_int_equal(gp_conn_adopt("tcp", -1, &conn), GP_E_INVALID);
	assert_int_equal(gp_conn_adopt("ftp", unconnected, &conn), GP_E_INVALID);
	assert_int_equal(close(file), 0);
	assert_int_equal(close(unconnected), 0);
}

static void *
write_later(void *argument)
{
	struct timespec pause = { .tv_nsec = 20000000 };

	nanosleep(&pause, NULL);
	if (write(*(int *)argument, "\1\0\0\0\0\0\0\0a", 9) != 9)
		abort();
	return NULL;
}

TEST(a_descriptor_made_non_blocking_behind_our_back_still_blocks)
{
	struct raw *raw = *state;
	int fd = gp_conn_fd(raw->conn);
	struct gp_message message;
	pthread_t thread;

	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
	assert_int_equal(pthread_create(&thread, NULL, write_later, &raw->peer), 0);

	assert_int_equal(gp_conn_recv(raw->conn, &message), 0);
	assert_memory_equal(message.data, "a", 1);
	pthread_join(thread, NULL);
}

TEST(a_message_that_stops_is_given_up_also_on_a_non_blocking_descriptor)
{
	struct raw *raw = *state;
	int fd = gp_conn_fd(raw->conn);
	struct gp_message message;

	gp_conn_set_stall_timeout(raw->conn, 100);
	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
	put(raw, "\4\0\0\0\0\0\0\0ab", 10);

	assert_int_equal(gp_conn_recv(raw->conn, &message), -ETIMEDOUT);
	assert_string_equal(
		gp_conn_error(raw->conn),
		"the peer stopped in the middle of a message, and sent nothing for 0.100 s");
	assert_int_equal(gp_conn_wait(raw->conn, -1), -ETIMEDOUT);
}

TEST(each_byte_of_a_message_buys_it_time)
{
	struct raw *raw = *state;
	struct trickle slow = { raw->peer, "\2\0\0\0\2\0\0\0abxy", 12, 60000000 };
	pthread_t thread;

	gp_conn_set_stall_timeout(raw->conn, 500);
	assert_int_equal(pthread_create(&thread, NULL, trickle, &slow), 0);
	expect_message(raw->conn, "ab", "xy");
	pthread_join(thread, NULL);
}

TEST(a_stall_of_zero_is_no_limit)
{
	struct raw *raw = *state;
	struct gp_message message;
	pthread_t thread;

	gp_conn_set_stall_timeout(raw->conn, 1);
	gp_conn_set_stall_timeout(raw->conn, 0);
	put(raw, "\0\0\0\0\11\0\0\0", 8);
	assert_int_equal(gp_conn_recv(raw->conn, &message), 0);
	assert_int_equal(pthread_create(&thread, NULL, write_later, &raw->peer), 0);

	assert_int_equal(gp_conn_recv_bulk(raw->conn, NULL, 9), 0);
	pthread_join(thread, NULL);
}

/* What a callback was told. */
struct stalls {
	unsigned int count, last_ms, most;
};

static bool
count_stall(void *arg, unsigned int silent_ms)
{
	struct stalls *stalls = arg;

	stalls->count++;
	stalls->last_ms = silent_ms;
	return stalls->count < stalls->most;
}

TEST(a_stalled_message_is_waited_for_as_long_as_the_receiver_wants)
{
	struct stalls stalls = { .most = UINT_MAX };
	struct raw *raw = *state;
	struct gp_message message;
	pthread_t thread;

	gp_conn_set_stall_timeout(raw->conn, 4);
	gp_conn_set_stall_callback(raw->conn, count_stall, &stalls);
	put(raw, "\0\0\0\0\11\0\0\0", 8);
	assert_int_equal(gp_conn_recv(raw->conn, &message), 0);
	assert_int_equal(pthread_create(&thread, NULL, write_later, &raw->peer), 0);
	assert_int_equal(gp_conn_recv_bulk(raw->conn, NULL, 9), 0);
	pthread_join(thread, NULL);
	assert_true(stalls.count > 0);
	assert_in_range(stalls.last_ms, 4, 4 * stalls.count);

	/* Each wait is counted anew; between messages nothing waits. */
	stalls = (struct stalls){ .most = 3 };
	put(raw, "\4\0\0\0", 4);
	assert_int_equal(gp_conn_recv(raw->conn, &message), -ETIMEDOUT);
	assert_int_equal(stalls.count, 3);
	assert_int_equal(stalls.last_ms, 12);
}

UNIT_TEST_MAIN(NULL, NULL)
