/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program is to be told in its environment: which pool, by which credentials, how much of
 * it, and where the client library is.  Owned by whoever declares it; one thread.
 */
#ifndef CLI_CHOICE_H
#define CLI_CHOICE_H

#include "cli/pools.h"

#include <getopt.h>
#include <stdbool.h>

/* What the command line says; NULL: nothing. */
struct cli_launch_options {
	const char *pool, *gpus, *memory, *sm, *wait;
};

#define CLI_VARIABLES_MAX 16

struct cli_launch_env {
	struct gpc_pool_config
		pool; /* its url is never empty; the name is, where none of a file is used */
	char pool_origin[GPC_POOL_PATH_MAX + GPC_POOL_NAME_MAX +
			 32];           /* "pool lab of FILE:3", "REMOTE_GPU", "--pool" */
	char folder[GPC_POOL_PATH_MAX]; /* of the library; "": there is none, and `library_error`
					   says so */
	char library_error[CLI_ERROR_MAX];
	/* In the order in which they are shown; a value of NULL: it is not to be set. */
	struct {
		const char *name;
		char *value;
	} variables[CLI_VARIABLES_MAX];
	int count;
};

/* The options of run and env, for getopt_long(); cli_launch_options_parse() takes what it returns.
 */
extern const struct option cli_launch_option_table[];
#define CLI_LAUNCH_LETTERS "+p:"
/* false: it is none of these, or makes no sense: standard error has said so. */
bool cli_launch_options_parse(struct cli_launch_options *launch_options, int option,
			      const char *value);

/*
 * Decides: the pool that is wished for, else the one that GPUPOOL_POOL names, else REMOTE_GPU, else
 * the first of pools.conf.  A pool brings its own credentials and takes away those of the
 * environment, which are another one's.  0, or CLI_FAILED: standard error has said why.  To be
 * freed in any case.
 */
int cli_launch_env_select(const struct cli_launch_options *launch_options,
			  struct cli_launch_env *launch_env);
void cli_launch_env_free(struct cli_launch_env *launch_env);

/* This process's environment becomes what was chosen. */
int cli_launch_env_apply(const struct cli_launch_env *launch_env);

#endif /* CLI_CHOICE_H */
