/* SPDX-License-Identifier: Apache-2.0 */
/* run, env: runs a program with the environment for a pool, or prints that environment. */
#include "cli/command.h"
#include "cli/launch_env.h"
#include "cli/library.h"
#include "cli/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char option_advice[] =
	"; put the program's options after it: gpupool run [OPTIONS] -- PROGRAM ARGUMENT...";

/* Returns false after an error message. */
static bool
launch_options_read(int count, char **argv, const char *advice,
		    struct cli_launch_options *launch_options)
{
	int option;

	*launch_options = (struct cli_launch_options){ 0 };
	while ((option = cli_option(count, argv, CLI_LAUNCH_LETTERS, cli_launch_option_table,
				    advice)) != -1) {
		if (option == '?' || !cli_launch_options_parse(launch_options, option, optarg))
			return false;
	}
	return true;
}

/* Warns if the program would load another library, or none. It is run nevertheless. */
static void
library_warn(const struct cli_program *program, const struct cli_launch_env *launch_env)
{
	const char *why = cli_program_problem(program), *list = getenv("LD_LIBRARY_PATH");
	char path[CLI_PROGRAM_PATH_MAX];

	if (why)
		cli_warn("%s finds no GPU of the pool: %s", program->path, why);
	else if (program->elf &&
		 cli_program_find_library(program, list, path, sizeof(path), &why) &&
		 cli_library_kind(path) == CLI_LIBRARY_OTHER)
		cli_warn("%s finds %s, not gpupool's in %s: by %s", program->path, path,
			 launch_env->folder, why);
}

static int
errno_to_status(int error)
{
	return error == ENOENT || error == ENOTDIR ? CLI_NOT_FOUND : CLI_CANNOT_RUN;
}

/* Reports why an existing program cannot be executed. */
static void
program_start_error(const struct cli_program *program, int error)
{
	if (program->interpreter_error)
		(void)cli_fail("%s is a script of %s: %s", program->path, program->interpreter,
			       strerror(program->interpreter_error));
	else if (error == ENOENT && program->elf)
		(void)cli_fail("%s exists, but its loader does not (readelf -l %s)", program->path,
			       program->path);
	else
		(void)cli_fail("%s: %s", program->path, strerror(error));
}

static int
program_run(char **argv, const struct cli_launch_env *launch_env)
{
	struct cli_program program;
	int r;

	if (!*launch_env->folder)
		return cli_fail("%s", launch_env->library_error);
	if (cli_launch_env_apply(launch_env))
		return CLI_FAILED;
	r = cli_program_read(argv[0], &program);
	if (r != 0) {
		(void)cli_fail("%s: %s%s", argv[0], strerror(r), cli_program_hint(argv[0], r));
		return errno_to_status(r);
	}
	library_warn(&program, launch_env);
	/* execvp() runs a file of unknown format by the shell, which is wrong for an ELF file. */
	if (program.elf && !*program.interpreter)
		(void)execv(program.path, argv);
	else
		(void)execvp(argv[0], argv);
	r = errno;
	program_start_error(&program, r);
	return errno_to_status(r);
}

int
cli_run(int count, char **argv)
{
	struct cli_launch_options launch_options;
	struct cli_launch_env launch_env;
	int r;

	if (!launch_options_read(count, argv, option_advice, &launch_options))
		return CLI_FAILED;
	if (optind >= count)
		return cli_fail("no program: gpupool run [OPTIONS] PROGRAM ARGUMENT...");
	r = cli_launch_env_select(&launch_options, &launch_env);
	if (r == 0)
		r = program_run(argv + optind, &launch_env);
	cli_launch_env_free(&launch_env);
	return r;
}

/* In single quotes, where only the single quote is special. */
static void
print_quoted(const char *text)
{
	putchar('\'');
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*text);
	}
	putchar('\'');
}

int
cli_env(int count, char **argv)
{
	struct cli_launch_options launch_options;
	struct cli_launch_env launch_env;
	int r;

	if (!launch_options_read(count, argv, "", &launch_options))
		return CLI_FAILED;
	if (optind < count)
		return cli_fail("\"%s\": env takes no program; gpupool run %s runs it",
				argv[optind], argv[optind]);
	r = cli_launch_env_select(&launch_options, &launch_env);
	if (r == 0 && !*launch_env.folder)
		r = cli_fail("%s", launch_env.library_error);
	for (int i = 0; r == 0 && i < launch_env.count; i++) {
		if (!launch_env.variables[i].value) {
			printf("unset %s\n", launch_env.variables[i].name);
			continue;
		}
		printf("export %s=", launch_env.variables[i].name);
		print_quoted(launch_env.variables[i].value);
		printf("\n");
	}
	cli_launch_env_free(&launch_env);
	return r;
}
