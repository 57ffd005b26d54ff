/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dynamic section of an ELF file, of any origin: reads nothing outside the bytes.  No state.
 */
#ifndef CLI_ELF_FILE_H
#define CLI_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct cli_elf {
	bool elf;           /* it is one, of 64 bits and this byte order */
	bool other_machine; /* for other processors */
	bool dynamic;       /* the loader starts it */
	/* Within the bytes; NULL: none. */
	const char *rpath, *runpath;
	const char *libcuda; /* what it needs of that name, also with a path */
};

void cli_elf_read(const void *bytes, size_t size, struct cli_elf *elf);

#endif /* CLI_ELF_FILE_H */
