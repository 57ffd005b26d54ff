/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks references between the sections of a GPU ELF. A section's name determines its kind. A code
 * section names its kernel's symbol in the lower 24 bits of sh_info; sections that belong to code
 * name the code's section there. Only references that the driver follows are checked, because
 * assemblers other than ptxas omit others and choose other names.
 */
#include "image/elf_check.h"

#include <string.h>

#define SHT_CUDA_INFO 0x70000000u
#define SHT_CUDA_CALLS 0x70000001u
#define CODE_SYMBOL 0xffffffu
/* Special symbol values, such as calls of unknown functions. */
#define CALL_SPECIAL 0xfffffff0u

#define ATTRIBUTE_SIZE 4u
#define ATTRIBUTE_SIZED 4u
#define PARAM_CBANK 0x0au

static Elf64_Sym
symbol_get(const struct gp_elf_check *check, uint64_t index)
{
	Elf64_Sym symbol;

	memcpy(&symbol, check->elf.bytes + check->symbols.sh_offset + index * sizeof(symbol),
	       sizeof(symbol));
	return symbol;
}

/* There must be a single symbol table, to which all symbol indices refer. */
static int
find_symbols(struct gp_elf_check *check)
{
	for (uint64_t i = 0; i < check->elf.section_count; i++) {
		Elf64_Shdr section = gp_elf_get_section(&check->elf, i);

		if (section.sh_type != SHT_SYMTAB)
			continue;
		if (check->symbol_count)
			return gp_elf_refuse(i, "a second symbol table, type", section.sh_type);
		if (section.sh_entsize != sizeof(Elf64_Sym) || section.sh_size == 0)
			return gp_elf_refuse(i, "invalid symbol table size", section.sh_size);
		check->symbol_names = gp_elf_get_section(&check->elf, section.sh_link);
		if (check->symbol_names.sh_type != SHT_STRTAB)
			return gp_elf_refuse(i, "the symbol names are not a string table, section",
					     section.sh_link);
		if (section.sh_info > section.sh_size / sizeof(Elf64_Sym))
			return gp_elf_refuse(i, "invalid local symbol count", section.sh_info);
		check->symbols = section;
		check->symbol_count = section.sh_size / sizeof(Elf64_Sym);
	}
	return 0;
}

static int
check_defined(const struct gp_elf_check *check, const Elf64_Sym *symbol, uint64_t index)
{
	Elf64_Shdr section = gp_elf_get_section(&check->elf, symbol->st_shndx);
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);

	if (type != STT_SECTION &&
	    (symbol->st_value > section.sh_size || symbol->st_size > section.sh_size))
		return gp_elf_refuse(symbol->st_shndx, "too short for symbol", index);
	return 0;
}

static int
check_symbols(const struct gp_elf_check *check)
{
	for (uint64_t i = 0; i < check->symbol_count; i++) {
		Elf64_Sym symbol = symbol_get(check, i);
		int r = 0;

		if (symbol.st_name >= check->symbol_names.sh_size)
			return gp_elf_refuse(check->symbols.sh_link, "name out of range for symbol",
					     i);
		if (symbol.st_shndx >= check->elf.section_count && symbol.st_shndx < SHN_LORESERVE)
			return gp_elf_refuse(symbol.st_shndx, "missing section of symbol", i);
		if (symbol.st_shndx != SHN_UNDEF && symbol.st_shndx < SHN_LORESERVE)
			r = check_defined(check, &symbol, i);
		if (r)
			return r;
	}
	return 0;
}

/* There is a single symbol table. nvprune's output for code of CUDA 12.1 names another section. */
static bool
has_symbols(const struct gp_elf_check *check, const Elf64_Shdr *section)
{
	return check->symbol_count && section->sh_link < check->elf.section_count;
}

/* Both forms begin with the offset and the symbol. */
static int
check_relocations(const struct gp_elf_check *check, uint64_t number, const Elf64_Shdr *section)
{
	bool added = section->sh_type == SHT_RELA;
	const size_t each = added ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
	const uint8_t *at = check->elf.bytes + section->sh_offset;
	Elf64_Shdr target;

	if (!has_symbols(check, section))
		return gp_elf_refuse(number, "invalid symbol table, section", section->sh_link);
	if (section->sh_info == 0 || section->sh_info >= check->elf.section_count)
		return gp_elf_refuse(number, "it relocates an invalid section,", section->sh_info);
	target = gp_elf_get_section(&check->elf, section->sh_info);
	for (uint64_t i = 0; i < section->sh_size / each; i++, at += each) {
		Elf64_Rel relocation;

		memcpy(&relocation, at, sizeof(relocation));
		if (ELF64_R_SYM(relocation.r_info) >= check->symbol_count)
			return gp_elf_refuse(number, "invalid symbol in relocation", i);
		if (relocation.r_offset >= target.sh_size)
			return gp_elf_refuse(number, "offset out of range in relocation", i);
	}
	return 0;
}

/* Parameters of a kernel: u32 symbol of a constant bank, u16 offset, u16 size. */
static bool
bank_is_valid(const struct gp_elf_check *check, const uint8_t *value, size_t size)
{
	uint32_t index;
	uint16_t place[2];
	Elf64_Sym symbol;

	if (size != 8)
		return false;
	memcpy(&index, value, sizeof(index));
	memcpy(place, value + 4, sizeof(place));
	if (index >= check->symbol_count)
		return false;
	symbol = symbol_get(check, index);
	return symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= check->elf.section_count ||
	       (uint64_t)place[0] + place[1] <=
		       gp_elf_get_section(&check->elf, symbol.st_shndx).sh_size;
}

static int
check_owner(const struct gp_elf_check *check, uint64_t number, const Elf64_Shdr *section)
{
	if (section->sh_info >= check->elf.section_count)
		return gp_elf_refuse(number, "its code section is invalid,", section->sh_info);
	return 0;
}

static int
check_attributes(const struct gp_elf_check *check, uint64_t number, const Elf64_Shdr *section)
{
	const uint8_t *begin = check->elf.bytes + section->sh_offset, *at = begin;
	const uint8_t *end = at + section->sh_size;

	/* Attributes for all kernels may name no symbol table. */
	if (section->sh_link && !has_symbols(check, section))
		return gp_elf_refuse(number, "invalid symbol table, section", section->sh_link);
	while (at < end) {
		size_t behind, left = (size_t)(end - at);

		if (left < ATTRIBUTE_SIZE || at[0] < 1 || at[0] > ATTRIBUTE_SIZED)
			return gp_elf_refuse(number, "invalid attribute at",
					     (uint64_t)(at - begin));
		behind = at[0] == ATTRIBUTE_SIZED ? at[2] | at[3] << 8 : 0;
		if (behind > left - ATTRIBUTE_SIZE)
			return gp_elf_refuse(number, "truncated attribute at",
					     (uint64_t)(at - begin));
		if (at[0] == ATTRIBUTE_SIZED && at[1] == PARAM_CBANK &&
		    !bank_is_valid(check, at + ATTRIBUTE_SIZE, behind))
			return gp_elf_refuse(number, "invalid parameter bank at",
					     (uint64_t)(at - begin));
		at += ATTRIBUTE_SIZE + behind;
	}
	return check_owner(check, number, section);
}

/* Assemblers other than ptxas name no symbol. */
static int
check_code(const struct gp_elf_check *check, uint64_t number, const Elf64_Shdr *section)
{
	uint32_t index = section->sh_info & CODE_SYMBOL;

	if (!has_symbols(check, section) || index >= check->symbol_count)
		return gp_elf_refuse(number, "invalid symbol", index);
	return 0;
}

static int
check_calls(const struct gp_elf_check *check, uint64_t number, const Elf64_Shdr *section)
{
	const uint8_t *bytes = check->elf.bytes + section->sh_offset;

	if (section->sh_link && !has_symbols(check, section))
		return gp_elf_refuse(number, "invalid symbol table, section", section->sh_link);
	for (uint64_t at = 0; at < section->sh_size; at += sizeof(uint32_t)) {
		uint32_t index;

		memcpy(&index, bytes + at, sizeof(index));
		if (index >= check->symbol_count && index < CALL_SPECIAL)
			return gp_elf_refuse(number, "call of an invalid symbol,", index);
	}
	return 0;
}

/* A note has the sizes of a name and of a descriptor, a type, and both, each padded to a multiple
 * of four. */
static int
check_notes(const struct gp_elf_check *check, uint64_t number, const Elf64_Shdr *section)
{
	const uint8_t *bytes = check->elf.bytes + section->sh_offset;
	uint64_t at = 0;

	while (at < section->sh_size) {
		Elf64_Nhdr note;

		if (section->sh_size - at < sizeof(note))
			return gp_elf_refuse(number, "truncated note at", at);
		memcpy(&note, bytes + at, sizeof(note));
		at += sizeof(note) + (((uint64_t)note.n_namesz + 3) & ~UINT64_C(3)) +
		      (((uint64_t)note.n_descsz + 3) & ~UINT64_C(3));
		if (at > section->sh_size)
			return gp_elf_refuse(number, "truncated note ending at", at);
	}
	return 0;
}

/* Matched by the prefix of the name. type 0: any. */
static const struct form {
	const char *prefix;
	uint32_t type;
	int (*check)(const struct gp_elf_check *check, uint64_t number, const Elf64_Shdr *section);
} forms[] = {
	{ ".shstrtab", SHT_STRTAB, NULL },
	{ ".strtab", SHT_STRTAB, NULL },
	{ ".symtab", SHT_SYMTAB, NULL },
	{ ".rela.", SHT_RELA, check_relocations },
	{ ".rel.", SHT_REL, check_relocations },
	{ ".text.", SHT_PROGBITS, check_code },
	{ ".note.", SHT_NOTE, check_notes },
	{ ".nv.info", SHT_CUDA_INFO, check_attributes },
	{ ".nv.callgraph", SHT_CUDA_CALLS, check_calls },
	{ ".nv.constant", 0, check_owner },
	{ ".nv.shared", 0, check_owner },
	{ ".nv.local", 0, check_owner },
};

/* Finds the form by the section's name or, if no prefix matches, by its type. */
static const struct form *
section_get_form(const char *name, uint32_t type)
{
	const size_t count = sizeof(forms) / sizeof(forms[0]);

	for (size_t i = 0; i < count; i++) {
		if (strncmp(name, forms[i].prefix, strlen(forms[i].prefix)) == 0)
			return &forms[i];
	}
	for (size_t i = 0; i < count; i++) {
		if (forms[i].type == type && type != SHT_PROGBITS)
			return &forms[i];
	}
	return NULL;
}

static int
section_check(const struct gp_elf_check *check, uint64_t number, const Elf64_Shdr *section)
{
	const struct form *form =
		section_get_form(gp_elf_get_section_name(&check->elf, section), section->sh_type);

	if (!form)
		return 0;
	if (form->type && section->sh_type != form->type)
		return gp_elf_refuse(number, "type does not match its name,", section->sh_type);
	return form->check ? form->check(check, number, section) : 0;
}

int
gp_elf_check_code(struct gp_elf_check *check)
{
	int r = find_symbols(check);

	if (!r)
		r = check_symbols(check);
	for (uint64_t i = 1; !r && i < check->elf.section_count; i++) {
		Elf64_Shdr section = gp_elf_get_section(&check->elf, i);

		r = section_check(check, i, &section);
	}
	return r;
}
