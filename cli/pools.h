/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pools of pools.conf, for gpupool's commands: unlike in the client library, every invalid
 * value is an error, with a message that contains the valid values.
 *
 * Ownership: returned pools are borrowed from struct gpc_pools_config and valid until it is freed.
 * Error texts are static unless noted.
 * Threads: called by the main thread only.
 */
#ifndef CLI_POOLS_H
#define CLI_POOLS_H

#include "client/base/pools.h"

#define CLI_ERROR_MAX 1536

/* Returns NULL if the value is valid for the key, else an error text, valid until the next call. */
const char *cli_pools_check(const char *key, const char *value);
/* Reads the user's and the system's pools.conf; a missing file is empty. Returns 0, or non-zero
 * with a text in `error`. The caller frees pools with gpc_pools_config_free() in either case. */
int cli_pools_read(struct gpc_pools_config *pools, char *error, size_t error_size);

/* Returns the pool with this name, or NULL if there is none. */
const struct gpc_pool_config *cli_pools_find(const struct gpc_pools_config *pools,
					     const char *name);
/* Returns the number of pools with the address `text`, which may be a host name only. found: set to
 * the first two pools found; unused elements are unchanged. */
int cli_pools_with_address(const struct gpc_pools_config *pools, const char *text,
			   const struct gpc_pool_config *found[2]);
/* Writes an error text about an unknown pool with the most similar name, or with all names. */
void cli_pools_explain(const struct gpc_pools_config *pools, const char *name, char *error,
		       size_t error_size);

/* Returns NULL if the text is a valid number of devices, else the end of an error sentence that
 * begins with the value. The functions below check a memory size, a percentage of multiprocessors,
 * and a time in the same way. */
const char *cli_check_gpus(const char *text);
const char *cli_check_memory(const char *text);
const char *cli_check_sm(const char *text);
const char *cli_check_wait(const char *text);

#endif /* CLI_POOLS_H */
