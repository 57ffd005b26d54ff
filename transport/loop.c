/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/lock.h"
#include "transport/message_stream.h"
#include "transport/own_fd.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* Bounded like a socket: a sender waits if its peer does not read. */
#define PIPE_SIZE ((size_t)256 << 10)
#define BACKLOG 128

/* A direction. The descriptor is readable while there are bytes or the end to be read. */
struct pipe {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	size_t head;
	size_t used;
	bool is_writer_closed;
	bool is_reader_closed;
	bool signalled;
	int event_fd;
	uint8_t bytes[PIPE_SIZE];
};

struct loop_pair {
	atomic_int refs;
	struct pipe pipe[2]; /* pipe[n] is read by end n */
};

struct loop_conn {
	struct gp_stream stream;
	struct loop_pair *pair;
	int side;
};

struct loop_listener {
	struct gp_listener listener;
	struct loop_listener *next;
	int event_fd; /* semaphore that counts the waiting connections */
	int waiting_count;
	struct gp_conn *waiting[BACKLOG];
};

static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static struct loop_listener *names GP_GUARDED_BY(names_lock);

static struct pipe *
conn_get_in(const struct gp_conn *conn)
{
	const struct loop_conn *loop = (const struct loop_conn *)conn;

	return &loop->pair->pipe[loop->side];
}

static struct pipe *
conn_get_out(const struct gp_conn *conn)
{
	const struct loop_conn *loop = (const struct loop_conn *)conn;

	return &loop->pair->pipe[!loop->side];
}

/* Must be called after every change. */
static void
pipe_notify(struct pipe *pipe) GP_LOCKED(pipe->lock)
{
	bool readable = pipe->used || pipe->is_writer_closed || pipe->is_reader_closed;
	uint64_t count = 1;
	ssize_t r = 0;

	if (readable && !pipe->signalled)
		r = write(pipe->event_fd, &count, sizeof(count));
	else if (!readable && pipe->signalled)
		r = read(pipe->event_fd, &count, sizeof(count));
	(void)r;
	pipe->signalled = readable;
	pthread_cond_broadcast(&pipe->changed);
}

static size_t
pipe_read(struct pipe *pipe, struct iovec *iov, int count)
{
	size_t taken = 0;

	for (int i = 0; i < count; i++) {
		uint8_t *to = iov[i].iov_base;
		size_t left = iov[i].iov_len;

		while (left && pipe->used) {
			size_t part = PIPE_SIZE - pipe->head;

			if (part > pipe->used)
				part = pipe->used;
			if (part > left)
				part = left;
			memcpy(to, pipe->bytes + pipe->head, part);
			pipe->head = (pipe->head + part) % PIPE_SIZE;
			pipe->used -= part;
			to += part;
			left -= part;
			taken += part;
		}
	}
	return taken;
}

static size_t
pipe_write(struct pipe *pipe, const struct iovec *iov, int count)
{
	size_t put = 0;

	for (int i = 0; i < count; i++) {
		const uint8_t *from = iov[i].iov_base;
		size_t left = iov[i].iov_len;

		while (left && pipe->used < PIPE_SIZE) {
			size_t tail = (pipe->head + pipe->used) % PIPE_SIZE;
			size_t part = tail < pipe->head ? pipe->head - tail : PIPE_SIZE - tail;

			if (part > left)
				part = left;
			memcpy(pipe->bytes + tail, from, part);
			pipe->used += part;
			from += part;
			left -= part;
			put += part;
		}
	}
	return put;
}

/* Waits until bytes or the end can be read, or the timeout expires. */
static bool
pipe_wait_readable(struct pipe *pipe, int timeout_ms) GP_LOCKED(pipe->lock)
{
	uint64_t until = timeout_ms ? gp_deadline_ns(timeout_ms) : 0;

	while (!pipe->used && !pipe->is_writer_closed && !pipe->is_reader_closed &&
	       gp_cond_wait_until(&pipe->changed, &pipe->lock, until))
		;
	return pipe->used || pipe->is_writer_closed || pipe->is_reader_closed;
}

static ssize_t
loop_read(struct gp_stream *stream, struct iovec *iov, int count, int timeout_ms)
{
	struct pipe *pipe = conn_get_in(&stream->conn);
	ssize_t got;

	pthread_mutex_lock(&pipe->lock);
	(void)pipe_wait_readable(pipe, timeout_ms);
	if (pipe->is_reader_closed) {
		got = 0;
	} else if (pipe->used) {
		got = (ssize_t)pipe_read(pipe, iov, count);
		pipe_notify(pipe);
	} else {
		got = pipe->is_writer_closed ? 0 : -EAGAIN;
	}
	pthread_mutex_unlock(&pipe->lock);
	return got;
}

/* Waits until there is room to write, or the timeout expires. */
static void
pipe_wait_writable(struct pipe *pipe, int timeout_ms) GP_LOCKED(pipe->lock)
{
	uint64_t until = gp_deadline_ns(timeout_ms);

	while (pipe->used == PIPE_SIZE && !pipe->is_writer_closed && !pipe->is_reader_closed &&
	       gp_cond_wait_until(&pipe->changed, &pipe->lock, until))
		;
}

static ssize_t
loop_write(struct gp_stream *stream, struct iovec *iov, int count, bool more)
{
	unsigned int send_timeout_ms = stream->conn.send_timeout_ms;
	struct pipe *pipe = conn_get_out(&stream->conn);
	ssize_t done = -EPIPE;

	pthread_mutex_lock(&pipe->lock);
	if (pipe->used == PIPE_SIZE)
		pipe_wait_writable(pipe, send_timeout_ms ? (int)send_timeout_ms : -1);
	if (!pipe->is_writer_closed && !pipe->is_reader_closed && pipe->used == PIPE_SIZE) {
		done = -ETIMEDOUT;
	} else if (!pipe->is_writer_closed && !pipe->is_reader_closed) {
		done = (ssize_t)pipe_write(pipe, iov, count);
		pipe_notify(pipe);
	}
	pthread_mutex_unlock(&pipe->lock);
	return done;
}

static int
loop_wait(struct gp_stream *stream, int timeout_ms)
{
	struct pipe *pipe = conn_get_in(&stream->conn);
	int r;

	pthread_mutex_lock(&pipe->lock);
	r = pipe_wait_readable(pipe, timeout_ms);
	pthread_mutex_unlock(&pipe->lock);
	return r;
}

static void
loop_shutdown(struct gp_stream *stream)
{
	struct pipe *in = conn_get_in(&stream->conn);
	struct pipe *out = conn_get_out(&stream->conn);

	pthread_mutex_lock(&in->lock);
	in->is_reader_closed = true;
	pipe_notify(in);
	pthread_mutex_unlock(&in->lock);

	pthread_mutex_lock(&out->lock);
	out->is_writer_closed = true;
	pipe_notify(out);
	pthread_mutex_unlock(&out->lock);
}

static const struct gp_stream_io loop_io = {
	.read = loop_read,
	.write = loop_write,
	.wait = loop_wait,
	.shutdown = loop_shutdown,
};

static int
pipe_init(struct pipe *pipe)
{
	pthread_mutex_init(&pipe->lock, NULL);
	gp_cond_init(&pipe->changed);
	pipe->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	gp_fd_guard_mark(pipe->event_fd);
	return pipe->event_fd < 0 ? -errno : 0;
}

static void
pipe_fini(struct pipe *pipe)
{
	if (pipe->event_fd >= 0)
		close(pipe->event_fd);
	pthread_cond_destroy(&pipe->changed);
	pthread_mutex_destroy(&pipe->lock);
}

static void
pair_unref(struct loop_pair *pair)
{
	if (atomic_fetch_sub(&pair->refs, 1) > 1)
		return;
	pipe_fini(&pair->pipe[0]);
	pipe_fini(&pair->pipe[1]);
	free(pair);
}

static int
pair_create(struct loop_pair **pair_p)
{
	struct loop_pair *pair = calloc(1, sizeof(*pair));
	int r, other;

	if (!pair)
		return -ENOMEM;
	atomic_init(&pair->refs, 1);
	r = pipe_init(&pair->pipe[0]);
	other = pipe_init(&pair->pipe[1]);
	if (r || other) {
		pair_unref(pair);
		return r ? r : other;
	}
	*pair_p = pair;
	return 0;
}

static void
loop_destroy(struct gp_conn *conn)
{
	struct loop_conn *loop = (struct loop_conn *)conn;

	loop_shutdown(&loop->stream);
	pair_unref(loop->pair);
	gp_stream_fini(&loop->stream);
	free(loop);
}

static int
loop_conn_create(struct loop_pair *pair, int side, struct gp_conn **conn_p)
{
	struct loop_conn *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	atomic_fetch_add(&pair->refs, 1);
	loop->pair = pair;
	loop->side = side;
	if (gp_stream_init(&loop->stream, &gp_loop_ops, &loop_io,
			   GP_CONN_CAP_FD | GP_CONN_CAP_LOCAL | GP_CONN_CAP_ENCRYPTED)) {
		loop_destroy(&loop->stream.conn);
		return -ENOMEM;
	}
	snprintf(loop->stream.conn.peer, sizeof(loop->stream.conn.peer), "loop://pair");
	*conn_p = &loop->stream.conn;
	return 0;
}

int
gp_loop_create_pair(struct gp_conn **a_p, struct gp_conn **b_p)
{
	struct gp_conn *a = NULL, *b = NULL;
	struct loop_pair *pair = NULL;
	int r = pair_create(&pair);

	if (r)
		return r;
	r = loop_conn_create(pair, 0, &a);
	if (r == 0)
		r = loop_conn_create(pair, 1, &b);
	pair_unref(pair);
	if (r) {
		gp_conn_destroy(a);
		return r;
	}
	*a_p = a;
	*b_p = b;
	return 0;
}

static struct loop_listener *
listener_find(const char *name) GP_LOCKED(names_lock)
{
	struct loop_listener *at = names;

	while (at && strcmp(at->listener.url.host, name) != 0)
		at = at->next;
	return at;
}

static int
loop_connect(const struct gp_url *url, int timeout_ms, struct gp_conn **conn_p, char *detail,
	     size_t detail_size)
{
	struct gp_conn *near = NULL, *far = NULL;
	struct loop_listener *listener;
	uint64_t one = 1;
	int r = gp_loop_create_pair(&near, &far);

	if (r)
		return r;
	pthread_mutex_lock(&names_lock);
	listener = listener_find(url->host);
	if (listener && listener->waiting_count < BACKLOG &&
	    write(listener->event_fd, &one, sizeof(one)) == sizeof(one)) {
		gp_url_format(url, far->peer, sizeof(far->peer));
		listener->waiting[listener->waiting_count++] = far;
	} else {
		r = -ECONNREFUSED;
	}
	pthread_mutex_unlock(&names_lock);
	if (r) {
		gp_conn_destroy(near);
		gp_conn_destroy(far);
		return r;
	}
	*conn_p = near;
	return 0;
}

static int
loop_listen(const struct gp_url *url, struct gp_listener **listener_p, char *detail,
	    size_t detail_size)
{
	struct loop_listener *loop = calloc(1, sizeof(*loop));
	bool taken;
	int r;

	if (!loop)
		return -ENOMEM;
	loop->listener.ops = &gp_loop_ops;
	loop->listener.url = *url;
	loop->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	if (loop->event_fd < 0) {
		r = -errno;
		free(loop);
		return r;
	}
	pthread_mutex_lock(&names_lock);
	taken = listener_find(url->host) != NULL;
	if (!taken) {
		loop->next = names;
		names = loop;
	}
	pthread_mutex_unlock(&names_lock);
	if (taken) {
		close(loop->event_fd);
		free(loop);
		return -EADDRINUSE;
	}
	*listener_p = &loop->listener;
	return 0;
}

static int
loop_listener_fd(const struct gp_listener *listener)
{
	return ((const struct loop_listener *)listener)->event_fd;
}

static int
loop_accept(struct gp_listener *listener, int timeout_ms, struct gp_conn **conn_p)
{
	struct loop_listener *loop = (struct loop_listener *)listener;
	int r = gp_fd_wait(loop->event_fd, POLLIN, timeout_ms);
	uint64_t one;

	if (r < 0)
		return r;
	if (r == 0)
		return GP_E_TIMEOUT;
	pthread_mutex_lock(&names_lock);
	if (read(loop->event_fd, &one, sizeof(one)) != sizeof(one)) {
		r = GP_E_TIMEOUT;
	} else {
		*conn_p = loop->waiting[0];
		loop->waiting_count--;
		memmove(loop->waiting, loop->waiting + 1,
			(size_t)loop->waiting_count * sizeof(loop->waiting[0]));
		r = 0;
	}
	pthread_mutex_unlock(&names_lock);
	return r;
}

static void
loop_listener_destroy(struct gp_listener *listener)
{
	struct loop_listener *loop = (struct loop_listener *)listener;
	struct loop_listener **at = &names;

	pthread_mutex_lock(&names_lock);
	while (*at && *at != loop)
		at = &(*at)->next;
	if (*at)
		*at = loop->next;
	pthread_mutex_unlock(&names_lock);
	for (int i = 0; i < loop->waiting_count; i++)
		gp_conn_destroy(loop->waiting[i]);
	close(loop->event_fd);
	free(loop);
}

static int
loop_fd(const struct gp_conn *conn)
{
	return conn_get_in(conn)->event_fd;
}

static int
loop_peer_uid(const struct gp_conn *conn, uid_t *uid_p)
{
	*uid_p = getuid();
	return 0;
}

const struct gp_transport_ops gp_loop_ops = {
	.scheme = "loop",
	.connect = loop_connect,
	.listen = loop_listen,
	.accept = loop_accept,
	.listener_fd = loop_listener_fd,
	.listener_destroy = loop_listener_destroy,
	.recv_preamble = gp_stream_recv_preamble,
	.send_preamble = gp_stream_send_preamble,
	.send = gp_stream_send,
	.recv = gp_stream_recv,
	.recv_bulk = gp_stream_recv_bulk,
	.wait = gp_stream_wait,
	.pending = gp_stream_pending,
	.set_spin = gp_stream_set_spin,
	.set_stall_timeout = gp_stream_set_stall_timeout,
	.shutdown = gp_stream_shutdown,
	.fd = loop_fd,
	.peer_uid = loop_peer_uid,
	.destroy = loop_destroy,
};
