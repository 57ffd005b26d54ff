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

/* Facts about an ELF file. */
struct cli_elf {
	bool elf; /* whether the bytes are an ELF file */
	/* Whether it is for another architecture, word size or byte order; all members except elf
	 * and other_machine are then zero. */
	bool other_machine;
	bool dynamic; /* whether it is started by the dynamic loader */
	/* DT_RPATH and DT_RUNPATH; NULL: the file does not have the entry. */
	const char *rpath, *runpath;
	/* DT_NEEDED entry that contains "libcuda.so", possibly with a path; NULL: none. */
	const char *libcuda;
};

/* Fills *elf from `size` bytes. All members are zero if the bytes are not an ELF file. Entries that
 * are not valid are skipped. */
void cli_elf_read(const void *bytes, size_t size, struct cli_elf *elf);

#endif /* CLI_ELF_FILE_H */
