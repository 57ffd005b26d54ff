/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom this user's programs believe to be a daemon, and what they show it: the files of its
 * credentials, and the authority's certificate in the token's or the certificate's file.
 */
#ifndef GPC_TLS_H
#define GPC_TLS_H

#include "client/connect/credentials.h"
#include "transport/tls/tls.h"

/* Reads the files; to be given back with gp_tls_unref().  Any thread.  0, GP_E_INVALID or -ENOMEM;
 * then error says what is wrong, and with which file. */
GP_MUST_CHECK int gpc_tls_read(const struct gpc_credentials *credentials, struct gp_tls **tls_p,
			       char *error, size_t error_size);

/* Whether one of them says which authority is believed; else it is those of this machine. */
bool gpc_tls_has_authority(const struct gpc_credentials *credentials);

#endif /* GPC_TLS_H */
