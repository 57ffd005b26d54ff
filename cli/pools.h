/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pools that a user knows: pools.conf, in the user's folder and then in the machine's.
 *
 *     [pool lab]
 *     url = tls://gpunode         # as REMOTE_GPU has it
 *     token = lab.token           # paths: absolute, ~/..., or beside this file
 *     authority, certificate, key, crl, tenant, gpus, memory, sm, wait
 *
 * Values, owned by whoever declares them; one thread.  Functions return 0, or -1 with a text
 * that names the file and the line, and says what would be right.
 */
#ifndef CLI_POOLS_H
#define CLI_POOLS_H

#include <stdbool.h>
#include <stddef.h>

#define CLI_PATH_MAX 4096
#define CLI_URL_MAX 1024
#define CLI_NAME_MAX 64
#define CLI_VALUE_MAX 32
#define CLI_ERROR_MAX 1536
#define CLI_POOLS_MAX 64

/* An empty text: it is not given. */
struct cli_pool {
	char name[CLI_NAME_MAX];
	char url[CLI_URL_MAX];
	char token[CLI_PATH_MAX];
	char authority[CLI_PATH_MAX], certificate[CLI_PATH_MAX], key[CLI_PATH_MAX];
	char crl[CLI_PATH_MAX];
	char tenant[CLI_NAME_MAX];
	char gpus[CLI_VALUE_MAX], memory[CLI_VALUE_MAX], sm[CLI_VALUE_MAX], wait[CLI_VALUE_MAX];
	char file[CLI_PATH_MAX]; /* that it stands in */
	int line;
};

struct cli_pools {
	struct cli_pool *list; /* in the order of the files; a name counts where it stands first */
	int count;
};

/* The folder of the user's files; false: neither XDG_CONFIG_HOME nor HOME says where. */
bool cli_user_folder(char *path, size_t size);
#define CLI_MACHINE_FOLDER "/etc/gpupool"

/* Adds what this text of this file has.  To be freed with cli_pools_free(), whatever is returned.
 */
int cli_pools_parse(struct cli_pools *pools, const char *text, const char *file, char *error,
		    size_t error_size);
/* Reads both files; one that is not there has no pools. */
int cli_pools_read(struct cli_pools *pools, char *error, size_t error_size);
void cli_pools_free(struct cli_pools *pools);

/* Where gpupool login stores the token, if the pool names no other file. */
void cli_pools_find_token(struct cli_pool *pool);

/* NULL: there is none. */
const struct cli_pool *cli_pools_find(const struct cli_pools *pools, const char *name);
/* "there is no pool ..." with the name that was probably meant, or those that there are. */
void cli_pools_explain(const struct cli_pools *pools, const char *name, char *error,
		       size_t error_size);

/* Whether it can be a pool's name: letters, digits, '.', '_' and '-', no '.' first. */
bool cli_is_name(const char *text);

/* NULL, or what is wrong with a wish, as the end of a sentence that begins with it. */
const char *cli_check_gpus(const char *text);
const char *cli_check_memory(const char *text);
const char *cli_check_sm(const char *text);
const char *cli_check_wait(const char *text);

#endif /* CLI_POOLS_H */
