/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of a program to launch: the selected pool, its credentials and limits, and the
 * folder of the client library.
 *
 * Ownership: the caller owns the struct, and frees its values with cli_launch_env_free().
 * Threads: one.
 */
#ifndef CLI_LAUNCH_ENV_H
#define CLI_LAUNCH_ENV_H

#include "cli/pools.h"

#include <getopt.h>
#include <stdbool.h>

/* Options of the command line; NULL: not given. */
struct cli_launch_options {
	const char *pool, *gpus, *memory, *sm, *wait;
};

#define CLI_VARIABLES_MAX 16

struct cli_launch_env {
	/* pool.url is never empty; pool.name is if no pool of pools.conf is used. */
	struct gpc_pool_config pool;
	/* "pool lab of FILE:3", "REMOTE_GPU", "--pool" */
	char pool_origin[GPC_POOL_PATH_MAX + GPC_POOL_NAME_MAX + 32];
	/* Of the library; "": not found, with the reason in library_error. */
	char folder[GPC_POOL_PATH_MAX];
	char library_error[CLI_ERROR_MAX];
	/* In the order of output; value NULL: the variable is to be unset. */
	struct {
		const char *name;
		char *value;
	} variables[CLI_VARIABLES_MAX];
	int count;
};

/* Options of run and env for getopt_long(); cli_launch_options_parse() handles its results. */
extern const struct option cli_launch_option_table[];
#define CLI_LAUNCH_LETTERS "+p:"
/* Stores an option. Returns false if the option is unknown, or its value is invalid, which is
 * reported on standard error. */
bool cli_launch_options_parse(struct cli_launch_options *launch_options, int option,
			      const char *value);

/*
 * Selects the pool: that of the options, else of GPUPOOL_POOL, else REMOTE_GPU, else the first of
 * pools.conf. A pool of pools.conf has credentials of its own, and those in the environment are
 * unset, as they belong to another pool. Returns 0, or CLI_FAILED after an error message. The
 * caller frees launch_env in either case.
 */
int cli_launch_env_select(const struct cli_launch_options *launch_options,
			  struct cli_launch_env *launch_env);
void cli_launch_env_free(struct cli_launch_env *launch_env);

/* Applies the variables to this process's environment. Returns 0 or CLI_FAILED. */
int cli_launch_env_apply(const struct cli_launch_env *launch_env);

#endif /* CLI_LAUNCH_ENV_H */
