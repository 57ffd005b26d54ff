/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parser of pools.conf, the list of pools with their addresses and credentials: first the user's
 * file, then the machine's.
 *
 *     [pool lab]
 *     url = tls://gpunode         # as in REMOTE_GPU
 *     token = lab.token           # paths: absolute, ~/..., or relative to the folder of this file
 *     authority, certificate, key, crl, tenant, gpus, memory, sm, wait
 *
 * Ownership: struct gpc_pools_config is the caller's; the caller calls gpc_pools_config_free() even
 * after a failure.
 * Threads: any thread may call.
 * Errors: with a buffer `error`, the functions return -1 at the first invalid line, and the text
 * names file and line. With NULL they return 0, skip invalid lines, and store the text for the
 * first one in `fault`, because a damaged file must not stop a program.
 */
#ifndef GPC_POOLS_H
#define GPC_POOLS_H

#include "base/status.h"
#include "transport/url.h"

#include <stdbool.h>
#include <stddef.h>

#define GPC_POOL_PATH_MAX 4096
#define GPC_POOL_URL_MAX 1024
#define GPC_POOL_NAME_MAX 64
#define GPC_POOL_VALUE_MAX 32
#define GPC_POOLS_MAX 64
#define GPC_POOLS_FAULT_MAX 512
#define GPC_POOLS_FILE "pools.conf"
#define GPC_MACHINE_FOLDER "/etc/gpupool"

/* An empty text means that the key is not set. */
struct gpc_pool_config {
	char name[GPC_POOL_NAME_MAX];
	char url[GPC_POOL_URL_MAX];
	char token[GPC_POOL_PATH_MAX];
	char authority[GPC_POOL_PATH_MAX], certificate[GPC_POOL_PATH_MAX], key[GPC_POOL_PATH_MAX];
	char crl[GPC_POOL_PATH_MAX];
	char tenant[GPC_POOL_NAME_MAX];
	char gpus[GPC_POOL_VALUE_MAX], memory[GPC_POOL_VALUE_MAX], sm[GPC_POOL_VALUE_MAX];
	char wait[GPC_POOL_VALUE_MAX];
	char file[GPC_POOL_PATH_MAX]; /* file and line of the section */
	int line;
};

struct gpc_pools_config {
	struct gpc_pool_config *list; /* in the order of the files; of several pools with one name,
					 the first counts */
	int count;
	char fault[GPC_POOLS_FAULT_MAX]; /* "": every line is valid */
	/* Set by the caller before parsing: returns NULL, or the reason why the value is invalid
	 * for this key. If check is NULL, all values are valid. The value of url is always
	 * checked. */
	const char *(*check)(const char *key, const char *value);
};

/* Adds the pools in a text that was read from `file`. */
int gpc_pools_config_parse(struct gpc_pools_config *pools, const char *text, size_t size,
			   const char *file, char *error, size_t error_size);
/* Adds the pools of a file. A missing file has no pools. */
int gpc_pools_config_read_file(struct gpc_pools_config *pools, const char *path, char *error,
			       size_t error_size);
/* Adds the pools of both files. */
int gpc_pools_config_read(struct gpc_pools_config *pools, char *error, size_t error_size);
void gpc_pools_config_free(struct gpc_pools_config *pools);

/* Returns the folder of the user's files. Returns false if neither XDG_CONFIG_HOME nor HOME names
 * one. */
bool gpc_user_folder(char *path, size_t size);
/* If the pool has no token, sets it to the file that "gpupool login" stored, if that exists. */
void gpc_pool_config_find_token(struct gpc_pool_config *pool);

/* Returns whether an earlier pool in the list has the same name. */
bool gpc_pool_config_is_hidden(const struct gpc_pools_config *pools,
			       const struct gpc_pool_config *pool);
/* Returns whether the pool contains the address. An address without a scheme matches tcp:// and
 * tls://. */
bool gpc_pool_config_has_address(const struct gpc_pool_config *pool, const struct gp_url *url);
/*
 * Selects the pool whose credentials are used for a daemon, and sets its token file. If several
 * pools contain the address, the one with a token or a certificate is selected. Reads both files;
 * the first fault in a process is reported once on standard error. *pool_p is NULL if no pool
 * contains the address.
 * Errors: GP_E_INVALID: several pools have different credentials; error names two of them.
 */
GP_MUST_CHECK int gpc_pools_config_select(struct gpc_pools_config *pools, const struct gp_url *url,
					  const struct gpc_pool_config **pool_p, char *error,
					  size_t error_size);
/* Returns whether a pool contains this host and port with tls://, or without a scheme and with
 * credentials. */
bool gpc_pools_config_want_tls(const struct gp_url *url);

/* Returns whether the text is a valid pool name: letters, digits, '.', '_' and '-', not starting
 * with '.' or '-'. */
bool gpc_pool_config_is_name(const char *text);

#endif /* GPC_POOLS_H */
