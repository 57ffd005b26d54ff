/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files with which this user is known to a daemon, and by which that daemon is believed: those
 * of the environment (GPUPOOL_TOKEN_FILE, GPUPOOL_TLS_...) if it names any, otherwise those of the
 * pool in pools.conf (gpupool(1)) that has the daemon's address.
 *
 * Ownership: the caller's, to be freed with gpc_credentials_fini().  Threads: any.  Errors: several
 * pools have the address, each with credentials of its own: GP_E_INVALID, and there are none.
 */
#ifndef GPC_CREDENTIALS_H
#define GPC_CREDENTIALS_H

#include "base/status.h"
#include "transport/url.h"

#include <stdbool.h>
#include <stddef.h>

/* Paths; NULL: there is none. */
struct gpc_credentials {
	char pool[64]; /* in pools.conf; "": they are the environment's, or there are none */
	char *token, *authority, *certificate, *key, *crl;
};

/* url: NULL for the environment's alone. */
GP_MUST_CHECK int gpc_credentials_find(const struct gp_url *url,
				       struct gpc_credentials *credentials, char *error,
				       size_t error_size);
void gpc_credentials_fini(struct gpc_credentials *credentials);

bool gpc_credentials_any(const struct gpc_credentials *credentials);

/* "GPUPOOL_TLS_KEY" or "key of pool lab", for messages. */
const char *gpc_credentials_name(const struct gpc_credentials *credentials, const char *variable,
				 const char *key, char *text, size_t size);
#define GPC_CREDENTIALS_NAME_MAX 128

#endif /* GPC_CREDENTIALS_H */
