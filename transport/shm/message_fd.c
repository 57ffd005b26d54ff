/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/shm/message_fd.h"

#include "transport/descriptor.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

union control_buffer {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

ssize_t
gp_recv_with_fd(int socket_fd, void *bytes, size_t size, int *fd_p)
{
	struct iovec iov = { bytes, size };
	union control_buffer control_buffer = { 0 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control_buffer,
		/* CMSG_SPACE() has room for a second descriptor; Linux closes those that do not
		 * fit. */
		.msg_controllen = CMSG_LEN(sizeof(int)),
	};
	int fd = -1, saved;
	ssize_t got;

	gp_stdio_placeholders_open();
	got = recvmsg(socket_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	saved = errno;
	if (got >= 0 && control_buffer.header.cmsg_type == SCM_RIGHTS &&
	    control_buffer.header.cmsg_level == SOL_SOCKET &&
	    control_buffer.header.cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(&control_buffer.header), sizeof(fd));
	*fd_p = gp_fd_move_above_stdio(fd);
	gp_stdio_placeholders_close();
	errno = saved;
	return got;
}

ssize_t
gp_send_with_fd(int socket_fd, void *bytes, size_t size, int fd)
{
	struct iovec iov = { bytes, size };
	union control_buffer control_buffer = { 0 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control_buffer,
		.msg_controllen = sizeof(control_buffer),
	};

	control_buffer.header.cmsg_level = SOL_SOCKET;
	control_buffer.header.cmsg_type = SCM_RIGHTS;
	control_buffer.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control_buffer.header), &fd, sizeof(fd));
	return sendmsg(socket_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}
