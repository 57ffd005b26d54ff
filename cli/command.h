/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of gpupool, by which a user runs programs on a pool and looks at it.  Each gets its
 * words, the command's own first, as main() would get them, and returns the status that gpupool
 * ends with; on CLI_FAILED standard error has said why.  One thread.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <getopt.h>
#include <stdbool.h>

/* What env(1), nice(1) and their like return for their own mistakes, so that it is no program's. */
#define CLI_FAILED 125
#define CLI_CANNOT_RUN 126
#define CLI_NOT_FOUND 127
/* What is asked for is there in part; standard error has said what is not. */
#define CLI_INCOMPLETE 1

typedef int cli_command(int count, char **argv);

int cli_run(int count, char **argv);
int cli_env(int count, char **argv);
int cli_devices(int count, char **argv);
int cli_check(int count, char **argv);
int cli_login(int count, char **argv);
int cli_logout(int count, char **argv);
int cli_list_pools(int count, char **argv);
int cli_help(int count, char **argv);

/* "gpupool: ..." on standard error; returns CLI_FAILED. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for what is worth knowing; a warning stops nothing. */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The next option of a command's words, as getopt_long() returns it, whose optarg and optind say
 * the rest; the first word that is none ends them.  '?': standard error has said what is wrong, and
 * which option was probably meant.  advice: the end of that line, or "". */
int cli_option(int count, char **argv, const char *letters, const struct option *options,
	       const char *advice);
/* The same with options also behind other words. */
int cli_option_anywhere(int count, char **argv, const char *letters, const struct option *options);

/* "; did you mean NAME?", or "": in memory of its own until the next call. */
const char *cli_suggestion(const char *written, const char *const *names, int count);

#endif /* CLI_COMMAND_H */
