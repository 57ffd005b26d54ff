/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of shared memory: a hostile client changes the memory that it shares with the daemon.
 *
 * Each step is one byte with its operands: it writes bytes and words anywhere, sends wake-ups, and
 * makes the daemon's end receive and send in between.
 */
#include "transport/shm/sealed_memory.h"
#include "transport/shm/shm_ring.h"
#include "transport/transport.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct client {
	const uint8_t *next;
	size_t left;
	int fd;
	struct gp_conn *daemon;
	struct gp_rings rings;
	int status; /* of the daemon's end */
};

static uint32_t
pop_number(struct client *client, size_t size)
{
	uint32_t value = 0;

	if (size > client->left)
		size = client->left;
	memcpy(&value, client->next, size);
	client->next += size;
	client->left -= size;
	return value;
}

static void
meet(struct client *client)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char text[64];
	struct iovec iov = { text, sizeof(text) };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	int ends[2], memory_fd;
	size_t size;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0 ||
	    gp_conn_adopt("shm", ends[0], &client->daemon) != 0 ||
	    recvmsg(ends[1], &message, 0) <= 0)
		abort();
	memcpy(&memory_fd, CMSG_DATA(&control.header), sizeof(memory_fd));
	if (gp_sealed_check(memory_fd, &size) != 0 ||
	    gp_rings_map(&client->rings, memory_fd, size, false) != 0)
		abort();
	(void)close(memory_fd);
	client->fd = ends[1];
	gp_conn_set_stall_timeout(client->daemon, 1);
	gp_conn_set_send_timeout(client->daemon, 1);
}

/* Sums up the bytes, so that a sanitizer checks each byte that a caller may access. */
static void
touch(const uint8_t *bytes, size_t size)
{
	static volatile unsigned int sum;

	for (size_t i = 0; i < size; i++)
		sum += bytes[i];
}

static int
receive(struct client *client)
{
	static uint8_t bulk[1 << 16];
	struct gp_message message;
	int r = gp_conn_wait(client->daemon, 0);

	if (r <= 0)
		return r;
	r = gp_conn_recv(client->daemon, &message);
	if (r != 0)
		return r;
	if (message.size > GP_CONN_MESSAGE_MAX)
		abort();
	/* It is the daemon's own by now. */
	memset(client->rings.out.bytes, 0x55, 4096);
	touch(message.data, message.size);
	if (message.bulk_size > sizeof(bulk))
		return gp_conn_recv_bulk(client->daemon, NULL, message.bulk_size);
	r = gp_conn_recv_bulk(client->daemon, bulk, message.bulk_size);
	if (r == 0)
		touch(bulk, message.bulk_size);
	return r;
}

static void
put_bytes(struct client *client, bool counted)
{
	size_t size = pop_number(client, 1), at = pop_number(client, 3) % client->rings.out.size;
	struct iovec iov = { (void *)client->next, size < client->left ? size : client->left };

	if (counted)
		(void)gp_ring_write(&client->rings.out, &iov, 1);
	else if (iov.iov_len <= client->rings.out.size - at)
		memcpy(client->rings.out.bytes + at, iov.iov_base, iov.iov_len);
	client->next += iov.iov_len;
	client->left -= iov.iov_len;
}

static void
set_word(struct client *client)
{
	uint32_t which = pop_number(client, 1), value = pop_number(client, 4);
	struct gp_ring_header *words =
		which & 8 ? client->rings.in.header : client->rings.out.header;
	atomic_uint *all[] = { &words->tail, &words->writer_closed, &words->writer_waits,
			       &words->head, &words->reader_closed, &words->reader_waits,
			       &words->tail, &words->head };

	atomic_store(all[which & 7], value);
}

static int
send_some(struct client *client)
{
	static uint8_t bytes[1 << 12];
	struct iovec iov = { bytes, pop_number(client, 2) % sizeof(bytes) };

	return gp_conn_send(client->daemon, &iov, 1, NULL, 0);
}

static int
step(struct client *client)
{
	uint32_t what = pop_number(client, 1);

	switch (what % 7) {
	case 0:
		put_bytes(client, true);
		return 0;
	case 1:
		put_bytes(client, false);
		return 0;
	case 2:
		set_word(client);
		return 0;
	case 3:
		(void)send(client->fd, "wakes", 5, MSG_DONTWAIT | MSG_NOSIGNAL);
		return 0;
	case 4:
		return send_some(client);
	case 5:
		(void)gp_conn_fd(client->daemon);
		return 0;
	default:
		return receive(client);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct client client = { .next = data, .left = size };
	int r = 0;

	meet(&client);
	while (client.left && r == 0)
		r = step(&client);
	if (r == 0)
		r = receive(&client);
	if (r != 0 && r != GP_E_EOF && r != -ECONNRESET && r != -EPROTO && r != -ETIMEDOUT &&
	    r != -EPIPE)
		abort();
	gp_conn_destroy(client.daemon);
	gp_rings_unmap(&client.rings);
	(void)close(client.fd);
	return 0;
}
