/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program file as the dynamic loader sees it: finds the libcuda.so.1 that the program would load.
 * The file is untrusted; it is only read.
 *
 * Ownership: results are copied to the caller's buffers.
 * Threads: called by the main thread only.
 */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* Size in bytes of a path's buffer, including the terminating zero. */
#define CLI_PROGRAM_PATH_MAX 4096

/* A program. For a script, all members except path, interpreter and interpreter_error describe the
 * interpreter's file. */
struct cli_program {
	char path[CLI_PROGRAM_PATH_MAX]; /* path of the file found for the name */
	/* Path of the program that runs the script; "": not a script. */
	char interpreter[CLI_PROGRAM_PATH_MAX];
	char folder[CLI_PROGRAM_PATH_MAX];  /* folder of the executed file, for $ORIGIN */
	char rpath[CLI_PROGRAM_PATH_MAX];   /* searched before LD_LIBRARY_PATH; "": none */
	char runpath[CLI_PROGRAM_PATH_MAX]; /* searched after LD_LIBRARY_PATH; "": none */
	char needed[CLI_PROGRAM_PATH_MAX];  /* DT_NEEDED entry for libcuda.so.1; "": none */
	int interpreter_error; /* positive errno that prevents running the interpreter; 0: none */
	/* elf: it is an ELF file; false also if it cannot be read. other_machine: for another
	 * architecture. is_static: for this architecture, but without a dynamic loader. privileged:
	 * run with other privileges than the caller's (setuid, setgid or capabilities). */
	bool elf, other_machine, is_static, privileged;
};

/* Returns a hint for a program that was not found in PATH: "; did you mean ./NAME, in this
 * folder?", or "". error: result of cli_program_find(). The text is static, valid until the next
 * call. */
const char *cli_program_hint(const char *name, int error);
/* Finds the file that execvp(3) would run for the name, and writes its path. Returns 0; ENOENT if
 * there is none; or another positive errno, such as EACCES, EISDIR or ENAMETOOLONG, if it cannot be
 * run. On failure path contains the name, possibly truncated. */
int cli_program_find(const char *name, char *path, size_t size);

/* Finds the program and reads its file. Returns 0, also if the file is not readable (elf is then
 * false) or its interpreter cannot be run (interpreter_error). Otherwise returns a positive errno
 * of cli_program_find() or open(2), and *program is incomplete. */
int cli_program_read(const char *name, struct cli_program *program);

/* Returns the reason why the program can use no library of LD_LIBRARY_PATH, a static text; NULL: it
 * can use one. program: of a successful cli_program_read(), also for cli_program_find_library(). */
const char *cli_program_problem(const struct cli_program *program);

/*
 * Finds the libcuda.so.1 that the program would load with this LD_LIBRARY_PATH. library_path NULL:
 * the variable is not set. Returns true with the library's path in path, and in *why_p the rule of
 * the search by which it is found, a static text. Returns false if none is found; path and *why_p
 * are then undefined. RPATHs of the program's other libraries, which may load libcuda.so.1 as well,
 * are not considered.
 */
bool cli_program_find_library(const struct cli_program *program, const char *library_path,
			      char *path, size_t size, const char **why_p);

#endif /* CLI_PROGRAM_H */
