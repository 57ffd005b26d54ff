/* SPDX-License-Identifier: Apache-2.0 */
/* check: which libcuda.so.1 a program loads. */
#include "cli/check.h"
#include "cli/library.h"
#include "cli/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tests the program as started without gpupool run. */
static void
check_without_run(const struct cli_program *program, const char *list)
{
	char path[CLI_PROGRAM_PATH_MAX];
	const char *why = "";

	if (!cli_program_find_library(program, list, path, sizeof(path), &why))
		check_print(CHECK_NOTE, "without run",
			    "started by itself the program finds no " CLI_LIBRARY
			    "; use \"gpupool run\" or eval \"$(gpupool env)\"");
	else if (cli_library_kind(path) == CLI_LIBRARY_OURS)
		check_print(CHECK_OK, "without run",
			    "started by itself it finds gpupool's %s, by %s", path, why);
	else
		check_print(CHECK_NOTE, "without run",
			    "started by itself it finds %s, which is not gpupool's, by %s", path,
			    why);
}

void
check_program(const char *name, const struct cli_launch_env *launch_env, const char *list_before)
{
	struct cli_program program;
	char path[CLI_PROGRAM_PATH_MAX];
	const char *why = "", *problem;
	int r = cli_program_read(name, &program);

	if (r) {
		check_print(CHECK_ERROR, "program", "%s: %s%s", name, strerror(r),
			    cli_program_hint(name, r));
		return;
	}
	if (program.interpreter_error) {
		check_print(CHECK_ERROR, "program", "%s is a script of %s: %s", program.path,
			    program.interpreter, strerror(program.interpreter_error));
		return;
	}
	if (*program.interpreter)
		check_print(CHECK_OK, "program", "%s is a script of %s", program.path,
			    program.interpreter);
	if (!program.elf) {
		check_print(CHECK_NOTE, "program", "%s is not readable", program.path);
		return;
	}
	problem = cli_program_problem(&program);
	if (problem) {
		check_print(CHECK_ERROR, "program", "%s: %s", program.path, problem);
		return;
	}
	if (!*launch_env->folder)
		return;
	if (!cli_program_find_library(&program, getenv("LD_LIBRARY_PATH"), path, sizeof(path),
				      &why))
		check_print(CHECK_ERROR, "program", "%s finds no " CLI_LIBRARY, program.path);
	else if (cli_library_kind(path) != CLI_LIBRARY_OURS)
		check_print(
			CHECK_ERROR, "program",
			"%s finds %s, which is not gpupool's, by %s; patchelf --remove-rpath on a "
			"copy, or LD_PRELOAD=%s/" CLI_LIBRARY,
			program.path, path, why, launch_env->folder);
	else
		check_print(CHECK_OK, "program", "%s finds gpupool's %s, by %s", program.path, path,
			    why);
	check_without_run(&program, list_before);
}
