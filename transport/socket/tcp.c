/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/socket/tcp.h"

#include "base/clock.h"
#include "base/fd_poll.h"
#include "transport/descriptor.h"
#include "transport/private_fd.h"
#include "transport/socket/socket_owner.h"
#include "transport/tcp_silence.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* Connections from all addresses wait in a single short queue, in order. When the queue is full, a
 * client's kernel retries only after a second. */
#define BACKLOG 2048
/* Limits the time that a peer which keeps sending can delay closing. */
#define DISCARD_READS 16
#define DISCARD_SIZE ((size_t)1 << 20)

int
gp_tcp_fd(const struct gp_conn *conn)
{
	const struct gp_tcp_conn *tcp = (const struct gp_tcp_conn *)conn;

	/* A daemon does not close descriptors that it does not own. */
	return !tcp->client || gp_fd_guard_is_marked(tcp->fd) ? tcp->fd : -1;
}

int
gp_tcp_get_fd(struct gp_stream *stream)
{
	int fd = gp_tcp_fd(&stream->conn);

	/* After a shutdown the error is already set. */
	if (fd < 0 && !atomic_load(&stream->stopped))
		(void)gp_conn_fail(&stream->conn, -EBADF,
				   "the program has closed descriptors of the library");
	return fd;
}

int
gp_tcp_poll(struct gp_stream *stream, short events, int timeout_ms)
{
	int fd = gp_tcp_get_fd(stream);

	/* poll() would ignore a negative descriptor and wait. */
	return fd < 0 ? -EBADF : gp_fd_wait(fd, events, timeout_ms);
}

/* When the kernel closes a connection by itself, it reports this once. If the sender has received
 * the report, a receiver sees only an end, as if the peer had closed. Both directions have ended
 * then, so the sender does not wait any more. Returns 0, or the sender's -ETIMEDOUT. */
static ssize_t
stream_get_end_status(struct gp_stream *stream)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);

	if (getsockopt(gp_tcp_fd(&stream->conn), IPPROTO_TCP, TCP_INFO, &info, &length) ||
	    info.tcpi_state != TCP_CLOSE)
		return 0;
	while (atomic_load_explicit(&stream->sending, memory_order_acquire))
		(void)sched_yield();
	return atomic_load(&stream->send_timed_out) ? -ETIMEDOUT : 0;
}

/* In a series of polls only the first checks the descriptor's owner, while the peer's reply is in
 * transit; the check takes a third of the time of a poll. */
static int
stream_get_read_fd(struct gp_stream *stream)
{
	bool again = stream->again;

	stream->again = false;
	return again ? ((struct gp_tcp_conn *)stream)->fd : gp_tcp_get_fd(stream);
}

/* recv() acquires the socket's lock, so a thread that sends meanwhile would sleep, such as a
 * daemon's that replies. In a series of polls only the first therefore uses recv(), the others
 * poll(). */
static bool
stream_is_empty(const struct gp_stream *stream)
{
	struct pollfd poller = { .fd = ((const struct gp_tcp_conn *)stream)->fd, .events = POLLIN };

	return stream->again && gp_fd_poll(&poller, 1, 0) == 0;
}

/* A blocking read returns EAGAIN after the stall time (gp_tcp_set_stall_timeout()), or at once if
 * another holder of the descriptor has made it non-blocking; the rest of the time is spent in
 * poll(). For shorter timeouts SO_RCVTIMEO cannot be used. */
ssize_t
gp_tcp_read(struct gp_stream *stream, struct iovec *iov, int count, int timeout_ms)
{
	struct msghdr header = { .msg_iov = iov, .msg_iovlen = (size_t)count };
	int64_t deadline = timeout_ms ? gp_deadline_ms(timeout_ms) : 0;
	bool blocks = timeout_ms < 0 || (stream->stall_timeout_ms && timeout_ms > 0 &&
					 (unsigned int)timeout_ms >= stream->stall_timeout_ms);

	if (timeout_ms == 0 && stream_is_empty(stream))
		return -EAGAIN;
	for (;;) {
		ssize_t got =
			recvmsg(stream_get_read_fd(stream), &header, blocks ? 0 : MSG_DONTWAIT);
		int r;

		if (got > 0)
			return got;
		if (got == 0)
			return stream_get_end_status(stream);
		if (errno == EINTR && gp_remaining_ms(deadline) != 0)
			continue;
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
		if (timeout_ms == 0)
			return -EAGAIN;
		r = gp_tcp_poll(stream, POLLIN, gp_remaining_ms(deadline));
		if (r <= 0)
			return r ? r : -EAGAIN;
	}
}

ssize_t
gp_tcp_write(struct gp_stream *stream, struct iovec *iov, int count, bool more)
{
	struct msghdr header = { .msg_iov = iov, .msg_iovlen = (size_t)count };
	int send_timeout_ms =
		stream->conn.send_timeout_ms ? (int)(stream->conn.send_timeout_ms + 1) / 2 : -1;
	bool waits = !stream->conn.nonblocking_send;

	for (;;) {
		ssize_t done =
			sendmsg(gp_tcp_get_fd(stream), &header,
				MSG_NOSIGNAL | (more ? MSG_MORE : 0) | (waits ? 0 : MSG_DONTWAIT));
		int r;

		if (done >= 0)
			return done;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN || !waits)
			return -errno;
		r = gp_tcp_poll(stream, POLLOUT, send_timeout_ms);
		if (r <= 0)
			return r ? r : -ETIMEDOUT;
	}
}

int
gp_tcp_wait(struct gp_stream *stream, int timeout_ms)
{
	return gp_tcp_poll(stream, POLLIN, timeout_ms);
}

void
gp_tcp_shutdown(struct gp_stream *stream)
{
	int fd = gp_tcp_fd(&stream->conn);

	if (fd >= 0)
		shutdown(fd, SHUT_RDWR);
}

static const struct gp_stream_io tcp_io = {
	.read = gp_tcp_read,
	.write = gp_tcp_write,
	.wait = gp_tcp_wait,
	.shutdown = gp_tcp_shutdown,
};

/* Closing a socket with unread bytes sends a reset, which can overtake the last bytes sent. */
static void
socket_discard_unread(int fd)
{
#ifndef __SANITIZE_THREAD__ /* ThreadSanitizer reports this as a write to NULL, and two of them as \
			       a race */
	for (int i = 0; i < DISCARD_READS; i++)
		if (recv(fd, NULL, DISCARD_SIZE, MSG_DONTWAIT | MSG_TRUNC) <= 0)
			break;
#endif
	/* A local socket does not discard with MSG_TRUNC, and contains at most a few hundred
	 * kilobytes. */
	for (int i = 0; i < DISCARD_READS; i++) {
		uint8_t buffer[32768];

		if (recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT) <= 0)
			return;
	}
}

void
gp_tcp_destroy(struct gp_conn *conn)
{
	struct gp_tcp_conn *tcp = (struct gp_tcp_conn *)conn;

	if (gp_tcp_fd(conn) >= 0) {
		socket_discard_unread(tcp->fd);
		close(tcp->fd);
	}
	gp_stream_fini(&tcp->stream);
	free(conn->certificate);
	free(conn->certificate_serial);
	free(tcp);
}

static void
socket_set_option(int fd, int level, int option, int value)
{
	/* None of these options is required for correctness; local sockets do not support them. */
	(void)setsockopt(fd, level, option, &value, sizeof(value));
}

/* SO_RCVTIMEO: a read that waits costs a single system call, as without a limit. */
void
gp_tcp_set_stall_timeout(struct gp_conn *conn, unsigned int ms)
{
	struct timeval time = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	gp_stream_set_stall_timeout(conn, ms);
	(void)setsockopt(gp_tcp_fd(conn), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
}

/* An address without a path leaves url->host unchanged. */
static void
path_to_url(const struct sockaddr_storage *address, socklen_t length, struct gp_url *url)
{
	const struct sockaddr_un *local = (const struct sockaddr_un *)address;
	size_t size = length > offsetof(struct sockaddr_un, sun_path)
			      ? length - offsetof(struct sockaddr_un, sun_path)
			      : 0;

	if (size && local->sun_path[0])
		snprintf(url->host, sizeof(url->host), "%.*s", (int)size, local->sun_path);
}

static void
address_to_url(const struct sockaddr_storage *address, socklen_t length, struct gp_url *url)
{
	char port[8] = "0";

	*url = (struct gp_url){ .scheme = "tcp", .host = "local", .device = GP_URL_ANY_DEVICE };
	if (address->ss_family == AF_UNIX) {
		path_to_url(address, length, url);
		return;
	}
	(void)getnameinfo((const struct sockaddr *)address, length, url->host, sizeof(url->host),
			  port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
	url->port = (uint16_t)atoi(port);
}

/* The client end of a local socket has no address of its own; uses that of the listening socket. */
static void
peer_format_url(const struct gp_transport_ops *ops, int fd, struct sockaddr_storage *address,
		socklen_t length, char *text, size_t size)
{
	struct gp_url peer;

	if (address->ss_family == AF_UNIX && length <= sizeof(sa_family_t)) {
		length = sizeof(*address);
		(void)getsockname(fd, (struct sockaddr *)address, &length);
	}
	address_to_url(address, length, &peer);
	snprintf(peer.scheme, sizeof(peer.scheme), "%s", ops->scheme);
	gp_url_format(&peer, text, size);
}

int
gp_tcp_adopt(const struct gp_transport_ops *ops, int fd, struct gp_conn **conn_p)
{
	struct sockaddr_storage address = { 0 };
	socklen_t length = sizeof(address);
	int type = 0, flags = fcntl(fd, F_GETFL);
	socklen_t type_length = sizeof(type);
	struct gp_tcp_conn *tcp;

	if (flags < 0 || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_length) < 0 ||
	    type != SOCK_STREAM || getpeername(fd, (struct sockaddr *)&address, &length) < 0)
		return GP_E_INVALID;
	tcp = calloc(1, sizeof(*tcp));
	if (!tcp)
		return -ENOMEM;
	tcp->fd = -1;
	if (gp_stream_init(&tcp->stream, ops, &tcp_io,
			   GP_CONN_CAP_FD | GP_CONN_CAP_ADOPT |
				   (gp_peer_is_loopback(&address) ? GP_CONN_CAP_LOCAL : 0))) {
		gp_tcp_destroy(&tcp->stream.conn);
		return -ENOMEM;
	}
	if (flags & O_NONBLOCK)
		(void)fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	socket_set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	gp_tcp_set_keepalive(fd, 0);
	peer_format_url(ops, fd, &address, length, tcp->stream.conn.peer,
			sizeof(tcp->stream.conn.peer));
	gp_fd_guard_mark(fd);
	tcp->fd = fd;
	gp_tcp_set_stall_timeout(&tcp->stream.conn, GP_CONN_TIMEOUT_MS);
	*conn_p = &tcp->stream.conn;
	return 0;
}

int
gp_tcp_release_fd(struct gp_conn *conn, int *fd_p)
{
	struct gp_tcp_conn *tcp = (struct gp_tcp_conn *)conn;

	if (!gp_stream_is_idle(&tcp->stream))
		return GP_E_INVALID;
	*fd_p = tcp->fd;
	tcp->fd = -1;
	gp_tcp_destroy(conn);
	return 0;
}

int
gp_tcp_peer_uid(const struct gp_conn *conn, uid_t *uid_p)
{
	return gp_peer_query_uid(gp_tcp_fd(conn), uid_p);
}

bool
gp_tcp_peer_closed(const struct gp_conn *conn)
{
	struct pollfd poller = { .fd = gp_tcp_fd(conn), .events = POLLRDHUP };

	return gp_fd_poll(&poller, 1, 0) > 0;
}

int
gp_tcp_resolve(const struct gp_url *url, bool passive, struct addrinfo **list_p, char *detail,
	       size_t detail_size)
{
	struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0),
	};
	bool any = passive && strcmp(url->host, "*") == 0;
	char port[8];
	int r;

	snprintf(port, sizeof(port), "%u", url->port);
	/* May query name servers, for seconds if they are slow. */
	gp_stdio_placeholders_open();
	r = getaddrinfo(any ? NULL : url->host, port, &hints, list_p);
	gp_stdio_placeholders_close();
	if (r == 0)
		return 0;
	if (r == EAI_SYSTEM)
		return errno ? -errno : -EIO;
	snprintf(detail, detail_size, "%s", gai_strerror(r));
	return r == EAI_MEMORY ? -ENOMEM : -EHOSTUNREACH;
}

void
gp_tcp_listener_destroy(struct gp_listener *listener)
{
	struct gp_tcp_listener *tcp = (struct gp_tcp_listener *)listener;

	if (tcp->fd >= 0)
		close(tcp->fd);
	free(tcp);
}

static int
address_listen(const struct addrinfo *address)
{
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return -errno;
	socket_set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	/* "*" is the IPv6 wildcard, which also accepts IPv4. */
	if (address->ai_family == AF_INET6)
		socket_set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

/* Uses the first address that works; for "*" IPv6 first, because it includes IPv4. */
static int
addresses_listen(const struct addrinfo *list, bool wildcard)
{
	int fd = -EADDRNOTAVAIL;

	if (wildcard)
		for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
			if (a->ai_family == AF_INET6)
				fd = address_listen(a);
	if (fd == -EADDRINUSE)
		return fd;
	for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
		fd = address_listen(a);
	return fd;
}

int
gp_tcp_listen(const struct gp_transport_ops *ops, const struct gp_url *url,
	      struct gp_listener **listener_p, char *detail, size_t detail_size)
{
	struct sockaddr_storage address = { 0 };
	socklen_t length = sizeof(address);
	struct gp_tcp_listener *tcp;
	struct addrinfo *list;
	int r, fd;

	r = gp_tcp_resolve(url, true, &list, detail, detail_size);
	if (r)
		return r;
	fd = addresses_listen(list, strcmp(url->host, "*") == 0);
	freeaddrinfo(list);
	if (fd < 0)
		return fd;
	tcp = calloc(1, sizeof(*tcp));
	if (!tcp) {
		close(fd);
		return -ENOMEM;
	}
	tcp->fd = fd;
	tcp->listener.ops = ops;
	tcp->listener.url = *url;
	if (getsockname(fd, (struct sockaddr *)&address, &length) < 0) {
		r = -errno;
		gp_tcp_listener_destroy(&tcp->listener);
		return r;
	}
	address_to_url(&address, length, &tcp->listener.url);
	snprintf(tcp->listener.url.scheme, sizeof(tcp->listener.url.scheme), "%s", url->scheme);
	*listener_p = &tcp->listener;
	return 0;
}

int
gp_tcp_listener_fd(const struct gp_listener *listener)
{
	return ((const struct gp_tcp_listener *)listener)->fd;
}

static bool
errno_is_shortage(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* Returns 0, GP_E_TIMEOUT, GP_E_RESOURCE, a negative errno of the listener, or GP_E_EOF: a
 * connection that ended while it was queued. */
static int
listener_accept(const struct gp_listener *listener, int *fd_p)
{
	int fd = accept4(gp_tcp_listener_fd(listener), NULL, NULL, SOCK_CLOEXEC);

	*fd_p = fd;
	if (fd >= 0)
		return 0;
	if (errno == EAGAIN)
		return GP_E_TIMEOUT;
	if (errno_is_shortage(errno))
		return GP_E_RESOURCE;
	return errno == EBADF || errno == EINVAL || errno == ENOTSOCK ? -errno : GP_E_EOF;
}

int
gp_tcp_accept(struct gp_listener *listener, int timeout_ms, struct gp_conn **conn_p)
{
	int64_t deadline = gp_deadline_ms(timeout_ms);

	for (;;) {
		int fd, r = listener_accept(listener, &fd);

		if (r == GP_E_TIMEOUT) {
			r = gp_fd_wait(gp_tcp_listener_fd(listener), POLLIN,
				       gp_remaining_ms(deadline));
			if (r < 0)
				return r;
			if (r == 0)
				return GP_E_TIMEOUT;
			continue;
		}
		if (r == GP_E_EOF)
			continue;
		if (r)
			return r;
		r = listener->ops->adopt(listener->ops, fd, conn_p);
		if (r == 0)
			return 0;
		close(fd);
		if (r == -ENOMEM)
			return GP_E_RESOURCE;
	}
}

/* Whether the connection was closed by the peer or the kernel, and nothing is left to read. */
static bool
socket_is_closed(int fd)
{
	struct pollfd poller = { .fd = fd, .events = POLLRDHUP };
	int unread = 0;

	return gp_fd_poll(&poller, 1, 0) > 0 && (ioctl(fd, FIONREAD, &unread) || unread == 0);
}

int
gp_tcp_accept_fd(struct gp_listener *listener, int *fd_p, char peer[GP_URL_TEXT_MAX])
{
	struct sockaddr_storage address = { 0 };
	socklen_t length = sizeof(address);
	int r = listener_accept(listener, fd_p);

	if (r)
		return r;
	if (socket_is_closed(*fd_p) || getpeername(*fd_p, (struct sockaddr *)&address, &length)) {
		close(*fd_p);
		return GP_E_EOF;
	}
	peer_format_url(listener->ops, *fd_p, &address, length, peer, GP_URL_TEXT_MAX);
	return 0;
}

const struct gp_transport_ops gp_tcp_ops = {
	GP_TCP_OPS,
	.scheme = "tcp",
	.connect = gp_tcp_connect,
	.connect_start = gp_tcp_connect_start,
	.connect_finish = gp_tcp_connect_finish,
	.listen = gp_tcp_listen,
	.listener_destroy = gp_tcp_listener_destroy,
	.adopt = gp_tcp_adopt,
	.release_fd = gp_tcp_release_fd,
	.send = gp_stream_send,
	.recv = gp_stream_recv,
	.pending = gp_stream_pending,
	.destroy = gp_tcp_destroy,
};
