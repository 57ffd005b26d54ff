/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulk transfer between memories. The client offers memory that the server reads, or room that the
 * server writes to; at most GP_RDMA_PIECES pieces of each are outstanding. Bulk in registered
 * memory is not copied at either end.
 */
#include "base/clock.h"
#include "base/lock.h"
#include "transport/rdma/rdma.h"

#include <errno.h>
#include <string.h>

#define STAGE_SIZE (GP_RDMA_PIECES * GP_RDMA_STAGE_PIECE)

/* Position in a list of parts. */
struct bulk_source {
	const struct iovec *iov;
	int count, at;
	size_t offset;
	/* A single part in registered memory, which this CPU may not be able to access. */
	bool in_place;
};

/* A piece in flight: its bytes at this end, and their destination. */
struct bulk_piece {
	uint8_t *staged; /* NULL: transferred without a copy */
	uint8_t *dst;
	size_t size;
	uint64_t number; /* number of the work request */
	bool last;       /* last piece of an offer */
};

/* Returns the next contiguous bytes; 0 at the end. */
static size_t
source_get_part(struct bulk_source *bulk_source, const uint8_t **memory_p)
{
	while (bulk_source->at < bulk_source->count) {
		const struct iovec *part = &bulk_source->iov[bulk_source->at];

		if (bulk_source->offset < part->iov_len) {
			*memory_p = (const uint8_t *)part->iov_base + bulk_source->offset;
			return part->iov_len - bulk_source->offset;
		}
		bulk_source->at++;
		bulk_source->offset = 0;
	}
	*memory_p = NULL;
	return 0;
}

/* Copies up to `size` bytes from the list, or skips them if `to` is NULL. */
static size_t
source_read(struct bulk_source *bulk_source, uint8_t *to, size_t size)
{
	const uint8_t *memory;
	size_t done = 0, part;

	while (done < size && (part = source_get_part(bulk_source, &memory)) > 0) {
		if (part > size - done)
			part = size - done;
		if (to)
			memcpy(to + done, memory, part);
		bulk_source->offset += part;
		done += part;
	}
	return done;
}

static int
stage_open(struct gp_rdma_conn *conn, struct gp_rdma_stage *stage)
{
	int r;

	if (stage->memory)
		return 0;
	r = gp_rdma_memory_alloc(conn->device, STAGE_SIZE, !conn->server, &stage->memory,
				 &stage->mr);
	if (r)
		(void)gp_conn_fail(
			&conn->stream.conn, r,
			"memory cannot be registered with the RDMA device: %m (limit: ulimit -l)");
	return r;
}

static uint8_t *
stage_get_piece(const struct gp_rdma_stage *stage, uint64_t number)
{
	return stage->memory + number % GP_RDMA_PIECES * GP_RDMA_STAGE_PIECE;
}

void
gp_rdma_bulk_fini(struct gp_rdma_conn *conn)
{
	gp_rdma_memory_free(conn->stage_out.memory, STAGE_SIZE, conn->stage_out.mr);
	gp_rdma_memory_free(conn->stage_in.memory, STAGE_SIZE, conn->stage_in.mr);
}

/* Prepares the next piece to offer to the server: the memory itself, or a copy in the staging
 * memory. */
static int
source_next_offer(struct gp_rdma_conn *conn, struct bulk_source *bulk_source,
		  struct gp_rdma_remote_buffer *place, bool *staged_p)
{
	const uint8_t *memory;
	size_t size = source_get_part(bulk_source, &memory);
	struct ibv_mr *mr;
	uint8_t *staged;
	int r;

	if (size > GP_RDMA_PIECE_MAX)
		size = GP_RDMA_PIECE_MAX;
	mr = size >= GP_RDMA_DIRECT_MIN ? gp_rdma_get_registration(conn->device, memory, size, true)
					: NULL;
	*staged_p = !mr;
	if (mr) {
		bulk_source->offset += size;
		*place = (struct gp_rdma_remote_buffer){ (uintptr_t)memory, mr->rkey,
							 (uint32_t)size };
		return 0;
	}
	r = stage_open(conn, &conn->stage_out);
	if (r)
		return r;
	staged = stage_get_piece(&conn->stage_out, conn->offered);
	size = source_read(bulk_source, staged, GP_RDMA_STAGE_PIECE);
	*place = (struct gp_rdma_remote_buffer){ (uintptr_t)staged, conn->stage_out.mr->rkey,
						 (uint32_t)size };
	return 0;
}

/* Waits until the peer makes progress, within the time of gp_conn_set_send_timeout(). */
static void
send_wait(struct gp_rdma_conn *conn, int64_t *deadline) GP_LOCKED(conn->lock)
{
	if (*deadline == 0)
		*deadline = gp_rdma_get_send_deadline(conn);
	gp_rdma_check_send_deadline(conn, *deadline);
	(void)gp_rdma_wait_spinning(conn, *deadline);
}

static int
client_send(struct gp_rdma_conn *conn, struct bulk_source *bulk_source)
{
	const uint8_t *memory;
	uint64_t until = 0; /* number of the last offer that named the caller's own memory */
	bool staged;
	int r = 0;

	pthread_mutex_lock(&conn->lock);
	while (r == 0 && source_get_part(bulk_source, &memory) > 0) {
		struct gp_rdma_remote_buffer place;
		int64_t deadline = 0;

		while ((r = gp_rdma_check_sendable(conn)) == 0 &&
		       conn->offered - conn->taken == GP_RDMA_PIECES)
			send_wait(conn, &deadline);
		if (r)
			break;
		/* The piece is not shared, and the copy must not delay other threads. */
		pthread_mutex_unlock(&conn->lock);
		r = source_next_offer(conn, bulk_source, &place, &staged);
		pthread_mutex_lock(&conn->lock);
		if (r == 0) {
			conn->offered++;
			until = staged ? until : conn->offered;
			r = gp_rdma_send_control(conn, GP_RDMA_OFFER, &place);
		}
	}
	while (r == 0 && conn->taken < until) {
		uint64_t taken = conn->taken;
		int64_t deadline = 0;

		while ((r = gp_rdma_check_sendable(conn)) == 0 && conn->taken == taken)
			send_wait(conn, &deadline);
	}
	/* The caller may reuse its memory after the return, so the peer must not read it any
	 * more. */
	if (conn->taken < until)
		gp_rdma_disconnect(conn);
	pthread_mutex_unlock(&conn->lock);
	return r;
}

/* Waits for the oldest room. */
static int
room_wait(struct gp_rdma_conn *conn, struct gp_rdma_remote_buffer **room_p) GP_LOCKED(conn->lock)
{
	int64_t deadline = 0;
	int r;

	while ((r = gp_rdma_check_sendable(conn)) == 0 && conn->rooms.count == 0)
		send_wait(conn, &deadline);
	*room_p = &conn->rooms.list[conn->rooms.first];
	return r;
}

static int
room_pop(struct gp_rdma_conn *conn) GP_LOCKED(conn->lock)
{
	conn->rooms.first = (conn->rooms.first + 1) % GP_RDMA_PIECES;
	conn->rooms.count--;
	return gp_rdma_send_control(conn, GP_RDMA_FILLED, NULL);
}

/* Prepares the next bytes for the device: in place, or copied into a piece of the staging memory.
 * Returns 0 on failure. */
static size_t
source_next_write(struct gp_rdma_conn *conn, struct bulk_source *bulk_source, size_t size,
		  uint64_t number, struct ibv_sge *sge)
{
	const uint8_t *memory = NULL;
	size_t part = source_get_part(bulk_source, &memory);
	struct ibv_mr *mr;
	uint8_t *staged;

	if (part > size)
		part = size;
	mr = bulk_source->in_place || part >= GP_RDMA_DIRECT_MIN || part == size
		     ? gp_rdma_get_registration(conn->device, memory, part, false)
		     : NULL;
	if (bulk_source->in_place && !mr)
		return 0;
	if (mr) {
		bulk_source->offset += part;
		*sge = (struct ibv_sge){ (uintptr_t)memory, (uint32_t)part, mr->lkey };
		return part;
	}
	if (stage_open(conn, &conn->stage_out))
		return 0;
	staged = stage_get_piece(&conn->stage_out, number);
	part = source_read(bulk_source, staged,
			   size < GP_RDMA_STAGE_PIECE ? size : GP_RDMA_STAGE_PIECE);
	*sge = (struct ibv_sge){ (uintptr_t)staged, (uint32_t)part, conn->stage_out.mr->lkey };
	return part;
}

static int
room_write(struct gp_rdma_conn *conn, struct bulk_source *bulk_source,
	   struct gp_rdma_remote_buffer *room, uint64_t *numbers, uint64_t *count)
	GP_LOCKED(conn->lock)
{
	struct ibv_send_wr wr = { .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_sge sge;
	size_t size;
	int r;

	if (room->key == 0) {
		room->size -= (uint32_t)source_read(bulk_source, NULL, room->size);
		return 0;
	}
	/* The previous use of this piece, GP_RDMA_PIECES pieces ago. */
	r = gp_rdma_wait_retired(conn, numbers[*count % GP_RDMA_PIECES]);
	if (r)
		return r;
	pthread_mutex_unlock(&conn->lock);
	size = source_next_write(conn, bulk_source, room->size, *count, &sge);
	pthread_mutex_lock(&conn->lock);
	if (size == 0)
		return -ENOMEM;
	wr.sg_list = &sge;
	wr.wr.rdma.remote_addr = room->address;
	wr.wr.rdma.rkey = room->key;
	r = gp_rdma_post_send(conn, &wr, true);
	numbers[(*count)++ % GP_RDMA_PIECES] = conn->posted;
	room->address += size;
	room->size -= (uint32_t)size;
	return r;
}

static int
server_send(struct gp_rdma_conn *conn, struct bulk_source *bulk_source)
{
	uint64_t numbers[GP_RDMA_PIECES] = { 0 }, count = 0;
	struct gp_rdma_remote_buffer *room;
	const uint8_t *memory;
	int r = 0;

	bulk_source->in_place = bulk_source->count == 1 &&
				gp_rdma_get_registration(conn->device, bulk_source->iov->iov_base,
							 bulk_source->iov->iov_len, false);
	pthread_mutex_lock(&conn->lock);
	while (r == 0 && source_get_part(bulk_source, &memory) > 0) {
		r = room_wait(conn, &room);
		if (r == 0)
			r = room_write(conn, bulk_source, room, numbers, &count);
		if (r == 0 && room->size == 0)
			r = room_pop(conn);
	}
	/* The memory may be reused only after the device has read it. */
	for (unsigned int i = 0; i < GP_RDMA_PIECES; i++) {
		int retired = gp_rdma_wait_retired(conn, numbers[i]);

		r = r ? r : retired;
	}
	pthread_mutex_unlock(&conn->lock);
	return r;
}

int
gp_rdma_send_bulk(struct gp_rdma_conn *conn, const struct iovec *bulk, int count)
{
	struct bulk_source bulk_source = { .iov = bulk, .count = count };

	return conn->server ? server_send(conn, &bulk_source) : client_send(conn, &bulk_source);
}

/* Waits for the peer, at most the stall time. */
static int
receive_wait(struct gp_rdma_conn *conn) GP_LOCKED(conn->lock)
{
	const struct gp_conn *base = &conn->stream.conn;
	unsigned int stall = conn->stream.stall_timeout_ms, silent_ms = 0;
	int64_t deadline = stall ? gp_now_ms() + stall : -1;
	uint64_t progress = conn->completions;
	bool goes_on;
	int r = 0;

	if (atomic_load(&conn->stream.stopped))
		return -ESHUTDOWN;
	if (conn->ended)
		return -EPIPE;
	while (r == 0 && conn->completions == progress && !conn->down &&
	       !atomic_load(&conn->stream.stopped)) {
		r = gp_rdma_wait_spinning(conn, deadline);
		if (r != -EAGAIN || !base->on_stall)
			continue;
		silent_ms += stall;
		pthread_mutex_unlock(&conn->lock);
		goes_on = base->on_stall(base->on_stall_arg, silent_ms);
		pthread_mutex_lock(&conn->lock);
		r = goes_on ? 0 : r;
		deadline = gp_now_ms() + stall;
	}
	if (conn->down)
		return conn->down;
	return conn->completions == progress ? r : 0;
}

/* Sets the destination of a piece: dst if it is registered (mr), otherwise staging memory. */
static void
piece_assign(struct gp_rdma_conn *conn, struct bulk_piece *bulk_piece, uint8_t *dst,
	     uint64_t number, const struct ibv_mr *mr, struct gp_rdma_remote_buffer *place)
{
	bulk_piece->dst = dst;
	bulk_piece->staged = mr ? NULL : stage_get_piece(&conn->stage_in, number);
	place->address = (uintptr_t)(mr ? dst : bulk_piece->staged);
	place->size = (uint32_t)bulk_piece->size;
	if (!mr)
		mr = conn->stage_in.mr;
	place->key = conn->server ? mr->lkey : mr->rkey;
}

static void
piece_unstage(struct gp_rdma_conn *conn, const struct bulk_piece *bulk_piece) GP_LOCKED(conn->lock)
{
	if (!bulk_piece->staged)
		return;
	pthread_mutex_unlock(&conn->lock);
	memcpy(bulk_piece->dst, bulk_piece->staged, bulk_piece->size);
	pthread_mutex_lock(&conn->lock);
}

/* Returns the size of the next piece: registered memory, with its registration, or at most a piece
 * of staging memory. */
static size_t
piece_get_size(const struct gp_rdma_conn *conn, const uint8_t *dst, size_t left,
	       struct ibv_mr **mr_p)
{
	size_t size = left < GP_RDMA_PIECE_MAX ? left : GP_RDMA_PIECE_MAX;

	*mr_p = dst ? gp_rdma_get_registration(conn->device, dst, size, !conn->server) : NULL;
	if (dst && !*mr_p && size > GP_RDMA_STAGE_PIECE)
		size = GP_RDMA_STAGE_PIECE;
	return size;
}

static int
client_receive(struct gp_rdma_conn *conn, uint8_t *dst, size_t size, bool in_place)
	GP_LOCKED(conn->lock)
{
	struct bulk_piece pieces[GP_RDMA_PIECES];
	uint64_t begin = conn->roomed, done = begin;
	int r = 0;

	while (r == 0 && (size > 0 || done != conn->roomed)) {
		if (size > 0 && conn->roomed - done < GP_RDMA_PIECES) {
			struct bulk_piece *bulk_piece = &pieces[conn->roomed % GP_RDMA_PIECES];
			struct gp_rdma_remote_buffer place = { 0 };
			struct ibv_mr *mr;

			bulk_piece->size = piece_get_size(conn, dst, size, &mr);
			bulk_piece->staged = NULL;
			if (dst && !mr && in_place) {
				r = -EFAULT;
				break;
			}
			if (dst)
				piece_assign(conn, bulk_piece, dst, conn->roomed, mr, &place);
			place.size = (uint32_t)bulk_piece->size;
			conn->roomed++;
			r = gp_rdma_send_control(conn, GP_RDMA_ROOM, &place);
			size -= bulk_piece->size;
			dst = dst ? dst + bulk_piece->size : NULL;
		} else if (conn->filled > done) {
			piece_unstage(conn, &pieces[done++ % GP_RDMA_PIECES]);
		} else {
			r = receive_wait(conn);
		}
	}
	/* The caller may reuse its memory after the return, so the peer must not write to it any
	 * more. */
	if (r)
		gp_rdma_disconnect(conn);
	return r;
}

/* Reads the next part of the oldest offer. */
static int
offer_read(struct gp_rdma_conn *conn, struct bulk_piece *bulk_piece, uint8_t *dst, size_t size,
	   uint64_t number, bool in_place) GP_LOCKED(conn->lock)
{
	struct gp_rdma_remote_buffer *offer = &conn->offers.list[conn->offers.first], place;
	struct ibv_send_wr wr = { .num_sge = 1, .opcode = IBV_WR_RDMA_READ };
	struct ibv_sge sge;
	struct ibv_mr *mr;
	int r = 0;

	bulk_piece->size = piece_get_size(conn, dst, size < offer->size ? size : offer->size, &mr);
	bulk_piece->staged = NULL;
	bulk_piece->number = 0;
	if (dst && !mr && in_place)
		return -EFAULT;
	if (dst) {
		piece_assign(conn, bulk_piece, dst, number, mr, &place);
		sge = (struct ibv_sge){ place.address, place.size, place.key };
		wr.sg_list = &sge;
		wr.wr.rdma.remote_addr = offer->address;
		wr.wr.rdma.rkey = offer->key;
		r = gp_rdma_post_send(conn, &wr, true);
		bulk_piece->number = conn->posted;
	}
	offer->address += bulk_piece->size;
	offer->size -= (uint32_t)bulk_piece->size;
	bulk_piece->last = offer->size == 0;
	if (bulk_piece->last) {
		conn->offers.first = (conn->offers.first + 1) % GP_RDMA_PIECES;
		conn->offers.count--;
	}
	return r;
}

static int
server_receive(struct gp_rdma_conn *conn, uint8_t *dst, size_t size, bool in_place)
	GP_LOCKED(conn->lock)
{
	unsigned int depth =
		conn->device->reads_max < GP_RDMA_PIECES ? conn->device->reads_max : GP_RDMA_PIECES;
	struct bulk_piece pieces[GP_RDMA_PIECES];
	uint64_t begun = 0, done = 0, last = 0;
	int r = 0;

	while (r == 0 && (size > 0 || done != begun)) {
		struct bulk_piece *oldest = &pieces[done % GP_RDMA_PIECES];

		if (size > 0 && begun - done < depth && conn->offers.count > 0) {
			struct bulk_piece *bulk_piece = &pieces[begun % GP_RDMA_PIECES];

			r = offer_read(conn, bulk_piece, dst, size, begun++, in_place);
			last = conn->posted;
			size -= bulk_piece->size;
			dst = dst ? dst + bulk_piece->size : NULL;
		} else if (done != begun && conn->retired >= oldest->number && !conn->down) {
			piece_unstage(conn, oldest);
			done++;
			if (oldest->last)
				r = gp_rdma_send_control(conn, GP_RDMA_TAKEN, NULL);
		} else {
			r = receive_wait(conn);
		}
	}
	/* The device may still write to the caller's memory. */
	if (r) {
		gp_rdma_disconnect(conn);
		gp_rdma_wait_flushed(conn, last);
	}
	return r;
}

int
gp_rdma_recv_bulk(struct gp_rdma_conn *conn, uint8_t *dst, size_t size)
{
	/* A destination that is registered as a whole needs no staging memory, and this CPU may not
	 * be able to access it. */
	bool in_place = dst && gp_rdma_get_registration(conn->device, dst, size, !conn->server);
	int r = 0;

	if (dst && !in_place)
		r = stage_open(conn, &conn->stage_in);
	if (r)
		return r;
	pthread_mutex_lock(&conn->lock);
	r = conn->server ? server_receive(conn, dst, size, in_place)
			 : client_receive(conn, dst, size, in_place);
	pthread_mutex_unlock(&conn->lock);
	return r;
}
