/* SPDX-License-Identifier: Apache-2.0 */
/* Traffic of a connection's queue pair: work requests, completions, segments and credits. */
#include "base/clock.h"
#include "transport/rdma/rdma.h"
#include "transport/timeout.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Marks the wr_id of a receive; that of a send is its number. */
#define RECEIVE_BIT ((uint64_t)1 << 63)
#define SIGNAL_EVERY 8
/* Part of the send queue that data leaves free for control segments. */
#define SEND_RESERVE (GP_RDMA_SEND_QUEUE / 2)
#define POLL_BATCH 16
/* The maximum number of completions at one time. A poll processes all that exist when it starts,
 * and does not hold the lock for as long as a peer continues to send. */
#define DRAIN_MAX (GP_RDMA_SEND_QUEUE + GP_RDMA_RX)

void
gp_rdma_set_down(struct gp_rdma_conn *conn, int r, const char *text)
{
	if (conn->down)
		return;
	conn->down = r;
	if (!conn->ended)
		(void)gp_conn_fail(&conn->stream.conn, r, "%s", text);
}

void
gp_rdma_post_receive(struct gp_rdma_conn *conn, unsigned int slot)
{
	struct ibv_sge sge = { .addr = (uintptr_t)gp_rdma_get_rx_memory(conn, slot),
			       .length = GP_RDMA_SEGMENT,
			       .lkey = conn->rx_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = RECEIVE_BIT | slot, .sg_list = &sge, .num_sge = 1 },
			   *bad;

	if (conn->down)
		return;
	if (ibv_post_recv(conn->id->qp, &wr, &bad))
		gp_rdma_set_down(conn, -EIO, "the RDMA device accepts no more receives");
}

int
gp_rdma_post_send(struct gp_rdma_conn *conn, struct ibv_send_wr *wr, bool signal)
{
	struct ibv_send_wr *bad;
	int r;

	if (conn->down)
		return conn->down;
	wr->wr_id = conn->posted + 1;
	/* Posting to such a device is a write() to this descriptor. */
	if (conn->device->posts_by_kernel && !gp_rdma_owns_fd(conn, conn->device->verbs->cmd_fd))
		return conn->down;
	if (signal || wr->wr_id - conn->signalled >= SIGNAL_EVERY)
		wr->send_flags |= IBV_SEND_SIGNALED;
	r = ibv_post_send(conn->id->qp, wr, &bad);
	if (r) {
		gp_rdma_set_down(conn, -EIO,
				 r == EACCES ? "the RDMA device accepts nothing from a process "
					       "that has changed its user"
					     : "the RDMA device accepts no more sends");
		return conn->down;
	}
	conn->posted++;
	if (wr->send_flags & IBV_SEND_SIGNALED)
		conn->signalled = conn->posted;
	return 0;
}

static void
segment_encode_header(struct gp_rdma_conn *conn, uint8_t *to, enum gp_rdma_type type, size_t size)
{
	uint16_t credits = htole16((uint16_t)conn->credits_owed);
	uint32_t length = htole32((uint32_t)size);

	to[0] = (uint8_t)type;
	to[1] = 0;
	memcpy(to + 2, &credits, sizeof(credits));
	memcpy(to + 4, &length, sizeof(length));
	conn->credits_owed = 0;
}

static int
segment_post(struct gp_rdma_conn *conn, const uint8_t *segment, size_t size, bool signal)
	GP_LOCKED(conn->lock)
{
	struct ibv_sge sge = { .addr = (uintptr_t)segment,
			       .length = (uint32_t)size,
			       .lkey = conn->tx_mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	bool copied = size <= conn->inline_max;

	if (copied)
		wr.send_flags = IBV_SEND_INLINE;
	return gp_rdma_post_send(conn, &wr, signal || !copied);
}

/* Posts a control segment if the send queue has room. */
static bool
control_try_post(struct gp_rdma_conn *conn, enum gp_rdma_type type,
		 const struct gp_rdma_remote_buffer *place) GP_LOCKED(conn->lock)
{
	/* Not all devices copy the segment when it is posted, so each request has memory of its
	 * own. */
	uint8_t *segment = conn->tx + GP_RDMA_TX * GP_RDMA_SEGMENT +
			   conn->posted % GP_RDMA_SEND_QUEUE * GP_RDMA_CONTROL_SIZE;
	size_t size = place ? 16 : 0;

	if (conn->posted - conn->retired >= GP_RDMA_SEND_QUEUE - 1)
		return false;
	segment_encode_header(conn, segment, type, size);
	if (place) {
		uint64_t address = htole64(place->address);
		uint32_t key = htole32(place->key), length = htole32(place->size);

		memcpy(segment + 8, &address, sizeof(address));
		memcpy(segment + 16, &key, sizeof(key));
		memcpy(segment + 20, &length, sizeof(length));
	}
	(void)segment_post(conn, segment, GP_RDMA_SEGMENT_HEADER + size, type == GP_RDMA_END);
	return true;
}

int
gp_rdma_send_control(struct gp_rdma_conn *conn, enum gp_rdma_type type,
		     const struct gp_rdma_remote_buffer *place)
{
	int64_t deadline = 0;

	/* Also sent to a peer that has ended its own direction. */
	while (!conn->down && !control_try_post(conn, type, place)) {
		if (atomic_load(&conn->stream.stopped))
			return -ESHUTDOWN;
		if (deadline == 0)
			deadline = gp_rdma_get_send_deadline(conn);
		gp_rdma_check_send_deadline(conn, deadline);
		(void)gp_rdma_wait(conn, deadline);
	}
	return conn->down;
}

void
gp_rdma_flush(struct gp_rdma_conn *conn)
{
	while (conn->tx_post != conn->tx_fill && conn->credits > 0 && !conn->down &&
	       conn->posted - conn->retired < SEND_RESERVE) {
		unsigned int slot = conn->tx_post % GP_RDMA_TX;
		uint8_t *memory = gp_rdma_get_tx_memory(conn, slot);

		segment_encode_header(conn, memory, GP_RDMA_BYTES, conn->tx_size[slot]);
		if (segment_post(conn, memory, GP_RDMA_SEGMENT_HEADER + conn->tx_size[slot], false))
			return;
		conn->tx_number[slot] =
			GP_RDMA_SEGMENT_HEADER + conn->tx_size[slot] <= conn->inline_max
				? 0
				: conn->posted;
		conn->credits--;
		conn->tx_post++;
	}
	while (conn->tx_free != conn->tx_post &&
	       conn->tx_number[conn->tx_free % GP_RDMA_TX] <= conn->retired)
		conn->tx_free++;
	if (conn->ending && !conn->end_number && conn->tx_post == conn->tx_fill && !conn->down)
		if (control_try_post(conn, GP_RDMA_END, NULL))
			conn->end_number = conn->posted;
}

/* Prevents the peer from running out of credits while this end has nothing to send. */
void
gp_rdma_return_credits(struct gp_rdma_conn *conn)
{
	if (conn->credits_owed >= GP_RDMA_CREDITS / 2 && !conn->down)
		(void)control_try_post(conn, GP_RDMA_CREDIT, NULL);
}

static void
remote_buffer_decode(struct gp_rdma_conn *conn, struct gp_rdma_remote_buffers *places,
		     const uint8_t *fields, size_t size) GP_LOCKED(conn->lock)
{
	struct gp_rdma_remote_buffer place;

	if (size != 16 || places->count == GP_RDMA_PIECES || !conn->server) {
		gp_rdma_set_down(conn, -EPROTO, "the peer named memory out of order");
		return;
	}
	memcpy(&place.address, fields, 8);
	memcpy(&place.key, fields + 8, 4);
	memcpy(&place.size, fields + 12, 4);
	place.address = le64toh(place.address);
	place.key = le32toh(place.key);
	place.size = le32toh(place.size);
	if (place.size == 0) {
		gp_rdma_set_down(conn, -EPROTO, "the peer named memory of size 0");
		return;
	}
	places->list[(places->first + places->count++) % GP_RDMA_PIECES] = place;
}

/* Processes a segment other than data. */
static void
control_handle(struct gp_rdma_conn *conn, unsigned int type, const uint8_t *fields, size_t size)
	GP_LOCKED(conn->lock)
{
	switch (type) {
	case GP_RDMA_CREDIT:
		break;
	case GP_RDMA_OFFER:
		remote_buffer_decode(conn, &conn->offers, fields, size);
		break;
	case GP_RDMA_ROOM:
		remote_buffer_decode(conn, &conn->rooms, fields, size);
		break;
	case GP_RDMA_TAKEN:
		conn->taken++;
		break;
	case GP_RDMA_FILLED:
		conn->filled++;
		break;
	case GP_RDMA_END:
		conn->ended = true;
		break;
	default:
		gp_rdma_set_down(conn, -EPROTO, "the peer sent a segment of unknown type");
	}
	if (conn->taken > conn->offered || conn->filled > conn->roomed)
		gp_rdma_set_down(conn, -EPROTO, "the peer sent an unrequested reply");
}

static void
segment_handle(struct gp_rdma_conn *conn, unsigned int slot, size_t received) GP_LOCKED(conn->lock)
{
	const uint8_t *segment = gp_rdma_get_rx_memory(conn, slot);
	uint16_t credits;
	uint32_t size;

	memcpy(&credits, segment + 2, sizeof(credits));
	memcpy(&size, segment + 4, sizeof(size));
	credits = le16toh(credits);
	size = le32toh(size);
	if (received < GP_RDMA_SEGMENT_HEADER || size != received - GP_RDMA_SEGMENT_HEADER ||
	    conn->credits + credits > GP_RDMA_CREDITS) {
		gp_rdma_set_down(conn, -EPROTO, "the peer sent an invalid segment");
		return;
	}
	conn->credits += credits;
	/* Segments that crossed the peer's end are meaningless. */
	if (conn->ended)
		return;
	if (segment[0] == GP_RDMA_BYTES && size > 0) {
		unsigned int at = (conn->rx_first + conn->rx_count++) % GP_RDMA_RX;

		conn->rx_queue[at].slot = slot;
		conn->rx_queue[at].at = GP_RDMA_SEGMENT_HEADER;
		conn->rx_queue[at].end = GP_RDMA_SEGMENT_HEADER + size;
		if (conn->rx_count <= GP_RDMA_CREDITS)
			return;
		gp_rdma_set_down(conn, -EPROTO, "the peer sent without credit");
		return;
	}
	control_handle(conn, segment[0], segment + GP_RDMA_SEGMENT_HEADER, size);
	gp_rdma_post_receive(conn, slot);
}

static void
completion_handle_error(struct gp_rdma_conn *conn, const struct ibv_wc *wc) GP_LOCKED(conn->lock)
{
	const char *what = gp_rdma_lib.ibv_wc_status_str(wc->status);

	switch (wc->status) {
	case IBV_WC_WR_FLUSH_ERR:
		gp_rdma_set_down(conn, -ECONNRESET, "the connection was cut");
		break;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
		gp_rdma_set_down(conn, -ECONNRESET, "the peer's device does not respond");
		break;
	default:
		gp_rdma_set_down(conn, -EPROTO, what);
	}
}

void
gp_rdma_poll_cq(struct gp_rdma_conn *conn)
{
	struct ibv_wc wc[POLL_BATCH];
	uint64_t before = conn->completions;
	int count, sum = 0;

	do {
		count = ibv_poll_cq(conn->cq, POLL_BATCH, wc);
		for (int i = 0; i < count; i++) {
			conn->completions++;
			if (wc[i].status != IBV_WC_SUCCESS)
				completion_handle_error(conn, &wc[i]);
			else if (wc[i].wr_id & RECEIVE_BIT)
				segment_handle(conn, (unsigned int)(wc[i].wr_id & ~RECEIVE_BIT),
					       wc[i].byte_len);
			if (!(wc[i].wr_id & RECEIVE_BIT))
				conn->retired = wc[i].wr_id;
		}
		sum += count;
	} while (count == POLL_BATCH && sum < DRAIN_MAX);
	conn->more = count == POLL_BATCH;
	if (count < 0)
		gp_rdma_set_down(conn, -EIO, "the RDMA device's completions cannot be read");
	if (conn->completions == before)
		return;
	gp_rdma_flush(conn);
	gp_rdma_return_credits(conn);
	pthread_cond_broadcast(&conn->changed);
}

void
gp_rdma_disconnect(struct gp_rdma_conn *conn)
{
	if (conn->disconnected)
		return;
	conn->disconnected = true;
	/* If the program has closed the descriptors, the kernel has disconnected. */
	if (!gp_rdma_owns_fd(conn, conn->events->fd) ||
	    !gp_rdma_owns_fd(conn, conn->device->verbs->cmd_fd))
		return;
	(void)gp_rdma_lib.rdma_disconnect(conn->id);
}

int
gp_rdma_check_sendable(struct gp_rdma_conn *conn)
{
	if (atomic_load(&conn->stream.stopped))
		return -ESHUTDOWN;
	if (conn->ended && gp_rdma_owns_fd(conn, conn->events->fd))
		return -EPIPE;
	return conn->down;
}

int64_t
gp_rdma_get_send_deadline(const struct gp_rdma_conn *conn)
{
	unsigned int send_timeout_ms = conn->stream.conn.send_timeout_ms;

	return send_timeout_ms ? gp_now_ms() + send_timeout_ms : -1;
}

void
gp_rdma_check_send_deadline(struct gp_rdma_conn *conn, int64_t deadline)
{
	char time[GP_TIMEOUT_TEXT_MAX], why[96];

	if (gp_remaining_ms(deadline) != 0 || conn->down)
		return;
	gp_timeout_format(conn->stream.conn.send_timeout_ms, time);
	(void)snprintf(why, sizeof(why), "the peer has read nothing for %s", time);
	gp_rdma_set_down(conn, -ETIMEDOUT, why);
	/* The peer's device may still access memory of this end. */
	gp_rdma_disconnect(conn);
	gp_rdma_wake(conn);
}

void
gp_rdma_wait_flushed(struct gp_rdma_conn *conn, uint64_t number)
{
	int64_t deadline = gp_deadline_ms(GP_RDMA_LINGER_MS);

	while (conn->retired < number && gp_remaining_ms(deadline) > 0)
		(void)gp_rdma_wait(conn, deadline);
}

int
gp_rdma_wait_retired(struct gp_rdma_conn *conn, uint64_t number)
{
	int64_t deadline = gp_rdma_get_send_deadline(conn);

	while (conn->retired < number && !conn->down && !atomic_load(&conn->stream.stopped)) {
		gp_rdma_check_send_deadline(conn, deadline);
		(void)gp_rdma_wait_spinning(conn, deadline);
	}
	if (conn->retired >= number)
		return conn->down;
	/* The memory is about to be reused, and until then the device might retransmit from it. */
	gp_rdma_set_down(conn, -ESHUTDOWN, "shut down by this end");
	gp_rdma_disconnect(conn);
	gp_rdma_wait_flushed(conn, number);
	return conn->down;
}
