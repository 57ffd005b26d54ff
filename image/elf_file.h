/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds-checked reader for the sections of a 64-bit ELF from an untrusted source.
 *
 * Ownership: the bytes are the caller's and must outlive struct gp_elf.
 * Threads: any.
 */
#ifndef GP_ELF_FILE_H
#define GP_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gp_elf {
	const uint8_t *bytes;
	size_t size;
	uint64_t sections; /* offset of the section table */
	uint64_t section_count;
	Elf64_Shdr names; /* section names; within the file */
};

/* Opens an ELF. Returns false if it is not a 64-bit ELF, or its section table is not within the
 * bytes. */
bool gp_elf_open(struct gp_elf *elf, const uint8_t *bytes, size_t size);

/* Returns a section header; index: below section_count. */
Elf64_Shdr gp_elf_get_section(const struct gp_elf *elf, uint64_t index);

/* Whether the section has bytes in the file, unlike SHT_NOBITS. */
bool gp_elf_has_bytes(const Elf64_Shdr *section);

/* Whether the range is within the file. */
bool gp_elf_is_within(const struct gp_elf *elf, uint64_t offset, uint64_t size);

/* Returns a NUL-terminated string of a string table within the file, or NULL if the table has no
 * string there. *length_p (optional): length without the NUL. */
const char *gp_elf_get_string(const struct gp_elf *elf, const Elf64_Shdr *table, uint32_t offset,
			      size_t *length_p);

#endif /* GP_ELF_FILE_H */
