/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader of pools.conf: the user's file, then the machine's.
 *
 *     [pool lab]
 *     url = tls://gpunode         # as REMOTE_GPU has it
 *     token = lab.token           # paths: absolute, ~/..., or relative to this file's folder
 *     authority, certificate, key, crl, tenant, gpus, memory, sm, wait
 *
 * Ownership: the caller's, until gpc_pools_config_free(), whatever was returned.  Threads: any.
 * Errors: with a buffer for an error, the functions return -1 at the first invalid line, and the
 * text names file and line.  With NULL they return 0, skip invalid lines, and store the text for
 * the first one in fault: a damaged file must not stop a program.
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

/* An empty text: not given. */
struct gpc_pool_config {
	char name[GPC_POOL_NAME_MAX];
	char url[GPC_POOL_URL_MAX];
	char token[GPC_POOL_PATH_MAX];
	char authority[GPC_POOL_PATH_MAX], certificate[GPC_POOL_PATH_MAX], key[GPC_POOL_PATH_MAX];
	char crl[GPC_POOL_PATH_MAX];
	char tenant[GPC_POOL_NAME_MAX];
	char gpus[GPC_POOL_VALUE_MAX], memory[GPC_POOL_VALUE_MAX], sm[GPC_POOL_VALUE_MAX];
	char wait[GPC_POOL_VALUE_MAX];
	char file[GPC_POOL_PATH_MAX]; /* the file and the line of its section */
	int line;
};

struct gpc_pools_config {
	struct gpc_pool_config
		*list; /* in the order of the files; the first of several with one name counts */
	int count;
	char fault[GPC_POOLS_FAULT_MAX]; /* "": every line is valid */
	/* Set by the caller before it reads: NULL, or the reason why this key must not have this
	 * value; NULL: every value is valid but that of url, which is always looked at */
	const char *(*check)(const char *key, const char *value);
};

/* Adds the pools of this text of this file. */
int gpc_pools_config_parse(struct gpc_pools_config *pools, const char *text, size_t size,
			   const char *file, char *error, size_t error_size);
/* Adds the pools of a file; a file that does not exist has none. */
int gpc_pools_config_read_file(struct gpc_pools_config *pools, const char *path, char *error,
			       size_t error_size);
/* Adds the pools of both files. */
int gpc_pools_config_read(struct gpc_pools_config *pools, char *error, size_t error_size);
void gpc_pools_config_free(struct gpc_pools_config *pools);

/* The folder of the user's files; false: neither XDG_CONFIG_HOME nor HOME names one. */
bool gpc_user_folder(char *path, size_t size);
/* If the pool names no token: the one that "gpupool login" stored, if it exists. */
void gpc_pool_config_find_token(struct gpc_pool_config *pool);

/* Whether another pool, before it in the list, has its name. */
bool gpc_pool_config_is_hidden(const struct gpc_pools_config *pools,
			       const struct gpc_pool_config *pool);
/* Whether the pool has this daemon.  An address without a scheme equals tcp:// and tls://. */
bool gpc_pool_config_has_address(const struct gpc_pool_config *pool, const struct gp_url *url);
/* The pool whose credentials a program shows to this daemon, with its token: of several the one
 * that has a token or a certificate.  Reads both files; the first fault of a process becomes one
 * line on standard error.  *pool_p: NULL if there is none.  GP_E_INVALID: several have, and not the
 * same; the error names two of them. */
GP_MUST_CHECK int gpc_pools_config_select(struct gpc_pools_config *pools, const struct gp_url *url,
					  const struct gpc_pool_config **pool_p, char *error,
					  size_t error_size);
/* Whether a pool has this host and port with tls://, or without a scheme and with credentials. */
bool gpc_pools_config_want_tls(const struct gp_url *url);

/* Letters, digits, '.', '_' and '-', and no '.' or '-' first. */
bool gpc_pool_config_is_name(const char *text);

#endif /* GPC_POOLS_H */
