/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of a connection that are common to all backends. */
#include "base/clock.h"
#include "base/fd_poll.h"
#include "transport/backend.h"
#include "transport/private_fd.h"
#include "transport/tcp_silence.h"
#include "transport/timeout.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

/* Upper bound of the system's memory per byte in a socket's send buffer: a packet of at least 500
 * bytes uses less than four times its size. */
#define SEND_OVERHEAD_FACTOR 4

enum {
	ERROR_NONE,
	ERROR_WRITING,
	ERROR_SET,
};

int
gp_fd_wait(int fd, short events, int timeout_ms)
{
	int64_t deadline = gp_deadline_ms(timeout_ms);
	struct pollfd poll_fd = { .fd = fd, .events = events };
	int r;

	do
		r = gp_fd_poll(&poll_fd, 1, gp_remaining_ms(deadline));
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r > 0;
}

int
gp_conn_release_fd(struct gp_conn *conn, int *fd_p)
{
	return conn->ops->release_fd ? conn->ops->release_fd(conn, fd_p) : GP_E_UNSUPPORTED;
}

int
gp_conn_recv_preamble(struct gp_conn *conn, void *preamble, size_t size, int timeout_ms)
{
	if (size > GP_CONN_PREAMBLE_MAX)
		return gp_conn_fail(conn, -EINVAL, "a preamble of %zu bytes", size);
	return conn->ops->recv_preamble(conn, preamble, size, timeout_ms);
}

int
gp_conn_send_preamble(struct gp_conn *conn, const void *preamble, size_t size)
{
	if (size > GP_CONN_PREAMBLE_MAX)
		return gp_conn_fail(conn, -EINVAL, "a preamble of %zu bytes", size);
	return conn->ops->send_preamble(conn, preamble, size);
}

/* Stops adding above `max`, so that the sum cannot overflow. */
static size_t
iov_get_size(const struct iovec *iov, int count, size_t max)
{
	size_t sum = 0;

	for (int i = 0; i < count; i++) {
		if (iov[i].iov_len > max - sum)
			return SIZE_MAX;
		sum += iov[i].iov_len;
	}
	return sum;
}

int
gp_conn_send(struct gp_conn *conn, const struct iovec *data, int data_count,
	     const struct iovec *bulk, int bulk_count)
{
	size_t data_size = iov_get_size(data, data_count, GP_CONN_MESSAGE_MAX);
	size_t bulk_size = iov_get_size(bulk, bulk_count, GP_CONN_BULK_MAX);

	if (data_size == SIZE_MAX || bulk_size == SIZE_MAX)
		return GP_E_TOO_BIG;
	return conn->ops->send(conn, data, data_count, bulk, bulk_count, data_size, bulk_size);
}

int
gp_conn_recv(struct gp_conn *conn, struct gp_message *message)
{
	return conn->ops->recv(conn, message);
}

int
gp_conn_recv_bulk(struct gp_conn *conn, void *dst, size_t size)
{
	return conn->ops->recv_bulk(conn, dst, size);
}

bool
gp_conn_pending(const struct gp_conn *conn)
{
	return conn->ops->pending(conn);
}

void
gp_conn_set_spin(struct gp_conn *conn, unsigned int usec)
{
	conn->ops->set_spin(conn, usec);
}

void
gp_conn_set_stall_timeout(struct gp_conn *conn, unsigned int ms)
{
	conn->ops->set_stall_timeout(conn, ms);
}

void
gp_conn_set_stall_callback(struct gp_conn *conn, bool (*stalled)(void *arg, unsigned int silent_ms),
			   void *arg)
{
	conn->on_stall_arg = arg;
	conn->on_stall = stalled;
}

void
gp_conn_set_deadline(struct gp_conn *conn, unsigned int ms)
{
	conn->recv_deadline_ms = ms ? gp_now_ms() + ms : 0;
}

void
gp_conn_set_idle_timeout(struct gp_conn *conn, unsigned int ms)
{
	conn->idle_timeout_ms = ms;
}

/* Returns the socket that carries the bytes; -1: the backend does not use one. Socket options on a
 * descriptor that is not a socket fail harmlessly. */
static int
conn_get_socket(const struct gp_conn *conn)
{
	return conn->caps & GP_CONN_CAP_REMOTE_MEM || conn->ops->fd_unwatch ? -1
									    : conn->ops->fd(conn);
}

void
gp_conn_set_timeout(struct gp_conn *conn, unsigned int ms)
{
	conn->timeout_ms = ms;
	gp_tcp_set_keepalive(conn_get_socket(conn), ms);
}

void
gp_conn_set_send_timeout(struct gp_conn *conn, unsigned int ms)
{
	/* Half of the time within the send, which ends after a partial write, and half of it
	 * afterwards. */
	struct timeval time = { .tv_sec = ms / 2000, .tv_usec = (ms - ms / 2000 * 2000) * 500 };
	int fd = conn_get_socket(conn);

	conn->send_timeout_ms = ms;
	gp_conn_set_timeout(conn, ms);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
	/* Does not apply to local sockets, and is not needed there. Since Linux 5.11 it also ends a
	 * connection whose peer acknowledges but keeps its window closed. */
	gp_tcp_set_user_timeout(fd, ms);
}

size_t
gp_conn_set_nonblocking_send(struct gp_conn *conn, size_t size)
{
	int fd = conn_get_socket(conn), wanted = (int)size * SEND_OVERHEAD_FACTOR / 2, got = 0;
	unsigned int unlimited = UINT_MAX;
	socklen_t length = sizeof(got);

	conn->nonblocking_send = true;
	/* The kernel doubles the size. The first option requires root. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &wanted, sizeof(wanted)))
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof(wanted));
	/* The system-wide limit (tcp_notsent_lowat) may be smaller than the buffer. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unlimited, sizeof(unlimited));
	if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &got, &length) || got < 0)
		return 0;
	return (size_t)got / SEND_OVERHEAD_FACTOR;
}

unsigned int
gp_conn_get_unacknowledged_ms(struct gp_conn *conn)
{
	return gp_tcp_get_unacknowledged_ms(conn_get_socket(conn), &conn->unacknowledged_since_ms);
}

void
gp_conn_set_message_max(struct gp_conn *conn, size_t size)
{
	atomic_store(&conn->message_max, size);
}

void
gp_conn_shutdown(struct gp_conn *conn)
{
	conn->ops->shutdown(conn);
}

unsigned int
gp_conn_caps(const struct gp_conn *conn)
{
	return conn->caps;
}

int
gp_conn_fd(const struct gp_conn *conn)
{
	return conn->ops->fd(conn);
}

void
gp_conn_fd_unwatch(struct gp_conn *conn)
{
	if (conn->ops->fd_unwatch)
		conn->ops->fd_unwatch(conn);
}

void
gp_conn_discard(struct gp_conn *conn)
{
	if (conn->ops->discard)
		conn->ops->discard(conn);
}

bool
gp_conn_peer_closed(const struct gp_conn *conn)
{
	return conn->ops->peer_closed && conn->ops->peer_closed(conn);
}

const char *
gp_conn_peer(const struct gp_conn *conn)
{
	return conn->peer;
}

bool
gp_conn_peer_address(const struct gp_conn *conn, char *text, size_t size)
{
	struct sockaddr_storage address = { 0 };
	socklen_t length = sizeof(address);
	char host[NI_MAXHOST];

	if (conn->caps & GP_CONN_CAP_REMOTE_MEM || conn->ops->fd_unwatch ||
	    getpeername(conn->ops->fd(conn), (struct sockaddr *)&address, &length) ||
	    (address.ss_family != AF_INET && address.ss_family != AF_INET6) ||
	    getnameinfo((const struct sockaddr *)&address, length, host, sizeof(host), NULL, 0,
			NI_NUMERICHOST) ||
	    strlen(host) >= size)
		return false;
	(void)memcpy(text, host, strlen(host) + 1);
	return true;
}

int
gp_conn_pass_fd(struct gp_conn *conn, int fd)
{
	return conn->ops->pass_fd ? conn->ops->pass_fd(conn, fd) : GP_E_UNSUPPORTED;
}

int
gp_conn_recv_fd(struct gp_conn *conn)
{
	return conn->ops->recv_fd ? conn->ops->recv_fd(conn) : -ENOENT;
}

int
gp_conn_peer_uid(const struct gp_conn *conn, uid_t *uid_p)
{
	return conn->ops->peer_uid(conn, uid_p);
}

int
gp_conn_register_range(struct gp_conn *conn, void *base, size_t size, int dma_buf)
{
	return conn->ops->register_range ? conn->ops->register_range(conn, base, size, dma_buf)
					 : GP_E_UNSUPPORTED;
}

bool
gp_conn_has_registered(struct gp_conn *conn, const void *base, size_t size)
{
	return conn->ops->has_registered && conn->ops->has_registered(conn, base, size);
}

const void *
gp_conn_get_device(const struct gp_conn *conn)
{
	return conn->ops->device ? conn->ops->device(conn) : NULL;
}

const char *
gp_conn_get_certificate_name(const struct gp_conn *conn)
{
	return conn->certificate;
}

int64_t
gp_conn_get_certificate_not_after(const struct gp_conn *conn)
{
	return conn->certificate ? conn->certificate_not_after : INT64_MAX;
}

const char *
gp_conn_get_certificate_serial(const struct gp_conn *conn)
{
	return conn->certificate_serial;
}

const char *
gp_conn_error(const struct gp_conn *conn)
{
	return atomic_load_explicit(&conn->error_state, memory_order_acquire) == ERROR_SET
		       ? conn->error
		       : "";
}

int
gp_conn_fail(struct gp_conn *conn, int r, const char *text, ...)
{
	int none = ERROR_NONE;
	va_list args;

	if (!atomic_compare_exchange_strong(&conn->error_state, &none, ERROR_WRITING))
		return r;
	errno = r < 0 ? -r : 0;
	va_start(args, text);
	vsnprintf(conn->error, sizeof(conn->error), text, args);
	va_end(args);
	atomic_store_explicit(&conn->error_state, ERROR_SET, memory_order_release);
	return r;
}

bool
gp_conn_is_silent(const struct gp_conn *conn, unsigned int ms)
{
	return gp_tcp_is_silent(conn_get_socket(conn), ms);
}

int
gp_conn_fail_timeout(struct gp_conn *conn, unsigned int ms, const char *otherwise)
{
	char time[GP_TIMEOUT_TEXT_MAX];

	if (ms == 0)
		ms = conn->timeout_ms ? conn->timeout_ms : GP_CONN_TIMEOUT_MS;
	gp_timeout_format(ms, time);
	if (gp_conn_is_silent(conn, ms))
		return gp_conn_fail(conn, -ETIMEDOUT, "no acknowledgment from %s for %s",
				    conn->peer, time);
	return gp_conn_fail(conn, -ETIMEDOUT, "%s for %s", otherwise, time);
}

void
gp_conn_abandon(struct gp_conn *conn)
{
	if (conn->ops->abandon)
		conn->ops->abandon(conn);
	else if (gp_conn_fd(conn) >= 0)
		gp_fd_guard_close(gp_conn_fd(conn));
}

void
gp_conn_destroy(struct gp_conn *conn)
{
	if (conn)
		conn->ops->destroy(conn);
}
