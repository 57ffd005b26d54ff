/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS 1.3 for connections of the scheme tls. These begin unencrypted: the preambles are exchanged
 * first, then both ends secure the connection, and only then messages are sent.
 *
 * Ownership: a struct gp_tls is a configuration: certificates and keys read from files. It is
 * reference counted; its creator has the first reference. Paths may be freed when a function
 * returns.
 * Threads: any; a struct gp_tls is immutable. A connection is secured by one thread.
 * Errors: functions that read files return 0, GP_E_INVALID or -ENOMEM; after a failure `error`
 * contains the reason and *tls_p is unchanged.
 */
#ifndef GP_TLS_H
#define GP_TLS_H

#include "transport/transport.h"

#include <stdint.h>

/* Default timeout of a handshake, in milliseconds. */
#define GP_TLS_HANDSHAKE_MS 10000
/* Size of a pre-shared key in bytes. */
#define GP_TLS_KEY_SIZE 32

struct gp_tls;

/* Paths of PEM files; NULL: no file. */
struct gp_tls_files {
	/* certificate of this end, followed by its intermediate certificates */
	const char *certificate;
	const char *key;       /* private key of the certificate */
	const char *authority; /* authorities that the peer's certificate must be signed by */
	const char *crl;       /* client only: revocation lists for daemons' certificates */
};

/* Creates a daemon's configuration. Certificate and key are required; the certificate must be valid
 * for servers. Without `authority` no client certificate is requested. With it, clients may show a
 * certificate, which must then be valid. */
GP_MUST_CHECK int gp_tls_create_server(const struct gp_tls_files *files, struct gp_tls **tls_p,
				       char *error, size_t error_size);
/* Creates a client's configuration. Without `authority` the system's trust store is used. With
 * `crl`, each authority in the chain of a daemon's certificate needs a valid list. */
GP_MUST_CHECK int gp_tls_create_client(const struct gp_tls_files *files, struct gp_tls **tls_p,
				       char *error, size_t error_size);
/* Returns the end of the validity of this end's certificate in seconds since 1970; INT64_MAX: no
 * certificate. */
int64_t gp_tls_get_not_after(const struct gp_tls *tls);
/* Returns the beginning of the validity of this end's certificate in seconds since 1970; INT64_MIN:
 * no certificate. */
int64_t gp_tls_get_not_before(const struct gp_tls *tls);
/* Returns whether a daemon's configuration requests client certificates. */
bool gp_tls_requests_certificate(const struct gp_tls *tls);
/* Adds a reference. Returns tls. */
struct gp_tls *gp_tls_ref(struct gp_tls *tls);
/* Drops a reference; the last one frees the configuration. Accepts NULL. */
void gp_tls_unref(struct gp_tls *tls);

/*
 * Performs the handshake with certificates; called by one thread before the first message. Waits at
 * most timeout_ms. host: the DNS name or IP address that the daemon's certificate must have; NULL
 * at the daemon. The configuration may be unreferenced on return. Returns 0; a negative errno, with
 * gp_conn_error() explaining it to the local user (-ETIMEDOUT: not complete within timeout_ms;
 * -EACCES: a certificate was not accepted; -EPROTO: messages were exchanged, or the connection is
 * secured already), after which the connection is dead; GP_E_UNSUPPORTED: not a tls connection.
 * After success the connection has GP_CONN_CAP_ENCRYPTED and can no longer be passed to another
 * process.
 *
 * The daemon verifies a client's certificate after the client has completed its handshake, so a
 * client learns of a rejection from its first receive.
 */
GP_MUST_CHECK int gp_conn_secure(struct gp_conn *conn, struct gp_tls *tls, const char *host,
				 int timeout_ms);

/*
 * Sends only the first message of a client's handshake, right after its preamble, so that the
 * replies to both take a single round trip. gp_conn_secure() with the same arguments completes the
 * handshake. Waits at most GP_TLS_HANDSHAKE_MS for space in the socket's buffer. Returns 0, a
 * negative errno or GP_E_UNSUPPORTED as gp_conn_secure(). gp_conn_recv_preamble() may follow
 * regardless of the result, because the peer may have sent the reason for a rejection before it
 * closed.
 */
GP_MUST_CHECK int gp_conn_secure_start(struct gp_conn *conn, struct gp_tls *tls, const char *host);

/* Performs the whole handshake with a pre-shared key and no certificates. daemon: whether this end
 * is the daemon. The key may be erased on return. Waits and returns as gp_conn_secure(). */
GP_MUST_CHECK int gp_conn_secure_psk(struct gp_conn *conn, bool daemon,
				     const uint8_t key[GP_TLS_KEY_SIZE], int timeout_ms);

#endif /* GP_TLS_H */
