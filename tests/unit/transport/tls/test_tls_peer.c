/* SPDX-License-Identifier: Apache-2.0 */
/* What another implementation of TLS 1.3, or a peer that speaks something else, has of tls. */
#include "tests/test.h"
#include "tests/unit/transport/tls/tls_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A peer of OpenSSL's own, up to this version. */
static SSL *
plain_client(int fd, int version, SSL_CTX **ctx_p)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl = SSL_new(ctx);

	assert_int_equal(SSL_set_max_proto_version(ssl, version), 1);
	assert_int_equal(SSL_set_fd(ssl, fd), 1);
	*ctx_p = ctx;
	return ssl;
}

/* Such a peer that the daemon has let in. */
struct peer {
	struct tls_ends ends;
	int fd; /* -1: closed already */
	SSL_CTX *ctx;
	SSL *ssl;
};

static void
peer_connect(struct peer *peer)
{
	peer->fd = tls_connect_raw(&peer->ends);
	peer->ssl = plain_client(peer->fd, TLS1_3_VERSION, &peer->ctx);
	tls_start_server(&peer->ends, tls_server_of("server", "ca"), NULL);
	assert_int_equal(SSL_connect(peer->ssl), 1);
	tls_expect_server(&peer->ends, 0, "");
}

static void
peer_close(struct peer *peer)
{
	SSL_free(peer->ssl);
	SSL_CTX_free(peer->ctx);
	if (peer->fd >= 0)
		close(peer->fd);
	tls_close(&peer->ends);
}

UNIT_TEST(a_peer_of_tls_1_2_is_refused)
{
	struct tls_ends ends;
	int fd = tls_connect_raw(&ends);
	SSL_CTX *ctx;
	SSL *ssl = plain_client(fd, TLS1_2_VERSION, &ctx);

	tls_start_server(&ends, tls_server_of("server", "ca"), NULL);
	assert_int_not_equal(SSL_connect(ssl), 1);
	tls_expect_server(&ends, -EPROTO,
			  "the client does not speak TLS 1.3, earlier versions are refused");
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	close(fd);
	tls_close(&ends);
}

static void
expect_refused_bytes(const void *bytes, size_t size, bool closes, int r, const char *error)
{
	struct tls_ends ends;
	int fd = tls_connect_raw(&ends);

	ends.timeout_ms = 300;
	tls_start_server(&ends, tls_server_of("server", "ca"), NULL);
	assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
	if (closes)
		shutdown(fd, SHUT_WR);
	tls_expect_server(&ends, r, error);
	close(fd);
	tls_close(&ends);
}

UNIT_TEST(what_is_no_handshake_is_refused)
{
	static const char silence[] = "the client did not finish the TLS handshake in time";
	static const char closed[] = "the client closed the connection in the TLS handshake";
	static const uint8_t truncated[] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";

	expect_refused_bytes("\10\0\0\0\0\0\0\0in clear", 16, false, -EPROTO,
			     "the client does not speak TLS");
	expect_refused_bytes("GET / HTTP/1.1\r\n\r\n", 18, false, -EPROTO,
			     "the client does not speak TLS");
	expect_refused_bytes("", 0, false, -ETIMEDOUT, silence);
	expect_refused_bytes(truncated, 11, false, -ETIMEDOUT, silence);
	expect_refused_bytes(truncated, 11, true, -ECONNRESET, closed);
	expect_refused_bytes("", 0, true, -ECONNRESET, closed);
}

UNIT_TEST(a_shutdown_ends_a_handshake)
{
	struct timespec while_ = { .tv_nsec = 50000000 };
	struct tls_ends ends;
	int fd = tls_connect_raw(&ends);

	tls_start_server(&ends, tls_server_of("server", "ca"), NULL);
	nanosleep(&while_, NULL);
	gp_conn_shutdown(ends.server);
	tls_expect_server(&ends, -ESHUTDOWN, "shut down by this end");
	close(fd);
	tls_close(&ends);
}

/* What a client once sent, sent again: the daemon's own random number is another. */
UNIT_TEST(a_replayed_handshake_is_refused)
{
	struct tls_ends first, second;
	uint8_t recorded[8192];
	ssize_t size = 0, got;
	int near, far, raw[2];
	SSL_CTX *ctx;
	SSL *ssl;

	near = tls_connect_raw(&first);
	tls_start_server(&first, tls_server_of("server", "ca"), NULL);
	/* Between a client and the daemon, a record of what the client says. */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, raw), 0);
	ssl = plain_client(raw[0], TLS1_3_VERSION, &ctx);
	SSL_set_connect_state(ssl);
	for (int i = 0; i < 30000 && !SSL_is_init_finished(ssl); i++) {
		uint8_t bytes[8192];
		struct timespec while_ = { .tv_nsec = 2000000 };

		(void)SSL_set_mode(ssl, SSL_MODE_AUTO_RETRY);
		(void)!fcntl(raw[0], F_SETFL, O_NONBLOCK);
		(void)SSL_do_handshake(ssl);
		got = recv(raw[1], bytes, sizeof(bytes), MSG_DONTWAIT);
		if (got > 0) {
			memcpy(recorded + size, bytes, (size_t)got);
			size += got;
			assert_int_equal(send(near, bytes, (size_t)got, MSG_NOSIGNAL), got);
		}
		nanosleep(&while_, NULL);
		got = recv(near, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (got > 0)
			assert_int_equal(send(raw[1], bytes, (size_t)got, MSG_NOSIGNAL), got);
	}
	got = recv(raw[1], recorded + size, sizeof(recorded) - (size_t)size, MSG_DONTWAIT);
	if (got > 0) {
		assert_int_equal(send(near, recorded + size, (size_t)got, MSG_NOSIGNAL), got);
		size += got;
	}
	tls_expect_server(&first, 0, "");

	far = tls_connect_raw(&second);
	tls_start_server(&second, tls_server_of("server", "ca"), NULL);
	assert_int_equal(send(far, recorded, (size_t)size, MSG_NOSIGNAL), size);
	pthread_join(second.thread, NULL);
	assert_true(second.server_r < 0 && second.server_r != -ETIMEDOUT);
	assert_int_equal(gp_conn_caps(second.server) & GP_CONN_CAP_ENCRYPTED, 0);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	close(raw[0]);
	close(raw[1]);
	close(near);
	close(far);
	tls_close(&first);
	tls_close(&second);
}

/* Everything that OpenSSL's own records can do is understood, and ours by it. */
UNIT_TEST(another_implementation_understands_and_is_understood)
{
	static uint8_t bytes[300000], got[300000];
	uint32_t frame[2] = { 4, sizeof(bytes) };
	struct iovec part = { (void *)"back", 4 }, bulk = { bytes, sizeof(bytes) };
	struct gp_message message;
	struct peer peer;
	size_t have = 0;
	SSL *ssl;

	memset(bytes, 0x5a, sizeof(bytes));
	peer_connect(&peer);
	ssl = peer.ssl;
	assert_int_equal(SSL_set_block_padding(ssl, 4096), 1);
	/* New keys for this direction, then for both. */
	assert_int_equal(SSL_write(ssl, frame, 8), 8);
	assert_int_equal(SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
	assert_int_equal(SSL_write(ssl, "head", 4), 4);
	for (size_t at = 0; at < sizeof(bytes); at += 100000) {
		assert_int_equal(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED), 1);
		assert_int_equal(SSL_write(ssl, bytes + at, 100000), 100000);
	}
	assert_int_equal(gp_conn_recv(peer.ends.server, &message), 0);
	assert_memory_equal(message.data, "head", 4);
	assert_int_equal(gp_conn_recv_bulk(peer.ends.server, got, sizeof(got)), 0);
	assert_memory_equal(got, bytes, sizeof(got));

	assert_int_equal(gp_conn_send(peer.ends.server, &part, 1, &bulk, 1), 0);
	assert_int_equal(SSL_read(ssl, frame, 8), 8);
	while (have < 4 + sizeof(bytes)) {
		int n = SSL_read(ssl, got, sizeof(got));

		assert_true(n > 0);
		if (have >= 4)
			assert_memory_equal(got, bytes + have - 4, n);
		have += (size_t)n;
	}
	assert_int_equal(SSL_shutdown(ssl), 0);
	assert_int_equal(gp_conn_recv(peer.ends.server, &message), GP_E_EOF);
	peer_close(&peer);
}

/* As a record, which is sent by hand: from here on nothing that is written goes out by itself. */
static void
seal_empty_message(SSL *ssl, uint8_t record[static 30])
{
	BIO *memory = BIO_new(BIO_s_mem());

	SSL_set0_wbio(ssl, memory);
	assert_int_equal(SSL_write(ssl, "\0\0\0\0\0\0\0\0", 8), 8);
	assert_int_equal(BIO_ctrl_pending(memory), 30);
	assert_int_equal(BIO_read(memory, record, 30), 30);
}

UNIT_TEST(a_changed_byte_and_a_cut_end_are_noticed)
{
	struct gp_message message;
	struct peer peer;
	uint8_t record[30];

	peer_connect(&peer);
	seal_empty_message(peer.ssl, record);
	record[9] ^= 1;
	assert_int_equal(send(peer.fd, record, 30, MSG_NOSIGNAL), 30);
	assert_int_equal(gp_conn_recv(peer.ends.server, &message), -EBADMSG);
	assert_non_null(strstr(gp_conn_error(peer.ends.server), "failed authentication"));
	assert_int_equal(gp_conn_recv(peer.ends.server, &message), -EBADMSG);
	peer_close(&peer);

	peer_connect(&peer);
	assert_int_equal(SSL_write(peer.ssl, "\0\0\0\0\0\0\0\0", 8), 8);
	close(peer.fd);
	peer.fd = -1;
	assert_int_equal(gp_conn_recv(peer.ends.server, &message), 0);
	assert_int_equal(gp_conn_recv(peer.ends.server, &message), -ECONNRESET);
	assert_string_equal(gp_conn_error(peer.ends.server),
			    "connection closed without close_notify");
	peer_close(&peer);
}

/* It is like a message that has begun, and no time to look around. */
UNIT_TEST(a_record_that_stops_is_given_up)
{
	struct gp_message message;
	struct peer peer;
	uint8_t record[30];
	int r, looks = 0;

	peer_connect(&peer);
	seal_empty_message(peer.ssl, record);
	gp_conn_set_stall_timeout(peer.ends.server, 300);
	gp_conn_set_idle_timeout(peer.ends.server, 50);
	assert_int_equal(gp_conn_recv(peer.ends.server, &message), GP_E_TIMEOUT);
	assert_int_equal(send(peer.fd, record, 20, MSG_NOSIGNAL), 20);
	while ((r = gp_conn_recv(peer.ends.server, &message)) == GP_E_TIMEOUT)
		assert_true(looks++ < 100);
	assert_int_equal(r, -ETIMEDOUT);
	assert_string_equal(
		gp_conn_error(peer.ends.server),
		"the peer stopped in the middle of a message, and sent nothing for 0.300 s");
	peer_close(&peer);
}

struct late {
	int fd;
	const uint8_t *bytes;
	size_t size;
};

static void *
send_late(void *arg)
{
	struct timespec while_ = { .tv_nsec = 300000000 };
	const struct late *late = arg;

	nanosleep(&while_, NULL);
	return send(late->fd, late->bytes, late->size, MSG_NOSIGNAL) < 0 ? "not sent" : NULL;
}

UNIT_TEST(without_a_stall_time_a_record_is_waited_for)
{
	struct gp_message message;
	struct late late = { .size = 10 };
	struct peer peer;
	uint8_t record[30];
	pthread_t thread;
	void *wrong;

	peer_connect(&peer);
	seal_empty_message(peer.ssl, record);
	gp_conn_set_stall_timeout(peer.ends.server, 0);
	gp_conn_set_idle_timeout(peer.ends.server, 50);
	assert_int_equal(send(peer.fd, record, 20, MSG_NOSIGNAL), 20);
	late.fd = peer.fd;
	late.bytes = record + 20;
	assert_int_equal(pthread_create(&thread, NULL, send_late, &late), 0);
	assert_int_equal(gp_conn_recv(peer.ends.server, &message), 0);
	assert_int_equal(message.size, 0);
	assert_int_equal(pthread_join(thread, &wrong), 0);
	assert_null(wrong);
	peer_close(&peer);
}

UNIT_TEST_MAIN(tls_make_folder, tls_remove_folder)
