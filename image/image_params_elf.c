/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A section .nv.info.KERNEL is a list of attributes: a byte that says how the value is stored, a
 * byte that says which one it is, and 16 bits that are the value or, if it is stored behind them,
 * its size.  One attribute describes one parameter.  The section .text.KERNEL is the code.  A
 * variable is an object in the table of symbols.
 */
#include "image/image_params.h"
#include "protocol/frame.h"

#include <elf.h>
#include <string.h>

#define INFO_PREFIX ".nv.info."
#define CODE_PREFIX ".text."
#define STORED_BEHIND 4
#define FORMS_MAX 4
/* What variables are in code that can be linked. */
#define STT_CUDA_OBJECT STT_LOPROC

enum attribute {
	PARAM_CBANK = 0x0a,      /* where all parameters are, and how many bytes */
	KPARAM_INFO = 0x17,      /* one parameter: its size in the upper 14 bits */
	CBANK_PARAM_SIZE = 0x19, /* bytes of all parameters */
	KPARAM_INFO_V2 = 0x45,   /* the same: its size in the lower 16 bits */
};

struct elf {
	const uint8_t *bytes;
	size_t size;
	uint64_t sections;
	uint64_t section_count;
	Elf64_Shdr names;
};

struct kernel {
	uint32_t count; /* parameters seen */
	uint32_t highest;
	uint32_t total;
	bool has_total; /* said by an attribute */
	bool has_bank;
};

static bool
lies_within(const struct elf *elf, uint64_t offset, uint64_t size)
{
	return offset <= elf->size && size <= elf->size - offset;
}

static Elf64_Shdr
section_at(const struct elf *elf, uint64_t index)
{
	Elf64_Shdr section;

	memcpy(&section, elf->bytes + elf->sections + index * sizeof(section), sizeof(section));
	return section;
}

/* Beyond 65,279 sections their number stands in the first of them. */
static bool
open_elf(struct elf *elf, const uint8_t *bytes, size_t size)
{
	Elf64_Ehdr header;
	uint64_t names;

	if (size < sizeof(header))
		return false;
	memcpy(&header, bytes, sizeof(header));
	*elf = (struct elf){ bytes, size, header.e_shoff, header.e_shnum, { 0 } };
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    header.e_shentsize != sizeof(Elf64_Shdr) ||
	    !lies_within(elf, elf->sections, sizeof(Elf64_Shdr)))
		return false;
	if (elf->section_count == 0)
		elf->section_count = section_at(elf, 0).sh_size;
	names = header.e_shstrndx == SHN_XINDEX ? section_at(elf, 0).sh_link : header.e_shstrndx;
	if (elf->section_count > (size - elf->sections) / sizeof(Elf64_Shdr) ||
	    names >= elf->section_count)
		return false;
	elf->names = section_at(elf, names);
	return lies_within(elf, elf->names.sh_offset, elf->names.sh_size);
}

/* A string of a table that lies within the file; NULL: it has none there. */
static const char *
text_at(const struct elf *elf, const Elf64_Shdr *table, uint32_t offset, size_t *length_p)
{
	const char *name = (const char *)elf->bytes + table->sh_offset + offset;
	size_t room;

	if (offset >= table->sh_size)
		return NULL;
	room = table->sh_size - offset;
	*length_p = strnlen(name, room);
	return *length_p < room ? name : NULL;
}

static bool
begins_with(const char *name, size_t length, const char *prefix)
{
	return length > strlen(prefix) && memcmp(name, prefix, strlen(prefix)) == 0;
}

static uint32_t
read_u16(const uint8_t *bytes)
{
	return (uint32_t)(bytes[0] | bytes[1] << 8);
}

static uint32_t
read_u32(const uint8_t *bytes)
{
	return read_u16(bytes) | read_u16(bytes + 2) << 16;
}

/* u32 index, u16 ordinal, u16 offset, and a u32 with the size among others. */
static bool
read_param(struct gp_params_reader *reader, struct kernel *kernel, const uint8_t *value,
	   size_t size, bool v2)
{
	uint32_t ordinal, word;
	struct gp_param_info *param;

	if (size != 12)
		return false;
	ordinal = read_u16(value + 4);
	if (ordinal >= GP_KERNEL_PARAMS_MAX)
		return false;
	/* What a lower ordinal has not set yet is told from what it has. */
	for (; kernel->highest <= ordinal; kernel->highest++)
		reader->params[kernel->highest] = (struct gp_param_info){ UINT32_MAX, 0 };
	param = &reader->params[ordinal];
	if (param->offset != UINT32_MAX)
		return false;
	word = read_u32(value + 8);
	*param = (struct gp_param_info){ read_u16(value + 6), v2 ? word & 0xffff : word >> 18 };
	kernel->count++;
	return true;
}

static bool
read_attribute(struct gp_params_reader *reader, struct kernel *kernel, uint8_t attribute,
	       const uint8_t *value, size_t size)
{
	switch (attribute) {
	case KPARAM_INFO:
	case KPARAM_INFO_V2:
		return read_param(reader, kernel, value, size, attribute == KPARAM_INFO_V2);
	case CBANK_PARAM_SIZE:
		if (size < 2)
			return false;
		kernel->has_total = true;
		kernel->total = read_u16(value);
		return true;
	case PARAM_CBANK:
		kernel->has_bank = true;
		return true;
	default:
		return true;
	}
}

static bool
read_attributes(struct gp_params_reader *reader, struct kernel *kernel, const uint8_t *at,
		size_t size)
{
	while (size >= 4) {
		size_t behind = at[0] == STORED_BEHIND ? read_u16(at + 2) : 0;
		const uint8_t *value = behind ? at + 4 : at + 2;

		if (at[0] == 0 || at[0] > FORMS_MAX || behind > size - 4 ||
		    !read_attribute(reader, kernel, at[1], value, behind ? behind : 2))
			return false;
		at += 4 + behind;
		size -= 4 + behind;
	}
	return size == 0;
}

/* Whether the attributes agree among themselves: a toolkit to come may write another one for what
 * these do not say, and then they say nothing. */
static bool
is_complete(const struct gp_params_reader *reader, const struct kernel *kernel)
{
	uint32_t end = 0;

	if (kernel->count != kernel->highest)
		return false;
	for (uint32_t i = 0; i < kernel->count; i++) {
		const struct gp_param_info *param = &reader->params[i];

		if (param->offset < end || param->offset + param->size > GP_LAUNCH_PARAMS_MAX)
			return false;
		end = param->offset + param->size;
	}
	if (kernel->count == 0 && kernel->has_bank && !kernel->has_total)
		return false;
	return !kernel->has_total || kernel->total == end;
}

static void
report(struct gp_params_reader *reader, const char *name, size_t length, const uint8_t *bytes,
       size_t size)
{
	struct gp_kernel_params found = { .name = name, .name_size = length };
	struct kernel kernel = { 0 };

	if (bytes && read_attributes(reader, &kernel, bytes, size) &&
	    is_complete(reader, &kernel)) {
		found.readable = true;
		found.count = kernel.count;
		found.params = reader->params;
	}
	reader->found(reader->data, &found);
}

static bool
is_variable(const Elf64_Sym *symbol)
{
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);

	return (type == STT_OBJECT || type == STT_CUDA_OBJECT) && symbol->st_shndx != SHN_UNDEF;
}

/* Whether it was understood. */
static bool
report_symbols(struct gp_params_reader *reader, const struct elf *elf, const Elf64_Shdr *table)
{
	Elf64_Shdr names;

	if (table->sh_entsize != sizeof(Elf64_Sym) || table->sh_link >= elf->section_count ||
	    !lies_within(elf, table->sh_offset, table->sh_size))
		return false;
	names = section_at(elf, table->sh_link);
	if (!lies_within(elf, names.sh_offset, names.sh_size))
		return false;
	for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
		struct gp_variable_size variable = { .readable = true };
		Elf64_Sym symbol;

		memcpy(&symbol, elf->bytes + table->sh_offset + at, sizeof(symbol));
		if (!is_variable(&symbol))
			continue;
		variable.name = text_at(elf, &names, symbol.st_name, &variable.name_size);
		if (!variable.name)
			return false;
		variable.size = symbol.st_size;
		reader->found_variable(reader->data, &variable);
	}
	return true;
}

bool
gp_params_of_elf(struct gp_params_reader *reader, const uint8_t *bytes, size_t size)
{
	const size_t info = strlen(INFO_PREFIX), code = strlen(CODE_PREFIX);
	bool understood = true, has_symbols = false;
	struct elf elf;

	if (!open_elf(&elf, bytes, size))
		return false;
	for (uint64_t i = 0; i < elf.section_count; i++) {
		Elf64_Shdr section = section_at(&elf, i);
		size_t length;
		const char *name = text_at(&elf, &elf.names, section.sh_name, &length);
		bool within = lies_within(&elf, section.sh_offset, section.sh_size);

		if (!name)
			understood = false;
		else if (begins_with(name, length, INFO_PREFIX))
			report(reader, name + info, length - info,
			       within ? bytes + section.sh_offset : NULL, section.sh_size);
		else if (begins_with(name, length, CODE_PREFIX))
			report(reader, name + code, length - code, NULL, 0);
		if (!reader->found_variable || section.sh_type != SHT_SYMTAB)
			continue;
		/* One is all there is; many could each be the whole file. */
		if (has_symbols || !report_symbols(reader, &elf, &section))
			understood = false;
		has_symbols = true;
	}
	return understood && (has_symbols || !reader->found_variable);
}
