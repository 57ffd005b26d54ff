/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of a tls connection; private to this directory.
 *
 * Ownership: a connection owns its link (struct gp_tls_link), which exists from the end of the
 * handshake until the connection is destroyed.
 * Threads: as transport.h; members of the link are used by the sending or by the receiving thread
 * only, as noted.
 * Errors: functions that return int or ssize_t return a negative errno on failure. The connection
 * is then dead.
 */
#ifndef GP_TLS_INTERNAL_H
#define GP_TLS_INTERNAL_H

#include "transport/socket/tcp.h"
#include "transport/tls/tls.h"
#include "transport/tls/tls_record.h"

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>

struct gp_tls {
	atomic_uint references;
	SSL_CTX *ctx;
};

/* State of a secured connection, divided into members of the sending and of the receiving
 * thread. */
struct gp_tls_link {
	/* Guards the members up to `closed`. Held by the sending thread while it sends; other
	 * threads acquire it to close the connection while no thread sends. */
	pthread_mutex_t send_lock;
	bool server;
	struct gp_tls_record seal;
	/* like `seal`, for pieces of bulk processed by a helper thread */
	struct gp_tls_record helper_seal;
	/* Buffers for records to be sent. bulk_out: those of a bulk job; NULL until the first
	 * job. */
	uint8_t *out, *bulk_out;
	bool closed; /* nothing more can be sent */

	/* Whether the peer requests that this end updates its sending key; set by the receiving
	 * thread, cleared by the sending thread. */
	atomic_bool update_wanted;

	/* Opens received records. This member and those below are used by the receiving thread. */
	struct gp_tls_record open;
	/* like `open`, for pieces of bulk processed by a helper thread */
	struct gp_tls_record helper_open;
	uint8_t *in; /* received, still encrypted bytes: in[in_start..in_end); in_size: allocated
			bytes */
	size_t in_size, in_start, in_end;
	uint8_t *plain; /* decrypted bytes not yet read: plain[plain_start..plain_end) */
	size_t plain_start, plain_end;
	unsigned int idle; /* consecutive records without data */
	bool ended;        /* the peer has sent close_notify */
	int failed;        /* negative errno that ended receiving; 0: none */
};

/* Results of the handshake. */
struct gp_tls_secrets {
	unsigned int suite; /* number of the cipher suite, as for gp_tls_record_init() */
	uint8_t client[GP_TLS_RECORD_SECRET_MAX], server[GP_TLS_RECORD_SECRET_MAX];
	size_t client_size, server_size;
};

/* tls_context.c: returns the process's OpenSSL library context, which is separate from the
 * program's own, static and never freed; NULL on failure. */
OSSL_LIB_CTX *gp_tls_get_libctx(void);
/* Creates a context for this end without certificates; NULL on failure. The caller frees it with
 * SSL_CTX_free(). */
SSL_CTX *gp_tls_ctx_create(bool server);
/* Converts a certificate's time to seconds since 1970; returns 0, which is expired, if the time
 * cannot be parsed. */
int64_t gp_tls_time_to_unix(const ASN1_TIME *time);

/* tls_handshake.c: sends the first message of a client's handshake and receives nothing. Waits at
 * most timeout_ms for space. Returns 0, or a negative errno with the connection's error set; ssl
 * stays the caller's. */
GP_MUST_CHECK int gp_tls_handshake_start(struct gp_tcp_conn *conn, SSL *ssl, int timeout_ms);
/* Completes a handshake, waiting at most timeout_ms, and stores its results in *secrets, which the
 * caller erases. keyed: with a pre-shared key. Returns 0, or a negative errno with the connection's
 * error set; ssl stays the caller's. */
GP_MUST_CHECK int gp_tls_handshake_run(struct gp_tcp_conn *conn, SSL *ssl, bool keyed,
				       int timeout_ms, struct gp_tls_secrets *secrets);
/* Key log callback of the contexts of gp_tls_ctx_create(), called by OpenSSL: stores the secret of
 * the line (NSS key log format) in the handshake that it belongs to. */
void gp_tls_handshake_store_secret(const SSL *ssl, const char *line);

/* tls_explain.c: sets the connection's error to the reason why the certificate of the peer is not
 * accepted. peer: the name of the peer in the text, such as "daemon". verdict: X509_V_ERR_*
 * code. Returns -EACCES. */
int gp_tls_explain_certificate(struct gp_conn *conn, const SSL *ssl, const char *peer,
			       long verdict);

/* tls_io.c: struct gp_stream_io of a tls connection, unencrypted until the connection has a
 * link. */
extern const struct gp_stream_io gp_tls_io;
/* Gives the connection a link, so that its stream uses TLS. Returns 0 or a negative errno; the
 * connection is unchanged after a failure. */
GP_MUST_CHECK int gp_tls_link_start(struct gp_tcp_conn *conn, const struct gp_tls_secrets *secrets,
				    bool server);
/* Waits for more bytes and receives them from the socket into `in`, which has space. Inside a
 * record the stall timeout replaces timeout_ms, unless that is 0. Returns 1, 0 after the timeout,
 * or a negative errno; -ECONNRESET: the connection ended without close_notify. */
GP_MUST_CHECK int gp_tls_link_receive(struct gp_tcp_conn *conn, int timeout_ms);
/* Sends all of the encrypted bytes; waits as gp_conn_send(). Returns 0 or a negative errno. */
GP_MUST_CHECK int gp_tls_link_send(struct gp_stream *stream, const uint8_t *bytes, size_t size,
				   bool more);
/* Returns whether decrypted bytes or a complete record were received and not yet read. */
bool gp_tls_link_pending(const struct gp_tls_link *link);
/* Sends close_notify if this is possible without waiting. */
void gp_tls_link_close(struct gp_tcp_conn *conn);
/* Erases the keys and frees the link. */
void gp_tls_link_destroy(struct gp_tls_link *link);

/* tls_bulk.c: returns whether a part is large enough to be transferred with helpers, and there are
 * helpers. */
bool gp_tls_is_bulk(const struct iovec *part);
/* Encrypts and sends the first bytes of the part, at most those of one job. more: further bytes
 * follow. Waits as gp_conn_send(). Returns the bytes sent or a negative errno. */
ssize_t gp_tls_send_bulk(struct gp_tcp_conn *conn, const struct iovec *part, bool more);
/* Receives and decrypts the first bytes of the part. Returns their number, or 0 if the caller must
 * read record by record, which also reports errors. */
ssize_t gp_tls_receive_bulk(struct gp_tcp_conn *conn, const struct iovec *part, int timeout_ms);

#endif /* GP_TLS_INTERNAL_H */
