/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a connection of tls, for the files of this folder only.
 */
#ifndef GP_TLS_LINK_H
#define GP_TLS_LINK_H

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

/* A secured connection's: what its sending and its receiving thread have. */
struct gp_tls_link {
	/* The sending thread's; others end the connection with it, if nobody is sending. */
	pthread_mutex_t send_lock;
	bool server;
	struct gp_tls_record seal;
	struct gp_tls_record helper_seal; /* of who helps */
	uint8_t *out, *bulk_out;
	bool closed; /* nothing goes out any more */

	/* By the receiving thread: the peer wants new keys of the sender. */
	atomic_bool update_wanted;

	/* The receiving thread's. */
	struct gp_tls_record open;
	struct gp_tls_record helper_open; /* of who helps */
	uint8_t *in;                      /* from the socket: in[in_start..in_end) */
	size_t in_size, in_start, in_end;
	uint8_t *plain; /* opened, and not yet taken: plain[plain_start..plain_end) */
	size_t plain_start, plain_end;
	unsigned int idle; /* records without data since the last one with */
	bool ended;        /* the peer has said that nothing more comes */
	int failed;        /* what ended receiving */
};

/* What the handshake has agreed on. */
struct gp_tls_secrets {
	unsigned int suite;
	uint8_t client[GP_TLS_RECORD_SECRET_MAX], server[GP_TLS_RECORD_SECRET_MAX];
	size_t client_size, server_size;
};

/* tls_context.c: one for the process, apart from what the program does with OpenSSL; or NULL. */
OSSL_LIB_CTX *gp_tls_get_libctx(void);
/* A context for this end, without certificates; or NULL. */
SSL_CTX *gp_tls_ctx_create(bool server);
/* In seconds since 1970; 0, which is over, if it cannot be read. */
int64_t gp_tls_time_to_unix(const ASN1_TIME *time);

/* tls_handshake.c: 0, or a negative errno with the connection's error set.  The first one sends a
 * client's first message, and receives nothing. */
GP_MUST_CHECK int gp_tls_handshake_start(struct gp_tcp_conn *conn, SSL *ssl, int timeout_ms);
GP_MUST_CHECK int gp_tls_handshake_run(struct gp_tcp_conn *conn, SSL *ssl, bool keyed,
				       int timeout_ms, struct gp_tls_secrets *secrets);
/* For gp_tls_ctx_create(): takes the secrets to the handshake that they belong to. */
void gp_tls_handshake_store_secret(const SSL *ssl, const char *line);

/* tls_explain.c: sets the connection's error: why what the peer ("daemon") has shown is not
 * accepted.  -EACCES. */
int gp_tls_explain_certificate(struct gp_conn *conn, const SSL *ssl, const char *peer,
			       long verdict);

/* tls_io.c: of a stream that is in clear until it has a link. */
extern const struct gp_stream_io gp_tls_io;
/* From now on the connection's stream is inside TLS.  0 or a negative errno. */
GP_MUST_CHECK int gp_tls_link_start(struct gp_tcp_conn *conn, const struct gp_tls_secrets *secrets,
				    bool server);
/* More bytes from the socket: 1, 0: none within the time, or a negative errno. */
GP_MUST_CHECK int gp_tls_link_receive(struct gp_tcp_conn *conn, int timeout_ms);
GP_MUST_CHECK int gp_tls_link_send(struct gp_stream *stream, const uint8_t *bytes, size_t size,
				   bool more);
/* Whether a record is there that has been received and not taken. */
bool gp_tls_link_pending(const struct gp_tls_link *link);
/* Says that nothing more comes, as far as that goes without waiting. */
void gp_tls_link_close(struct gp_tcp_conn *conn);
void gp_tls_link_destroy(struct gp_tls_link *link);

/* tls_bulk.c: with helpers.  Whether a part is large enough for that. */
bool gp_tls_is_bulk(const struct iovec *part);
/* Seals and sends what one job takes of the part.  Bytes, or a negative errno. */
ssize_t gp_tls_send_bulk(struct gp_tcp_conn *conn, const struct iovec *part, bool more);
/* Receives and opens what is expected there.  Bytes; 0: it is to be done record by record. */
ssize_t gp_tls_receive_bulk(struct gp_tcp_conn *conn, const struct iovec *part, int timeout_ms);

#endif /* GP_TLS_LINK_H */
