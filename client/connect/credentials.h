/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials of this user for a daemon: the files that authenticate the user to the daemon, and
 * those by which the daemon is authenticated. If the environment names any (GPUPOOL_TOKEN_FILE,
 * GPUPOOL_TLS_...), they are used. Otherwise those of the pool in pools.conf (gpupool(1)) that
 * contains the daemon's address are used.
 *
 * Ownership: the struct owns its strings until gpc_credentials_fini().
 * Threads: any thread may call.
 */
#ifndef GPC_CREDENTIALS_H
#define GPC_CREDENTIALS_H

#include "base/status.h"
#include "transport/url.h"

#include <stdbool.h>
#include <stddef.h>

/* Paths of the files, owned; NULL: not set. */
struct gpc_credentials {
	char pool[64]; /* name of the pool in pools.conf that the paths are from; "": they are from
			  the environment, or there are none */
	char *token, *authority, *certificate, *key, *crl;
};

/* Finds the credentials for a daemon. url: NULL: only those of the environment. Returns 0, also if
 * there are none. Returns GP_E_INVALID, with a text in `error` and empty *credentials, if several
 * pools contain the address and have different credentials. A path for which there is no memory is
 * treated as not set. */
GP_MUST_CHECK int gpc_credentials_find(const struct gp_url *url,
				       struct gpc_credentials *credentials, char *error,
				       size_t error_size);
/* Frees the strings; *credentials becomes empty. */
void gpc_credentials_fini(struct gpc_credentials *credentials);

/* Returns whether any file is set. */
bool gpc_credentials_any(const struct gpc_credentials *credentials);

/* Formats the source of a file for messages: `variable` if the paths are from the environment, for
 * example "GPUPOOL_TLS_KEY", or else "key of pool lab". Returns `text`, a buffer of
 * GPC_CREDENTIALS_NAME_MAX bytes. */
const char *gpc_credentials_name(const struct gpc_credentials *credentials, const char *variable,
				 const char *key, char *text, size_t size);
#define GPC_CREDENTIALS_NAME_MAX 128

#endif /* GPC_CREDENTIALS_H */
