/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parser of pools.conf (gpupool(1)), the list of pools: named groups of daemons with their
 * addresses and the user's credentials for them. The user's file is read first, then the machine's.
 *
 *     [pool lab]
 *     url = tls://gpunode         # as in REMOTE_GPU
 *     token = lab.token           # paths: absolute, ~/..., or relative to the folder of this file
 *     authority, certificate, key, crl, tenant, gpus, memory, sm, wait
 *
 * Ownership: struct gpc_pools_config is the caller's, initially zero. It owns its list: the caller
 * calls gpc_pools_config_free() when done, even after a failure.
 * Threads: any thread may call; one thread per struct at a time.
 * Errors: gpc_pools_config_parse(), gpc_pools_config_read_file() and gpc_pools_config_read() return
 * 0 on success. With a buffer `error`, they return -1 at the first invalid line, or if a file
 * cannot be read; the text then names the file and the line. Everything before it is in the list.
 * If `error` is NULL, they always return 0 and skip what is invalid, because a damaged file must
 * not stop a program; the text for the first fault is stored in `fault`.
 */
#ifndef GPC_POOLS_H
#define GPC_POOLS_H

#include "base/status.h"
#include "transport/url.h"

#include <stdbool.h>
#include <stddef.h>

/* Sizes of texts in bytes, with their NUL. */
#define GPC_POOL_PATH_MAX 4096
#define GPC_POOL_URL_MAX 1024
#define GPC_POOL_NAME_MAX 64
#define GPC_POOL_VALUE_MAX 32
/* Maximum number of pools in a list. */
#define GPC_POOLS_MAX 64
#define GPC_POOLS_FAULT_MAX 512
#define GPC_POOLS_FILE "pools.conf"
#define GPC_MACHINE_FOLDER "/etc/gpupool"

/* A pool: the values of its keys. Paths are resolved; the others are as in the file: addresses as
 * in REMOTE_GPU, and the values of options of "gpupool run" (gpupool(1)). An empty text means that
 * the key is not set. If `error` was NULL, url may be empty or contain invalid addresses, which
 * gpc_pool_config_has_address() skips. */
struct gpc_pool_config {
	char name[GPC_POOL_NAME_MAX];
	char url[GPC_POOL_URL_MAX];
	char token[GPC_POOL_PATH_MAX];
	char authority[GPC_POOL_PATH_MAX], certificate[GPC_POOL_PATH_MAX], key[GPC_POOL_PATH_MAX];
	char crl[GPC_POOL_PATH_MAX];
	char tenant[GPC_POOL_NAME_MAX];
	char gpus[GPC_POOL_VALUE_MAX], memory[GPC_POOL_VALUE_MAX], sm[GPC_POOL_VALUE_MAX];
	char wait[GPC_POOL_VALUE_MAX];
	char file[GPC_POOL_PATH_MAX]; /* path of the file that contains the section [pool NAME],
					 which begins at `line` */
	int line;
};

/* The pools of one or more files. */
struct gpc_pools_config {
	struct gpc_pool_config *list; /* in the order of the files; of several pools with one name,
					 only the first is used */
	int count;
	char fault[GPC_POOLS_FAULT_MAX]; /* first fault that was found while `error` was NULL; "":
					    none */
	/* Set by the caller before parsing, to check the values of tenant, gpus, memory, sm and
	 * wait. Returns NULL, or the reason why the value is invalid for this key, which must stay
	 * valid until the next call of check(). If check is NULL, all these values are valid. The
	 * parser itself checks url. */
	const char *(*check)(const char *key, const char *value);
};

/* Adds the pools in a text of `size` bytes that was read from `file`, a path. Both are copied. */
int gpc_pools_config_parse(struct gpc_pools_config *pools, const char *text, size_t size,
			   const char *file, char *error, size_t error_size);
/* Adds the pools of a file of less than 256 KiB. A file that does not exist is not an error. */
int gpc_pools_config_read_file(struct gpc_pools_config *pools, const char *path, char *error,
			       size_t error_size);
/* Adds the pools of the user's file (GPC_POOLS_FILE in gpc_user_folder()) and of the machine's file
 * (GPC_POOLS_FILE in GPC_MACHINE_FOLDER). The machine's file is skipped if access to it is denied
 * (EACCES), as on a GPU node, where the folder belongs to the daemon. The user's file is skipped
 * without a fault only if `error` is NULL and access to its folder is denied. */
int gpc_pools_config_read(struct gpc_pools_config *pools, char *error, size_t error_size);
/* Frees the list and makes it empty; `fault` and `check` stay. Pointers to pools become invalid. */
void gpc_pools_config_free(struct gpc_pools_config *pools);

/* Stores the path of the folder of the user's files: $XDG_CONFIG_HOME/gpupool, or else
 * $HOME/.config/gpupool. It need not exist. Returns false, with undefined contents of the buffer,
 * if neither XDG_CONFIG_HOME nor HOME is an absolute path or the result does not fit. */
bool gpc_user_folder(char *path, size_t size);
/* If the pool has no key `token`, sets pool->token to the path of NAME.token in gpc_user_folder(),
 * where "gpupool login" stores the token, if that file exists. */
void gpc_pool_config_find_token(struct gpc_pool_config *pool);

/* Returns whether an earlier pool in the list has the same name, so that this one is not used.
 * `pool` must be an element of the list. */
bool gpc_pool_config_is_hidden(const struct gpc_pools_config *pools,
			       const struct gpc_pool_config *pool);
/* Returns whether the pool's url contains an address with the scheme, host and port of this one. An
 * address there without a scheme matches tcp:// and tls://. */
bool gpc_pool_config_has_address(const struct gpc_pool_config *pool, const struct gp_url *url);
/*
 * Selects the pool whose credentials are used for a daemon, and calls gpc_pool_config_find_token()
 * for it. If several pools contain the address, the first one with a token or a certificate is
 * selected, or else the first one. Pools for which gpc_pool_config_is_hidden() is true are ignored.
 * Reads both files into *pools, which is overwritten and need not be initialized, and skips invalid
 * lines; the first fault that the process finds is reported once by gpc_log_warn() (log.h). Returns
 * 0 and sets *pool_p to an element of pools->list, valid until gpc_pools_config_free(), or to NULL
 * if no pool contains the address. The caller calls gpc_pools_config_free(), also after an error.
 * Errors: GP_E_INVALID: several pools with a token or a certificate contain the address, and their
 * credentials differ; `error` names two of them, and *pool_p is NULL.
 */
GP_MUST_CHECK int gpc_pools_config_select(struct gpc_pools_config *pools, const struct gp_url *url,
					  const struct gpc_pool_config **pool_p, char *error,
					  size_t error_size);
/* Returns whether a pool contains this host and port with tls://, or without a scheme while the
 * pool has credentials. The scheme of url is ignored. Reads both files, as
 * gpc_pools_config_select() does. */
bool gpc_pools_config_want_tls(const struct gp_url *url);

/* Returns whether the text is a valid pool name: 1 to 63 letters, digits, '.', '_' and '-', not
 * starting with '.' or '-'. */
bool gpc_pool_config_is_name(const char *text);

#endif /* GPC_POOLS_H */
