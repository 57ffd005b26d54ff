/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of a program to launch: the variables for the selected pool, its credentials and
 * limits, and the folder of the client library.
 *
 * Ownership: the caller provides the struct, and frees its values with cli_launch_env_free().
 * Threads: called by the main thread only.
 * Errors: as noted; if memory is exhausted, cli_launch_env_select() exits with CLI_FAILED
 * (command.h).
 */
#ifndef CLI_LAUNCH_ENV_H
#define CLI_LAUNCH_ENV_H

#include "cli/pools.h"

#include <getopt.h>
#include <stdbool.h>

/* Values of the options --pool, --gpus, --memory, --sm and --wait, borrowed from argv; NULL: not
 * given. Initialized to NULL by the caller, then set by cli_launch_options_parse(), which checks
 * the values. */
struct cli_launch_options {
	const char *pool, *gpus, *memory, *sm, *wait;
};

/* Maximum number of variables that are set or unset. */
#define CLI_VARIABLES_MAX 16

/* The environment. */
struct cli_launch_env {
	/* The selected pool. pool.name is empty if it was selected by an address, not from
	 * pools.conf. */
	struct gpc_pool_config pool;
	/* Source of the selection for messages: "pool lab of FILE:3" for a pool of pools.conf;
	 * otherwise the variable or option with the address: "REMOTE_GPU", "GPUPOOL_POOL" or
	 * "--pool". */
	char pool_origin[GPC_POOL_PATH_MAX + GPC_POOL_NAME_MAX + 32];
	/* Folder of the client library; "": not found, with the reason in library_error. */
	char folder[GPC_POOL_PATH_MAX];
	char library_error[CLI_ERROR_MAX];
	/* Variables to set, in the order of output; the first `count` elements are valid. value
	 * NULL: the variable is to be unset. Names are static, values are owned. */
	struct {
		const char *name;
		char *value;
	} variables[CLI_VARIABLES_MAX];
	int count;
};

/* Options of the commands run and env for getopt_long(); cli_launch_options_parse() handles its
 * results. */
extern const struct option cli_launch_option_table[];
/* Short options of run and env; "+": parsing ends at the first non-option. */
#define CLI_LAUNCH_LETTERS "+p:"
/* Stores an option that getopt_long() has returned; value: optarg. Returns true. Returns false if
 * the value is invalid, after an error message, or if the option is unknown, without a message. */
bool cli_launch_options_parse(struct cli_launch_options *launch_options, int option,
			      const char *value);

/*
 * Selects the pool and determines the variables. The pool is that of the option --pool, else of
 * GPUPOOL_POOL (both: the name of a pool or an address), else the address in REMOTE_GPU, else the
 * first of pools.conf. For a pool of pools.conf only its own credentials are used: those in the
 * environment are unset, as they belong to another pool. A missing client library is not an error
 * here: `folder` is then "". Reads files, but changes nothing. Returns 0, or CLI_FAILED after an
 * error message. The caller calls cli_launch_env_free() in either case.
 */
int cli_launch_env_select(const struct cli_launch_options *launch_options,
			  struct cli_launch_env *launch_env);
/* Frees the values. */
void cli_launch_env_free(struct cli_launch_env *launch_env);

/* Sets and unsets the variables in this process's environment. Returns 0; or CLI_FAILED after an
 * error message, and some of the variables may have been set. */
int cli_launch_env_apply(const struct cli_launch_env *launch_env);

#endif /* CLI_LAUNCH_ENV_H */
