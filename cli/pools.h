/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pools of pools.conf, for the commands of gpupool: every invalid value is an error, and the
 * messages name what is right.  One thread.
 */
#ifndef CLI_POOLS_H
#define CLI_POOLS_H

#include "client/base/pools.h"

#define CLI_ERROR_MAX 1536

/* NULL, or the reason why the key must not have this value. */
const char *cli_pools_check(const char *key, const char *value);
/* Reads both files.  To be freed with gpc_pools_config_free(), whatever is returned. */
int cli_pools_read(struct gpc_pools_config *pools, char *error, size_t error_size);

/* NULL: no pool has this name. */
const struct gpc_pool_config *cli_pools_find(const struct gpc_pools_config *pools,
					     const char *name);
/* How many pools have this address, which may be a host alone; found: the first two. */
int cli_pools_with_address(const struct gpc_pools_config *pools, const char *text,
			   const struct gpc_pool_config *found[2]);
/* "there is no pool ..." with the most similar name, or with all names. */
void cli_pools_explain(const struct gpc_pools_config *pools, const char *name, char *error,
		       size_t error_size);

/* NULL, or the reason why the value is invalid, as the end of a sentence that begins with it. */
const char *cli_check_gpus(const char *text);
const char *cli_check_memory(const char *text);
const char *cli_check_sm(const char *text);
const char *cli_check_wait(const char *text);

#endif /* CLI_POOLS_H */
