/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of gpupool, the tool of users for running programs on a pool. Each receives its
 * arguments as main() does, with the command's name first, and returns gpupool's exit status.
 * Before a command returns CLI_FAILED it prints an error message.
 *
 * Ownership: arguments are borrowed.
 * Threads: called by the main thread only.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <getopt.h>
#include <stdbool.h>

/* Exit statuses for gpupool's own errors, as those of env(1) and nice(1), to distinguish them from
 * the program's exit status. CLI_FAILED: the command has failed. CLI_CANNOT_RUN: the program was
 * found, but cannot be executed. CLI_NOT_FOUND: the program was not found. */
#define CLI_FAILED 125
#define CLI_CANNOT_RUN 126
#define CLI_NOT_FOUND 127
/* Exit status: the result is incomplete; messages on standard error list the missing parts. */
#define CLI_INCOMPLETE 1

/* Number of elements of an array. */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A command: receives its arguments, and returns the exit status. */
typedef int cli_command(int count, char **argv);

/* Runs a program on a pool, in place of this process, so it does not return on success. Otherwise
 * returns CLI_FAILED, CLI_CANNOT_RUN or CLI_NOT_FOUND. */
int cli_run(int count, char **argv);
/* Prints the environment that cli_run() sets, for a shell to evaluate. Returns 0 or CLI_FAILED. */
int cli_env(int count, char **argv);
/* Lists a pool's devices. Returns 0; CLI_INCOMPLETE if a daemon of the pool could not be queried;
 * or CLI_FAILED. */
int cli_devices(int count, char **argv);
/* Tests the connection to a pool and, if a program is given, how it will find the library. Returns
 * 0, 1 if problems were found, or CLI_FAILED. */
int cli_check(int count, char **argv);
/* Stores a token, read from standard input, for a pool. Returns 0 or CLI_FAILED. */
int cli_login(int count, char **argv);
/* Removes a pool's token. Returns 0 or CLI_FAILED. */
int cli_logout(int count, char **argv);
/* Lists the configured pools. Returns 0 or CLI_FAILED. */
int cli_list_pools(int count, char **argv);
/* Lists the commands, or prints the help text of the command argv[1]. Returns 0 or CLI_FAILED. */
int cli_help(int count, char **argv);

/* Prints "gpupool: " and the formatted message to standard error. Returns CLI_FAILED. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints "gpupool: warning: " and the formatted message to standard error. */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Parses the next option as getopt_long() does; sets optarg and optind. letters: the short options;
 * with "+" in front parsing ends at the first argument that is not an option. Returns the option's
 * `val`, -1 after the last option, or '?' after an error message has been printed, which suggests a
 * similar option. advice: text that is appended to the message if no option is similar; "": no
 * text. */
int cli_option(int count, char **argv, const char *letters, const struct option *options,
	       const char *advice);

/* Returns "; did you mean NAME?" with the name that is most similar to `written`, or "" if none of
 * the `count` names is similar. The text is static, valid until the next call; it is truncated to
 * 127 bytes. */
const char *cli_suggestion(const char *written, const char *const *names, int count);

#endif /* CLI_COMMAND_H */
