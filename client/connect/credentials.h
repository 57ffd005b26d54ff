/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials of this user for a daemon: the files that authenticate the user to the daemon, and
 * the files that authenticate the daemon to the user. If the environment names any
 * (GPUPOOL_TOKEN_FILE, GPUPOOL_TLS_...), only these are used. Otherwise those of the pool in
 * pools.conf (gpupool(1)) that contains the daemon's address are used.
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

/* Paths of the credentials' files. */
struct gpc_credentials {
	char pool[64]; /* name of the pool in pools.conf that the paths are from; "": they are from
			  the environment, or there are none */
	/* owned; NULL: not set */
	char *token, *authority, *certificate, *key, *crl;
};

/* Finds the credentials for a daemon, without reading their files. url: the daemon's address; NULL:
 * only credentials of the environment. Returns 0, also if there are none. Returns GP_E_INVALID,
 * with a text in `error` and empty *credentials, if several pools contain the address and have
 * different credentials. If out of memory, a path is treated as not set. */
GP_MUST_CHECK int gpc_credentials_find(const struct gp_url *url,
				       struct gpc_credentials *credentials, char *error,
				       size_t error_size);
/* Frees the strings; *credentials becomes empty. */
void gpc_credentials_fini(struct gpc_credentials *credentials);

/* Returns whether the path of any file is set. */
bool gpc_credentials_any(const struct gpc_credentials *credentials);

/* Formats the source of a path for messages. variable: the environment variable; key: the key in
 * pools.conf. Writes `variable`, for example "GPUPOOL_TLS_KEY", if the paths are from the
 * environment, or else, for example, "key of pool lab". Returns `text`, a buffer of `size` bytes; a
 * text that does not fit is truncated. */
const char *gpc_credentials_name(const struct gpc_credentials *credentials, const char *variable,
				 const char *key, char *text, size_t size);
/* Size of a buffer for gpc_credentials_name(), in bytes. */
#define GPC_CREDENTIALS_NAME_MAX 128

#endif /* GPC_CREDENTIALS_H */
