/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files with which this user is known to a daemon, and by which that daemon is believed: those
 * of the environment (GPUPOOL_TOKEN_FILE, GPUPOOL_TLS_...) if it names any, otherwise those of the
 * first pool in pools.conf (gpupool(1)) that has the daemon's address.
 *
 * Ownership: the caller's, to be freed with gpc_credentials_fini().  Threads: any.  Errors: none; a
 * line of pools.conf that makes no sense is skipped, and "gpupool run" reports it.
 */
#ifndef GPC_CREDENTIALS_H
#define GPC_CREDENTIALS_H

#include "transport/url.h"

#include <stdbool.h>
#include <stddef.h>

/* Paths; NULL: there is none. */
struct gpc_credentials {
	char pool[64]; /* in pools.conf; "": they are the environment's, or there are none */
	char *token, *authority, *certificate, *key, *crl;
};

/* url: NULL for the environment's alone. */
void gpc_credentials_find(const struct gp_url *url, struct gpc_credentials *credentials);
void gpc_credentials_fini(struct gpc_credentials *credentials);

bool gpc_credentials_any(const struct gpc_credentials *credentials);

/* "GPUPOOL_TLS_KEY" or "key of pool lab", for messages. */
const char *gpc_credentials_name(const struct gpc_credentials *credentials, const char *variable,
				 const char *key, char *text, size_t size);
#define GPC_CREDENTIALS_NAME_MAX 128

#endif /* GPC_CREDENTIALS_H */
