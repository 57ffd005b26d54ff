/* SPDX-License-Identifier: Apache-2.0 */
/* poll() of a process that limits its descriptors. */
#include "base/fd_poll.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Also of descriptors that the C library's sets have no place for. */
static void
check(bool limited, int first)
{
	struct rlimit before, none;
	struct pollfd pollers[3] = { { .fd = -1, .events = POLLIN } };
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	for (int i = 0; i < 2; i++) {
		pollers[1 + i].fd = fcntl(ends[i], F_DUPFD_CLOEXEC, first);
		if (pollers[1 + i].fd < 0)
			LEAVE("the process may have no descriptor of that number");
		assert_int_equal(close(ends[i]), 0);
	}
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	if (limited)
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	pollers[1].events = POLLIN;
	pollers[2].events = POLLIN;
	assert_int_equal(gp_fd_poll(pollers, 3, 0), 0);
	assert_int_equal(gp_fd_poll(pollers, 3, 10), 0);
	assert_int_equal(pollers[1].revents, 0);
	assert_int_equal(write(pollers[2].fd, "x", 1), 1);
	assert_int_equal(gp_fd_poll(pollers, 3, -1), 1);
	assert_int_equal(pollers[0].revents, 0);
	assert_int_equal(pollers[1].revents, POLLIN);
	assert_int_equal(pollers[2].revents, 0);
	pollers[2].events = POLLIN | POLLOUT;
	assert_int_equal(gp_fd_poll(pollers, 3, -1), 2);
	assert_int_equal(pollers[2].revents, POLLOUT);
	/* An end is an event. */
	assert_int_equal(shutdown(pollers[1].fd, SHUT_WR), 0);
	assert_int_equal(gp_fd_poll(pollers, 3, 0), 2);
	assert_true(pollers[2].revents & POLLIN);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(close(pollers[1].fd), 0);
	assert_int_equal(close(pollers[2].fd), 0);
}

UNIT_TEST(test_unlimited)
{
	check(false, 3);
}

UNIT_TEST(test_limited)
{
	check(true, 3);
}

UNIT_TEST(test_limited_high)
{
	struct rlimit before, more;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	more = (struct rlimit){ before.rlim_max, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &more), 0);
	check(true, 3000);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* A byte to read is not the end. */
static void
check_end(bool limited)
{
	struct rlimit before, none;
	struct pollfd poller = { .events = POLLRDHUP };
	char byte;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	poller.fd = ends[0];
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	if (limited)
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(gp_fd_poll(&poller, 1, 0), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(gp_fd_poll(&poller, 1, 0), 0);
	poller.events = POLLIN | POLLRDHUP;
	assert_int_equal(gp_fd_poll(&poller, 1, -1), 1);
	assert_int_equal(poller.revents, POLLIN);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(shutdown(ends[1], SHUT_WR), 0);
	assert_int_equal(gp_fd_poll(&poller, 1, -1), 1);
	assert_int_equal(poller.revents, POLLIN | POLLRDHUP);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(close(ends[0]), 0);
	assert_int_equal(close(ends[1]), 0);
}

UNIT_TEST(an_end_is_reported_when_no_byte_is_left)
{
	check_end(false);
}

UNIT_TEST(an_end_is_reported_to_a_limited_process_when_no_byte_is_left)
{
	check_end(true);
}

UNIT_TEST(test_closed)
{
	struct rlimit before, none;
	struct pollfd poller = { .fd = 800, .events = POLLIN };

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(gp_fd_poll(&poller, 1, 0), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

UNIT_TEST_MAIN(NULL, NULL)
