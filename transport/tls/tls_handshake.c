/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "transport/tls/tls_internal.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

struct handshake {
	struct gp_tcp_conn *conn;
	struct gp_tls_secrets *secrets;
	int64_t deadline;
	int timeout_ms;
	bool server;
	bool keyed;
	bool begins; /* only sends the first message; nothing is received yet */
	int failed;  /* error of the socket: a negative errno, or GP_E_EOF */
};

static int
hex_decode(const char *text, uint8_t *bytes, size_t *size_p)
{
	size_t size = 0;
	unsigned int byte;

	for (; isxdigit((unsigned char)*text); text += 2, size++) {
		if (size == GP_TLS_RECORD_SECRET_MAX || sscanf(text, "%2x", &byte) != 1)
			return -EPROTO;
		bytes[size] = (uint8_t)byte;
	}
	*size_p = size;
	return 0;
}

/* The line has the format of SSLKEYLOGFILE: "CLIENT_TRAFFIC_SECRET_0 RANDOM SECRET". */
void
gp_tls_handshake_store_secret(const SSL *ssl, const char *line)
{
	struct handshake *handshake = SSL_get_app_data(ssl);
	const char *secret = strrchr(line, ' ');

	if (!handshake || !secret)
		return;
	if (strncmp(line, "CLIENT_TRAFFIC_SECRET_0 ", 24) == 0)
		(void)hex_decode(secret + 1, handshake->secrets->client,
				 &handshake->secrets->client_size);
	else if (strncmp(line, "SERVER_TRAFFIC_SECRET_0 ", 24) == 0)
		(void)hex_decode(secret + 1, handshake->secrets->server,
				 &handshake->secrets->server_size);
}

/* BIO methods for the socket: never read more than requested, never raise SIGPIPE, and enforce a
 * deadline. */

static int
bio_read(BIO *bio, char *to, int size)
{
	struct handshake *handshake = BIO_get_data(bio);
	struct gp_stream *stream = &handshake->conn->stream;

	if (handshake->begins) {
		BIO_set_retry_read(bio);
		return -1;
	}
	BIO_clear_retry_flags(bio);
	while (handshake->failed == 0) {
		ssize_t got = recv(gp_tcp_get_fd(stream), to, (size_t)size, MSG_DONTWAIT);
		int r;

		if (got > 0)
			return (int)got;
		if (got == 0)
			handshake->failed = GP_E_EOF;
		else if (errno != EAGAIN && errno != EINTR)
			handshake->failed = -errno;
		if (handshake->failed)
			break;
		r = gp_tcp_poll(stream, POLLIN, gp_remaining_ms(handshake->deadline));
		if (r <= 0)
			handshake->failed = r ? r : -ETIMEDOUT;
	}
	return -1;
}

static int
bio_write(BIO *bio, const char *from, int size)
{
	struct handshake *handshake = BIO_get_data(bio);
	struct gp_stream *stream = &handshake->conn->stream;

	while (handshake->failed == 0) {
		ssize_t done = send(gp_tcp_get_fd(stream), from, (size_t)size,
				    MSG_DONTWAIT | MSG_NOSIGNAL);
		int r;

		if (done >= 0)
			return (int)done;
		if (errno != EAGAIN && errno != EINTR) {
			handshake->failed = -errno;
			break;
		}
		r = gp_tcp_poll(stream, POLLOUT, gp_remaining_ms(handshake->deadline));
		if (r <= 0)
			handshake->failed = r ? r : -ETIMEDOUT;
	}
	return -1;
}

static long
bio_control(BIO *bio, int command, long number, void *pointer)
{
	return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *bio_method;

static void
bio_method_init(void)
{
	bio_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "gpupool");
	if (bio_method && (BIO_meth_set_read(bio_method, bio_read) != 1 ||
			   BIO_meth_set_write(bio_method, bio_write) != 1 ||
			   BIO_meth_set_ctrl(bio_method, bio_control) != 1)) {
		BIO_meth_free(bio_method);
		bio_method = NULL;
	}
}

static int
handshake_attach(SSL *ssl, struct handshake *handshake)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	BIO *bio = SSL_get_rbio(ssl);

	/* The handshake was started earlier. */
	if (bio) {
		BIO_set_data(bio, handshake);
		return SSL_set_app_data(ssl, handshake) == 1 ? 0 : -ENOMEM;
	}
	(void)pthread_once(&once, bio_method_init);
	bio = bio_method ? BIO_new(bio_method) : NULL;
	if (!bio)
		return -ENOMEM;
	BIO_set_data(bio, handshake);
	BIO_set_init(bio, 1);
	SSL_set_bio(ssl, bio, bio);
	return SSL_set_app_data(ssl, handshake) == 1 ? 0 : -ENOMEM;
}

/* Error texts. */

static const char *
handshake_get_peer(const struct handshake *handshake)
{
	return handshake->server ? "client" : "daemon";
}

static int
handshake_explain_socket(struct handshake *handshake)
{
	struct gp_conn *conn = &handshake->conn->stream.conn;

	if (atomic_load(&handshake->conn->stream.stopped))
		return gp_conn_fail(conn, -ESHUTDOWN, "shut down by this end");
	if (handshake->failed == -ETIMEDOUT &&
	    gp_conn_is_silent(conn, (unsigned int)handshake->timeout_ms))
		return gp_conn_fail(conn, -ETIMEDOUT,
				    "no acknowledgment from %s in the TLS handshake", conn->peer);
	if (handshake->failed == -ETIMEDOUT)
		return gp_conn_fail(conn, -ETIMEDOUT,
				    "the %s did not finish the TLS handshake in time",
				    handshake_get_peer(handshake));
	if (handshake->failed == GP_E_EOF || handshake->failed == -ECONNRESET ||
	    handshake->failed == -EPIPE)
		return gp_conn_fail(conn, -ECONNRESET,
				    "the %s closed the connection in the TLS handshake",
				    handshake_get_peer(handshake));
	return gp_conn_fail(conn, handshake->failed, "the TLS handshake failed: %m");
}

static int
handshake_explain_alert(struct handshake *handshake, int alert)
{
	struct gp_conn *conn = &handshake->conn->stream.conn;

	if (alert == SSL_AD_PROTOCOL_VERSION)
		return gp_conn_fail(conn, -EPROTO, "the %s does not speak TLS 1.3",
				    handshake_get_peer(handshake));
	return gp_conn_fail(conn, -EACCES, "the %s refuses the TLS handshake: %s",
			    handshake_get_peer(handshake), SSL_alert_desc_string_long(alert));
}

static int
handshake_explain(struct handshake *handshake, const SSL *ssl)
{
	struct gp_conn *conn = &handshake->conn->stream.conn;
	unsigned long code = ERR_peek_error();
	int reason = ERR_GET_REASON(code);
	long verdict = SSL_get_verify_result(ssl);

	if (ERR_GET_LIB(code) != ERR_LIB_SSL && handshake->failed)
		return handshake_explain_socket(handshake);
	if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && verdict != X509_V_OK)
		return gp_tls_explain_certificate(conn, ssl, handshake_get_peer(handshake),
						  verdict);
	if (reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256)
		return handshake_explain_alert(handshake, reason - SSL_AD_REASON_OFFSET);
	switch (reason) {
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_VERSION_TOO_LOW:
		return gp_conn_fail(conn, -EPROTO,
				    "the %s does not speak TLS 1.3, earlier versions are refused",
				    handshake_get_peer(handshake));
	case SSL_R_WRONG_VERSION_NUMBER:
	case SSL_R_HTTP_REQUEST:
	case SSL_R_PACKET_LENGTH_TOO_LONG:
		return gp_conn_fail(conn, -EPROTO, "the %s does not speak TLS",
				    handshake_get_peer(handshake));
	case SSL_R_BINDER_DOES_NOT_VERIFY:
		return gp_conn_fail(conn, -EACCES, "the %s has another key",
				    handshake_get_peer(handshake));
	default:
		break;
	}
	if (handshake->keyed && handshake->server &&
	    (reason == SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM || reason == SSL_R_NO_SHARED_CIPHER))
		return gp_conn_fail(conn, -EACCES, "the client has no key");
	if (handshake->failed)
		return handshake_explain_socket(handshake);
	return gp_conn_fail(conn, -EPROTO, "the TLS handshake failed: %s",
			    ERR_reason_error_string(code) ? ERR_reason_error_string(code)
							  : "unknown error");
}

int
gp_tls_handshake_start(struct gp_tcp_conn *conn, SSL *ssl, int timeout_ms)
{
	struct handshake handshake = {
		.conn = conn,
		.deadline = gp_deadline_ms(timeout_ms),
		.timeout_ms = timeout_ms,
		.begins = true,
	};
	int r, done;

	ERR_clear_error();
	r = handshake_attach(ssl, &handshake);
	if (r)
		return gp_conn_fail(&conn->stream.conn, r, "no memory for a TLS handshake");
	done = SSL_do_handshake(ssl);
	if (handshake.failed || SSL_get_error(ssl, done) != SSL_ERROR_WANT_READ)
		r = handshake_explain(&handshake, ssl);
	ERR_clear_error();
	(void)SSL_set_app_data(ssl, NULL);
	return r;
}

int
gp_tls_handshake_run(struct gp_tcp_conn *conn, SSL *ssl, bool keyed, int timeout_ms,
		     struct gp_tls_secrets *secrets)
{
	struct handshake handshake = {
		.conn = conn,
		.secrets = secrets,
		.deadline = gp_deadline_ms(timeout_ms),
		.timeout_ms = timeout_ms,
		.server = SSL_is_server(ssl),
		.keyed = keyed,
	};
	int r;

	ERR_clear_error();
	r = handshake_attach(ssl, &handshake);
	if (r)
		return gp_conn_fail(&conn->stream.conn, r, "no memory for a TLS handshake");
	if (SSL_do_handshake(ssl) != 1)
		r = handshake_explain(&handshake, ssl);
	else if (keyed && !SSL_session_reused(ssl))
		r = gp_conn_fail(&conn->stream.conn, -EACCES, "the %s does not have the key",
				 handshake_get_peer(&handshake));
	else if (SSL_version(ssl) != TLS1_3_VERSION || SSL_has_pending(ssl) ||
		 secrets->client_size == 0 || secrets->server_size == 0)
		r = gp_conn_fail(&conn->stream.conn, -EPROTO,
				 "unexpected state after the TLS handshake");
	else
		secrets->suite = SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(ssl));
	ERR_clear_error();
	(void)SSL_set_app_data(ssl, NULL);
	return r;
}
