/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds-checked reader for the sections of a 64-bit little-endian ELF from an untrusted source.
 *
 * Ownership: the bytes are the caller's and must outlive struct gp_elf; returned strings point into
 * them.
 * Threads: any.
 * Units: bytes.
 */
#ifndef GP_ELF_FILE_H
#define GP_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An opened ELF. */
struct gp_elf {
	const uint8_t *bytes;
	size_t size;
	uint64_t sections; /* offset of the section table */
	uint64_t section_count;
	Elf64_Shdr names; /* section with the section names; its bounds are within the file */
};

/* Opens an ELF. Returns true; or false if it is not a 64-bit little-endian ELF, or its section
 * table or section names are not within the bytes, and *elf is then undefined. */
bool gp_elf_open(struct gp_elf *elf, const uint8_t *bytes, size_t size);

/* Returns a copy of a section header; index: below section_count. */
Elf64_Shdr gp_elf_get_section(const struct gp_elf *elf, uint64_t index);

/* Returns whether the section has bytes in the file, unlike SHT_NOBITS. */
bool gp_elf_has_bytes(const Elf64_Shdr *section);

/* Returns whether the range is within the file. */
bool gp_elf_is_within(const struct gp_elf *elf, uint64_t offset, uint64_t size);

/* Returns the NUL-terminated string at an offset of a string table, whose bounds must be within the
 * file. NULL: the table has no terminated string there. *length_p: length without the NUL; length_p
 * NULL: not needed. */
const char *gp_elf_get_string(const struct gp_elf *elf, const Elf64_Shdr *table, uint32_t offset,
			      size_t *length_p);

#endif /* GP_ELF_FILE_H */
