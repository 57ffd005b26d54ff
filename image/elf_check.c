/* SPDX-License-Identifier: Apache-2.0 */
#include "image/elf_check.h"

#include "image/fatbin_entry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Maximum size of a section without bytes in the file: CUDA's compilers count in 32 bits. */
#define NOBITS_MAX UINT32_MAX
#define MERCURY ".nv.merc."
#define ALIGN_MAX (UINT64_C(1) << 31)

int
gp_elf_refuse(uint64_t section, const char *what, uint64_t value)
{
	return gp_image_set_error("an ELF for a GPU, section %llu: %s %llu",
				  (unsigned long long)section, what, (unsigned long long)value);
}

static int
refuse_header(const char *what, uint64_t value)
{
	return gp_image_set_error("an ELF for a GPU: %s %llu", what, (unsigned long long)value);
}

const char *
gp_elf_get_section_name(const struct gp_elf *elf, const Elf64_Shdr *section)
{
	return (const char *)elf->bytes + elf->names.sh_offset + section->sh_name;
}

static int
check_segments(const struct gp_elf *elf, const Elf64_Ehdr *header)
{
	if (header->e_phnum == 0)
		return 0;
	if (header->e_phentsize != sizeof(Elf64_Phdr) ||
	    !gp_elf_is_within(elf, header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr)))
		return refuse_header("its program headers are outside of the file, at",
				     header->e_phoff);
	for (unsigned int i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr segment;

		memcpy(&segment, elf->bytes + header->e_phoff + i * sizeof(segment),
		       sizeof(segment));
		if (!gp_elf_is_within(elf, segment.p_offset, segment.p_filesz))
			return refuse_header("a segment is outside of the file, at",
					     segment.p_offset);
	}
	return 0;
}

static int
check_header(struct gp_elf *elf, const uint8_t *bytes, size_t size)
{
	Elf64_Ehdr header;

	if (size < sizeof(header))
		return refuse_header("header truncated after", size);
	memcpy(&header, bytes, sizeof(header));
	if (header.e_machine != GP_ELF_MACHINE_CUDA)
		return refuse_header("wrong machine", header.e_machine);
	if (header.e_ehsize != sizeof(header) || header.e_shentsize != sizeof(Elf64_Shdr))
		return refuse_header("wrong header size,", header.e_shentsize);
	if (header.e_shnum == 0 || !gp_elf_open(elf, bytes, size))
		return refuse_header("its section table is outside of the file, at",
				     header.e_shoff);
	if (elf->names.sh_type != SHT_STRTAB)
		return refuse_header("its section names are not a string table, section",
				     header.e_shstrndx);
	return check_segments(elf, &header);
}

static bool
is_string_table(const struct gp_elf *elf, const Elf64_Shdr *table)
{
	const uint8_t *bytes = elf->bytes + table->sh_offset;

	return table->sh_size > 0 && bytes[0] == '\0' && bytes[table->sh_size - 1] == '\0';
}

static int
section_check_extent(const struct gp_elf *elf, uint64_t number, const Elf64_Shdr *section)
{
	if (section->sh_type == SHT_NULL)
		return 0;
	if (section->sh_offset > elf->size)
		return gp_elf_refuse(number, "it is outside of the file, at", section->sh_offset);
	if (!gp_elf_has_bytes(section))
		return section->sh_size > NOBITS_MAX
			       ? gp_elf_refuse(number, "it is too large, size", section->sh_size)
			       : 0;
	if (!gp_elf_is_within(elf, section->sh_offset, section->sh_size))
		return gp_elf_refuse(number, "it is longer than the file, size", section->sh_size);
	return 0;
}

static int
section_check(const struct gp_elf *elf, uint64_t number, const Elf64_Shdr *section)
{
	if (section->sh_name >= elf->names.sh_size)
		return gp_elf_refuse(number, "its name is outside of the name table, at",
				     section->sh_name);
	if (section->sh_link >= elf->section_count)
		return gp_elf_refuse(number, "invalid sh_link", section->sh_link);
	if (section->sh_addralign & (section->sh_addralign - 1) ||
	    section->sh_addralign > ALIGN_MAX)
		return gp_elf_refuse(number, "invalid alignment", section->sh_addralign);
	if (section->sh_entsize && gp_elf_has_bytes(section) &&
	    section->sh_size % section->sh_entsize)
		return gp_elf_refuse(number, "its size is not a multiple of", section->sh_entsize);
	if (section->sh_type == SHT_STRTAB && !is_string_table(elf, section))
		return gp_elf_refuse(number, "a string table is not terminated, size",
				     section->sh_size);
	return 0;
}

struct extent {
	uint64_t begin, end, section;
};

static int
extent_compare(const void *a_pointer, const void *b_pointer)
{
	const struct extent *a = a_pointer, *b = b_pointer;

	return (a->begin > b->begin) - (a->begin < b->begin);
}

static int
extents_check_order(struct extent *extents, size_t count)
{
	uint64_t end = sizeof(Elf64_Ehdr);

	qsort(extents, count, sizeof(*extents), extent_compare);
	for (size_t i = 0; i < count; i++) {
		if (extents[i].begin < end)
			return gp_elf_refuse(extents[i].section, "it overlaps another section, at",
					     extents[i].begin);
		end = extents[i].end;
	}
	return 0;
}

/* Sections for code that is to be translated again share bytes with the sections of the finished
 * code. */
static bool
section_is_shared(const struct gp_elf *elf, const Elf64_Shdr *section)
{
	return strncmp(gp_elf_get_section_name(elf, section), MERCURY, strlen(MERCURY)) == 0;
}

/* Rejecting overlaps also bounds the total number of bytes to read. */
static int
check_overlaps(const struct gp_elf *elf)
{
	struct extent *extents = calloc(elf->section_count, sizeof(*extents));
	size_t count = 0;
	int r;

	if (!extents)
		return -ENOMEM;
	for (uint64_t i = 0; i < elf->section_count; i++) {
		Elf64_Shdr section = gp_elf_get_section(elf, i);

		if (gp_elf_has_bytes(&section) && section.sh_size &&
		    !section_is_shared(elf, &section))
			extents[count++] =
				(struct extent){ section.sh_offset,
						 section.sh_offset + section.sh_size, i };
	}
	r = extents_check_order(extents, count);
	free(extents);
	return r;
}

int
gp_elf_check(const uint8_t *bytes, size_t size)
{
	struct gp_elf_check check = { 0 };
	int r = check_header(&check.elf, bytes, size);

	if (!r && !is_string_table(&check.elf, &check.elf.names))
		r = refuse_header("its section names are not terminated, size",
				  check.elf.names.sh_size);
	for (uint64_t i = 0; !r && i < check.elf.section_count; i++) {
		Elf64_Shdr section = gp_elf_get_section(&check.elf, i);

		r = section_check_extent(&check.elf, i, &section);
		if (!r)
			r = section_check(&check.elf, i, &section);
	}
	if (!r)
		r = check_overlaps(&check.elf);
	return r ? r : gp_elf_check_code(&check);
}
