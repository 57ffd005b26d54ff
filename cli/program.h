/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as the loader sees it: what of its file decides which libcuda.so.1 it finds.  The file
 * is only read, and may be anybody's: nothing in it is believed.  Values; one thread.
 */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#define CLI_PROGRAM_PATH_MAX 4096

struct cli_program {
	char path[CLI_PROGRAM_PATH_MAX];        /* that was found for the name */
	char interpreter[CLI_PROGRAM_PATH_MAX]; /* of a script: the program that is run; "": none */
	char folder[CLI_PROGRAM_PATH_MAX];      /* of what is run: $ORIGIN */
	char rpath[CLI_PROGRAM_PATH_MAX];       /* before LD_LIBRARY_PATH; "": none */
	char runpath[CLI_PROGRAM_PATH_MAX];     /* behind it */
	char needed[CLI_PROGRAM_PATH_MAX];      /* a libcuda that it is linked with; "": none */
	int interpreter_error; /* why the interpreter cannot be run: ENOENT, ...; 0: it can */
	bool elf, other_machine, is_static, privileged;
};

/* What may have been meant by a program that PATH does not have (error ENOENT): "; did you mean
 * ./NAME, in this folder?", or "": in memory of its own until the next call. */
const char *cli_program_hint(const char *name, int error);
/* The file that execvp(3) would run.  0, ENOENT or why it cannot be run (EACCES, ...). */
int cli_program_find(const char *name, char *path, size_t size);

/* 0, or an errno as above. */
int cli_program_read(const char *name, struct cli_program *program);

/* NULL, or why the program cannot use a library of LD_LIBRARY_PATH at all. */
const char *cli_program_problem(const struct cli_program *program);

/*
 * The libcuda.so.1 that the program will find with this LD_LIBRARY_PATH (NULL: none): its path, and
 * in *why the rule by which.  false: none.  A library that asks for libcuda.so.1 in the program's
 * name may have an RPATH of its own, which is not seen here.
 */
bool cli_program_find_library(const struct cli_program *program, const char *library_path,
			      char *path, size_t size, const char **why_p);

#endif /* CLI_PROGRAM_H */
