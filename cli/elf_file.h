/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the dynamic section of an ELF file in memory. The file is untrusted: nothing outside the
 * bytes is accessed.
 *
 * Ownership: the strings of struct cli_elf point into the bytes.
 * Threads: any; the function keeps no state.
 */
#ifndef CLI_ELF_FILE_H
#define CLI_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct cli_elf {
	bool elf;           /* an ELF file */
	bool other_machine; /* for another architecture, word size or byte order */
	bool dynamic;       /* started by the dynamic loader */
	/* Within the bytes; NULL: none. */
	const char *rpath, *runpath;
	const char *libcuda; /* DT_NEEDED entry with this name, possibly with a path */
};

/* Fills *elf; all zero if the bytes are not an ELF file. */
void cli_elf_read(const void *bytes, size_t size, struct cli_elf *elf);

#endif /* CLI_ELF_FILE_H */
