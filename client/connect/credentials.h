/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials of this user for a daemon: the files that authenticate the user to the daemon, and
 * those that authenticate the daemon. If the environment names any (GPUPOOL_TOKEN_FILE,
 * GPUPOOL_TLS_...), they are used, otherwise those of the pool in pools.conf (gpupool(1)) that
 * contains the daemon's address.
 *
 * Ownership: the caller's, until gpc_credentials_fini().
 * Threads: any thread may call.
 * Errors: GP_E_INVALID: several pools contain the address and have different credentials; the
 * result is empty.
 */
#ifndef GPC_CREDENTIALS_H
#define GPC_CREDENTIALS_H

#include "base/status.h"
#include "transport/url.h"

#include <stdbool.h>
#include <stddef.h>

/* Paths; NULL: not set. */
struct gpc_credentials {
	char pool[64]; /* name of the pool in pools.conf; "": from the environment, or none */
	char *token, *authority, *certificate, *key, *crl;
};

/* Finds the credentials. url: NULL for those of the environment only. */
GP_MUST_CHECK int gpc_credentials_find(const struct gp_url *url,
				       struct gpc_credentials *credentials, char *error,
				       size_t error_size);
void gpc_credentials_fini(struct gpc_credentials *credentials);

/* Returns whether any file is set. */
bool gpc_credentials_any(const struct gpc_credentials *credentials);

/* Formats the source of a file for messages: "GPUPOOL_TLS_KEY" or "key of pool lab". Returns
 * text. */
const char *gpc_credentials_name(const struct gpc_credentials *credentials, const char *variable,
				 const char *key, char *text, size_t size);
#define GPC_CREDENTIALS_NAME_MAX 128

#endif /* GPC_CREDENTIALS_H */
