/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tls/tls.h"

#include "transport/tls/tls_internal.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

/* The same for all connections, because each connection has only one key. */
#define KEY_IDENTITY "gpupool lane"
/* A cipher suite with the key's hash, SHA-256. */
#define KEY_SUITE "\x13\x01"
#define NAME_MAX_SIZE 128

static struct gp_tcp_conn *
conn_to_tcp(struct gp_conn *conn)
{
	return (struct gp_tcp_conn *)conn;
}

/* Names are printed in logs and compared with tenants' names. */
static char *
name_copy(const ASN1_STRING *name)
{
	unsigned char *text = NULL;
	int length = name ? ASN1_STRING_to_UTF8(&text, name) : -1;
	char *copy = NULL;

	for (int i = 0; i < length; i++) {
		if (!isgraph(text[i]) && text[i] != ' ')
			length = -1;
	}
	if (length > 0 && length < NAME_MAX_SIZE)
		copy = strndup((const char *)text, (size_t)length);
	OPENSSL_free(text);
	return copy;
}

static char *
certificate_get_dns_name(X509 *certificate)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
	char *name = NULL;

	for (int i = 0; !name && i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *one = sk_GENERAL_NAME_value(names, i);

		if (one->type == GEN_DNS)
			name = name_copy(one->d.dNSName);
	}
	GENERAL_NAMES_free(names);
	return name;
}

/* Returns the name in a client's certificate, which the handshake has verified. */
static char *
certificate_get_name(const SSL *ssl)
{
	X509 *certificate = SSL_get0_peer_certificate(ssl);
	const X509_NAME *subject;
	char *name = NULL;
	int at;

	if (!certificate || SSL_get_verify_result(ssl) != X509_V_OK)
		return NULL;
	subject = X509_get_subject_name(certificate);
	at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
	if (at >= 0)
		name = name_copy(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
	return name ? name : certificate_get_dns_name(certificate);
}

/* Returns the earliest expiry in the chain, including the authority's. */
static int64_t
certificate_not_after(const SSL *ssl)
{
	const STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
	int64_t until = INT64_MAX;

	for (int i = 0; i < sk_X509_num(chain); i++) {
		int64_t end = gp_tls_time_to_unix(X509_get0_notAfter(sk_X509_value(chain, i)));

		until = end < until ? end : until;
	}
	return until;
}

/* The same format as openssl and gpupoolctl use. */
static char *
certificate_get_serial(const X509 *certificate)
{
	BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), NULL);
	char *text = number ? BN_bn2hex(number) : NULL;
	char *copy = text ? strdup(text) : NULL;

	OPENSSL_free(text);
	BN_free(number);
	return copy;
}

/* Stores the peer's certificate in the connection, so that it can be checked again later. */
static int
conn_store_certificate(struct gp_conn *conn, SSL *ssl)
{
	STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);

	conn->certificate = certificate_get_name(ssl);
	conn->certificate_not_after = certificate_not_after(ssl);
	if (!SSL_get0_peer_certificate(ssl))
		return 0;
	if (sk_X509_num(chain) > 0) {
		conn->chain = X509_chain_up_ref(chain);
		conn->certificate_serial = certificate_get_serial(sk_X509_value(chain, 0));
	}
	return conn->chain && conn->certificate_serial ? 0 : -ENOMEM;
}

/* Sets the name that the daemon's certificate must have. */
static int
ssl_set_host(SSL *ssl, const char *host)
{
	X509_VERIFY_PARAM *parameters = SSL_get0_param(ssl);
	char plain[256];

	/* The scope ID of fe80::1%eth0 is not part of the name. */
	(void)snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(host, "%"), host);
	X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
							    X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	if (X509_VERIFY_PARAM_set1_ip_asc(parameters, plain) == 1)
		return 0;
	if (SSL_set_tlsext_host_name(ssl, plain) != 1 ||
	    X509_VERIFY_PARAM_set1_host(parameters, plain, 0) != 1)
		return -ENOMEM;
	return 0;
}

/* Represents the key as a session to be resumed, as TLS 1.3 defines external pre-shared keys. */
static SSL_SESSION *
psk_to_session(SSL *ssl, const uint8_t *key)
{
	const SSL_CIPHER *suite = SSL_CIPHER_find(ssl, (const unsigned char *)KEY_SUITE);
	SSL_SESSION *session = suite ? SSL_SESSION_new() : NULL;

	if (!session)
		return NULL;
	if (SSL_SESSION_set1_master_key(session, key, GP_TLS_KEY_SIZE) == 1 &&
	    SSL_SESSION_set_cipher(session, suite) == 1 &&
	    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

static int psk_index = -1;

static int
psk_use(SSL *ssl, const EVP_MD *digest, const unsigned char **identity, size_t *identity_size,
	SSL_SESSION **session_p)
{
	*identity = (const unsigned char *)KEY_IDENTITY;
	*identity_size = strlen(KEY_IDENTITY);
	*session_p = NULL;
	if (digest && EVP_MD_get_type(digest) != NID_sha256)
		return 1;
	*session_p = psk_to_session(ssl, SSL_get_ex_data(ssl, psk_index));
	return *session_p != NULL;
}

static int
psk_find(SSL *ssl, const unsigned char *identity, size_t identity_size, SSL_SESSION **session_p)
{
	*session_p = NULL;
	if (identity_size != strlen(KEY_IDENTITY) ||
	    memcmp(identity, KEY_IDENTITY, identity_size) != 0)
		return 1;
	*session_p = psk_to_session(ssl, SSL_get_ex_data(ssl, psk_index));
	return *session_p != NULL;
}

static SSL_CTX *psk_contexts[2]; /* [0]: client, [1]: daemon */

static void
psk_contexts_init(void)
{
	for (int server = 0; server < 2; server++) {
		SSL_CTX *ctx = gp_tls_ctx_create(server);

		psk_contexts[server] = ctx;
		if (!ctx)
			continue;
		if (server) {
			SSL_CTX_set_psk_find_session_callback(ctx, psk_find);
		} else {
			/* Daemons must not authenticate with a certificate here. */
			SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
			SSL_CTX_set_psk_use_session_callback(ctx, psk_use);
		}
	}
	psk_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
}

static void
ssl_set_side(SSL *ssl, bool server)
{
	if (server)
		SSL_set_accept_state(ssl);
	else
		SSL_set_connect_state(ssl);
}

static int
conn_secure(struct gp_tcp_conn *tcp, SSL *ssl, bool server, bool keyed, int timeout_ms)
{
	struct gp_tls_secrets secrets = { 0 };
	struct gp_conn *conn = &tcp->stream.conn;
	int r;

	r = gp_tls_handshake_run(tcp, ssl, keyed, timeout_ms, &secrets);
	if (r == 0) {
		r = gp_tls_link_start(tcp, &secrets, server);
		if (r)
			(void)gp_conn_fail(conn, r, "no memory for a TLS connection");
	}
	if (r == 0 && server && !keyed) {
		r = conn_store_certificate(conn, ssl);
		if (r)
			(void)gp_conn_fail(conn, r, "no memory for the client's certificate");
	}
	if (r)
		tcp->stream.recv_status = tcp->stream.send_status = r;
	OPENSSL_cleanse(&secrets, sizeof(secrets));
	return r;
}

/* Returns 0 if a handshake can begin, otherwise the reason. */
static int
conn_check_secure(struct gp_tcp_conn *tcp)
{
	struct gp_conn *conn = &tcp->stream.conn;

	if (conn->ops != &gp_tls_ops)
		return GP_E_UNSUPPORTED;
	if (tcp->stream.recv_status < 0)
		return tcp->stream.recv_status;
	if (tcp->tls || !gp_stream_is_idle(&tcp->stream))
		return gp_conn_fail(conn, -EPROTO, "TLS cannot start: the connection is in use");
	return 0;
}

/* Returns NULL if out of memory. */
static SSL *
handshake_create(struct gp_conn *conn, const struct gp_tls *tls, const char *host)
{
	SSL *ssl = SSL_new(tls->ctx);

	if (ssl && (!host || ssl_set_host(ssl, host) == 0)) {
		ssl_set_side(ssl, !host);
		return ssl;
	}
	SSL_free(ssl);
	(void)gp_conn_fail(conn, -ENOMEM, "no memory for a TLS handshake");
	return NULL;
}

int
gp_conn_secure_start(struct gp_conn *conn, struct gp_tls *tls, const char *host)
{
	struct gp_tcp_conn *tcp = conn_to_tcp(conn);
	int r = conn_check_secure(tcp);
	SSL *ssl;

	if (r)
		return r;
	ssl = handshake_create(conn, tls, host);
	if (!ssl)
		return -ENOMEM;
	r = gp_tls_handshake_start(tcp, ssl, GP_TLS_HANDSHAKE_MS);
	if (r) {
		SSL_free(ssl);
		tcp->stream.send_status = r;
		return r;
	}
	tcp->handshake_ssl = ssl;
	return 0;
}

int
gp_conn_secure(struct gp_conn *conn, struct gp_tls *tls, const char *host, int timeout_ms)
{
	struct gp_tcp_conn *tcp = conn_to_tcp(conn);
	int r = conn_check_secure(tcp);
	SSL *ssl;

	if (r)
		return r;
	ssl = tcp->handshake_ssl ? tcp->handshake_ssl : handshake_create(conn, tls, host);
	tcp->handshake_ssl = NULL;
	if (!ssl)
		r = -ENOMEM;
	if (r == 0)
		r = conn_secure(tcp, ssl, !host, false, timeout_ms);
	SSL_free(ssl);
	return r;
}

int
gp_conn_secure_psk(struct gp_conn *conn, bool daemon, const uint8_t key[GP_TLS_KEY_SIZE],
		   int timeout_ms)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct gp_tcp_conn *tcp = conn_to_tcp(conn);
	int r = conn_check_secure(tcp);
	SSL *ssl;

	if (r)
		return r;
	(void)pthread_once(&once, psk_contexts_init);
	ssl = psk_contexts[daemon] ? SSL_new(psk_contexts[daemon]) : NULL;
	if (!ssl || SSL_set_ex_data(ssl, psk_index, (void *)key) != 1)
		r = gp_conn_fail(conn, -ENOMEM, "no memory for a TLS handshake");
	if (r == 0) {
		ssl_set_side(ssl, daemon);
		r = conn_secure(tcp, ssl, daemon, true, timeout_ms);
	}
	SSL_free(ssl);
	return r;
}

/* Operations of the backend. */

static int
tls_adopt(const struct gp_transport_ops *ops, int fd, struct gp_conn **conn_p)
{
	int r = gp_tcp_adopt(ops, fd, conn_p);

	if (r == 0)
		conn_to_tcp(*conn_p)->stream.io = &gp_tls_io;
	return r;
}

static int
tls_release_fd(struct gp_conn *conn, int *fd_p)
{
	return conn_to_tcp(conn)->tls ? GP_E_UNSUPPORTED : gp_tcp_release_fd(conn, fd_p);
}

/* Ensures that only preambles are sent unencrypted, even if the caller does not secure the
 * connection. */
static int
conn_refuse_clear(struct gp_conn *conn)
{
	struct gp_stream *stream = &conn_to_tcp(conn)->stream;

	if (conn_to_tcp(conn)->tls)
		return 0;
	return stream->recv_status
		       ? stream->recv_status
		       : gp_conn_fail(conn, -EPROTO, "no message before the TLS handshake");
}

static int
tls_send(struct gp_conn *conn, const struct iovec *data, int data_count, const struct iovec *bulk,
	 int bulk_count, size_t data_size, size_t bulk_size)
{
	int r = conn_refuse_clear(conn);

	return r ? r
		 : gp_stream_send(conn, data, data_count, bulk, bulk_count, data_size, bulk_size);
}

static int
tls_recv(struct gp_conn *conn, struct gp_message *message)
{
	int r = conn_refuse_clear(conn);

	return r ? r : gp_stream_recv(conn, message);
}

static bool
tls_pending(const struct gp_conn *conn)
{
	const struct gp_tls_link *link = ((const struct gp_tcp_conn *)conn)->tls;

	return gp_stream_pending(conn) || (link && gp_tls_link_pending(link));
}

static void
tls_destroy(struct gp_conn *conn)
{
	struct gp_tcp_conn *tcp = conn_to_tcp(conn);

	if (tcp->tls) {
		gp_tls_link_close(tcp);
		gp_tls_link_destroy(tcp->tls);
	}
	SSL_free(tcp->handshake_ssl);
	sk_X509_pop_free(conn->chain, X509_free);
	gp_tcp_destroy(conn);
}

const struct gp_transport_ops gp_tls_ops = {
	GP_TCP_OPS,
	.scheme = "tls",
	.connect = gp_tcp_connect,
	.connect_start = gp_tcp_connect_start,
	.connect_finish = gp_tcp_connect_finish,
	.listen = gp_tcp_listen,
	.listener_destroy = gp_tcp_listener_destroy,
	.adopt = tls_adopt,
	.release_fd = tls_release_fd,
	.send = tls_send,
	.recv = tls_recv,
	.pending = tls_pending,
	.destroy = tls_destroy,
};
