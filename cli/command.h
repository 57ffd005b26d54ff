/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of gpupool, the tool of users for running programs on a pool. Each receives its
 * arguments as main() would, with the command's name first, and returns gpupool's exit status;
 * before CLI_FAILED an error message has been printed.
 *
 * Ownership: arguments are borrowed.
 * Threads: called by the main thread only.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <getopt.h>
#include <stdbool.h>

/* Exit statuses for gpupool's own errors, as those of env(1) and nice(1), to distinguish them from
 * the program's: the command has failed; the program was found, but cannot be executed; the program
 * was not found. */
#define CLI_FAILED 125
#define CLI_CANNOT_RUN 126
#define CLI_NOT_FOUND 127
/* Exit status: the result is incomplete; messages on standard error list the missing parts. */
#define CLI_INCOMPLETE 1

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef int cli_command(int count, char **argv);

/* Run a program on a pool (does not return on success); print its environment; list devices; test
 * the connection; store and remove a token; list pools; print help. */
int cli_run(int count, char **argv);
int cli_env(int count, char **argv);
int cli_devices(int count, char **argv);
int cli_check(int count, char **argv);
int cli_login(int count, char **argv);
int cli_logout(int count, char **argv);
int cli_list_pools(int count, char **argv);
int cli_help(int count, char **argv);

/* Prints "gpupool: " and the formatted message to standard error. Returns CLI_FAILED. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints "gpupool: warning: " and the formatted message to standard error. */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Parses the next option, as getopt_long(), with optarg and optind; parsing ends at the first
 * non-option. Returns the option, -1 at the end, or '?' after an error message, which suggests a
 * similar option. advice: appended to the message; "": none. */
int cli_option(int count, char **argv, const char *letters, const struct option *options,
	       const char *advice);
/* Parses the next option as cli_option(), also after other arguments. */
int cli_option_anywhere(int count, char **argv, const char *letters, const struct option *options);

/* Returns "; did you mean NAME?" with the most similar of `count` names, or "". The text is static,
 * valid until the next call. */
const char *cli_suggestion(const char *written, const char *const *names, int count);

#endif /* CLI_COMMAND_H */
