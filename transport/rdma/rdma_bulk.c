/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulk from memory to memory.  The client offers memory that the server reads, or room that the
 * server writes; of each at most GP_RDMA_PIECES pieces are outstanding.  What lies in kept memory
 * is not copied, at either end.
 */
#include "base/clock.h"
#include "base/lock.h"
#include "transport/rdma/rdma.h"

#include <errno.h>
#include <string.h>

#define STAGE_SIZE (GP_RDMA_PIECES * GP_RDMA_STAGE_PIECE)

/* Where the bytes of a list of parts go on. */
struct source {
	const struct iovec *iov;
	int count, at;
	size_t offset;
	bool in_place; /* all of it is one part in kept memory, which this CPU may not touch */
};

/* A piece under way: where its bytes are at this end, and where they belong. */
struct piece {
	uint8_t *staged; /* NULL: they are in place */
	uint8_t *dst;
	size_t size;
	uint64_t number; /* of the work request */
	bool last;       /* of an offer */
};

/* The next bytes that lie together; 0 at the end. */
static size_t
next_part(struct source *source, const uint8_t **memory_p)
{
	while (source->at < source->count) {
		const struct iovec *part = &source->iov[source->at];

		if (source->offset < part->iov_len) {
			*memory_p = (const uint8_t *)part->iov_base + source->offset;
			return part->iov_len - source->offset;
		}
		source->at++;
		source->offset = 0;
	}
	*memory_p = NULL;
	return 0;
}

/* Copies up to `size` bytes out of the list, or passes over them. */
static size_t
gather(struct source *source, uint8_t *to, size_t size)
{
	const uint8_t *memory;
	size_t done = 0, part;

	while (done < size && (part = next_part(source, &memory)) > 0) {
		if (part > size - done)
			part = size - done;
		if (to)
			memcpy(to + done, memory, part);
		source->offset += part;
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
	r = gp_rdma_memory(conn->device, STAGE_SIZE, !conn->server, &stage->memory, &stage->mr);
	if (r)
		(void)gp_conn_fail(
			&conn->stream.conn, r,
			"memory cannot be registered with the RDMA device: %m (limit: ulimit -l)");
	return r;
}

static uint8_t *
stage_piece(const struct gp_rdma_stage *stage, uint64_t number)
{
	return stage->memory + number % GP_RDMA_PIECES * GP_RDMA_STAGE_PIECE;
}

void
gp_rdma_bulk_fini(struct gp_rdma_conn *conn)
{
	gp_rdma_memory_free(conn->stage_out.memory, STAGE_SIZE, conn->stage_out.mr);
	gp_rdma_memory_free(conn->stage_in.memory, STAGE_SIZE, conn->stage_in.mr);
}

/* The next piece to name to the server: its memory as it is, or through the stage. */
static int
next_offer(struct gp_rdma_conn *conn, struct source *source, struct gp_rdma_place *place,
	   bool *staged_p)
{
	const uint8_t *memory;
	size_t size = next_part(source, &memory);
	struct ibv_mr *mr;
	uint8_t *staged;
	int r;

	if (size > GP_RDMA_PIECE_MAX)
		size = GP_RDMA_PIECE_MAX;
	mr = size >= GP_RDMA_DIRECT_MIN ? gp_rdma_kept(conn->device, memory, size, true) : NULL;
	*staged_p = !mr;
	if (mr) {
		source->offset += size;
		*place = (struct gp_rdma_place){ (uintptr_t)memory, mr->rkey, (uint32_t)size };
		return 0;
	}
	r = stage_open(conn, &conn->stage_out);
	if (r)
		return r;
	staged = stage_piece(&conn->stage_out, conn->offered);
	size = gather(source, staged, GP_RDMA_STAGE_PIECE);
	*place = (struct gp_rdma_place){ (uintptr_t)staged, conn->stage_out.mr->rkey,
					 (uint32_t)size };
	return 0;
}

/* Until the peer takes something, which it must do within the time of gp_conn_set_unread(). */
static void
wait_for_reader(struct gp_rdma_conn *conn, int64_t *deadline) GP_LOCKED(conn->lock)
{
	if (*deadline == 0)
		*deadline = gp_rdma_taken_deadline(conn);
	gp_rdma_check_taken(conn, *deadline);
	(void)gp_rdma_wait_soon(conn, *deadline);
}

static int
send_as_client(struct gp_rdma_conn *conn, struct source *source)
{
	const uint8_t *memory;
	uint64_t until = 0; /* offers of the caller's own memory are over then */
	bool staged;
	int r = 0;

	pthread_mutex_lock(&conn->lock);
	while (r == 0 && next_part(source, &memory) > 0) {
		struct gp_rdma_place place;
		int64_t deadline = 0;

		while ((r = gp_rdma_sendable(conn)) == 0 &&
		       conn->offered - conn->taken == GP_RDMA_PIECES)
			wait_for_reader(conn, &deadline);
		if (r)
			break;
		/* Nobody else uses the piece, and others shall not wait for the copy. */
		pthread_mutex_unlock(&conn->lock);
		r = next_offer(conn, source, &place, &staged);
		pthread_mutex_lock(&conn->lock);
		if (r == 0) {
			conn->offered++;
			until = staged ? until : conn->offered;
			r = gp_rdma_control(conn, GP_RDMA_OFFER, &place);
		}
	}
	while (r == 0 && conn->taken < until) {
		uint64_t taken = conn->taken;
		int64_t deadline = 0;

		while ((r = gp_rdma_sendable(conn)) == 0 && conn->taken == taken)
			wait_for_reader(conn, &deadline);
	}
	/* The caller may use its memory again: nobody may read it then. */
	if (conn->taken < until)
		gp_rdma_disconnect(conn);
	pthread_mutex_unlock(&conn->lock);
	return r;
}

/* The oldest room, as soon as there is one. */
static int
wait_for_room(struct gp_rdma_conn *conn, struct gp_rdma_place **room_p) GP_LOCKED(conn->lock)
{
	int64_t deadline = 0;
	int r;

	while ((r = gp_rdma_sendable(conn)) == 0 && conn->rooms.count == 0)
		wait_for_reader(conn, &deadline);
	*room_p = &conn->rooms.list[conn->rooms.first];
	return r;
}

static int
room_filled(struct gp_rdma_conn *conn) GP_LOCKED(conn->lock)
{
	conn->rooms.first = (conn->rooms.first + 1) % GP_RDMA_PIECES;
	conn->rooms.count--;
	return gp_rdma_control(conn, GP_RDMA_FILLED, NULL);
}

/* Bytes of the list as the device reads them: from where they are, or copied into a piece of the
 * stage.  0: there is none. */
static size_t
next_write(struct gp_rdma_conn *conn, struct source *source, size_t size, uint64_t number,
	   struct ibv_sge *sge)
{
	const uint8_t *memory = NULL;
	size_t part = next_part(source, &memory);
	struct ibv_mr *mr;
	uint8_t *staged;

	if (part > size)
		part = size;
	mr = source->in_place || part >= GP_RDMA_DIRECT_MIN || part == size
		     ? gp_rdma_kept(conn->device, memory, part, false)
		     : NULL;
	if (source->in_place && !mr)
		return 0;
	if (mr) {
		source->offset += part;
		*sge = (struct ibv_sge){ (uintptr_t)memory, (uint32_t)part, mr->lkey };
		return part;
	}
	if (stage_open(conn, &conn->stage_out))
		return 0;
	staged = stage_piece(&conn->stage_out, number);
	part = gather(source, staged, size < GP_RDMA_STAGE_PIECE ? size : GP_RDMA_STAGE_PIECE);
	*sge = (struct ibv_sge){ (uintptr_t)staged, (uint32_t)part, conn->stage_out.mr->lkey };
	return part;
}

static int
write_room(struct gp_rdma_conn *conn, struct source *source, struct gp_rdma_place *room,
	   uint64_t *numbers, uint64_t *count) GP_LOCKED(conn->lock)
{
	struct ibv_send_wr wr = { .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_sge sge;
	size_t size;
	int r;

	if (room->key == 0) {
		room->size -= (uint32_t)gather(source, NULL, room->size);
		return 0;
	}
	/* The piece's last use, four pieces ago. */
	r = gp_rdma_wait_retired(conn, numbers[*count % GP_RDMA_PIECES]);
	if (r)
		return r;
	pthread_mutex_unlock(&conn->lock);
	size = next_write(conn, source, room->size, *count, &sge);
	pthread_mutex_lock(&conn->lock);
	if (size == 0)
		return -ENOMEM;
	wr.sg_list = &sge;
	wr.wr.rdma.remote_addr = room->address;
	wr.wr.rdma.rkey = room->key;
	r = gp_rdma_post(conn, &wr, true);
	numbers[(*count)++ % GP_RDMA_PIECES] = conn->posted;
	room->address += size;
	room->size -= (uint32_t)size;
	return r;
}

static int
send_as_server(struct gp_rdma_conn *conn, struct source *source)
{
	uint64_t numbers[GP_RDMA_PIECES] = { 0 }, count = 0;
	struct gp_rdma_place *room;
	const uint8_t *memory;
	int r = 0;

	source->in_place = source->count == 1 && gp_rdma_kept(conn->device, source->iov->iov_base,
							      source->iov->iov_len, false);
	pthread_mutex_lock(&conn->lock);
	while (r == 0 && next_part(source, &memory) > 0) {
		r = wait_for_room(conn, &room);
		if (r == 0)
			r = write_room(conn, source, room, numbers, &count);
		if (r == 0 && room->size == 0)
			r = room_filled(conn);
	}
	/* The memory is the caller's again when the device has read it. */
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
	struct source source = { .iov = bulk, .count = count };

	return conn->server ? send_as_server(conn, &source) : send_as_client(conn, &source);
}

/* Until something comes, but not for longer than a peer may pause inside a message. */
static int
wait_for_peer(struct gp_rdma_conn *conn) GP_LOCKED(conn->lock)
{
	const struct gp_conn *base = &conn->stream.conn;
	unsigned int stall = conn->stream.stall_ms, silent_ms = 0;
	int64_t deadline = stall ? gp_now_ms() + stall : -1;
	uint64_t progress = conn->progress;
	bool goes_on;
	int r = 0;

	if (atomic_load(&conn->stream.stopped))
		return -ESHUTDOWN;
	if (conn->ended)
		return -EPIPE;
	while (r == 0 && conn->progress == progress && !conn->down &&
	       !atomic_load(&conn->stream.stopped)) {
		r = gp_rdma_wait_soon(conn, deadline);
		if (r != -EAGAIN || !base->stalled)
			continue;
		silent_ms += stall;
		pthread_mutex_unlock(&conn->lock);
		goes_on = base->stalled(base->stalled_arg, silent_ms);
		pthread_mutex_lock(&conn->lock);
		r = goes_on ? 0 : r;
		deadline = gp_now_ms() + stall;
	}
	if (conn->down)
		return conn->down;
	return conn->progress == progress ? r : 0;
}

/* Where the piece goes: to dst with its registration, or through the stage without. */
static void
place_piece(struct gp_rdma_conn *conn, struct piece *piece, uint8_t *dst, uint64_t number,
	    const struct ibv_mr *mr, struct gp_rdma_place *place)
{
	piece->dst = dst;
	piece->staged = mr ? NULL : stage_piece(&conn->stage_in, number);
	place->address = (uintptr_t)(mr ? dst : piece->staged);
	place->size = (uint32_t)piece->size;
	if (!mr)
		mr = conn->stage_in.mr;
	place->key = conn->server ? mr->lkey : mr->rkey;
}

static void
unstage(struct gp_rdma_conn *conn, const struct piece *piece) GP_LOCKED(conn->lock)
{
	if (!piece->staged)
		return;
	pthread_mutex_unlock(&conn->lock);
	memcpy(piece->dst, piece->staged, piece->size);
	pthread_mutex_lock(&conn->lock);
}

/* How much of what is left the next piece has: all kept memory, with its registration, or what the
 * stage takes. */
static size_t
piece_size(const struct gp_rdma_conn *conn, const uint8_t *dst, size_t left, struct ibv_mr **mr_p)
{
	size_t size = left < GP_RDMA_PIECE_MAX ? left : GP_RDMA_PIECE_MAX;

	*mr_p = dst ? gp_rdma_kept(conn->device, dst, size, !conn->server) : NULL;
	if (dst && !*mr_p && size > GP_RDMA_STAGE_PIECE)
		size = GP_RDMA_STAGE_PIECE;
	return size;
}

static int
receive_as_client(struct gp_rdma_conn *conn, uint8_t *dst, size_t size, bool in_place)
	GP_LOCKED(conn->lock)
{
	struct piece pieces[GP_RDMA_PIECES];
	uint64_t begin = conn->roomed, done = begin;
	int r = 0;

	while (r == 0 && (size > 0 || done != conn->roomed)) {
		if (size > 0 && conn->roomed - done < GP_RDMA_PIECES) {
			struct piece *piece = &pieces[conn->roomed % GP_RDMA_PIECES];
			struct gp_rdma_place place = { 0 };
			struct ibv_mr *mr;

			piece->size = piece_size(conn, dst, size, &mr);
			piece->staged = NULL;
			if (dst && !mr && in_place) {
				r = -EFAULT;
				break;
			}
			if (dst)
				place_piece(conn, piece, dst, conn->roomed, mr, &place);
			place.size = (uint32_t)piece->size;
			conn->roomed++;
			r = gp_rdma_control(conn, GP_RDMA_ROOM, &place);
			size -= piece->size;
			dst = dst ? dst + piece->size : NULL;
		} else if (conn->filled > done) {
			unstage(conn, &pieces[done++ % GP_RDMA_PIECES]);
		} else {
			r = wait_for_peer(conn);
		}
	}
	/* The caller may use its memory again: nobody may write to it then. */
	if (r)
		gp_rdma_disconnect(conn);
	return r;
}

/* Reads the next part of the oldest offer. */
static int
read_offer(struct gp_rdma_conn *conn, struct piece *piece, uint8_t *dst, size_t size,
	   uint64_t number, bool in_place)
{
	struct gp_rdma_place *offer = &conn->offers.list[conn->offers.first], place;
	struct ibv_send_wr wr = { .num_sge = 1, .opcode = IBV_WR_RDMA_READ };
	struct ibv_sge sge;
	struct ibv_mr *mr;
	int r = 0;

	piece->size = piece_size(conn, dst, size < offer->size ? size : offer->size, &mr);
	piece->staged = NULL;
	piece->number = 0;
	if (dst && !mr && in_place)
		return -EFAULT;
	if (dst) {
		place_piece(conn, piece, dst, number, mr, &place);
		sge = (struct ibv_sge){ place.address, place.size, place.key };
		wr.sg_list = &sge;
		wr.wr.rdma.remote_addr = offer->address;
		wr.wr.rdma.rkey = offer->key;
		r = gp_rdma_post(conn, &wr, true);
		piece->number = conn->posted;
	}
	offer->address += piece->size;
	offer->size -= (uint32_t)piece->size;
	piece->last = offer->size == 0;
	if (piece->last) {
		conn->offers.first = (conn->offers.first + 1) % GP_RDMA_PIECES;
		conn->offers.count--;
	}
	return r;
}

static int
receive_as_server(struct gp_rdma_conn *conn, uint8_t *dst, size_t size, bool in_place)
	GP_LOCKED(conn->lock)
{
	unsigned int depth =
		conn->device->reads_max < GP_RDMA_PIECES ? conn->device->reads_max : GP_RDMA_PIECES;
	struct piece pieces[GP_RDMA_PIECES];
	uint64_t begun = 0, done = 0, last = 0;
	int r = 0;

	while (r == 0 && (size > 0 || done != begun)) {
		struct piece *oldest = &pieces[done % GP_RDMA_PIECES];

		if (size > 0 && begun - done < depth && conn->offers.count > 0) {
			struct piece *piece = &pieces[begun % GP_RDMA_PIECES];

			r = read_offer(conn, piece, dst, size, begun++, in_place);
			last = conn->posted;
			size -= piece->size;
			dst = dst ? dst + piece->size : NULL;
		} else if (done != begun && conn->retired >= oldest->number && !conn->down) {
			unstage(conn, oldest);
			done++;
			if (oldest->last)
				r = gp_rdma_control(conn, GP_RDMA_TAKEN, NULL);
		} else {
			r = wait_for_peer(conn);
		}
	}
	/* The device may still write to memory that is the caller's again. */
	if (r) {
		gp_rdma_disconnect(conn);
		gp_rdma_wait_flushed(conn, last);
	}
	return r;
}

int
gp_rdma_recv_bulk(struct gp_rdma_conn *conn, uint8_t *dst, size_t size)
{
	/* What is kept as a whole needs no stage, and this CPU may not be able to touch it. */
	bool in_place = dst && gp_rdma_kept(conn->device, dst, size, !conn->server);
	int r = 0;

	if (dst && !in_place)
		r = stage_open(conn, &conn->stage_in);
	if (r)
		return r;
	pthread_mutex_lock(&conn->lock);
	r = conn->server ? receive_as_server(conn, dst, size, in_place)
			 : receive_as_client(conn, dst, size, in_place);
	pthread_mutex_unlock(&conn->lock);
	return r;
}
