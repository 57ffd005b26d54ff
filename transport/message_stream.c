/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/message_stream.h"

#include "base/clock.h"
#include "base/thread.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HEADER_SIZE 8
/* Bytes that a read accepts beyond those needed: receives many small messages with a single system
 * call. */
#define READ_AHEAD ((size_t)64 << 10)
/* After a bulk only the next headers are worth a copy, not the next bulk. */
#define READ_AHEAD_BULK ((size_t)8 << 10)
/* A bulk of this size is worth a system call of its own, which reads it directly to its
 * destination. */
#define BULK_LONG ((size_t)16 << 10)
/* For BULK_EXPECTED messages after a long bulk another one is likely, so the first read accepts
 * little. */
#define READ_AHEAD_BEFORE_BULK ((size_t)1 << 10)
#define BULK_EXPECTED 16
/* Untouched pages cost nothing: a connection with small messages uses only the first few. */
#define BUFFER_SIZE (HEADER_SIZE + GP_CONN_MESSAGE_MAX + READ_AHEAD)
/* Maximum number of parts passed to a write. */
#define BATCH_MAX 64
/* Polls between two readings of the clock, which on some machines costs more than a poll. */
#define SPIN_POLLS 16
/* Up to this time, polling is cheaper for all threads than sleeping and being woken. */
#define SPIN_ALONE_NS 20000
/* Reported if the peer's machine acknowledges. */
#define NOTHING_READ "the peer has read nothing"

static struct gp_stream *
conn_to_stream(struct gp_conn *conn)
{
	return (struct gp_stream *)conn;
}

int
gp_stream_init(struct gp_stream *stream, const struct gp_transport_ops *ops,
	       const struct gp_stream_io *io, unsigned int caps)
{
	stream->conn.ops = ops;
	stream->conn.caps = caps;
	stream->io = io;
	stream->stall_timeout_ms = GP_CONN_TIMEOUT_MS;
	stream->buffer = malloc(BUFFER_SIZE);
	return stream->buffer ? 0 : -ENOMEM;
}

void
gp_stream_fini(struct gp_stream *stream)
{
	free(stream->buffer);
	stream->buffer = NULL;
}

bool
gp_stream_is_idle(const struct gp_stream *stream)
{
	return stream->start == stream->end && stream->bulk_left == 0 &&
	       stream->preamble_have == 0 && stream->recv_status == 0 && stream->send_status == 0;
}

static size_t
buffer_get_size(const struct gp_stream *stream)
{
	return stream->end - stream->start;
}

int
gp_stream_fail_recv(struct gp_stream *stream, ssize_t got, bool inside)
{
	int r;

	if (atomic_load(&stream->stopped))
		r = gp_conn_fail(&stream->conn, -ESHUTDOWN, "shut down by this end");
	else if (got == -EAGAIN && stream->conn.recv_deadline_ms &&
		 gp_now_ms() >= stream->conn.recv_deadline_ms)
		r = gp_conn_fail(&stream->conn, -ETIMEDOUT, "no whole message came in time");
	else if (got == -EAGAIN || got == -ETIME)
		r = gp_conn_fail_timeout(&stream->conn, stream->stall_timeout_ms,
					 "the peer stopped in the middle of a message, and sent "
					 "nothing");
	else if (got == -ETIMEDOUT)
		r = gp_conn_fail_timeout(&stream->conn, 0, NOTHING_READ);
	else if (got < 0)
		r = gp_conn_fail(&stream->conn, (int)got, "receiving failed: %m");
	else if (inside)
		r = gp_conn_fail(&stream->conn, -ECONNRESET,
				 "the peer closed the connection inside a message");
	else
		r = GP_E_EOF;
	stream->recv_status = r;
	return r;
}

/* SO_RCVTIMEO restarts with each read, so the deadline is enforced outside of it. */
static ssize_t
read_until_deadline(struct gp_stream *stream, struct iovec *iov, int count, int timeout_ms)
{
	int64_t end = stream->conn.recv_deadline_ms;

	if (timeout_ms >= 0 && gp_now_ms() + timeout_ms < end)
		end = gp_now_ms() + timeout_ms;
	for (;;) {
		int64_t left = end - gp_now_ms();
		ssize_t got;
		int r;

		if (left <= 0)
			return -EAGAIN;
		r = stream->io->wait(stream, left > INT_MAX ? INT_MAX : (int)left);
		if (r <= 0)
			return r ? r : -EAGAIN;
		got = stream->io->read(stream, iov, count, 0);
		if (got != -EAGAIN)
			return got;
	}
}

/* Polls repeatedly until bytes arrive. */
static ssize_t
read_poll(struct gp_stream *stream, struct iovec *iov, int count)
{
	ssize_t got = -EAGAIN;

	for (int i = 0; i < SPIN_POLLS && got == -EAGAIN; i++) {
		stream->again = i > 0;
		got = stream->io->read(stream, iov, count, 0);
	}
	stream->again = false;
	return got;
}

/* Polls before sleeping. After SPIN_ALONE_NS, only while no other thread needs the processor. */
static ssize_t
read_spin(struct gp_stream *stream, struct iovec *iov, int count)
{
	uint64_t begin = gp_now_ns(), spent;
	ssize_t got;

	do {
		got = read_poll(stream, iov, count);
		spent = gp_now_ns() - begin;
	} while (got == -EAGAIN && spent < stream->spin_usec * UINT64_C(1000) &&
		 (spent < SPIN_ALONE_NS || !gp_cpu_yield()));
	return got;
}

/* Whether a read that has received nothing for the stall time is to be repeated. */
static bool
stall_is_ignored(struct gp_stream *stream, ssize_t got)
{
	const struct gp_conn *conn = &stream->conn;

	if (!conn->on_stall || conn->recv_deadline_ms || atomic_load(&stream->stopped) ||
	    (got != -EAGAIN && got != -ETIME))
		return false;
	stream->silent_ms += stream->stall_timeout_ms;
	return conn->on_stall(conn->on_stall_arg, stream->silent_ms);
}

/* Within a message, returns -EAGAIN if no byte arrives within the stall time. Between messages, the
 * idle timeout applies. */
static ssize_t
read_once(struct gp_stream *stream, struct iovec *iov, int count, bool inside)
{
	bool until = stream->conn.recv_deadline_ms != 0;
	/* The idle timeout must not shorten a deadline. */
	unsigned int before_ms = until ? 0 : stream->conn.idle_timeout_ms;
	unsigned int most_ms = inside ? stream->stall_timeout_ms : before_ms;
	int timeout_ms = most_ms ? (int)most_ms : -1;
	ssize_t got;

	if (until)
		return read_until_deadline(stream, iov, count, timeout_ms);
	got = stream->spin_usec ? read_spin(stream, iov, count) : -EAGAIN;
	return got != -EAGAIN ? got : stream->io->read(stream, iov, count, timeout_ms);
}

static ssize_t
read_some(struct gp_stream *stream, struct iovec *iov, int count, bool inside)
{
	ssize_t got;

	stream->silent_ms = 0;
	/* -ETIME: a message of the backend's own protocol has begun and stalled. */
	do
		got = read_once(stream, iov, count, inside);
	while ((inside || got == -ETIME) && stall_is_ignored(stream, got));
	return got;
}

/* Makes `need` bytes available at `start`, and accepts up to `ahead` more that have already
 * arrived. */
static int
buffer_fill(struct gp_stream *stream, size_t need, size_t ahead, bool inside)
{
	while (buffer_get_size(stream) < need) {
		size_t want = need - buffer_get_size(stream);
		bool begun = inside || buffer_get_size(stream) > 0;
		struct iovec iov;
		ssize_t got;

		if (want < ahead)
			want = ahead;
		if (BUFFER_SIZE - stream->end < want) {
			memmove(stream->buffer, stream->buffer + stream->start,
				buffer_get_size(stream));
			stream->end -= stream->start;
			stream->start = 0;
		}
		if (want > BUFFER_SIZE - stream->end)
			want = BUFFER_SIZE - stream->end;
		iov.iov_base = stream->buffer + stream->end;
		iov.iov_len = want;
		got = read_some(stream, &iov, 1, begun);
		if (got == -EAGAIN && !begun && stream->conn.idle_timeout_ms &&
		    !stream->conn.recv_deadline_ms)
			return GP_E_TIMEOUT;
		if (got <= 0)
			return gp_stream_fail_recv(stream, got, begun);
		stream->end += (size_t)got;
	}
	return 0;
}

static int
recv_check(struct gp_stream *stream)
{
	if (stream->recv_status)
		return stream->recv_status;
	return atomic_load(&stream->stopped) ? gp_stream_fail_recv(stream, 0, false) : 0;
}

static size_t
conn_get_message_max(struct gp_conn *conn)
{
	size_t max = atomic_load_explicit(&conn->message_max, memory_order_relaxed);

	return max && max < GP_CONN_MESSAGE_MAX ? max : GP_CONN_MESSAGE_MAX;
}

int
gp_stream_recv(struct gp_conn *conn, struct gp_message *message)
{
	struct gp_stream *stream = conn_to_stream(conn);
	uint32_t size, bulk_size;
	uint8_t *data, *aligned;
	int r;

	r = stream->bulk_left ? gp_stream_recv_bulk(conn, NULL, stream->bulk_left)
			      : recv_check(stream);
	if (r)
		return r;
	if (stream->start == stream->end)
		stream->start = stream->end = 0;
	r = buffer_fill(stream, HEADER_SIZE,
			stream->bulk_expected ? READ_AHEAD_BEFORE_BULK : READ_AHEAD, false);
	if (r)
		return r;
	memcpy(&size, stream->buffer + stream->start, sizeof(size));
	memcpy(&bulk_size, stream->buffer + stream->start + sizeof(size), sizeof(bulk_size));
	size = le32toh(size);
	bulk_size = le32toh(bulk_size);
	if (size > conn_get_message_max(conn)) {
		stream->recv_status = gp_conn_fail(
			conn, -EPROTO, "the peer sent a message of %u bytes, over the limit", size);
		return stream->recv_status;
	}
	r = buffer_fill(stream, HEADER_SIZE + size, bulk_size ? 0 : READ_AHEAD, true);
	if (r)
		return r;

	data = stream->buffer + stream->start + HEADER_SIZE;
	stream->start += HEADER_SIZE + size;
	/* The consumed header leaves room to move the data down to an aligned address. */
	aligned = (uint8_t *)((uintptr_t)data & ~(uintptr_t)7);
	if (aligned != data)
		memmove(aligned, data, size);
	stream->bulk_left = bulk_size;
	if (bulk_size >= BULK_LONG)
		stream->bulk_expected = BULK_EXPECTED;
	else if (stream->bulk_expected)
		stream->bulk_expected--;
	*message = (struct gp_message){ .data = aligned, .size = size, .bulk_size = bulk_size };
	return 0;
}

/* Reads up to `size` bytes of the bulk to `dst`; NULL: discards them. */
static ssize_t
bulk_read(struct gp_stream *stream, uint8_t *dst, size_t size)
{
	size_t room = BUFFER_SIZE - stream->end;
	uint8_t nowhere[16 << 10];
	struct iovec iov[2] = { { .iov_base = dst, .iov_len = size } };
	int count = 1;

	if (!dst) {
		iov[0].iov_base = nowhere;
		if (size > sizeof(nowhere))
			iov[0].iov_len = sizeof(nowhere);
	}
	if (iov[0].iov_len == stream->bulk_left && room) {
		iov[1].iov_base = stream->buffer + stream->end;
		iov[1].iov_len = room < READ_AHEAD_BULK ? room : READ_AHEAD_BULK;
		count = 2;
	}
	return read_some(stream, iov, count, true);
}

int
gp_stream_recv_bulk(struct gp_conn *conn, void *dst, size_t size)
{
	struct gp_stream *stream = conn_to_stream(conn);
	uint8_t *to = dst;
	size_t take;
	int r;

	if (size > stream->bulk_left)
		return GP_E_INVALID;
	r = recv_check(stream);
	if (r)
		return r;
	take = size < buffer_get_size(stream) ? size : buffer_get_size(stream);
	if (take) {
		if (to) {
			memcpy(to, stream->buffer + stream->start, take);
			to += take;
		}
		stream->start += take;
		stream->bulk_left -= take;
		size -= take;
	}
	while (size) {
		ssize_t got = bulk_read(stream, to, size);

		if (got <= 0)
			return gp_stream_fail_recv(stream, got, true);
		take = (size_t)got < size ? (size_t)got : size;
		stream->end += (size_t)got - take;
		if (to)
			to += take;
		stream->bulk_left -= take;
		size -= take;
	}
	return 0;
}

/* Position in the lists of a message's parts. */
struct iov_cursor {
	struct {
		const struct iovec *iov;
		int count;
	} list[3];
	int at_list;
	int at;
	size_t offset;
};

static int
cursor_gather(const struct iov_cursor *iov_cursor, struct iovec *batch, size_t *size_p)
{
	size_t offset = iov_cursor->offset;
	int at = iov_cursor->at;
	int used = 0;

	*size_p = 0;
	for (int l = iov_cursor->at_list; l < 3; l++, at = 0) {
		for (; at < iov_cursor->list[l].count; at++, offset = 0) {
			const struct iovec *part = &iov_cursor->list[l].iov[at];

			if (part->iov_len == offset)
				continue;
			if (used == BATCH_MAX)
				return used;
			batch[used].iov_base = (uint8_t *)part->iov_base + offset;
			batch[used].iov_len = part->iov_len - offset;
			*size_p += batch[used++].iov_len;
		}
	}
	return used;
}

static void
cursor_advance(struct iov_cursor *iov_cursor, size_t size)
{
	while (size) {
		const struct iovec *part;
		size_t left;

		if (iov_cursor->at == iov_cursor->list[iov_cursor->at_list].count) {
			iov_cursor->at_list++;
			iov_cursor->at = 0;
			continue;
		}
		part = &iov_cursor->list[iov_cursor->at_list].iov[iov_cursor->at];
		left = part->iov_len - iov_cursor->offset;
		if (size < left) {
			iov_cursor->offset += size;
			return;
		}
		size -= left;
		iov_cursor->offset = 0;
		iov_cursor->at++;
	}
}

static int
cursor_send(struct gp_stream *stream, struct iov_cursor *iov_cursor, size_t size)
{
	while (size) {
		struct iovec batch[BATCH_MAX];
		size_t batch_size;
		int count = cursor_gather(iov_cursor, batch, &batch_size);
		ssize_t done;

		if (atomic_load(&stream->stopped))
			done = -ESHUTDOWN;
		else
			done = stream->io->write(stream, batch, count, batch_size < size);
		if (done < 0)
			return gp_stream_fail_send(stream, (int)done);
		cursor_advance(iov_cursor, (size_t)done);
		size -= (size_t)done;
	}
	return 0;
}

static int
stream_send(struct gp_stream *stream, struct iov_cursor *iov_cursor, size_t size)
{
	int r;

	if (stream->send_status)
		return stream->send_status;
	atomic_store_explicit(&stream->sending, true, memory_order_relaxed);
	r = cursor_send(stream, iov_cursor, size);
	if (r == -ETIMEDOUT)
		atomic_store_explicit(&stream->send_timed_out, true, memory_order_relaxed);
	atomic_store_explicit(&stream->sending, false, memory_order_release);
	return r;
}

int
gp_stream_send(struct gp_conn *conn, const struct iovec *data, int data_count,
	       const struct iovec *bulk, int bulk_count, size_t data_size, size_t bulk_size)
{
	uint32_t header[2] = { htole32((uint32_t)data_size), htole32((uint32_t)bulk_size) };
	struct iovec first = { .iov_base = header, .iov_len = sizeof(header) };
	struct iov_cursor iov_cursor = {
		.list = { { &first, 1 }, { data, data_count }, { bulk, bulk_count } },
	};

	return stream_send(conn_to_stream(conn), &iov_cursor,
			   sizeof(header) + data_size + bulk_size);
}

int
gp_stream_send_head(struct gp_stream *stream, const struct iovec *data, int data_count,
		    size_t data_size, size_t bulk_size)
{
	uint32_t header[2] = { htole32((uint32_t)data_size), htole32((uint32_t)bulk_size) };
	struct iovec first = { .iov_base = header, .iov_len = sizeof(header) };
	struct iov_cursor iov_cursor = { .list = { { &first, 1 }, { data, data_count } } };

	return stream_send(stream, &iov_cursor, sizeof(header) + data_size);
}

int
gp_stream_fail_send(struct gp_stream *stream, int r)
{
	/* The kernel reports that it has closed the connection only once, to the sender or to the
	 * receiver. */
	if (r == -EPIPE &&
	    gp_conn_is_silent(&stream->conn, stream->conn.timeout_ms ? stream->conn.timeout_ms
								     : GP_CONN_TIMEOUT_MS))
		r = -ETIMEDOUT;
	if (atomic_load(&stream->stopped))
		r = gp_conn_fail(&stream->conn, -ESHUTDOWN, "shut down by this end");
	else if (r == -EAGAIN && stream->conn.nonblocking_send)
		r = gp_conn_fail(&stream->conn, r, "the peer does not read");
	else
		r = r == -ETIMEDOUT
			    ? gp_conn_fail_timeout(&stream->conn, stream->conn.send_timeout_ms,
						   NOTHING_READ)
			    : gp_conn_fail(&stream->conn, r, "sending failed: %m");
	stream->send_status = r;
	return r;
}

int
gp_stream_send_preamble(struct gp_conn *conn, const void *preamble, size_t size)
{
	struct iovec first = { .iov_base = (void *)preamble, .iov_len = size };
	struct iov_cursor iov_cursor = { .list = { { &first, 1 } } };

	return stream_send(conn_to_stream(conn), &iov_cursor, size);
}

int
gp_stream_recv_preamble(struct gp_conn *conn, void *preamble, size_t size, int timeout_ms)
{
	struct gp_stream *stream = conn_to_stream(conn);
	int64_t deadline = gp_deadline_ms(timeout_ms);
	int r = recv_check(stream);

	if (r)
		return r;
	while (stream->preamble_have < size) {
		struct iovec iov = { .iov_base = stream->preamble + stream->preamble_have,
				     .iov_len = size - stream->preamble_have };
		ssize_t got = stream->io->read(stream, &iov, 1, 0);

		if (got > 0) {
			stream->preamble_have += (size_t)got;
			continue;
		}
		if (got != -EAGAIN)
			return gp_stream_fail_recv(stream, got, false);
		r = stream->io->wait(stream, gp_remaining_ms(deadline));
		if (r < 0)
			return gp_stream_fail_recv(stream, r, false);
		if (r == 0)
			return GP_E_TIMEOUT;
	}
	memcpy(preamble, stream->preamble, size);
	stream->preamble_have = 0;
	return 0;
}

int
gp_conn_wait(struct gp_conn *conn, int timeout_ms)
{
	struct gp_stream *stream = conn_to_stream(conn);

	if (stream->recv_status < 0)
		return stream->recv_status;
	if (buffer_get_size(stream) || stream->recv_status > 0)
		return 1;
	return atomic_load(&stream->stopped) ? gp_stream_fail_recv(stream, 0, false)
					     : stream->io->wait(stream, timeout_ms);
}

bool
gp_stream_pending(const struct gp_conn *conn)
{
	return buffer_get_size((const struct gp_stream *)conn) > 0;
}

void
gp_stream_set_spin(struct gp_conn *conn, unsigned int usec)
{
	conn_to_stream(conn)->spin_usec = usec;
}

void
gp_stream_set_stall_timeout(struct gp_conn *conn, unsigned int ms)
{
	conn_to_stream(conn)->stall_timeout_ms = ms;
}

void
gp_stream_shutdown(struct gp_conn *conn)
{
	struct gp_stream *stream = conn_to_stream(conn);

	atomic_store(&stream->stopped, true);
	stream->io->shutdown(stream);
}
