/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program file as the dynamic loader sees it: finds which libcuda.so.1 it would load. The file is
 * only read, and untrusted.
 *
 * Ownership: results are copied to the caller's buffers.
 * Threads: called by the main thread only.
 */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#define CLI_PROGRAM_PATH_MAX 4096

struct cli_program {
	char path[CLI_PROGRAM_PATH_MAX];        /* path of the file found for the name */
	char interpreter[CLI_PROGRAM_PATH_MAX]; /* script: program that runs it; "": not a script */
	char folder[CLI_PROGRAM_PATH_MAX];      /* folder of the executed file, for $ORIGIN */
	char rpath[CLI_PROGRAM_PATH_MAX];       /* searched before LD_LIBRARY_PATH; "": none */
	char runpath[CLI_PROGRAM_PATH_MAX];     /* searched after LD_LIBRARY_PATH; "": none */
	char needed[CLI_PROGRAM_PATH_MAX];      /* DT_NEEDED entry for libcuda; "": none */
	int interpreter_error; /* errno that prevents running the interpreter; 0: none */
	/* ELF file; of another architecture; without a dynamic loader; run with other privileges
	 * (setuid) */
	bool elf, other_machine, is_static, privileged;
};

/* Returns a hint for a program that was not found in PATH: "; did you mean ./NAME, in this
 * folder?", or "". error: result of cli_program_find(). The text is static, valid until the next
 * call. */
const char *cli_program_hint(const char *name, int error);
/* Finds the file that execvp(3) would run for the name, and writes its path. Returns 0, ENOENT, or
 * another positive errno (EACCES, ENAMETOOLONG) if it cannot be run. */
int cli_program_find(const char *name, char *path, size_t size);

/* Finds the program and reads its file. Returns 0, or a positive errno as cli_program_find();
 * *program is then incomplete. */
int cli_program_read(const char *name, struct cli_program *program);

/* Returns why the program cannot use a library of LD_LIBRARY_PATH at all, a static text; NULL: it
 * can. */
const char *cli_program_problem(const struct cli_program *program);

/*
 * Finds the libcuda.so.1 that the program would load with this LD_LIBRARY_PATH. library_path NULL:
 * the variable is not set. Returns true with the library's path, and in *why_p the rule by which it
 * is found (static text); false if none is found, with both undefined. A library of the program
 * that itself loads libcuda.so.1 may have an RPATH of its own, which is not considered.
 */
bool cli_program_find_library(const struct cli_program *program, const char *library_path,
			      char *path, size_t size, const char **why_p);

#endif /* CLI_PROGRAM_H */
