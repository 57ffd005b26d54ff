/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS 1.3 on connections of the scheme tls, which begin in clear: their preambles are exchanged
 * first, then both ends secure the connection, and only then it carries messages.
 *
 * A struct gp_tls holds certificates and keys as they were read from their files; it never
 * changes, any thread may use it, and who has a reference gives it back.  Failures of files are
 * GP_E_INVALID or -ENOMEM, with a text.
 */
#ifndef GP_TLS_H
#define GP_TLS_H

#include "transport/transport.h"

#include <stdint.h>

/* How long a handshake may take unless the caller knows better. */
#define GP_TLS_HANDSHAKE_MS 10000
#define GP_TLS_KEY_SIZE 32

struct gp_tls;

/* Files of PEM; NULL: none. */
struct gp_tls_files {
	const char *certificate; /* this end's, and those between it and the authority */
	const char *key;         /* of the certificate */
	const char *authority;   /* whom this end believes what the other one shows */
	const char *crl;         /* a client's: which daemons' certificates are revoked */
};

/* A daemon's: certificate and key are needed, and the certificate is one for servers.  Without
 * authority no client's certificate is asked for; with it, one that is shown must be good, and none
 * need be shown. */
GP_MUST_CHECK int gp_tls_create_server(const struct gp_tls_files *files, struct gp_tls **tls_p,
				       char *error, size_t error_size);
/* A client's.  Without authority it believes whom this machine's programs believe.  With crl, each
 * authority of a daemon's certificate needs a list in it that holds. */
GP_MUST_CHECK int gp_tls_create_client(const struct gp_tls_files *files, struct gp_tls **tls_p,
				       char *error, size_t error_size);
/* Until when the certificate of this end holds, in seconds since 1970; INT64_MAX: it has none. */
int64_t gp_tls_get_not_after(const struct gp_tls *tls);
/* And from when on; INT64_MIN: it has none. */
int64_t gp_tls_get_not_before(const struct gp_tls *tls);
/* Whether a daemon asks clients for certificates. */
bool gp_tls_requests_certificate(const struct gp_tls *tls);
struct gp_tls *gp_tls_ref(struct gp_tls *tls);
/* Accepts NULL. */
void gp_tls_unref(struct gp_tls *tls);

/*
 * The handshake with certificates, by one thread, before the first message: `host` is whom the
 * certificate of the daemon must name, and NULL at the daemon's end.  0; a negative errno, and
 * gp_conn_error() says why in words for the person at this end (-ETIMEDOUT: not within timeout_ms;
 * -EACCES: one end does not accept what the other has shown); GP_E_UNSUPPORTED: not a connection
 * of tls.  Behind it the connection is GP_CONN_CAP_ENCRYPTED and can move no more.
 *
 * A client's certificate is looked at by the daemon after the client's handshake is done: what is
 * wrong with it the client learns from its first receive.
 */
GP_MUST_CHECK int gp_conn_secure(struct gp_conn *conn, struct gp_tls *tls, const char *host,
				 int timeout_ms);

/*
 * Only the first message of a client's handshake, behind its preamble: the answer to both comes
 * after one round trip.  gp_conn_recv_preamble() may follow, whatever this returns, for the peer
 * may have said why it closed; then gp_conn_secure() with the same arguments goes on.
 */
GP_MUST_CHECK int gp_conn_secure_start(struct gp_conn *conn, struct gp_tls *tls, const char *host);

/* The whole handshake with a key that both ends have, and no certificates. */
GP_MUST_CHECK int gp_conn_secure_psk(struct gp_conn *conn, bool daemon,
				     const uint8_t key[GP_TLS_KEY_SIZE], int timeout_ms);

#endif /* GP_TLS_H */
