/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sections of an ELF of 64 bits, of which nothing is believed.  Its bytes are the caller's, and
 * stay as long as it is used.  Any thread.
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
	uint64_t sections; /* where their table begins */
	uint64_t section_count;
	Elf64_Shdr names; /* of sections; within the file */
};

/* false: it is none, or the table of its sections is not within it. */
bool gp_elf_open(struct gp_elf *elf, const uint8_t *bytes, size_t size);

/* index: below section_count. */
Elf64_Shdr gp_elf_get_section(const struct gp_elf *elf, uint64_t index);

/* Whether it has any in the file, and is not only room in memory. */
bool gp_elf_has_bytes(const Elf64_Shdr *section);

bool gp_elf_is_within(const struct gp_elf *elf, uint64_t offset, uint64_t size);

/* A string of a table that lies within the file, with its NUL; NULL: it has none there.  *length_p
 * (or NULL): without the NUL. */
const char *gp_elf_get_string(const struct gp_elf *elf, const Elf64_Shdr *table, uint32_t offset,
			      size_t *length_p);

#endif /* GP_ELF_FILE_H */
