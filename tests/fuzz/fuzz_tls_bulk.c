/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As fuzz_tls, with as many records as bulk has, so that helpers open some of them; of all suites,
 * and with records that are padded, damaged, or are none.
 *
 * The first byte is the suite and which end is tested, the second how bulk is taken; then come
 * records: a type, a size of two bytes, the content.  Types above the known ones are bytes on the
 * wire as they are, records with a wrong bit, padded ones, and full ones of one byte.
 */
#include "transport/tls/tls_helpers.h"
#include "transport/tls/tls_internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WIRE_MAX ((size_t)1 << 20)
#define BULK_MAX ((size_t)1 << 20)
#define SECRET_SIZE(suite) ((suite) == 0x1302 ? 48 : 32)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct wire {
	struct gp_tls_record seal;
	uint8_t *bytes;
	size_t size;
	int fd;
};

static void
check(bool holds)
{
	if (!holds)
		abort();
}

static void
add_record(struct wire *wire, unsigned int type, const uint8_t *content, size_t size)
{
	struct iovec part = { (void *)content, size };

	if (size > GP_TLS_RECORD_MAX)
		size = GP_TLS_RECORD_MAX;
	if (wire->size + size + GP_TLS_RECORD_OVERHEAD > WIRE_MAX)
		return;
	check(gp_tls_record_seal(&wire->seal, (enum gp_tls_record_type)type, &part, size,
				 wire->bytes + wire->size) == 0);
	wire->size += size + GP_TLS_RECORD_OVERHEAD;
}

/* The sender's keys change with a KeyUpdate message. */
static void
follow(struct wire *wire, const uint8_t *content, size_t size)
{
	if (size == 5 && content[0] == 24 && content[3] == 1)
		check(gp_tls_record_update_key(&wire->seal) == 0);
}

static void
add(struct wire *wire, unsigned int type, const uint8_t *content, size_t size)
{
	static uint8_t full[GP_TLS_RECORD_MAX];
	size_t before = wire->size;

	switch (type % 10) {
	case 0:
		add_record(wire, GP_TLS_RECORD_ALERT, content, size);
		break;
	case 1:
		add_record(wire, GP_TLS_RECORD_HANDSHAKE, content, size);
		follow(wire, content, size);
		break;
	case 2:
		add_record(wire, type, content, size);
		break;
	case 3:
		if (wire->size + size <= WIRE_MAX)
			memcpy(wire->bytes + wire->size, content, size);
		wire->size += wire->size + size <= WIRE_MAX ? size : 0;
		break;
	case 4:
		add_record(wire, GP_TLS_RECORD_DATA, content, size);
		if (wire->size > before && size)
			wire->bytes[before + content[0] % (wire->size - before)] ^= 1;
		break;
	case 5: /* A type of 0 is more padding: the type is the content's last byte. */
		add_record(wire, 0, content, size);
		break;
	case 6:
		for (size_t i = 0; size && i < content[0] % 64u; i++)
			add_record(wire, GP_TLS_RECORD_DATA, full, sizeof(full));
		break;
	default:
		add_record(wire, GP_TLS_RECORD_DATA, content, size);
	}
}

static void *
send_wire(void *arg)
{
	struct wire *wire = arg;
	size_t done = 0;

	while (done < wire->size) {
		ssize_t n = send(wire->fd, wire->bytes + done, wire->size - done, MSG_NOSIGNAL);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	(void)shutdown(wire->fd, SHUT_WR);
	return NULL;
}

static int
recv_bulk(struct gp_conn *conn, size_t size, unsigned int how, uint8_t *to)
{
	int r = 0;

	if (how & 1)
		return gp_conn_recv_bulk(conn, NULL, size);
	while (r == 0 && size) {
		size_t part = how & 2 && size > 7 ? size / 3 : size;

		if (part > BULK_MAX)
			part = BULK_MAX;
		r = gp_conn_recv_bulk(conn, to, part);
		size -= part;
	}
	return r;
}

static void
receive(struct gp_conn *conn, unsigned int how)
{
	uint8_t *to = malloc(BULK_MAX);
	struct gp_message message;
	int r;

	check(to);
	do {
		r = how & 4 ? gp_conn_wait(conn, 1000) : 1;
		if (r >= 0)
			r = gp_conn_recv(conn, &message);
		if (r == 0)
			check(message.size <= GP_CONN_MESSAGE_MAX);
		if (r == 0)
			r = recv_bulk(conn, message.bulk_size, how, to);
	} while (r == 0);
	check(r == GP_E_EOF || r < 0);
	check(r == GP_E_EOF || gp_conn_error(conn)[0]);
	free(to);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_tls_secrets secrets = { 0 };
	struct wire wire = { 0 };
	struct gp_conn *conn;
	pthread_t sender;
	bool server;
	int fds[2];
	unsigned int how;

	if (size < 2)
		return 0;
	gp_tls_helpers_set_max(1);
	secrets.suite = 0x1301 + data[0] % 3u;
	server = data[0] >> 7;
	how = data[1];
	secrets.client_size = secrets.server_size = SECRET_SIZE(secrets.suite);
	memset(secrets.server, 1, sizeof(secrets.server));
	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	check(gp_tcp_adopt(&gp_tls_ops, fds[0], &conn) == 0);
	((struct gp_stream *)conn)->io = &gp_tls_io;
	check(gp_tls_link_start((struct gp_tcp_conn *)conn, &secrets, server) == 0);
	wire.fd = fds[1];
	wire.bytes = malloc(WIRE_MAX);
	check(wire.bytes && gp_tls_record_init(&wire.seal, gp_tls_get_libctx(), secrets.suite,
					       server ? secrets.client : secrets.server,
					       secrets.client_size, true) == 0);
	for (data += 2, size -= 2; size >= 3;) {
		size_t part = (size_t)data[1] | (size_t)data[2] << 8;

		if (part > size - 3)
			part = size - 3;
		add(&wire, data[0], data + 3, part);
		data += 3 + part;
		size -= 3 + part;
	}
	check(pthread_create(&sender, NULL, send_wire, &wire) == 0);
	receive(conn, how);
	gp_conn_destroy(conn);
	(void)pthread_join(sender, NULL);
	(void)close(fds[1]);
	gp_tls_record_fini(&wire.seal);
	free(wire.bytes);
	return 0;
}
