/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS configuration of the client: loads the certificate and key that it presents, and the
 * authority by which it verifies a daemon. If no file is set for the authority, its certificate may
 * be in the file of the token or of the client's certificate. The files are read anew in each call.
 *
 * Threads: any thread may call.
 */
#ifndef GPC_TLS_FILES_H
#define GPC_TLS_FILES_H

#include "client/connect/credentials.h"
#include "transport/tls/tls.h"

/* Creates the configuration from the files of the credentials, which are not used after the return.
 * Returns 0, and the caller releases *tls_p with gp_tls_unref(). Returns GP_E_INVALID if a
 * certificate is set without its key or the reverse, or an error of gp_tls_create_client()
 * (transport/tls/tls.h); `error` then contains the reason, and *tls_p must not be used. */
GP_MUST_CHECK int gpc_tls_read(const struct gpc_credentials *credentials, struct gp_tls **tls_p,
			       char *error, size_t error_size);

/* Returns whether the credentials, or their files, contain an authority. If not, the daemon is
 * verified by this machine's certificate store. Reads files. */
bool gpc_tls_has_authority(const struct gpc_credentials *credentials);

#endif /* GPC_TLS_FILES_H */
