/* SPDX-License-Identifier: Apache-2.0 */
/* Whom tls lets in and whom not, and that another implementation of TLS 1.3 understands it. */
#include "tests/certificates.h"
#include "tests/test.h"
#include "transport/tls.h"
#include "transport/tls_help.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HANDSHAKE_MS 5000

static char folder[] = "/tmp/gpupool-tls-XXXXXX";
static const uint8_t right[GP_TLS_KEY_SIZE] = "what both ends have";
static const uint8_t wrong[GP_TLS_KEY_SIZE] = "what one end has";

struct ends {
	struct gp_listener *listener;
	struct gp_conn *client, *server;
	/* Of the server's thread. */
	pthread_t thread;
	struct gp_tls *server_tls; /* NULL: by key */
	const uint8_t *key;
	int timeout_ms;
	int server_r;
};

static const char *
path(const char *name, const char *suffix)
{
	static char paths[8][96];
	static unsigned int next;
	char *text = paths[next++ % 8];

	snprintf(text, sizeof(paths[0]), "%s/%s.%s", folder, name, suffix);
	return text;
}

static struct gp_tls *
server_of(const char *name, const char *authority)
{
	struct gp_tls_files files = { .certificate = path(name, "pem"),
				      .key = path(name, "key"),
				      .authority = authority ? path(authority, "pem") : NULL };
	char error[400] = "";
	struct gp_tls *tls;

	if (gp_tls_server(&files, &tls, error, sizeof(error)))
		fail_msg("%s", error);
	return tls;
}

static struct gp_tls *
client_of(const char *name, const char *authority)
{
	struct gp_tls_files files = { .certificate = name ? path(name, "pem") : NULL,
				      .key = name ? path(name, "key") : NULL,
				      .authority = path(authority, "pem") };
	char error[400] = "";
	struct gp_tls *tls;

	if (gp_tls_client(&files, &tls, error, sizeof(error)))
		fail_msg("%s", error);
	return tls;
}

static void
listen_for(struct ends *ends)
{
	struct gp_url url;
	char error[400] = "";

	*ends = (struct ends){ .timeout_ms = HANDSHAKE_MS };
	assert_int_equal(gp_url_parse("tls://127.0.0.1:0", &url, error, sizeof(error)), 0);
	if (gp_listen(&url, &ends->listener, error, sizeof(error)))
		fail_msg("%s", error);
}

static void
connect_ends(struct ends *ends)
{
	char error[400] = "";

	listen_for(ends);
	if (gp_connect(gp_listener_url(ends->listener), NULL, 0, 5000, &ends->client, error,
		       sizeof(error)))
		fail_msg("%s", error);
	assert_int_equal(gp_accept(ends->listener, 5000, &ends->server), 0);
}

/* A peer that is this test's own: its socket. */
static int
connect_raw(struct ends *ends)
{
	char error[400] = "";
	int fd;

	listen_for(ends);
	if (gp_connect(gp_listener_url(ends->listener), NULL, 0, 5000, &ends->client, error,
		       sizeof(error)))
		fail_msg("%s", error);
	assert_int_equal(gp_accept(ends->listener, 5000, &ends->server), 0);
	assert_int_equal(gp_conn_release_fd(ends->client, &fd), 0);
	ends->client = NULL;
	return fd;
}

static void
close_ends(struct ends *ends)
{
	gp_conn_destroy(ends->client);
	gp_conn_destroy(ends->server);
	gp_listener_destroy(ends->listener);
	gp_tls_put(ends->server_tls);
}

static void *
secure_server(void *argument)
{
	struct ends *ends = argument;

	if (ends->server_tls)
		ends->server_r =
			gp_conn_secure(ends->server, ends->server_tls, NULL, ends->timeout_ms);
	else
		ends->server_r =
			gp_conn_secure_key(ends->server, true, ends->key, ends->timeout_ms);
	return NULL;
}

static void
start_server(struct ends *ends, struct gp_tls *tls, const uint8_t *key)
{
	ends->server_tls = tls;
	ends->key = key;
	assert_int_equal(pthread_create(&ends->thread, NULL, secure_server, ends), 0);
}

static void
expect_server(struct ends *ends, int r, const char *error)
{
	pthread_join(ends->thread, NULL);
	if (ends->server_r != r)
		fail_msg("%d, %s", ends->server_r, gp_conn_error(ends->server));
	assert_string_equal(gp_conn_error(ends->server), error);
	assert_true(!(gp_conn_caps(ends->server) & GP_CONN_CAP_ENCRYPTED) == (r != 0));
}

/* The handshake with certificates; puts the contexts. */
static int
handshake(struct ends *ends, struct gp_tls *server, struct gp_tls *client, const char *host)
{
	int r;

	connect_ends(ends);
	start_server(ends, server, NULL);
	r = gp_conn_secure(ends->client, client, host, HANDSHAKE_MS);
	gp_tls_put(client);
	return r;
}

static void
expect_passes(struct gp_conn *from, struct gp_conn *to, size_t size)
{
	uint8_t *bytes = malloc(size), *got = malloc(size);
	struct iovec part = { (void *)"head", 4 }, bulk = { bytes, size };
	struct gp_message message;

	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251);
	assert_int_equal(gp_conn_send(from, &part, 1, &bulk, 1), 0);
	assert_int_equal(gp_conn_recv(to, &message), 0);
	assert_int_equal(message.size, 4);
	assert_int_equal(gp_conn_recv_bulk(to, got, size), 0);
	assert_memory_equal(bytes, got, size);
	free(bytes);
	free(got);
}

static void
certificates_make_a_connection_and_name_the_client(void **state)
{
	static const struct {
		const char *certificate, *name;
	} clients[] = { { NULL, NULL }, { "alice", "alice" }, { "nameless", "bob.example" } };
	static const char *const hosts[] = { "127.0.0.1", "localhost", "::1" };

	for (size_t i = 0; i < 3; i++) {
		struct ends ends;

		assert_int_equal(handshake(&ends, server_of("server", "ca"),
					   client_of(clients[i].certificate, "ca"), hosts[i]),
				 0);
		expect_server(&ends, 0, "");
		expect_passes(ends.client, ends.server, 1000);
		expect_passes(ends.server, ends.client, 1000);
		assert_null(gp_conn_certificate(ends.client));
		if (clients[i].name)
			assert_string_equal(gp_conn_certificate(ends.server), clients[i].name);
		else
			assert_null(gp_conn_certificate(ends.server));
		close_ends(&ends);
	}
}

/* It is as good as the authority that signed it. */
static void
a_certificate_holds_no_longer_than_its_authority(void **state)
{
	int64_t two_days = time(NULL) + 48 * 3600;

	for (int i = 0; i < 2; i++) {
		struct ends ends;

		assert_int_equal(handshake(&ends, server_of("server", "ca"),
					   client_of(i ? "lasting" : "alice", "ca"), "127.0.0.1"),
				 0);
		expect_server(&ends, 0, "");
		expect_passes(ends.client, ends.server, 1000);
		assert_in_range(gp_conn_certificate_until(ends.server), two_days - 600, two_days);
		close_ends(&ends);
	}
}

static void
without_an_authority_no_clients_certificate_counts(void **state)
{
	struct ends ends;

	assert_int_equal(handshake(&ends, server_of("server", NULL), client_of("mallory", "ca"),
				   "127.0.0.1"),
			 0);
	expect_server(&ends, 0, "");
	assert_null(gp_conn_certificate(ends.server));
	close_ends(&ends);
}

static void
expect_refused_daemon(const char *shows, const char *authority, const char *host,
		      const char *client_says, const char *server_says)
{
	struct ends ends;
	struct gp_message message;

	assert_int_equal(handshake(&ends, server_of(shows, "ca"), client_of(NULL, authority), host),
			 -EACCES);
	assert_string_equal(gp_conn_error(ends.client), client_says);
	expect_server(&ends, -EACCES, server_says);
	/* It is dead, not in clear. */
	assert_int_equal(gp_conn_send(ends.client, NULL, 0, NULL, 0), -EACCES);
	assert_int_equal(gp_conn_recv(ends.client, &message), -EACCES);
	assert_int_equal(gp_conn_send(ends.server, NULL, 0, NULL, 0), -EACCES);
	close_ends(&ends);
}

static void
daemons_that_are_not_whom_the_client_wants_are_refused(void **state)
{
	static const char name[] = "the daemon's certificate is for another name or address";
	static const char bad[] = "the client refuses the TLS handshake: bad certificate";

	expect_refused_daemon("elsewhere", "ca", "127.0.0.1", name, bad);
	/* Its common name is this one, which is not what counts. */
	expect_refused_daemon("elsewhere", "ca", "localhost", name, bad);
	expect_refused_daemon("server", "ca", "127.0.0.2", name, bad);
	expect_refused_daemon("old", "ca", "127.0.0.1", "the daemon's certificate has expired",
			      "the client refuses the TLS handshake: certificate expired");
	expect_refused_daemon("foreign", "ca", "127.0.0.1",
			      "the daemon's certificate is of an authority that is not known here",
			      "the client refuses the TLS handshake: unknown CA");
}

static void
expect_refused_client(const char *shows, const char *client_says, const char *server_says)
{
	struct gp_message message;
	struct ends ends;

	/* In TLS 1.3 the client is done before the daemon has seen its certificate. */
	assert_int_equal(
		handshake(&ends, server_of("server", "ca"), client_of(shows, "ca"), "127.0.0.1"),
		0);
	expect_server(&ends, -EACCES, server_says);
	assert_null(gp_conn_certificate(ends.server));
	assert_int_equal(gp_conn_recv(ends.client, &message), -EACCES);
	assert_string_equal(gp_conn_error(ends.client), client_says);
	close_ends(&ends);
}

static void
clients_with_a_bad_certificate_are_refused_and_told(void **state)
{
	expect_refused_client("past",
			      "the daemon does not accept this end's certificate: "
			      "certificate expired",
			      "the client's certificate has expired");
	expect_refused_client("mallory",
			      "the daemon does not accept this end's certificate: unknown CA",
			      "the client's certificate is of an authority that is not known here");
	/* A server's certificate is none for a client. */
	expect_refused_client("renewed",
			      "the daemon does not accept this end's certificate: "
			      "unsupported certificate",
			      "the client's certificate is not accepted: "
			      "unsuitable certificate purpose");
}

static void
a_key_that_both_ends_have_makes_a_connection(void **state)
{
	struct ends ends;

	connect_ends(&ends);
	start_server(&ends, NULL, right);
	assert_int_equal(gp_conn_secure_key(ends.client, false, right, HANDSHAKE_MS), 0);
	expect_server(&ends, 0, "");
	expect_passes(ends.client, ends.server, 3 << 20);
	expect_passes(ends.server, ends.client, 3 << 20);
	assert_null(gp_conn_certificate(ends.server));
	assert_int_equal(gp_conn_caps(ends.client) & GP_CONN_CAP_ADOPT, 0);
	assert_int_equal(gp_conn_secure_key(ends.client, false, right, HANDSHAKE_MS), -EPROTO);
	close_ends(&ends);
}

static void
another_key_is_refused(void **state)
{
	struct ends ends;

	connect_ends(&ends);
	start_server(&ends, NULL, right);
	assert_int_equal(gp_conn_secure_key(ends.client, false, wrong, HANDSHAKE_MS), -EACCES);
	expect_server(&ends, -EACCES, "the client has another key");
	assert_string_equal(gp_conn_error(ends.client),
			    "the daemon refuses the TLS handshake: illegal parameter");
	close_ends(&ends);
}

static void
a_certificate_is_no_key_and_a_key_no_certificate(void **state)
{
	struct gp_tls *client = client_of("alice", "ca");
	struct ends ends;

	connect_ends(&ends);
	start_server(&ends, NULL, right);
	assert_int_equal(gp_conn_secure(ends.client, client, "127.0.0.1", HANDSHAKE_MS), -EACCES);
	expect_server(&ends, -EACCES, "the client has no key");
	close_ends(&ends);
	gp_tls_put(client);

	connect_ends(&ends);
	start_server(&ends, server_of("server", "ca"), NULL);
	assert_int_equal(gp_conn_secure_key(ends.client, false, right, HANDSHAKE_MS), -EACCES);
	assert_string_equal(gp_conn_error(ends.client),
			    "the daemon's certificate is of an authority that is not known here");
	expect_server(&ends, -EACCES, "the client refuses the TLS handshake: unknown CA");
	close_ends(&ends);
}

static void
nothing_goes_out_in_clear_before_the_handshake(void **state)
{
	struct gp_message message;
	struct ends ends;

	connect_ends(&ends);
	assert_int_equal(gp_conn_send(ends.client, NULL, 0, NULL, 0), -EPROTO);
	assert_int_equal(gp_conn_recv(ends.server, &message), -EPROTO);
	assert_string_equal(gp_conn_error(ends.client), "no message before the TLS handshake");
	close_ends(&ends);
}

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

static void
a_peer_of_tls_1_2_is_refused(void **state)
{
	struct ends ends;
	int fd = connect_raw(&ends);
	SSL_CTX *ctx;
	SSL *ssl = plain_client(fd, TLS1_2_VERSION, &ctx);

	start_server(&ends, server_of("server", "ca"), NULL);
	assert_int_not_equal(SSL_connect(ssl), 1);
	expect_server(&ends, -EPROTO,
		      "the client does not speak TLS 1.3, earlier versions are refused");
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	close(fd);
	close_ends(&ends);
}

static void
expect_refused_bytes(const void *bytes, size_t size, bool closes, int r, const char *error)
{
	struct ends ends;
	int fd = connect_raw(&ends);

	ends.timeout_ms = 300;
	start_server(&ends, server_of("server", "ca"), NULL);
	assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
	if (closes)
		shutdown(fd, SHUT_WR);
	expect_server(&ends, r, error);
	close(fd);
	close_ends(&ends);
}

static void
what_is_no_handshake_is_refused(void **state)
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

static void
a_shutdown_ends_a_handshake(void **state)
{
	struct timespec while_ = { .tv_nsec = 50000000 };
	struct ends ends;
	int fd = connect_raw(&ends);

	start_server(&ends, server_of("server", "ca"), NULL);
	nanosleep(&while_, NULL);
	gp_conn_shutdown(ends.server);
	expect_server(&ends, -ESHUTDOWN, "shut down by this end");
	close(fd);
	close_ends(&ends);
}

/* What a client once sent, sent again: the daemon's own random number is another. */
static void
a_replayed_handshake_is_refused(void **state)
{
	struct ends first, second;
	uint8_t recorded[8192];
	ssize_t size = 0, got;
	int near, far, raw[2];
	SSL_CTX *ctx;
	SSL *ssl;

	near = connect_raw(&first);
	start_server(&first, server_of("server", "ca"), NULL);
	/* Between a client and the daemon, a record of what the client says. */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, raw), 0);
	ssl = plain_client(raw[0], TLS1_3_VERSION, &ctx);
	SSL_set_connect_state(ssl);
	for (int i = 0; i < 200 && !SSL_is_init_finished(ssl); i++) {
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
	expect_server(&first, 0, "");

	far = connect_raw(&second);
	start_server(&second, server_of("server", "ca"), NULL);
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
	close_ends(&first);
	close_ends(&second);
}

/* Everything that OpenSSL's own records can do is understood, and ours by it. */
static void
another_implementation_understands_and_is_understood(void **state)
{
	static uint8_t bytes[300000], got[300000];
	uint32_t frame[2] = { 4, sizeof(bytes) };
	struct iovec part = { (void *)"back", 4 }, bulk = { bytes, sizeof(bytes) };
	struct gp_message message;
	struct ends ends;
	int fd = connect_raw(&ends);
	SSL_CTX *ctx;
	SSL *ssl = plain_client(fd, TLS1_3_VERSION, &ctx);
	size_t have = 0;

	memset(bytes, 0x5a, sizeof(bytes));
	start_server(&ends, server_of("server", "ca"), NULL);
	assert_int_equal(SSL_connect(ssl), 1);
	expect_server(&ends, 0, "");
	assert_int_equal(SSL_set_block_padding(ssl, 4096), 1);
	/* New keys for this direction, then for both. */
	assert_int_equal(SSL_write(ssl, frame, 8), 8);
	assert_int_equal(SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
	assert_int_equal(SSL_write(ssl, "head", 4), 4);
	for (size_t at = 0; at < sizeof(bytes); at += 100000) {
		assert_int_equal(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED), 1);
		assert_int_equal(SSL_write(ssl, bytes + at, 100000), 100000);
	}
	assert_int_equal(gp_conn_recv(ends.server, &message), 0);
	assert_memory_equal(message.data, "head", 4);
	assert_int_equal(gp_conn_recv_bulk(ends.server, got, sizeof(got)), 0);
	assert_memory_equal(got, bytes, sizeof(got));

	assert_int_equal(gp_conn_send(ends.server, &part, 1, &bulk, 1), 0);
	assert_int_equal(SSL_read(ssl, frame, 8), 8);
	while (have < 4 + sizeof(bytes)) {
		int n = SSL_read(ssl, got, sizeof(got));

		assert_true(n > 0);
		if (have >= 4)
			assert_memory_equal(got, bytes + have - 4, n);
		have += (size_t)n;
	}
	assert_int_equal(SSL_shutdown(ssl), 0);
	assert_int_equal(gp_conn_recv(ends.server, &message), GP_E_EOF);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	close(fd);
	close_ends(&ends);
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

static void
a_changed_byte_and_a_cut_end_are_noticed(void **state)
{
	struct gp_message message;
	struct ends ends;
	int fd = connect_raw(&ends);
	uint8_t record[30];
	SSL_CTX *ctx;
	SSL *ssl = plain_client(fd, TLS1_3_VERSION, &ctx);

	start_server(&ends, server_of("server", "ca"), NULL);
	assert_int_equal(SSL_connect(ssl), 1);
	expect_server(&ends, 0, "");
	seal_empty_message(ssl, record);
	record[9] ^= 1;
	assert_int_equal(send(fd, record, 30, MSG_NOSIGNAL), 30);
	assert_int_equal(gp_conn_recv(ends.server, &message), -EBADMSG);
	assert_non_null(strstr(gp_conn_error(ends.server), "wrong authentication"));
	assert_int_equal(gp_conn_recv(ends.server, &message), -EBADMSG);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	close(fd);
	close_ends(&ends);

	fd = connect_raw(&ends);
	ssl = plain_client(fd, TLS1_3_VERSION, &ctx);
	start_server(&ends, server_of("server", "ca"), NULL);
	assert_int_equal(SSL_connect(ssl), 1);
	expect_server(&ends, 0, "");
	assert_int_equal(SSL_write(ssl, "\0\0\0\0\0\0\0\0", 8), 8);
	close(fd);
	assert_int_equal(gp_conn_recv(ends.server, &message), 0);
	assert_int_equal(gp_conn_recv(ends.server, &message), -ECONNRESET);
	assert_string_equal(gp_conn_error(ends.server),
			    "the connection was cut, its end not announced");
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	close_ends(&ends);
}

/* It is like a message that has begun, and no time to look around. */
static void
a_record_that_stops_is_given_up(void **state)
{
	struct gp_message message;
	struct ends ends;
	int fd = connect_raw(&ends), r, looks = 0;
	uint8_t record[30];
	SSL_CTX *ctx;
	SSL *ssl = plain_client(fd, TLS1_3_VERSION, &ctx);

	start_server(&ends, server_of("server", "ca"), NULL);
	assert_int_equal(SSL_connect(ssl), 1);
	expect_server(&ends, 0, "");
	seal_empty_message(ssl, record);
	gp_conn_set_stall(ends.server, 300);
	gp_conn_set_rest(ends.server, 50);
	assert_int_equal(gp_conn_recv(ends.server, &message), GP_E_TIMEOUT);
	assert_int_equal(send(fd, record, 20, MSG_NOSIGNAL), 20);
	while ((r = gp_conn_recv(ends.server, &message)) == GP_E_TIMEOUT)
		assert_true(looks++ < 100);
	assert_int_equal(r, -ETIMEDOUT);
	assert_string_equal(gp_conn_error(ends.server),
			    "the peer stopped in the middle of a message");
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	close(fd);
	close_ends(&ends);
}

static void
files_that_cannot_be_used_are_named(void **state)
{
	struct gp_tls_files files = { .certificate = "/nowhere/x.pem", .key = "/nowhere/x.key" };
	char error[400], expected[400];
	struct gp_tls *tls;

	assert_int_equal(gp_tls_server(&files, &tls, error, sizeof(error)), GP_E_INVALID);
	assert_string_equal(error, "certificate /nowhere/x.pem: No such file or directory");
	files.certificate = path("server", "pem");
	files.key = path("old", "key");
	assert_int_equal(gp_tls_server(&files, &tls, error, sizeof(error)), GP_E_INVALID);
	snprintf(expected, sizeof(expected), "key %s cannot be used: key values mismatch",
		 files.key);
	assert_string_equal(error, expected);
	files.key = NULL;
	assert_int_equal(gp_tls_client(&files, &tls, error, sizeof(error)), GP_E_INVALID);
	files = (struct gp_tls_files){ .authority = path("server", "key") };
	assert_int_equal(gp_tls_client(&files, &tls, error, sizeof(error)), GP_E_INVALID);
	assert_non_null(strstr(error, "authority "));
}

static int
make_folder(void **state)
{
	gp_help_limit(1);
	return mkdtemp(folder) && certificates_make(folder) == 0 ? 0 : -1;
}

static int
remove_folder(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(certificates_make_a_connection_and_name_the_client),
		cmocka_unit_test(a_certificate_holds_no_longer_than_its_authority),
		cmocka_unit_test(without_an_authority_no_clients_certificate_counts),
		cmocka_unit_test(daemons_that_are_not_whom_the_client_wants_are_refused),
		cmocka_unit_test(clients_with_a_bad_certificate_are_refused_and_told),
		cmocka_unit_test(a_key_that_both_ends_have_makes_a_connection),
		cmocka_unit_test(another_key_is_refused),
		cmocka_unit_test(a_certificate_is_no_key_and_a_key_no_certificate),
		cmocka_unit_test(nothing_goes_out_in_clear_before_the_handshake),
		cmocka_unit_test(a_peer_of_tls_1_2_is_refused),
		cmocka_unit_test(what_is_no_handshake_is_refused),
		cmocka_unit_test(a_shutdown_ends_a_handshake),
		cmocka_unit_test(a_replayed_handshake_is_refused),
		cmocka_unit_test(another_implementation_understands_and_is_understood),
		cmocka_unit_test(a_changed_byte_and_a_cut_end_are_noticed),
		cmocka_unit_test(a_record_that_stops_is_given_up),
		cmocka_unit_test(files_that_cannot_be_used_are_named),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
