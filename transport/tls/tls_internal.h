/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of a tls connection; private to this directory.
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

/* State of a secured connection, split by sending and receiving thread. */
struct gp_tls_link {
	/* Held by the sending thread; other threads use it to close the connection while no thread
	 * sends. */
	pthread_mutex_t send_lock;
	bool server;
	struct gp_tls_record seal;
	struct gp_tls_record helper_seal; /* used by a helper thread */
	uint8_t *out, *bulk_out;
	bool closed; /* nothing more can be sent */

	/* Set by the receiving thread: the peer requests a key update of the sender. */
	atomic_bool update_wanted;

	/* Used by the receiving thread. */
	struct gp_tls_record open;
	struct gp_tls_record helper_open; /* used by a helper thread */
	uint8_t *in;                      /* received bytes: in[in_start..in_end) */
	size_t in_size, in_start, in_end;
	uint8_t *plain; /* decrypted bytes not yet read: plain[plain_start..plain_end) */
	size_t plain_start, plain_end;
	unsigned int idle; /* consecutive records without data */
	bool ended;        /* the peer has sent close_notify */
	int failed;        /* negative errno that ended receiving */
};

/* Results of the handshake. */
struct gp_tls_secrets {
	unsigned int suite;
	uint8_t client[GP_TLS_RECORD_SECRET_MAX], server[GP_TLS_RECORD_SECRET_MAX];
	size_t client_size, server_size;
};

/* tls_context.c: returns the process's OpenSSL library context, separate from the program's own;
 * NULL on failure. */
OSSL_LIB_CTX *gp_tls_get_libctx(void);
/* Creates a context for this end without certificates; NULL on failure. */
SSL_CTX *gp_tls_ctx_create(bool server);
/* Returns seconds since 1970; 0, which is expired, if the time cannot be parsed. */
int64_t gp_tls_time_to_unix(const ASN1_TIME *time);

/* tls_handshake.c: return 0, or a negative errno with the connection's error set.
 * gp_tls_handshake_start() sends a client's first message and receives nothing. */
GP_MUST_CHECK int gp_tls_handshake_start(struct gp_tcp_conn *conn, SSL *ssl, int timeout_ms);
GP_MUST_CHECK int gp_tls_handshake_run(struct gp_tcp_conn *conn, SSL *ssl, bool keyed,
				       int timeout_ms, struct gp_tls_secrets *secrets);
/* Callback for gp_tls_ctx_create(): stores the secrets of the handshake that they belong to. */
void gp_tls_handshake_store_secret(const SSL *ssl, const char *line);

/* tls_explain.c: sets the connection's error to the reason why the certificate of the peer
 * ("daemon") is not accepted. Returns -EACCES. */
int gp_tls_explain_certificate(struct gp_conn *conn, const SSL *ssl, const char *peer,
			       long verdict);

/* tls_io.c: stream I/O that is unencrypted until the connection has a link. */
extern const struct gp_stream_io gp_tls_io;
/* Switches the connection's stream to TLS. Returns 0 or a negative errno. */
GP_MUST_CHECK int gp_tls_link_start(struct gp_tcp_conn *conn, const struct gp_tls_secrets *secrets,
				    bool server);
/* Receives more bytes from the socket. Returns 1, 0 after timeout_ms, or a negative errno. */
GP_MUST_CHECK int gp_tls_link_receive(struct gp_tcp_conn *conn, int timeout_ms);
GP_MUST_CHECK int gp_tls_link_send(struct gp_stream *stream, const uint8_t *bytes, size_t size,
				   bool more);
/* Whether a complete record was received and not yet read. */
bool gp_tls_link_pending(const struct gp_tls_link *link);
/* Sends close_notify, as far as possible without waiting. */
void gp_tls_link_close(struct gp_tcp_conn *conn);
void gp_tls_link_destroy(struct gp_tls_link *link);

/* tls_bulk.c: transfers with helpers. Whether a part is large enough for them. */
bool gp_tls_is_bulk(const struct iovec *part);
/* Encrypts and sends up to one job's worth of the part. Returns the bytes sent or a negative
 * errno. */
ssize_t gp_tls_send_bulk(struct gp_tcp_conn *conn, const struct iovec *part, bool more);
/* Receives and decrypts bytes of the part. Returns the bytes; 0: the caller must read record by
 * record. */
ssize_t gp_tls_receive_bulk(struct gp_tcp_conn *conn, const struct iovec *part, int timeout_ms);

#endif /* GP_TLS_INTERNAL_H */
