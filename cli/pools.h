/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pools of pools.conf, for gpupool's commands: unlike in the client library, each invalid value
 * is an error, with a message that contains the valid values.
 *
 * Ownership: returned pools are borrowed from struct gpc_pools_config and valid until it is freed.
 * Error texts are static unless noted.
 * Threads: called by the main thread only.
 */
#ifndef CLI_POOLS_H
#define CLI_POOLS_H

#include "client/base/pools.h"

/* Sufficient size in bytes of a buffer for an error text. */
#define CLI_ERROR_MAX 1536

/* Checks a value of pools.conf, or of the option of run with the name of the key. Returns NULL if
 * the value is valid, also for a key whose values are not checked here. Otherwise returns an error
 * text that quotes the value; it is static, valid until the next call. */
const char *cli_pools_check(const char *key, const char *value);
/* Reads the user's and the system's pools.conf; a missing file counts as empty. Initializes *pools.
 * Returns 0, or CLI_FAILED after an error message. The caller frees *pools with
 * gpc_pools_config_free() in either case. */
int cli_pools_read(struct gpc_pools_config *pools);

/* Returns the first pool with this name, which hides others of the name; NULL: there is none. */
const struct gpc_pool_config *cli_pools_find(const struct gpc_pools_config *pools,
					     const char *name);
/* Returns the number of pools with the address `text`, which may be a host name only. A pool that
 * another one of the same name hides is not counted. Sets found[0] and found[1] to the first two
 * such pools; if there are fewer, the remaining elements are unchanged. */
int cli_pools_with_address(const struct gpc_pools_config *pools, const char *text,
			   const struct gpc_pool_config *found[2]);
/* Writes an error text about the unknown pool `name` to `error` (error_size bytes, truncated to
 * fit). The text suggests the pool with the most similar name, lists all names if none is similar,
 * or describes how to add a pool. */
void cli_pools_explain(const struct gpc_pools_config *pools, const char *name, char *error,
		       size_t error_size);

#endif /* CLI_POOLS_H */
