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
	Elf64_Shdr names; /* header of the section with the section names, whose bounds are within
			     the file */
};

/* Opens an ELF. Returns true; or false, with *elf undefined, if it is not a 64-bit little-endian
 * ELF, has another size of section headers, or its section table or section names are missing or
 * not within the bytes. */
bool gp_elf_open(struct gp_elf *elf, const uint8_t *bytes, size_t size);

/* Returns a copy of a section header; index: below section_count. */
Elf64_Shdr gp_elf_get_section(const struct gp_elf *elf, uint64_t index);

/* Returns whether the section has bytes in the file, unlike SHT_NULL, SHT_NOBITS, and the types
 * that ptxas -G writes instead of SHT_NOBITS. */
bool gp_elf_has_bytes(const Elf64_Shdr *section);

/* Returns whether the range of `size` bytes at an offset, both unchecked, is within the file. */
bool gp_elf_is_within(const struct gp_elf *elf, uint64_t offset, uint64_t size);

/* Returns the NUL-terminated string at an offset, unchecked, of a string table. NULL: the table has
 * no terminated string there. The caller has checked that the table's bounds are within the file
 * (gp_elf_is_within()). *length_p: length without the NUL, undefined if NULL is returned; length_p
 * NULL: not needed. */
const char *gp_elf_get_string(const struct gp_elf *elf, const Elf64_Shdr *table, uint32_t offset,
			      size_t *length_p);

#endif /* GP_ELF_FILE_H */
