/* SPDX-License-Identifier: Apache-2.0 */
/* run, env: a program with the environment that it needs. */
#include "cli/choice.h"
#include "cli/command.h"
#include "cli/library.h"
#include "cli/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char theirs[] =
	"; the program's own options stand behind it: gpupool run [OPTIONS] -- PROGRAM ARGUMENT...";

/* false: standard error has said what is wrong. */
static bool
take_wishes(int count, char **words, const char *advice, struct cli_wish *wish)
{
	int option;

	*wish = (struct cli_wish){ 0 };
	while ((option = cli_option(count, words, CLI_WISH_LETTERS, cli_wish_options, advice)) !=
	       -1) {
		if (option == '?' || !cli_wish_take(wish, option, optarg))
			return false;
	}
	return true;
}

/* What makes the program find another library, or none.  It runs all the same. */
static void
warn_of_library(const struct cli_program *program, const struct cli_choice *choice)
{
	const char *why = cli_program_excuse(program), *list = getenv("LD_LIBRARY_PATH");
	char path[CLI_PROGRAM_PATH_MAX];

	if (why)
		cli_warn("%s finds no GPU of the pool: %s", program->path, why);
	else if (program->elf && cli_program_library(program, list, path, sizeof(path), &why) &&
		 cli_library_kind(path) == CLI_LIBRARY_OTHER)
		cli_warn("%s finds %s, not gpupool's in %s: by %s", program->path, path,
			 choice->folder, why);
}

static int
status_of(int error)
{
	return error == ENOENT || error == ENOTDIR ? CLI_NOT_FOUND : CLI_CANNOT_RUN;
}

/* Of a program that is there: why the kernel does not run it. */
static void
fail_to_start(const struct cli_program *program, int error)
{
	if (program->no_interpreter)
		(void)cli_fail("%s is a script of %s: %s", program->path, program->interpreter,
			       strerror(program->no_interpreter));
	else if (error == ENOENT && program->elf)
		(void)cli_fail("%s is there, but not the loader that it names (readelf -l %s)",
			       program->path, program->path);
	else
		(void)cli_fail("%s: %s", program->path, strerror(error));
}

static int
run(char **words, const struct cli_choice *choice)
{
	struct cli_program program;
	int r;

	if (!*choice->folder)
		return cli_fail("%s", choice->no_library);
	if (cli_choice_apply(choice))
		return CLI_WRONG;
	r = cli_program_read(words[0], &program);
	if (r != 0) {
		(void)cli_fail("%s: %s%s", words[0], strerror(r), cli_program_here(words[0], r));
		return status_of(r);
	}
	warn_of_library(&program, choice);
	/* What is no program is a shell's script to execvp(), which a program never is. */
	if (program.elf && !*program.interpreter)
		(void)execv(program.path, words);
	else
		(void)execvp(words[0], words);
	r = errno;
	fail_to_start(&program, r);
	return status_of(r);
}

int
cli_run(int count, char **words)
{
	struct cli_wish wish;
	struct cli_choice choice;
	int r;

	if (!take_wishes(count, words, theirs, &wish))
		return CLI_WRONG;
	if (optind >= count)
		return cli_fail("run which program? gpupool run [OPTIONS] PROGRAM ARGUMENT...");
	r = cli_choose(&wish, &choice);
	if (r == 0)
		r = run(words + optind, &choice);
	cli_choice_free(&choice);
	return r;
}

/* In single quotes, in which nothing but a single quote means anything. */
static void
quote(const char *text)
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
cli_env(int count, char **words)
{
	struct cli_wish wish;
	struct cli_choice choice;
	int r;

	if (!take_wishes(count, words, "", &wish))
		return CLI_WRONG;
	if (optind < count)
		return cli_fail("\"%s\": env takes no program; gpupool run %s runs it",
				words[optind], words[optind]);
	r = cli_choose(&wish, &choice);
	if (r == 0 && !*choice.folder)
		r = cli_fail("%s", choice.no_library);
	for (int i = 0; r == 0 && i < choice.count; i++) {
		if (!choice.variables[i].value) {
			printf("unset %s\n", choice.variables[i].name);
			continue;
		}
		printf("export %s=", choice.variables[i].name);
		quote(choice.variables[i].value);
		printf("\n");
	}
	cli_choice_free(&choice);
	return r;
}
