/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader for the dynamic section of an ELF file in memory. The file is untrusted: nothing outside
 * the bytes is accessed.
 *
 * Ownership: the strings of struct cli_elf point into the bytes, which must outlive it.
 * Threads: any; the function has no state.
 */
#ifndef CLI_ELF_FILE_H
#define CLI_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct cli_elf {
	bool elf; /* whether the bytes are an ELF file */
	/* whether it is for another architecture, word size or byte order; the members below are
	 * then not set */
	bool other_machine;
	bool dynamic; /* whether it is started by the dynamic loader */
	/* DT_RPATH and DT_RUNPATH; NULL: the file does not have the entry. */
	const char *rpath, *runpath;
	/* DT_NEEDED entry for libcuda.so.1, possibly with a path; NULL: none */
	const char *libcuda;
};

/* Fills *elf from `size` bytes. All members are zero if the bytes are not an ELF file. */
void cli_elf_read(const void *bytes, size_t size, struct cli_elf *elf);

#endif /* CLI_ELF_FILE_H */
