/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backend for connections within a machine through ring buffers in shared memory (shm_ring.h).
 *
 * Each connection also has a local socket, over which the daemon passes the memory to the client. A
 * byte on the socket wakes a reader that sleeps there; the end of the socket is the end of the
 * connection, however a process ended. If the reader finds its bytes in time, neither it nor the
 * writer makes a system call.
 */
#include "base/clock.h"
#include "base/thread.h"
#include "transport/descriptor.h"
#include "transport/private_fd.h"
#include "transport/shm/message_fd.h"
#include "transport/shm/sealed_memory.h"
#include "transport/shm/shm_ring.h"
#include "transport/socket/tcp.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#define RING_SIZE ((size_t)512 << 10)
/* The daemon's first bytes on the socket, sent with the memory's descriptor. */
#define GREETING "gpupool shm 1"
/* Polls within a bulk before a reader sleeps, because the writer is copying it. */
#define BULK_POLLS 300
/* Wake-up bytes read at a time. */
#define WAKEUPS_MAX 64
/* Maximum of queued received descriptors; more are closed. */
#define PASSED_MAX 8
/* Maximum time that the peer's socket may stay full. */
#define PASS_TIMEOUT_MS 2000

struct shm_conn {
	struct gp_stream stream;
	/* List of the connections whose memory this process created; shared_conns.lock. */
	struct shm_conn *next, *prev;
	bool is_listed;                  /* is in that list; set once */
	struct gp_tcp_conn *socket_conn; /* the socket, as a connection of its own */
	struct gp_rings rings;
	/* A thread polls the socket, possibly while others read; the peer must always send a
	 * wake-up. */
	atomic_bool watched;
	atomic_bool is_broken;
	atomic_bool is_stopped; /* this end has shut down the socket */
	atomic_bool peer_left;  /* the peer had ended before that, or must not receive more */
	/* Used by the reading thread. */
	bool armed;             /* a wake-up has been requested and may have arrived */
	bool ended;             /* the socket's end was detected */
	int ready_fd;           /* always readable, for gp_conn_fd(); -1: not yet created */
	int passed[PASSED_MAX]; /* received descriptors, oldest first */
	unsigned int passed_count;
	/* Used by the writing thread: time since which no byte could be written; 0: it could. */
	int64_t full_ms;
};

/* Connections whose memory this process created. */
static struct {
	pthread_mutex_t lock;
	struct shm_conn *first; /* utlist */
} shared_conns = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct shm_conn *
conn_to_shm(const struct gp_conn *conn)
{
	return (struct shm_conn *)conn;
}

/* Returns -1, with the connection's error set, if the descriptor no longer belongs to the
 * connection. */
static int
shm_get_socket_fd(struct shm_conn *shm)
{
	int fd = gp_tcp_get_fd(&shm->socket_conn->stream);

	if (fd < 0 && !atomic_load(&shm->stream.stopped))
		(void)gp_conn_fail(&shm->stream.conn, -EBADF, "%s",
				   gp_conn_error(&shm->socket_conn->stream.conn));
	return fd;
}

static void
passed_push(struct shm_conn *shm, int fd)
{
	if (shm->passed_count < PASSED_MAX)
		shm->passed[shm->passed_count++] = fd;
	else
		(void)close(fd);
}

/* Receives pending wake-ups and at most one descriptor, or detects the socket's end. Returns
 * whether there was anything. */
static bool
shm_recv_wakeups(struct shm_conn *shm)
{
	uint8_t wakes[WAKEUPS_MAX];
	int fd = -1;
	ssize_t got;

	/* A client does not pass descriptors; the daemon must not accept any. */
	if (shm->socket_conn->client)
		got = gp_recv_with_fd(shm_get_socket_fd(shm), wakes, sizeof(wakes), &fd);
	else
		got = recv(shm_get_socket_fd(shm), wakes, sizeof(wakes), MSG_DONTWAIT);
	if (fd >= 0)
		passed_push(shm, fd);
	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
		shm->ended = true;
	return got > 0;
}

/* Whether the socket has ended, without consuming anything from it. After this end has shut it
 * down, the peer's ring is checked instead. */
static bool
shm_peer_closed(const struct gp_conn *conn)
{
	const struct shm_conn *shm = conn_to_shm(conn);

	if (atomic_load(&shm->is_stopped))
		return atomic_load(&shm->peer_left) || gp_ring_is_closed(&shm->rings.in);
	return gp_tcp_peer_closed(&shm->socket_conn->stream.conn);
}

/* After the shutdown the socket no longer shows which end closed first. */
static void
shm_stop_socket(struct shm_conn *shm)
{
	bool left = shm_peer_closed(&shm->stream.conn);

	if (!atomic_exchange(&shm->is_stopped, true) && left)
		atomic_store(&shm->peer_left, true);
	gp_tcp_shutdown(&shm->socket_conn->stream);
}

/* Ends both directions and wakes all threads that wait there. */
static int
shm_set_broken(struct shm_conn *shm)
{
	int r = gp_conn_fail(&shm->stream.conn, -EPROTO, "the peer has broken the ring");

	atomic_store(&shm->is_broken, true);
	atomic_store(&shm->peer_left, true);
	shm_stop_socket(shm);
	return r;
}

/* Returns 1: there are bytes or the end; 0: not yet; or -EPROTO. Only reads memory. */
static int
shm_poll(struct shm_conn *shm)
{
	bool over = shm->ended || gp_ring_is_closed(&shm->rings.in) ||
		    atomic_load(&shm->stream.stopped);
	ssize_t used = gp_ring_get_used(&shm->rings.in);

	/* The words are zero because the pages were freed, which the reader treats as the end. */
	if (used < 0 && gp_rings_are_discarded(&shm->rings))
		return 1;
	if (used < 0 || atomic_load(&shm->is_broken))
		return shm_set_broken(shm);
	return used > 0 || over;
}

static void
shm_arm(struct shm_conn *shm)
{
	shm->armed = true;
	gp_ring_arm(&shm->rings.in);
}

/* Bytes that have already arrived must not wake the next poll(). */
static void
shm_disarm(struct shm_conn *shm)
{
	if (!shm->armed)
		return;
	shm->armed = false;
	gp_ring_disarm(&shm->rings.in);
	(void)shm_recv_wakeups(shm);
	if (atomic_load(&shm->watched))
		shm_arm(shm);
}

static int
shm_wait(struct gp_stream *stream, int timeout_ms)
{
	struct shm_conn *shm = (struct shm_conn *)stream;
	int64_t deadline = gp_deadline_ms(timeout_ms);
	int left = timeout_ms, r = shm_poll(shm);

	while (r == 0) {
		int fd;

		shm_arm(shm);
		r = shm_poll(shm);
		if (r != 0)
			break;
		fd = shm_get_socket_fd(shm);
		r = fd < 0 ? -EBADF : gp_fd_wait(fd, POLLIN, left);
		if (r <= 0)
			break;
		(void)shm_recv_wakeups(shm);
		r = shm_poll(shm);
		/* Wake-ups without bytes must not extend the wait. */
		left = gp_remaining_ms(deadline);
		if (left == 0)
			break;
	}
	shm_disarm(shm);
	return r;
}

static ssize_t
shm_read(struct gp_stream *stream, struct iovec *iov, int count, int timeout_ms)
{
	struct shm_conn *shm = (struct shm_conn *)stream;
	int r = shm_poll(shm);
	ssize_t got;

	for (int i = 0; r == 0 && timeout_ms != 0 && stream->bulk_left && i < BULK_POLLS; i++) {
		gp_cpu_relax();
		r = shm_poll(shm);
	}
	if (r == 0 && timeout_ms != 0)
		r = shm_wait(stream, timeout_ms);
	if (r == 0)
		return -EAGAIN;
	if (r < 0)
		return r;
	if (atomic_load(&stream->stopped))
		return 0;
	/* The polling thread was woken for these bytes, and must be woken for the next ones. */
	if (atomic_load(&shm->watched))
		shm_arm(shm);
	/* Returns 0 at the end. Pages freed meanwhile were read as zeros. */
	got = gp_ring_read(&shm->rings.in, iov, count);
	return got && gp_rings_are_discarded(&shm->rings) ? 0 : got;
}

static bool
shm_pending(const struct gp_conn *conn)
{
	return gp_stream_pending(conn) || gp_ring_get_used(&conn_to_shm(conn)->rings.in) > 0;
}

/* Returns 0, or the reason why there will be no more room. */
static int
shm_wait_writable(struct shm_conn *shm)
{
	unsigned int send_timeout_ms = shm->stream.conn.send_timeout_ms;

	gp_ring_wait_writable(&shm->rings.out);
	if (atomic_load(&shm->stream.stopped))
		return -ESHUTDOWN;
	if (shm_get_socket_fd(shm) < 0 || shm_peer_closed(&shm->stream.conn))
		return -EPIPE;
	if (shm->full_ms == 0)
		shm->full_ms = gp_now_ms();
	return send_timeout_ms && gp_now_ms() - shm->full_ms >= send_timeout_ms ? -ETIMEDOUT : 0;
}

/* -EPIPE: the reader is gone. */
static int
shm_wake_reader(struct shm_conn *shm)
{
	ssize_t sent;

	if (!gp_ring_must_wake(&shm->rings.out))
		return 0;
	do
		sent = send(shm_get_socket_fd(shm), "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	/* A full socket contains wake-ups that were not yet consumed. */
	return sent == 1 || errno == EAGAIN ? 0 : -EPIPE;
}

static ssize_t
shm_write(struct gp_stream *stream, struct iovec *iov, int count, bool more)
{
	struct shm_conn *shm = (struct shm_conn *)stream;
	ssize_t put;
	int r;

	(void)more;
	while ((put = gp_ring_write(&shm->rings.out, iov, count)) == 0) {
		r = shm_wait_writable(shm);
		if (r != 0)
			return r;
	}
	if (put < 0)
		return put != -EPROTO                        ? put
		       : gp_rings_are_discarded(&shm->rings) ? -EPIPE
							     : shm_set_broken(shm);
	shm->full_ms = 0;
	/* A program that has closed the library's descriptors gets an error although the memory
	 * still works, but only after the reader has the bytes. */
	if (shm->socket_conn->client && shm_get_socket_fd(shm) < 0)
		return -EBADF;
	r = shm_wake_reader(shm);
	return r != 0 ? r : put;
}

static void
shm_stop(struct gp_stream *stream)
{
	struct shm_conn *shm = (struct shm_conn *)stream;

	gp_rings_close(&shm->rings);
	shm_stop_socket(shm);
}

static const struct gp_stream_io shm_io = {
	.read = shm_read,
	.write = shm_write,
	.wait = shm_wait,
	.shutdown = shm_stop,
};

/* Frees the pages of memory that the daemon created, so that a client cannot retain them. If the
 * client is still connected, its unread bytes stay. */
static void
shm_discard_memory(struct shm_conn *shm)
{
	if (shm->socket_conn && !shm->socket_conn->client)
		gp_rings_discard(&shm->rings, shm_peer_closed(&shm->stream.conn));
}

static void
shm_discard(struct gp_conn *conn)
{
	atomic_store(&conn_to_shm(conn)->peer_left, true);
}

static void
shm_unlist(struct shm_conn *shm)
{
	if (!shm->is_listed)
		return;
	pthread_mutex_lock(&shared_conns.lock);
	DL_DELETE(shared_conns.first, shm);
	pthread_mutex_unlock(&shared_conns.lock);
}

void
gp_shm_discard_all(void)
{
	struct shm_conn *shm;

	pthread_mutex_lock(&shared_conns.lock);
	DL_FOREACH(shared_conns.first, shm)
	{
		gp_rings_discard(&shm->rings, true);
	}
	pthread_mutex_unlock(&shared_conns.lock);
}

static void
shm_destroy(struct gp_conn *conn)
{
	struct shm_conn *shm = conn_to_shm(conn);

	gp_rings_close(&shm->rings);
	shm_discard_memory(shm);
	shm_unlist(shm);
	gp_rings_unmap(&shm->rings);
	for (unsigned int i = 0; i < shm->passed_count; i++)
		(void)close(shm->passed[i]);
	if (shm->ready_fd >= 0)
		gp_fd_guard_close(shm->ready_fd);
	if (shm->socket_conn)
		gp_conn_destroy(&shm->socket_conn->stream.conn);
	gp_stream_fini(&shm->stream);
	free(shm);
}

/* Creates a connection that owns the socket on success only; its rings are not yet mapped. */
static int
shm_create(struct gp_conn *door, struct shm_conn **shm_p)
{
	struct shm_conn *shm = calloc(1, sizeof(*shm));

	if (!shm)
		return -ENOMEM;
	shm->ready_fd = -1;
	if (gp_stream_init(&shm->stream, &gp_shm_ops, &shm_io,
			   GP_CONN_CAP_FD | GP_CONN_CAP_LOCAL | GP_CONN_CAP_PASS_FD)) {
		shm_destroy(&shm->stream.conn);
		return -ENOMEM;
	}
	snprintf(shm->stream.conn.peer, sizeof(shm->stream.conn.peer), "shm%s",
		 strchr(door->peer, ':'));
	shm->socket_conn = (struct gp_tcp_conn *)door;
	*shm_p = shm;
	return 0;
}

static int
greeting_send(int socket_fd, int memory_fd)
{
	char text[] = GREETING;

	/* The socket is empty, so it accepts the bytes or has ended. */
	return gp_send_with_fd(socket_fd, text, sizeof(text), memory_fd) == sizeof(text)
		       ? 0
		       : GP_E_INVALID;
}

/* Returns the descriptor or a negative errno. */
static int
greeting_recv(int socket_fd)
{
	char text[sizeof(GREETING)];
	int fd;
	ssize_t got = gp_recv_with_fd(socket_fd, text, sizeof(text), &fd);

	if (got == sizeof(text) && memcmp(text, GREETING, sizeof(text)) == 0 && fd >= 0)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return got == 0 ? -ECONNRESET : got < 0 ? -errno : -EPROTO;
}

/* Creates the daemon's end. */
static int
shm_adopt(const struct gp_transport_ops *ops, int fd, struct gp_conn **conn_p)
{
	size_t size = gp_rings_get_memory_size(RING_SIZE);
	struct gp_conn *door;
	struct shm_conn *shm;
	int memory_fd, r;

	r = gp_unix_ops.adopt(&gp_unix_ops, fd, &door);
	if (r)
		return r;
	r = shm_create(door, &shm);
	if (r) {
		(void)gp_tcp_release_fd(door, &fd);
		return r;
	}
	memory_fd = gp_sealed_create("gpupool-rings", size, true);
	r = memory_fd < 0 ? -ENOMEM : gp_rings_map(&shm->rings, memory_fd, size, true);
	if (r == 0) {
		shm->is_listed = true;
		pthread_mutex_lock(&shared_conns.lock);
		DL_APPEND(shared_conns.first, shm);
		pthread_mutex_unlock(&shared_conns.lock);
	}
	if (r == 0)
		r = greeting_send(shm->socket_conn->fd, memory_fd);
	if (memory_fd >= 0)
		(void)close(memory_fd);
	if (r) {
		/* The descriptor is the caller's again. */
		(void)gp_tcp_release_fd(door, &fd);
		shm->socket_conn = NULL;
		shm_destroy(&shm->stream.conn);
		return r;
	}
	*conn_p = &shm->stream.conn;
	return 0;
}

/* Maps the memory at the client's end. */
static int
shm_map_memory(struct shm_conn *shm, int timeout_ms, char *detail, size_t detail_size)
{
	int fd, r = gp_fd_wait(shm->socket_conn->fd, POLLIN, timeout_ms);
	size_t size;

	if (r <= 0)
		return r ? r : -ETIMEDOUT;
	fd = greeting_recv(shm->socket_conn->fd);
	if (fd < 0)
		return fd;
	r = gp_sealed_check(fd, &size);
	if (r == 0)
		r = gp_rings_map(&shm->rings, fd, size, false);
	(void)close(fd);
	if (r <= 0)
		return r;
	snprintf(detail, detail_size, "invalid shared memory");
	return -EPROTO;
}

static int
shm_connect(const struct gp_url *url, const void *preamble, size_t preamble_size, int timeout_ms,
	    struct gp_conn **conn_p, char *detail, size_t detail_size)
{
	int64_t deadline = gp_deadline_ms(timeout_ms);
	struct gp_conn *door;
	struct shm_conn *shm;
	int r = gp_unix_ops.connect(&gp_unix_ops, url, timeout_ms, &door, detail, detail_size);

	if (r)
		return r;
	r = shm_create(door, &shm);
	if (r) {
		gp_conn_destroy(door);
		return r;
	}
	if (preamble_size)
		r = gp_stream_send_preamble(door, preamble, preamble_size);
	if (r == 0)
		r = shm_map_memory(shm, gp_remaining_ms(deadline), detail, detail_size);
	if (r) {
		shm_destroy(&shm->stream.conn);
		return r;
	}
	*conn_p = &shm->stream.conn;
	return 0;
}

/* The client's preamble arrives over the socket before there is memory; the reply comes through the
 * ring. */
static int
shm_recv_preamble(struct gp_conn *conn, void *preamble, size_t size, int timeout_ms)
{
	struct shm_conn *shm = conn_to_shm(conn);
	struct gp_conn *door = &shm->socket_conn->stream.conn;
	int r;

	if (shm->socket_conn->client)
		return gp_stream_recv_preamble(conn, preamble, size, timeout_ms);
	r = gp_stream_recv_preamble(door, preamble, size, timeout_ms);
	return r < 0 ? gp_conn_fail(conn, r, "%s", gp_conn_error(door)) : r;
}

static int
shm_fd(const struct gp_conn *conn)
{
	struct shm_conn *shm = conn_to_shm(conn);
	int fd = gp_tcp_fd(&shm->socket_conn->stream.conn);

	atomic_store(&shm->watched, true);
	if (shm_poll(shm) == 0) {
		shm_disarm(shm);
		shm_arm(shm);
	}
	if (fd < 0 || shm_poll(shm) == 0)
		return fd;
	/* Bytes that are already in the ring cause no wake-up. */
	if (shm->ready_fd >= 0 && !gp_fd_guard_is_marked(shm->ready_fd))
		shm->ready_fd = -1;
	if (shm->ready_fd < 0) {
		shm->ready_fd = gp_fd_move_above_stdio(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
		gp_fd_guard_mark(shm->ready_fd);
	}
	return shm->ready_fd;
}

static void
shm_fd_unwatch(struct gp_conn *conn)
{
	atomic_store(&conn_to_shm(conn)->watched, false);
}

static int
shm_peer_uid(const struct gp_conn *conn, uid_t *uid_p)
{
	return gp_tcp_peer_uid(&conn_to_shm(conn)->socket_conn->stream.conn, uid_p);
}

static int
shm_pass_fd(struct gp_conn *conn, int fd)
{
	struct shm_conn *shm = conn_to_shm(conn);
	char wake = 0;

	if (shm->socket_conn->client)
		return GP_E_UNSUPPORTED;
	for (;;) {
		ssize_t sent = gp_send_with_fd(shm_get_socket_fd(shm), &wake, 1, fd);
		int r;

		if (sent == 1)
			return 0;
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent >= 0 || errno != EAGAIN)
			return -EPIPE;
		/* Full of wake-ups that were not yet consumed. */
		r = gp_fd_wait(shm_get_socket_fd(shm), POLLOUT, PASS_TIMEOUT_MS);
		if (r <= 0)
			return r ? r : -ETIMEDOUT;
	}
}

static int
shm_recv_fd(struct gp_conn *conn)
{
	struct shm_conn *shm = conn_to_shm(conn);
	int fd;

	while (shm->passed_count == 0 && shm_recv_wakeups(shm))
		continue;
	if (shm->passed_count == 0)
		return -ENOENT;
	fd = shm->passed[0];
	shm->passed_count--;
	memmove(shm->passed, shm->passed + 1, shm->passed_count * sizeof(*shm->passed));
	return fd;
}

static void
shm_abandon(struct gp_conn *conn)
{
	struct shm_conn *shm = conn_to_shm(conn);

	gp_fd_guard_close(shm->socket_conn->fd);
	if (shm->ready_fd >= 0)
		gp_fd_guard_close(shm->ready_fd);
}

const struct gp_transport_ops gp_shm_ops = {
	.scheme = "shm",
	.connect_with = shm_connect,
	.listen = gp_unix_listen,
	.accept = gp_tcp_accept,
	.listener_fd = gp_tcp_listener_fd,
	.listener_destroy = gp_unix_listener_destroy,
	.adopt = shm_adopt,
	.peer_uid = shm_peer_uid,
	.pass_fd = shm_pass_fd,
	.recv_fd = shm_recv_fd,
	.recv_preamble = shm_recv_preamble,
	.send_preamble = gp_stream_send_preamble,
	.send = gp_stream_send,
	.recv = gp_stream_recv,
	.recv_bulk = gp_stream_recv_bulk,
	.pending = shm_pending,
	.set_spin = gp_stream_set_spin,
	.set_stall_timeout = gp_stream_set_stall_timeout,
	.shutdown = gp_stream_shutdown,
	.fd = shm_fd,
	.fd_unwatch = shm_fd_unwatch,
	.peer_closed = shm_peer_closed,
	.discard = shm_discard,
	.abandon = shm_abandon,
	.destroy = shm_destroy,
};
