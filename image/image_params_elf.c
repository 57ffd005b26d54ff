/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The section .nv.info.KERNEL is a list of attributes: a byte with the storage form of the value, a
 * byte with the attribute's number, and 16 bits that are the value or the size of a value that
 * follows. An attribute describes a single parameter. The section .text.KERNEL is the code. A
 * variable is an object in the symbol table.
 */
#include "image/elf_file.h"
#include "image/image_params.h"
#include "protocol/frame.h"

#include <elf.h>
#include <string.h>

#define INFO_PREFIX ".nv.info."
#define CODE_PREFIX ".text."
#define ATTRIBUTE_SIZED 4
/* Bit of st_other for managed memory. */
#define OTHER_MANAGED 4
#define FORMAT_MAX 4
/* Symbol type of variables in linkable code. */
#define STT_CUDA_OBJECT STT_LOPROC

enum attribute {
	PARAM_CBANK = 0x0a,      /* location and total size of the parameters */
	KPARAM_INFO = 0x17,      /* a parameter, with its size in the upper 14 bits */
	CBANK_PARAM_SIZE = 0x19, /* total size of the parameters */
	KPARAM_INFO_V2 = 0x45,   /* a parameter, with its size in the lower 16 bits */
};

struct kernel {
	uint32_t count; /* parameters seen so far */
	uint32_t highest;
	uint32_t total;
	bool has_total; /* an attribute has the total size */
	bool has_bank;
};

static bool
has_prefix(const char *name, size_t length, const char *prefix)
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

/* u32 index, u16 ordinal, u16 offset, and a u32 that contains the size. */
static bool
param_parse(struct gp_params_reader *reader, struct kernel *kernel, const uint8_t *value,
	    size_t size, bool v2)
{
	uint32_t ordinal, word;
	struct gp_param_info *param;

	if (size != 12)
		return false;
	ordinal = read_u16(value + 4);
	if (ordinal >= GP_KERNEL_PARAMS_MAX)
		return false;
	/* Marks parameters with lower ordinals as not yet seen. */
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
attribute_parse(struct gp_params_reader *reader, struct kernel *kernel, uint8_t attribute,
		const uint8_t *value, size_t size)
{
	switch (attribute) {
	case KPARAM_INFO:
	case KPARAM_INFO_V2:
		return param_parse(reader, kernel, value, size, attribute == KPARAM_INFO_V2);
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
attributes_parse(struct gp_params_reader *reader, struct kernel *kernel, const uint8_t *at,
		 size_t size)
{
	while (size >= 4) {
		size_t behind = at[0] == ATTRIBUTE_SIZED ? read_u16(at + 2) : 0;
		const uint8_t *value = behind ? at + 4 : at + 2;

		if (at[0] == 0 || at[0] > FORMAT_MAX || behind > size - 4 ||
		    !attribute_parse(reader, kernel, at[1], value, behind ? behind : 2))
			return false;
		at += 4 + behind;
		size -= 4 + behind;
	}
	return size == 0;
}

/* Whether the attributes are consistent. A future toolkit may use other attributes; the known ones
 * would then be incomplete, and are ignored. */
static bool
kernel_is_consistent(const struct gp_params_reader *reader, const struct kernel *kernel)
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
kernel_report(struct gp_params_reader *reader, const char *name, size_t length,
	      const uint8_t *bytes, size_t size)
{
	struct gp_kernel_params found = { .name = name, .name_size = length };
	struct kernel kernel = { 0 };

	if (bytes && attributes_parse(reader, &kernel, bytes, size) &&
	    kernel_is_consistent(reader, &kernel)) {
		found.readable = true;
		found.count = kernel.count;
		found.params = reader->params;
	}
	reader->found(reader->data, &found);
}

static bool
symbol_is_variable(const Elf64_Sym *symbol)
{
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);

	return (type == STT_OBJECT || type == STT_CUDA_OBJECT) && symbol->st_shndx != SHN_UNDEF;
}

/* Code of kernels that call printf refers to this function of the driver. */
static bool
symbol_is_printf(const struct gp_elf *elf, const Elf64_Shdr *names, const Elf64_Sym *symbol)
{
	size_t size;
	const char *name = symbol->st_shndx == SHN_UNDEF
				   ? gp_elf_get_string(elf, names, symbol->st_name, &size)
				   : NULL;

	return name && size == strlen(GP_PRINT_SYMBOL) && memcmp(name, GP_PRINT_SYMBOL, size) == 0;
}

/* Returns whether the table was understood. */
static bool
symbols_report(struct gp_params_reader *reader, const struct gp_elf *elf, const Elf64_Shdr *table)
{
	Elf64_Shdr names;

	if (table->sh_entsize != sizeof(Elf64_Sym) || table->sh_link >= elf->section_count ||
	    !gp_elf_is_within(elf, table->sh_offset, table->sh_size))
		return false;
	names = gp_elf_get_section(elf, table->sh_link);
	if (!gp_elf_is_within(elf, names.sh_offset, names.sh_size))
		return false;
	for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
		struct gp_variable_size variable = { .readable = true };
		Elf64_Sym symbol;

		memcpy(&symbol, elf->bytes + table->sh_offset + at, sizeof(symbol));
		reader->prints |= symbol_is_printf(elf, &names, &symbol);
		if (!symbol_is_variable(&symbol))
			continue;
		variable.name = gp_elf_get_string(elf, &names, symbol.st_name, &variable.name_size);
		if (!variable.name)
			return false;
		variable.size = symbol.st_size;
		variable.managed = symbol.st_other & OTHER_MANAGED;
		reader->found_variable(reader->data, &variable);
	}
	return true;
}

bool
gp_params_read_elf(struct gp_params_reader *reader, const uint8_t *bytes, size_t size)
{
	const size_t info = strlen(INFO_PREFIX), code = strlen(CODE_PREFIX);
	bool understood = true, has_symbols = false;
	struct gp_elf elf;

	if (!gp_elf_open(&elf, bytes, size))
		return false;
	for (uint64_t i = 0; i < elf.section_count; i++) {
		Elf64_Shdr section = gp_elf_get_section(&elf, i);
		size_t length;
		const char *name = gp_elf_get_string(&elf, &elf.names, section.sh_name, &length);
		bool within = gp_elf_is_within(&elf, section.sh_offset, section.sh_size);

		if (!name)
			understood = false;
		else if (has_prefix(name, length, INFO_PREFIX))
			kernel_report(reader, name + info, length - info,
				      within ? bytes + section.sh_offset : NULL, section.sh_size);
		else if (has_prefix(name, length, CODE_PREFIX))
			kernel_report(reader, name + code, length - code, NULL, 0);
		if (!reader->found_variable || section.sh_type != SHT_SYMTAB)
			continue;
		/* Only a single table is valid; each of many could be as large as the file. */
		if (has_symbols || !symbols_report(reader, &elf, &section))
			understood = false;
		has_symbols = true;
	}
	return understood && (has_symbols || !reader->found_variable);
}
