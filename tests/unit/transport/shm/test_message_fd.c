/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"
#include "transport/shm/message_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static unsigned int
count_open(void)
{
	unsigned int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void
make_pair(int sockets[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
}

static void
close_pair(const int sockets[2])
{
	(void)close(sockets[0]);
	(void)close(sockets[1]);
}

/* Sends one byte with this number of descriptors, all of them duplicates of the socket. */
static void
send_descriptors(int socket_fd, size_t count)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(8 * sizeof(int))];
	} control = { 0 };
	char byte = 'x';
	struct iovec iov = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)),
	};
	int fds[8];

	assert_in_range(count, 1, 8);
	for (size_t i = 0; i < count; i++)
		fds[i] = socket_fd;
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
	assert_int_equal(sendmsg(socket_fd, &message, 0), 1);
}

UNIT_TEST(descriptor_arrives_with_its_bytes)
{
	int sockets[2], fd;
	char bytes[4];

	make_pair(sockets);
	assert_int_equal(gp_send_with_fd(sockets[0], "ab", 2, sockets[0]), 2);
	assert_int_equal(gp_recv_with_fd(sockets[1], bytes, sizeof(bytes), &fd), 2);
	assert_memory_equal(bytes, "ab", 2);
	assert_true(fd > 2);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	(void)close(fd);
	close_pair(sockets);
}

/* A peer could otherwise exhaust the descriptors of this process. */
UNIT_TEST(further_descriptors_are_closed)
{
	int sockets[2], fd;
	char byte;

	make_pair(sockets);
	for (size_t count = 1; count <= 8; count++) {
		unsigned int before = count_open();

		send_descriptors(sockets[0], count);
		assert_int_equal(gp_recv_with_fd(sockets[1], &byte, 1, &fd), 1);
		assert_true(fd > 2);
		assert_int_equal(count_open(), before + 1);
		(void)close(fd);
		assert_int_equal(count_open(), before);
	}
	close_pair(sockets);
}

UNIT_TEST(errors_leave_no_descriptor)
{
	int sockets[2], fd = 7;
	char byte;

	make_pair(sockets);
	assert_int_equal(gp_recv_with_fd(sockets[1], &byte, 1, &fd), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(fd, -1);
	(void)close(sockets[1]);
	/* Without SIGPIPE. */
	assert_int_equal(gp_send_with_fd(sockets[0], "a", 1, sockets[0]), -1);
	assert_int_equal(errno, EPIPE);
	(void)close(sockets[0]);
}

UNIT_TEST_MAIN(NULL, NULL)
