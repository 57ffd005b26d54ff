/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pools of pools.conf, for gpupool's commands: unlike in the client library, every invalid
 * value is an error, with a message that contains the valid values.
 *
 * Threads: one.
 */
#ifndef CLI_POOLS_H
#define CLI_POOLS_H

#include "client/base/pools.h"

#define CLI_ERROR_MAX 1536

/* Returns NULL if the value is valid for the key, else an error text, which is static. */
const char *cli_pools_check(const char *key, const char *value);
/* Reads the user's and the system's file. The caller frees pools with gpc_pools_config_free() in
 * either case. Returns 0, or non-zero with a text in error. */
int cli_pools_read(struct gpc_pools_config *pools, char *error, size_t error_size);

/* Returns the pool with this name, or NULL. */
const struct gpc_pool_config *cli_pools_find(const struct gpc_pools_config *pools,
					     const char *name);
/* Returns the number of pools with this address, which may be a host name only; found: the first
 * two. */
int cli_pools_with_address(const struct gpc_pools_config *pools, const char *text,
			   const struct gpc_pool_config *found[2]);
/* Writes "there is no pool ..." with the most similar name, or with all names. */
void cli_pools_explain(const struct gpc_pools_config *pools, const char *name, char *error,
		       size_t error_size);

/* Return NULL if the value is valid, else the end of an error sentence that begins with the
 * value. */
const char *cli_check_gpus(const char *text);
const char *cli_check_memory(const char *text);
const char *cli_check_sm(const char *text);
const char *cli_check_wait(const char *text);

#endif /* CLI_POOLS_H */
