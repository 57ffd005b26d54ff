/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parser of pools.conf, the list of pools: named groups of daemons with their addresses and the
 * user's credentials for them. The user's file is read first, then the machine's.
 *
 *     [pool lab]
 *     url = tls://gpunode         # as in REMOTE_GPU
 *     token = lab.token           # paths: absolute, ~/..., or relative to the folder of this file
 *     authority, certificate, key, crl, tenant, gpus, memory, sm, wait
 *
 * Ownership: struct gpc_pools_config is the caller's, initially zero. The caller calls
 * gpc_pools_config_free() when done, even after a failure.
 * Threads: any thread may call; one thread per struct at a time.
 * Errors: the functions that parse return 0 on success. With a buffer `error`, they return -1 at
 * the first invalid line, and the text names file and line; the pools before that line are in the
 * list. With NULL they always return 0, skip invalid lines, and store the text for the first one in
 * `fault`, because a damaged file must not stop a program.
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

/* A pool. An empty text means that the key is not set. */
struct gpc_pool_config {
	char name[GPC_POOL_NAME_MAX];
	char url[GPC_POOL_URL_MAX];
	char token[GPC_POOL_PATH_MAX];
	char authority[GPC_POOL_PATH_MAX], certificate[GPC_POOL_PATH_MAX], key[GPC_POOL_PATH_MAX];
	char crl[GPC_POOL_PATH_MAX];
	char tenant[GPC_POOL_NAME_MAX];
	char gpus[GPC_POOL_VALUE_MAX], memory[GPC_POOL_VALUE_MAX], sm[GPC_POOL_VALUE_MAX];
	char wait[GPC_POOL_VALUE_MAX];
	char file[GPC_POOL_PATH_MAX]; /* file of the section; its line is in `line` */
	int line;
};

/* The pools of one or more files. */
struct gpc_pools_config {
	struct gpc_pool_config *list; /* in the order of the files; of several pools with one name,
					 only the first is used */
	int count;
	char fault[GPC_POOLS_FAULT_MAX]; /* description of the first invalid line; "": every line is
					    valid */
	/* Set by the caller before parsing: returns NULL, or the reason why the value is invalid
	 * for this key, which must stay valid until the next call. If check is NULL, all values are
	 * valid. The value of url is always checked. */
	const char *(*check)(const char *key, const char *value);
};

/* Adds the pools in a text of `size` bytes that was read from `file`. The text is copied. */
int gpc_pools_config_parse(struct gpc_pools_config *pools, const char *text, size_t size,
			   const char *file, char *error, size_t error_size);
/* Adds the pools of a file. A file that does not exist has no pools and is not an error. */
int gpc_pools_config_read_file(struct gpc_pools_config *pools, const char *path, char *error,
			       size_t error_size);
/* Adds the pools of the user's file and of the machine's file. A file in a folder that this user
 * may not access is ignored where that is not the user's mistake. */
int gpc_pools_config_read(struct gpc_pools_config *pools, char *error, size_t error_size);
/* Frees the list and makes it empty; `fault` and `check` stay. Pointers to pools become invalid. */
void gpc_pools_config_free(struct gpc_pools_config *pools);

/* Stores the path of the folder of the user's files. Returns false, with undefined contents of the
 * buffer, if neither XDG_CONFIG_HOME nor HOME is an absolute path or the result does not fit. */
bool gpc_user_folder(char *path, size_t size);
/* If the pool has no token, sets pool->token to the path of the file that "gpupool login" stored,
 * if that file exists. */
void gpc_pool_config_find_token(struct gpc_pool_config *pool);

/* Returns whether an earlier pool in the list has the same name. `pool` must be an element of the
 * list. */
bool gpc_pool_config_is_hidden(const struct gpc_pools_config *pools,
			       const struct gpc_pool_config *pool);
/* Returns whether the address is in the pool's url. An address there without a scheme matches
 * tcp:// and tls://. */
bool gpc_pool_config_has_address(const struct gpc_pool_config *pool, const struct gp_url *url);
/*
 * Selects the pool whose credentials are used for a daemon, and sets its token file. If several
 * pools contain the address, the one with a token or a certificate is selected. Reads both files
 * into *pools, which need not be initialized; the first fault in a process is reported once on
 * standard error. Returns 0 and sets *pool_p to an element of pools->list, valid until
 * gpc_pools_config_free(), or to NULL if no pool contains the address.
 * Errors: GP_E_INVALID: several pools have different credentials; `error` names two of them, and
 * *pool_p is NULL.
 */
GP_MUST_CHECK int gpc_pools_config_select(struct gpc_pools_config *pools, const struct gp_url *url,
					  const struct gpc_pool_config **pool_p, char *error,
					  size_t error_size);
/* Returns whether a pool contains this host and port with tls://, or without a scheme and with
 * credentials. Reads both files. */
bool gpc_pools_config_want_tls(const struct gp_url *url);

/* Returns whether the text is a valid pool name: letters, digits, '.', '_' and '-', not starting
 * with '.' or '-'. */
bool gpc_pool_config_is_name(const char *text);

#endif /* GPC_POOLS_H */
