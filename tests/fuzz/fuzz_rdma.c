/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of a peer over RDMA, to a connection on a fake device: its completions are the
 * input.  Segments have right or wrong headers, requests are completed or fail; memory that a
 * request names must be registered, and so must memory that the client reports to the server.
 *
 * The first byte: which end is tested, and what it sends meanwhile; the second: how bulk is
 * received. Then operations, each a byte with its operands; after the last one the connection is
 * cut.
 */
#include "tests/fake_rdma.h"
#include "transport/rdma/registered_memory.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BULK_MAX ((size_t)1 << 20)
#define REGIONS_MAX 64
#define MESSAGES_MAX 64
#define SENDS_MAX 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct region {
	struct ibv_mr mr;
	bool used, remote;
};

static struct region regions[REGIONS_MAX];
static uint8_t bulk[BULK_MAX];

/* Of the input, and of the connection that it is for. */
static const uint8_t *next, *end;
static bool down;
static struct ibv_recv_wr receives[GP_RDMA_RX];
static struct ibv_sge receive_parts[GP_RDMA_RX];
static unsigned int receive_first, receive_count;
static struct {
	uint64_t number;
	bool signalled;
} sends[SENDS_MAX];
static unsigned int send_first, send_count;

static void
check(bool holds)
{
	if (!holds)
		abort();
}

static bool
is_registered(uint64_t address, uint64_t size, uint32_t key, bool remote)
{
	for (unsigned int i = 0; i < REGIONS_MAX; i++) {
		uint64_t base = (uintptr_t)regions[i].mr.addr;

		if (regions[i].used && regions[i].mr.lkey == key && address >= base &&
		    size <= regions[i].mr.length && address - base <= regions[i].mr.length - size)
			return !remote || regions[i].remote;
	}
	return false;
}

/* The library's functions. */

static struct ibv_mr *
reg_mr(struct ibv_pd *of, void *address, size_t length, int access)
{
	for (unsigned int i = 0; i < REGIONS_MAX; i++) {
		if (regions[i].used)
			continue;
		regions[i].used = true;
		regions[i].remote = access & IBV_ACCESS_REMOTE_WRITE;
		regions[i].mr = (struct ibv_mr){
			.addr = address, .length = length, .lkey = i + 1, .rkey = i + 1
		};
		return &regions[i].mr;
	}
	errno = ENOMEM;
	return NULL;
}

static int
dereg_mr(struct ibv_mr *mr)
{
	struct region *region = (struct region *)mr;

	check(region->used);
	region->used = false;
	return 0;
}

static int
post_recv(struct ibv_qp *of, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	unsigned int at = (receive_first + receive_count) % GP_RDMA_RX;

	check(receive_count < GP_RDMA_RX && wr->num_sge == 1);
	check(is_registered(wr->sg_list->addr, wr->sg_list->length, wr->sg_list->lkey, false));
	receives[at] = *wr;
	receive_parts[at] = *wr->sg_list;
	receive_count++;
	return 0;
}

/* Memory whose address the client sends to the server is registered for it. */
static void
check_place(const uint8_t *segment, size_t size)
{
	uint64_t address;
	uint32_t key, length;

	if (size != GP_RDMA_SEGMENT_HEADER + 16 ||
	    (segment[0] != GP_RDMA_OFFER && segment[0] != GP_RDMA_ROOM))
		return;
	memcpy(&address, segment + 8, 8);
	memcpy(&key, segment + 16, 4);
	memcpy(&length, segment + 20, 4);
	check(le32toh(key) == 0 ||
	      is_registered(le64toh(address), le32toh(length), le32toh(key), true));
}

static int
post_send(struct ibv_qp *of, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const struct ibv_sge *part = wr->sg_list;
	unsigned int at = (send_first + send_count) % SENDS_MAX;

	check(send_count < SENDS_MAX && wr->num_sge <= 1);
	if (wr->num_sge) {
		check(wr->send_flags & IBV_SEND_INLINE ||
		      is_registered(part->addr, part->length, part->lkey, false));
		if (wr->opcode == IBV_WR_RDMA_READ)
			memset((void *)(uintptr_t)part->addr, 0x5a, part->length);
		else if (wr->opcode == IBV_WR_SEND)
			check_place((const uint8_t *)(uintptr_t)part->addr, part->length);
	}
	sends[at].number = wr->wr_id;
	sends[at].signalled = wr->send_flags & IBV_SEND_SIGNALED;
	send_count++;
	return 0;
}

static size_t
pop_bytes(uint8_t *to, size_t size)
{
	if (size > (size_t)(end - next))
		size = (size_t)(end - next);
	memcpy(to, next, size);
	next += size;
	return size;
}

static unsigned int
pop_byte(void)
{
	return next < end ? *next++ : 0;
}

/* A segment of this many bytes into the oldest receive. */
static int
deliver(const uint8_t *segment, size_t size, struct ibv_wc *wc)
{
	unsigned int at = receive_first;

	if (receive_count == 0 || size > receive_parts[at].length)
		return 0;
	memcpy((void *)(uintptr_t)receive_parts[at].addr, segment, size);
	*wc = (struct ibv_wc){ .wr_id = receives[at].wr_id, .byte_len = (uint32_t)size };
	receive_first = (receive_first + 1) % GP_RDMA_RX;
	receive_count--;
	return 1;
}

static int
deliver_segment(unsigned int type, size_t size, struct ibv_wc *wc)
{
	uint8_t segment[GP_RDMA_SEGMENT] = { (uint8_t)type };
	uint32_t length;

	segment[2] = (uint8_t)(pop_byte() % (GP_RDMA_CREDITS + 1));
	size = pop_bytes(segment + GP_RDMA_SEGMENT_HEADER, size);
	length = htole32((uint32_t)size);
	memcpy(segment + 4, &length, sizeof(length));
	return deliver(segment, GP_RDMA_SEGMENT_HEADER + size, wc);
}

/* The next thing that the peer does. */
static int
happen(struct ibv_wc *wc)
{
	unsigned int operation = pop_byte(), size;
	uint8_t segment[GP_RDMA_SEGMENT];

	switch (operation % 8) {
	case 0: /* no header of ours */
		return deliver(segment, pop_bytes(segment, pop_byte() * 33), wc);
	case 1: /* many bytes of the stream */
		size = pop_byte() * 32 % (GP_RDMA_SEGMENT - GP_RDMA_SEGMENT_HEADER);
		return deliver_segment(GP_RDMA_BYTES, size, wc);
	case 2: /* few */
		return deliver_segment(GP_RDMA_BYTES, pop_byte(), wc);
	case 3:
		return deliver_segment(GP_RDMA_OFFER, 16, wc);
	case 4:
		return deliver_segment(GP_RDMA_ROOM, 16, wc);
	case 5:
		return deliver_segment(operation >> 3, pop_byte() % 32, wc);
	case 6:
		return deliver_segment(operation & 8 ? GP_RDMA_TAKEN : GP_RDMA_FILLED, 0, wc);
	default:
		if (operation != 0xff)
			return deliver_segment(GP_RDMA_CREDIT, 0, wc);
		/* Of a receive; the device does nothing more. */
		*wc = (struct ibv_wc){
			.wr_id = (uint64_t)1 << 63,
			.status = (enum ibv_wc_status)(1 + pop_byte() % 22),
		};
		down = true;
		return 1;
	}
}

static bool
is_one_signalled(void)
{
	for (unsigned int i = 0; i < send_count; i++) {
		if (sends[(send_first + i) % SENDS_MAX].signalled)
			return true;
	}
	return false;
}

/* Requests complete in order, unsignaled ones with the next signaled one; a device that is cut off
 * completes each with an error. */
static int
complete_sends(int room, struct ibv_wc *wc)
{
	int count = 0;

	while (send_count > 0 && count + 1 < room && (down || is_one_signalled())) {
		if (down || sends[send_first].signalled)
			wc[count++] = (struct ibv_wc){
				.wr_id = sends[send_first].number,
				.status = down ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS,
			};
		send_first = (send_first + 1) % SENDS_MAX;
		send_count--;
	}
	return count;
}

static int
poll_cq(struct ibv_cq *of, int room, struct ibv_wc *wc)
{
	int count = complete_sends(room, wc);

	if (down)
		return count;
	if (next < end && happen(&wc[count]))
		return count + 1;
	/* A wait for an event that no input contains must end. */
	down = true;
	wc[count] = (struct ibv_wc){ .wr_id = (uint64_t)1 << 63, .status = IBV_WC_WR_FLUSH_ERR };
	return count + 1;
}

static int
disconnect(struct rdma_cm_id *of)
{
	down = true;
	return 0;
}

static void
set_up(void)
{
	fake_rdma_set_up();
	fake_rdma.device.reads_max = 3;
	fake_rdma.verbs.ops.post_send = post_send;
	fake_rdma.verbs.ops.post_recv = post_recv;
	fake_rdma.verbs.ops.poll_cq = poll_cq;
	gp_rdma_lib.ibv_reg_mr = reg_mr;
	gp_rdma_lib.ibv_dereg_mr = dereg_mr;
	gp_rdma_lib.rdma_disconnect = disconnect;
	gp_memory_register(bulk, sizeof(bulk));
}

static struct gp_rdma_conn *
create(bool server)
{
	struct gp_rdma_conn *conn;

	down = false;
	receive_first = receive_count = send_first = send_count = 0;
	conn = fake_rdma_create(server);
	check(conn != NULL);
	return conn;
}

static int
send_something(struct gp_conn *conn, unsigned int what)
{
	static const size_t sizes[] = { 0, 100, 30000, 40000, 300000, BULK_MAX };
	uint8_t *other = malloc(BULK_MAX);
	struct iovec head = { "a message", 9 };
	struct iovec part = { what & 1 ? bulk : other, sizes[what / 2 % 6] };
	int r;

	check(other != NULL);
	memset(other, 1, part.iov_len);
	r = gp_conn_send(conn, &head, 1, &part, 1);
	free(other);
	return r;
}

static int
recv_bulk(struct gp_conn *conn, size_t size, unsigned int how)
{
	uint8_t *to = how & 2 ? bulk : malloc(BULK_MAX);
	int r = 0;

	check(to != NULL);
	while (r == 0 && size) {
		size_t part = how & 4 && size > 3 ? size / 2 : size;

		if (part > BULK_MAX)
			part = BULK_MAX;
		r = gp_conn_recv_bulk(conn, how & 1 ? NULL : to, part);
		size -= part;
	}
	if (to != bulk)
		free(to);
	return r;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_message message;
	struct gp_conn *conn;
	unsigned int how, what;
	int r = 0;

	if (size < 2)
		return 0;
	if (!gp_rdma_lib.ibv_reg_mr)
		set_up();
	what = data[0];
	how = data[1];
	next = data + 2;
	end = data + size;
	conn = &create(what & 1)->stream.conn;
	for (int i = 0; r == 0 && i < MESSAGES_MAX; i++) {
		if (what & 2)
			r = send_something(conn, (what >> 2) + (unsigned int)i);
		if (r == 0 && how & 8)
			(void)gp_conn_fd(conn);
		if (r == 0 && how & 16)
			(void)gp_conn_pending(conn);
		if (r == 0)
			r = gp_conn_recv(conn, &message);
		if (r == 0) {
			check(message.size <= GP_CONN_MESSAGE_MAX);
			r = recv_bulk(conn, message.bulk_size, how);
		}
	}
	check(r == 0 || r == GP_E_EOF || r < 0);
	gp_conn_destroy(conn);
	return 0;
}
