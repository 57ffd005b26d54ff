/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom this user's programs believe to be a daemon, and what they show it: GPUPOOL_TLS_CA,
 * GPUPOOL_TLS_CERT, GPUPOOL_TLS_KEY, GPUPOOL_TLS_CRL, and the authority's certificate in
 * GPUPOOL_TOKEN_FILE or GPUPOOL_TLS_CERT.
 */
#ifndef GPC_TLS_H
#define GPC_TLS_H

#include "transport/tls/tls.h"

/* Reads the files; to be given back with gp_tls_put().  Any thread.  0, GP_E_INVALID or -ENOMEM;
 * then error says what is wrong, and with which variable. */
GP_MUST_CHECK int gpc_tls_read(struct gp_tls **tls_p, char *error, size_t error_size);

/* Whether one of them says which authority is believed; else it is those of this machine. */
bool gpc_tls_has_authority(void);

#endif /* GPC_TLS_H */
