/* SPDX-License-Identifier: Apache-2.0 */
#include "image/elf_file.h"

#include <string.h>

/* Section types that ptxas -G writes instead of SHT_NOBITS. */
#define SHT_CUDA_GLOBAL 0x70000007u
#define SHT_CUDA_LOCAL 0x70000009u
#define SHT_CUDA_SHARED 0x7000000au
#define SHT_CUDA_SHARED_RESERVED 0x70000015u

bool
gp_elf_has_bytes(const Elf64_Shdr *section)
{
	switch (section->sh_type) {
	case SHT_NULL:
	case SHT_NOBITS:
	case SHT_CUDA_GLOBAL:
	case SHT_CUDA_LOCAL:
	case SHT_CUDA_SHARED:
	case SHT_CUDA_SHARED_RESERVED:
		return false;
	default:
		return true;
	}
}

bool
gp_elf_is_within(const struct gp_elf *elf, uint64_t offset, uint64_t size)
{
	return offset <= elf->size && size <= elf->size - offset;
}

Elf64_Shdr
gp_elf_get_section(const struct gp_elf *elf, uint64_t index)
{
	Elf64_Shdr section;

	memcpy(&section, elf->bytes + elf->sections + index * sizeof(section), sizeof(section));
	return section;
}

/* If there are more than 65,279 sections, their number is stored in section header 0. */
bool
gp_elf_open(struct gp_elf *elf, const uint8_t *bytes, size_t size)
{
	Elf64_Ehdr header;
	uint64_t names;

	if (size < sizeof(header))
		return false;
	memcpy(&header, bytes, sizeof(header));
	*elf = (struct gp_elf){ bytes, size, header.e_shoff, header.e_shnum, { 0 } };
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    header.e_shentsize != sizeof(Elf64_Shdr) ||
	    !gp_elf_is_within(elf, elf->sections, sizeof(Elf64_Shdr)))
		return false;
	if (elf->section_count == 0)
		elf->section_count = gp_elf_get_section(elf, 0).sh_size;
	names = header.e_shstrndx == SHN_XINDEX ? gp_elf_get_section(elf, 0).sh_link
						: header.e_shstrndx;
	if (elf->section_count > (size - elf->sections) / sizeof(Elf64_Shdr) ||
	    names >= elf->section_count)
		return false;
	elf->names = gp_elf_get_section(elf, names);
	return gp_elf_is_within(elf, elf->names.sh_offset, elf->names.sh_size);
}

const char *
gp_elf_get_string(const struct gp_elf *elf, const Elf64_Shdr *table, uint32_t offset,
		  size_t *length_p)
{
	const char *name = (const char *)elf->bytes + table->sh_offset + offset;
	size_t left, length;

	if (offset >= table->sh_size)
		return NULL;
	left = table->sh_size - offset;
	length = strnlen(name, left);
	if (length_p)
		*length_p = length;
	return length < left ? name : NULL;
}
