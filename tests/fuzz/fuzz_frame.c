/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of message framing on a byte stream.
 *
 * The first byte selects how many bytes a read returns, and how the bulk is received.
 */
#include "transport/message_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DRAIN_MAX ((size_t)1 << 16)

struct memory_conn {
	struct gp_stream stream;
	const uint8_t *next;
	size_t left;
	size_t step;
};

static ssize_t
memory_read(struct gp_stream *stream, struct iovec *iov, int count, int timeout_ms)
{
	struct memory_conn *memory = (struct memory_conn *)stream;
	size_t budget = memory->step < memory->left ? memory->step : memory->left;
	size_t done = 0;

	for (int i = 0; i < count && done < budget; i++) {
		size_t part = iov[i].iov_len < budget - done ? iov[i].iov_len : budget - done;

		memcpy(iov[i].iov_base, memory->next, part);
		memory->next += part;
		memory->left -= part;
		done += part;
	}
	return (ssize_t)done;
}

static int
memory_wait(struct gp_stream *stream, int timeout_ms)
{
	return 1;
}

static void
memory_shutdown(struct gp_stream *stream)
{
}

static const struct gp_stream_io memory_io = {
	.read = memory_read,
	.wait = memory_wait,
	.shutdown = memory_shutdown,
};

/* Sums up the bytes, so that a sanitizer checks each byte that a caller may access. */
static unsigned int
touch(const uint8_t *bytes, size_t size)
{
	unsigned int sum = 0;

	for (size_t i = 0; i < size; i++)
		sum += bytes[i];
	return sum;
}

static int
drain(struct gp_conn *conn, size_t size, unsigned int how)
{
	static uint8_t to[DRAIN_MAX];
	int r;

	if (how & 1)
		return 0;
	if (how & 2)
		return gp_stream_recv_bulk(conn, NULL, size);
	while (size) {
		size_t part = size < sizeof(to) ? size : sizeof(to);

		if (part > 3 && how & 4)
			part /= 3;
		r = gp_stream_recv_bulk(conn, to, part);
		if (r)
			return r;
		(void)touch(to, part);
		size -= part;
	}
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memory_conn memory = { .next = data, .left = size };
	struct gp_conn *conn = &memory.stream.conn;
	struct gp_message message;
	unsigned int how;
	int r;

	if (size == 0)
		return 0;
	how = data[0];
	memory.next++;
	memory.left--;
	memory.step = how >> 3 ? how >> 3 : SIZE_MAX;
	if (gp_stream_init(&memory.stream, &gp_tcp_ops, &memory_io, 0))
		abort();
	do {
		r = gp_stream_recv(conn, &message);
		if (r == 0 && message.size > GP_CONN_MESSAGE_MAX)
			abort();
		if (r == 0)
			(void)touch(message.data, message.size);
		if (r == 0)
			r = drain(conn, message.bulk_size, how);
	} while (r == 0);
	if (r != GP_E_EOF && r != -ECONNRESET && r != -EPROTO)
		abort();
	if (gp_stream_recv(conn, &message) != r)
		abort();
	gp_stream_fini(&memory.stream);
	return 0;
}
