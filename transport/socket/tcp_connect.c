/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting stream sockets, synchronously or in two steps. */
#include "base/clock.h"
#include "transport/descriptor.h"
#include "transport/socket/tcp.h"
#include "transport/timeout.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* Returns a descriptor whose connection is established or in progress, or a negative errno. */
static int
socket_start_connect(const struct sockaddr *address, socklen_t length)
{
	int fd = gp_fd_open_socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK);
	int error;

	if (fd < 0)
		return -errno;
	if (connect(fd, address, length) == 0 || errno == EINPROGRESS || errno == EINTR)
		return fd;
	error = errno;
	close(fd);
	return -error;
}

/* Waits until the connection is established. Returns 0, or a negative errno after closing the
 * descriptor. */
static int
socket_wait_connect(int fd, int timeout_ms)
{
	int error = 0;
	socklen_t length = sizeof(error);
	int r = gp_fd_wait(fd, POLLOUT, timeout_ms);

	if (r == 0)
		error = ETIMEDOUT;
	else if (r < 0)
		error = -r;
	else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
		error = errno;
	if (error)
		close(fd);
	return -error;
}

/* Returns a connected descriptor or a negative errno. */
static int
address_connect(const struct addrinfo *address, int timeout_ms)
{
	int fd = socket_start_connect(address->ai_addr, address->ai_addrlen);
	int r = fd < 0 ? fd : socket_wait_connect(fd, timeout_ms);

	return r ? r : fd;
}

/* Takes ownership of the descriptor. */
static int
client_adopt(const struct gp_transport_ops *ops, int fd, struct gp_conn **conn_p)
{
	int r = ops->adopt(ops, fd, conn_p);

	if (r) {
		close(fd);
		/* The peer closed before anything was sent. */
		return r > 0 ? -ECONNRESET : r;
	}
	((struct gp_tcp_conn *)*conn_p)->client = true;
	return 0;
}

int
gp_tcp_connect(const struct gp_transport_ops *ops, const struct gp_url *url, int timeout_ms,
	       struct gp_conn **conn_p, char *detail, size_t detail_size)
{
	char time[GP_TIMEOUT_TEXT_MAX];
	struct addrinfo *list, *address;
	int64_t deadline;
	int left = 0;
	int r, fd = -EHOSTUNREACH;

	r = gp_tcp_resolve(url, false, &list, detail, detail_size);
	if (r)
		return r;
	deadline = gp_deadline_ms(timeout_ms);
	for (address = list; address; address = address->ai_next)
		left++;
	for (address = list; address && fd < 0; address = address->ai_next) {
		/* An address that does not respond must not use up the time of the next ones. */
		int share = gp_remaining_ms(deadline);

		fd = address_connect(address, share < 0 ? -1 : share / left);
		left--;
	}
	freeaddrinfo(list);
	if (fd == -ETIMEDOUT && timeout_ms >= 0) {
		gp_timeout_format((unsigned int)timeout_ms, time);
		snprintf(detail, detail_size, "no acknowledgment within %s", time);
	}
	return fd < 0 ? fd : client_adopt(ops, fd, conn_p);
}

int
gp_tcp_connect_start(const struct gp_conn *conn, int *fd_p)
{
	struct sockaddr_storage address = { 0 };
	socklen_t length = sizeof(address);

	if (getpeername(gp_tcp_fd(conn), (struct sockaddr *)&address, &length))
		return -errno;
	*fd_p = socket_start_connect((const struct sockaddr *)&address, length);
	return *fd_p < 0 ? *fd_p : 0;
}

int
gp_tcp_connect_finish(const struct gp_conn *conn, int fd, int timeout_ms, struct gp_conn **conn_p)
{
	int r = socket_wait_connect(fd, timeout_ms);

	return r ? r : client_adopt(conn->ops, fd, conn_p);
}
