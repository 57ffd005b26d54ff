/* SPDX-License-Identifier: Apache-2.0 */
/* Byte stream of a connection for the message framing: segments with credits. */
#include "base/clock.h"
#include "transport/rdma/rdma.h"

#include <errno.h>
#include <string.h>

/* Reads bytes that have arrived. */
static size_t
rx_read(struct gp_rdma_conn *conn, uint8_t *to, size_t size) GP_LOCKED(conn->lock)
{
	size_t early = conn->early_end - conn->early_at, done = 0;

	if (early > 0) {
		done = early < size ? early : size;
		memcpy(to, conn->early + conn->early_at, done);
		conn->early_at += done;
	}
	while (done < size && conn->rx_count > 0) {
		unsigned int at = conn->rx_first, slot = conn->rx_queue[at].slot;
		size_t part = conn->rx_queue[at].end - conn->rx_queue[at].at;

		if (part > size - done)
			part = size - done;
		memcpy(to + done, gp_rdma_get_rx_memory(conn, slot) + conn->rx_queue[at].at, part);
		done += part;
		conn->rx_queue[at].at += (uint32_t)part;
		if (conn->rx_queue[at].at < conn->rx_queue[at].end)
			break;
		conn->rx_first = (at + 1) % GP_RDMA_RX;
		conn->rx_count--;
		gp_rdma_post_receive(conn, slot);
		conn->credits_owed++;
	}
	gp_rdma_return_credits(conn);
	return done;
}

static ssize_t
rdma_read(struct gp_stream *stream, struct iovec *iov, int count, int timeout_ms)
{
	struct gp_rdma_conn *conn = (struct gp_rdma_conn *)stream;
	int64_t deadline = timeout_ms ? gp_deadline_ms(timeout_ms) : 0;
	ssize_t got = 0;

	pthread_mutex_lock(&conn->lock);
	if (!gp_rdma_has_bytes(conn))
		gp_rdma_poll_cq(conn);
	while (!atomic_load(&stream->stopped)) {
		for (int i = 0; i < count && gp_rdma_has_bytes(conn); i++)
			got += (ssize_t)rx_read(conn, iov[i].iov_base, iov[i].iov_len);
		if (got > 0 || conn->ended)
			break;
		if (conn->down)
			got = conn->down;
		else if (timeout_ms == 0)
			got = -EAGAIN;
		else if (gp_rdma_wait(conn, deadline))
			got = gp_rdma_has_bytes(conn) || conn->ended ? 0 : -EAGAIN;
		if (got < 0)
			break;
	}
	if (got == 0 && conn->ended && !gp_rdma_owns_fd(conn, conn->events->fd))
		got = conn->down;
	pthread_mutex_unlock(&conn->lock);
	return got;
}

static ssize_t
rdma_write(struct gp_stream *stream, struct iovec *iov, int count, bool more)
{
	struct gp_rdma_conn *conn = (struct gp_rdma_conn *)stream;
	const size_t capacity = GP_RDMA_SEGMENT - GP_RDMA_SEGMENT_HEADER;
	unsigned int slot;
	int64_t deadline = 0;
	ssize_t done = 0;
	int r;

	pthread_mutex_lock(&conn->lock);
	gp_rdma_poll_cq(conn);
	gp_rdma_flush(conn);
	while ((r = gp_rdma_check_sendable(conn)) == 0) {
		/* A segment that waits for a credit can carry more bytes. */
		slot = (conn->tx_fill - 1) % GP_RDMA_TX;
		if (conn->tx_fill != conn->tx_post && conn->tx_size[slot] < capacity)
			break;
		slot = conn->tx_fill % GP_RDMA_TX;
		if (conn->tx_fill - conn->tx_free < GP_RDMA_TX) {
			conn->tx_size[slot] = 0;
			conn->tx_fill++;
			break;
		}
		if (deadline == 0)
			deadline = gp_rdma_get_send_deadline(conn);
		gp_rdma_check_send_deadline(conn, deadline);
		(void)gp_rdma_wait(conn, deadline);
	}
	for (int i = 0; i < count && r == 0 && conn->tx_size[slot] < capacity; i++) {
		size_t part = iov[i].iov_len;

		if (part > capacity - conn->tx_size[slot])
			part = capacity - conn->tx_size[slot];
		memcpy(gp_rdma_get_tx_memory(conn, slot) + GP_RDMA_SEGMENT_HEADER +
			       conn->tx_size[slot],
		       iov[i].iov_base, part);
		conn->tx_size[slot] += (uint32_t)part;
		done += (ssize_t)part;
	}
	if (r == 0)
		gp_rdma_flush(conn);
	pthread_mutex_unlock(&conn->lock);
	return r ? r : done;
}

static int
rdma_wait(struct gp_stream *stream, int timeout_ms)
{
	struct gp_rdma_conn *conn = (struct gp_rdma_conn *)stream;
	int64_t deadline = gp_deadline_ms(timeout_ms);
	bool ready;

	pthread_mutex_lock(&conn->lock);
	gp_rdma_poll_cq(conn);
	if (!gp_rdma_has_bytes(conn))
		gp_rdma_poll_events(conn);
	for (;;) {
		ready = gp_rdma_has_bytes(conn) || conn->ended || conn->down ||
			atomic_load(&stream->stopped);
		if (ready || gp_rdma_wait(conn, deadline))
			break;
	}
	ready = ready || gp_rdma_has_bytes(conn) || conn->ended || conn->down;
	if (!ready)
		gp_rdma_send_heartbeat(conn);
	pthread_mutex_unlock(&conn->lock);
	return ready;
}

static void
rdma_shutdown(struct gp_stream *stream)
{
	struct gp_rdma_conn *conn = (struct gp_rdma_conn *)stream;

	pthread_mutex_lock(&conn->lock);
	conn->ending = true;
	gp_rdma_poll_cq(conn);
	gp_rdma_flush(conn);
	gp_rdma_wake(conn);
	pthread_mutex_unlock(&conn->lock);
}

const struct gp_stream_io gp_rdma_io = {
	.read = rdma_read,
	.write = rdma_write,
	.wait = rdma_wait,
	.shutdown = rdma_shutdown,
};
