/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes on a tls connection after its handshake: those of a peer without the keys, and records of a
 * hostile peer with the keys.  The input has pieces, each a byte with its type, two
 * with its size, and its content: type 0 is sent unchanged, others are sealed as a record of this
 * type.
 */
#include "transport/tls/tls_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define INPUT_MAX 60000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct gp_tls_secrets secrets = {
	.suite = 0x1301,
	.client = "what the client seals with",
	.server = "what the daemon seals with",
	.client_size = 32,
	.server_size = 32,
};

static void
give(int fd, const uint8_t *bytes, size_t size)
{
	/* Bytes that do not fit are dropped, as on a broken connection. */
	(void)!send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void
give_piece(int fd, struct gp_tls_record *peer, uint8_t type, const uint8_t *bytes, size_t size)
{
	static uint8_t record[GP_TLS_RECORD_MAX + GP_TLS_RECORD_OVERHEAD];
	struct iovec part = { (void *)bytes, size };

	if (type == 0) {
		give(fd, bytes, size);
		return;
	}
	if (size > GP_TLS_RECORD_MAX)
		size = GP_TLS_RECORD_MAX;
	if (gp_tls_record_seal(peer, (enum gp_tls_record_type)type, &part, size, record))
		abort();
	give(fd, record, size + GP_TLS_RECORD_OVERHEAD);
	/* As a correct peer does it: new keys after a KeyUpdate. */
	if (type == GP_TLS_RECORD_HANDSHAKE && size == 5 && bytes[0] == 24 &&
	    gp_tls_record_update_key(peer))
		abort();
}

static void
drain(struct gp_conn *conn)
{
	static uint8_t bulk[4096];
	struct gp_message message;

	while (gp_conn_wait(conn, 0) == 1 && gp_conn_recv(conn, &message) == 0) {
		size_t left = message.bulk_size;

		while (left > 0) {
			size_t take = left < sizeof(bulk) ? left : sizeof(bulk);

			if (gp_conn_recv_bulk(conn, bulk, take))
				return;
			left -= take;
		}
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_tls_record peer;
	struct gp_conn *conn;
	int fds[2];

	if (size == 0 || size > INPUT_MAX)
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) ||
	    gp_conn_adopt("tls", fds[0], &conn) ||
	    gp_tls_link_start((struct gp_tcp_conn *)conn, &secrets, data[0] & 1) ||
	    gp_tls_record_init(&peer, gp_tls_get_libctx(), secrets.suite,
			       data[0] & 1 ? secrets.client : secrets.server, 32, true))
		abort();
	gp_conn_set_stall_timeout(conn, 1);
	for (data++, size--; size >= 3;) {
		size_t piece = (size_t)data[1] << 8 | data[2];

		if (piece > size - 3)
			piece = size - 3;
		give_piece(fds[1], &peer, data[0], data + 3, piece);
		data += 3 + piece;
		size -= 3 + piece;
	}
	(void)shutdown(fds[1], SHUT_WR);
	drain(conn);
	gp_conn_destroy(conn);
	gp_tls_record_fini(&peer);
	(void)close(fds[1]);
	return 0;
}
