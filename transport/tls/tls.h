/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS 1.3 for connections of the scheme tls. These begin unencrypted: the preambles are exchanged
 * first, then both ends secure the connection, and only then messages are sent.
 *
 * Ownership: a struct gp_tls has the certificates and keys read from files and is reference
 * counted.
 * Threads: any; a struct gp_tls is immutable.
 * Errors: functions that read files return GP_E_INVALID or -ENOMEM, with a text.
 */
#ifndef GP_TLS_H
#define GP_TLS_H

#include "transport/transport.h"

#include <stdint.h>

/* Default time limit of a handshake. */
#define GP_TLS_HANDSHAKE_MS 10000
#define GP_TLS_KEY_SIZE 32

struct gp_tls;

/* Paths of PEM files; NULL: none. */
struct gp_tls_files {
	const char *certificate; /* of this end, followed by its intermediate certificates */
	const char *key;         /* of the certificate */
	const char *authority;   /* authorities that the peer's certificate must be signed by */
	const char *crl;         /* client only: revocation lists for daemons' certificates */
};

/* Creates a daemon's configuration. Certificate and key are required; the certificate must be for
 * servers. Without authority no client certificate is requested. With it, clients may show a
 * certificate, which must then be valid. */
GP_MUST_CHECK int gp_tls_create_server(const struct gp_tls_files *files, struct gp_tls **tls_p,
				       char *error, size_t error_size);
/* Creates a client's configuration. Without authority the system's trust store is used. With crl,
 * each authority in the chain of a daemon's certificate needs a valid list. */
GP_MUST_CHECK int gp_tls_create_client(const struct gp_tls_files *files, struct gp_tls **tls_p,
				       char *error, size_t error_size);
/* Returns the end of the validity of this end's certificate in seconds since 1970; INT64_MAX: no
 * certificate. */
int64_t gp_tls_get_not_after(const struct gp_tls *tls);
/* Returns the beginning of the validity; INT64_MIN: no certificate. */
int64_t gp_tls_get_not_before(const struct gp_tls *tls);
/* Whether a daemon requests client certificates. */
bool gp_tls_requests_certificate(const struct gp_tls *tls);
/* Adds a reference and returns tls. */
struct gp_tls *gp_tls_ref(struct gp_tls *tls);
/* Drops a reference; accepts NULL. */
void gp_tls_unref(struct gp_tls *tls);

/*
 * Performs the handshake with certificates, called by one thread before the first message. host:
 * the name that the daemon's certificate must have; NULL at the daemon. Returns 0; a negative
 * errno, with gp_conn_error() explaining it to the local user (-ETIMEDOUT: not complete within
 * timeout_ms; -EACCES: a certificate was not accepted); GP_E_UNSUPPORTED: not a tls connection.
 * Afterwards the connection has GP_CONN_CAP_ENCRYPTED and can no longer be passed to another
 * process.
 *
 * The daemon verifies a client's certificate after the client has completed its handshake, so a
 * client learns of a rejection from its first receive.
 */
GP_MUST_CHECK int gp_conn_secure(struct gp_conn *conn, struct gp_tls *tls, const char *host,
				 int timeout_ms);

/*
 * Sends only the first message of a client's handshake, right after its preamble, so that the
 * replies to both take a single round trip. gp_conn_recv_preamble() may follow regardless
 * of the result, because the peer may have sent a reason before it closed; gp_conn_secure() with
 * the same arguments then completes the handshake.
 */
GP_MUST_CHECK int gp_conn_secure_start(struct gp_conn *conn, struct gp_tls *tls, const char *host);

/* Performs the whole handshake with a pre-shared key and no certificates. */
GP_MUST_CHECK int gp_conn_secure_psk(struct gp_conn *conn, bool daemon,
				     const uint8_t key[GP_TLS_KEY_SIZE], int timeout_ms);

#endif /* GP_TLS_H */
