/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sections of an ELF for a GPU say of each other.  A section's name says what it is, and
 * of which kernel; a kernel's code names its symbol in the lower 24 bits of sh_info, and what goes
 * with the code names its section there.
 */
#include "image/elf_check.h"

#include <stdlib.h>
#include <string.h>

#define SHT_CUDA_INFO 0x70000000u
#define SYMBOL_NAMES ".strtab"
#define CODE_SYMBOL 0xffffffu
/* Calls of what is not known, and the like. */
#define CALL_SPECIAL 0xfffffff0u

#define ATTRIBUTE_SIZE 4u
#define STORED_BEHIND 4u
#define PARAM_CBANK 0x0au

static bool
begins_with(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static Elf64_Sym
symbol_at(const struct gp_elf_check *check, uint64_t index)
{
	Elf64_Sym symbol;

	memcpy(&symbol, check->elf.bytes + check->symbols.sh_offset + index * sizeof(symbol),
	       sizeof(symbol));
	return symbol;
}

static const char *
symbol_name(const struct gp_elf_check *check, const Elf64_Sym *symbol)
{
	return (const char *)check->elf.bytes + check->symbol_names.sh_offset + symbol->st_name;
}

static bool
is_code(const struct gp_elf_check *check, const Elf64_Shdr *section)
{
	return section->sh_type == SHT_PROGBITS && section->sh_flags & SHF_EXECINSTR &&
	       begins_with(gp_elf_section_name(&check->elf, section), ".text.");
}

/* There is one table of symbols, which all that name symbols belong to. */
static int
find_symbols(struct gp_elf_check *check)
{
	for (uint64_t i = 0; i < check->elf.section_count; i++) {
		Elf64_Shdr section = gp_elf_section(&check->elf, i);

		if (section.sh_type != SHT_SYMTAB)
			continue;
		if (check->symbol_count)
			return gp_elf_refuse(i, "a second table of symbols, of type",
					     section.sh_type);
		if (section.sh_entsize != sizeof(Elf64_Sym) || section.sh_size == 0)
			return gp_elf_refuse(i, "a table of symbols has not the size",
					     section.sh_size);
		check->symbol_names = gp_elf_section(&check->elf, section.sh_link);
		if (strcmp(gp_elf_section_name(&check->elf, &check->symbol_names), SYMBOL_NAMES) !=
		    0)
			return gp_elf_refuse(i, "the names of symbols are not in section",
					     section.sh_link);
		if (section.sh_info > section.sh_size / sizeof(Elf64_Sym))
			return gp_elf_refuse(i, "it has not so many symbols,", section.sh_info);
		check->symbols = section;
		check->symbol_count = section.sh_size / sizeof(Elf64_Sym);
	}
	return 0;
}

static int
check_defined(const struct gp_elf_check *check, const Elf64_Sym *symbol, uint64_t index)
{
	Elf64_Shdr section = gp_elf_section(&check->elf, symbol->st_shndx);
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);

	if (type != STT_SECTION &&
	    (symbol->st_value > section.sh_size || symbol->st_size > section.sh_size))
		return gp_elf_refuse(symbol->st_shndx, "it is too short for symbol", index);
	return 0;
}

static int
check_symbols(const struct gp_elf_check *check)
{
	for (uint64_t i = 0; i < check->symbol_count; i++) {
		Elf64_Sym symbol = symbol_at(check, i);
		int r = 0;

		if (symbol.st_name >= check->symbol_names.sh_size)
			return gp_elf_refuse(check->symbols.sh_link, "it has no name for symbol",
					     i);
		if (symbol.st_shndx >= check->elf.section_count && symbol.st_shndx < SHN_LORESERVE)
			return gp_elf_refuse(symbol.st_shndx, "it is not there, for symbol", i);
		if (symbol.st_shndx != SHN_UNDEF && symbol.st_shndx < SHN_LORESERVE)
			r = check_defined(check, &symbol, i);
		if (r)
			return r;
	}
	return 0;
}

/* There is one table of symbols.  What nvprune has left of CUDA 12.1's code names another section.
 */
static bool
has_symbols(const struct gp_elf_check *check, const Elf64_Shdr *section)
{
	return check->symbol_count && section->sh_link < check->elf.section_count;
}

/* Both forms begin with the place and the symbol. */
static int
check_relocations(const struct gp_elf_check *check, uint64_t number, const Elf64_Shdr *section)
{
	bool added = section->sh_type == SHT_RELA;
	const size_t each = added ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
	const char *name = gp_elf_section_name(&check->elf, section);
	const uint8_t *at = check->elf.bytes + section->sh_offset;
	Elf64_Shdr target;

	if (!has_symbols(check, section))
		return gp_elf_refuse(number, "its symbols are not in section", section->sh_link);
	if (section->sh_info == 0 || section->sh_info >= check->elf.section_count)
		return gp_elf_refuse(number, "it relocates no section, but", section->sh_info);
	target = gp_elf_section(&check->elf, section->sh_info);
	if (strcmp(name + (added ? 5 : 4), gp_elf_section_name(&check->elf, &target)) != 0)
		return gp_elf_refuse(number, "it has not the name of what it relocates, section",
				     section->sh_info);
	for (uint64_t i = 0; i < section->sh_size / each; i++, at += each) {
		Elf64_Rel relocation;

		memcpy(&relocation, at, sizeof(relocation));
		if (ELF64_R_SYM(relocation.r_info) >= check->symbol_count)
			return gp_elf_refuse(number, "it names no symbol in relocation", i);
		if (relocation.r_offset >= target.sh_size)
			return gp_elf_refuse(number, "it is too far in relocation", i);
	}
	return 0;
}

/* The parameters of a kernel: u32 symbol of a constant bank, u16 offset, u16 size. */
static bool
is_bank(const struct gp_elf_check *check, const uint8_t *value, size_t size)
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
	symbol = symbol_at(check, index);
	return symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= check->elf.section_count ||
	       (uint64_t)place[0] + place[1] <=
		       gp_elf_section(&check->elf, symbol.st_shndx).sh_size;
}

static int
check_attributes(const struct gp_elf_check *check, uint64_t number, const Elf64_Shdr *section)
{
	const uint8_t *begin = check->elf.bytes + section->sh_offset, *at = begin;
	const uint8_t *end = at + section->sh_size;

	/* What is of all kernels may say none. */
	if (section->sh_link && !has_symbols(check, section))
		return gp_elf_refuse(number, "its symbols are not in section", section->sh_link);
	while (at < end) {
		size_t behind, left = (size_t)(end - at);

		if (left < ATTRIBUTE_SIZE || at[0] < 1 || at[0] > STORED_BEHIND)
			return gp_elf_refuse(number, "no attribute begins at",
					     (uint64_t)(at - begin));
		behind = at[0] == STORED_BEHIND ? at[2] | at[3] << 8 : 0;
		if (behind > left - ATTRIBUTE_SIZE)
			return gp_elf_refuse(number, "an attribute is cut off, that at",
					     (uint64_t)(at - begin));
		if (at[0] == STORED_BEHIND && at[1] == PARAM_CBANK &&
		    !is_bank(check, at + ATTRIBUTE_SIZE, behind))
			return gp_elf_refuse(number, "parameters have no place, those at",
					     (uint64_t)(at - begin));
		at += ATTRIBUTE_SIZE + behind;
	}
	return 0;
}

/* What belongs to a kernel: its name ends with that of the code, whose section is sh_info. */
static int
check_owner(const struct gp_elf_check *check, uint64_t number, const Elf64_Shdr *section,
	    const char *kernel)
{
	Elf64_Shdr code;

	if (section->sh_info >= check->elf.section_count)
		return gp_elf_refuse(number, "its code is in no section, but", section->sh_info);
	code = gp_elf_section(&check->elf, section->sh_info);
	if (!is_code(check, &code) ||
	    strcmp(kernel, gp_elf_section_name(&check->elf, &code) + strlen(".text")) != 0)
		return gp_elf_refuse(number, "it has not the name of its code, section",
				     section->sh_info);
	return 0;
}

static int
check_code(const struct gp_elf_check *check, uint64_t number, const Elf64_Shdr *section)
{
	const char *name = gp_elf_section_name(&check->elf, section) + strlen(".text.");
	uint32_t index = section->sh_info & CODE_SYMBOL;
	Elf64_Sym symbol;

	if (!has_symbols(check, section) || index >= check->symbol_count)
		return gp_elf_refuse(number, "its symbol is not there,", index);
	symbol = symbol_at(check, index);
	if (symbol.st_shndx != number || strcmp(symbol_name(check, &symbol), name) != 0)
		return gp_elf_refuse(number, "it has not the name of its symbol", index);
	return 0;
}

static int
check_calls(const struct gp_elf_check *check, uint64_t number, const Elf64_Shdr *section)
{
	const uint8_t *bytes = check->elf.bytes + section->sh_offset;

	if (section->sh_link && !has_symbols(check, section))
		return gp_elf_refuse(number, "its symbols are not in section", section->sh_link);
	for (uint64_t at = 0; at < section->sh_size; at += sizeof(uint32_t)) {
		uint32_t index;

		memcpy(&index, bytes + at, sizeof(index));
		if (index >= check->symbol_count && index < CALL_SPECIAL)
			return gp_elf_refuse(number, "it calls what is no symbol,", index);
	}
	return 0;
}

/* Each is sizes of a name and of what follows, a type, and both, up to multiples of four. */
static int
check_notes(const struct gp_elf_check *check, uint64_t number, const Elf64_Shdr *section)
{
	const uint8_t *bytes = check->elf.bytes + section->sh_offset;
	uint64_t at = 0;

	while (at < section->sh_size) {
		Elf64_Nhdr note;

		if (section->sh_size - at < sizeof(note))
			return gp_elf_refuse(number, "a note is cut off, that at", at);
		memcpy(&note, bytes + at, sizeof(note));
		at += sizeof(note) + (((uint64_t)note.n_namesz + 3) & ~UINT64_C(3)) +
		      (((uint64_t)note.n_descsz + 3) & ~UINT64_C(3));
		if (at > section->sh_size)
			return gp_elf_refuse(number, "a note is cut off, that up to", at);
	}
	return 0;
}

enum content {
	PLAIN,
	NAMES,
	SYMBOLS,
	RELOCATIONS,
	CODE,
	ATTRIBUTES,
	CALLS,
	NOTES,
};

/* What stands behind the beginning of a section's name; 0: anything. */
enum behind {
	NOTHING = 1,
	NUMBER = 2, /* which is added to debug_type */
	KERNEL = 4, /* the name of code, or nothing */
};

/* By the beginning of their names, the longer first. */
static const struct form {
	const char *prefix;
	uint32_t type, debug_type; /* the latter: of code with -G */
	uint32_t entry_size;
	enum content content;
	unsigned int behind;
} forms[] = {
	{ ".shstrtab", SHT_STRTAB, 0, 0, NAMES, NOTHING },
	{ ".strtab", SHT_STRTAB, 0, 0, NAMES, NOTHING },
	{ ".symtab", SHT_SYMTAB, 0, sizeof(Elf64_Sym), SYMBOLS, NOTHING },
	{ ".rela.", SHT_RELA, 0, sizeof(Elf64_Rela), RELOCATIONS, 0 },
	{ ".rel.", SHT_REL, 0, sizeof(Elf64_Rel), RELOCATIONS, 0 },
	{ ".text.", SHT_PROGBITS, 0, 0, CODE, 0 },
	{ ".note.", SHT_NOTE, 0, 0, NOTES, 0 },
	{ ".nv.info", SHT_CUDA_INFO, 0, 0, ATTRIBUTES, NOTHING },
	{ ".nv.info", SHT_CUDA_INFO, 0, 0, ATTRIBUTES, KERNEL },
	{ ".nv.callgraph", 0x70000001, 0, 8, CALLS, NOTHING },
	{ ".nv.prototype", 0x70000002, 0, 8, PLAIN, NOTHING },
	{ ".nv.rel.action", 0x7000000b, 0, 8, PLAIN, NOTHING },
	{ ".nv.compat", 0x70000086, 0, 0, PLAIN, NOTHING },
	{ ".nv.constant", SHT_PROGBITS, 0x70000064, 0, PLAIN, NUMBER | KERNEL },
	{ ".nv.shared.reserved.", SHT_NOBITS, 0x70000015, 0, PLAIN, 0 },
	{ ".nv.shared", SHT_NOBITS, 0x7000000a, 0, PLAIN, KERNEL },
	{ ".nv.local", SHT_NOBITS, 0x70000009, 0, PLAIN, KERNEL },
	{ ".nv.global.init", SHT_PROGBITS, 0x70000008, 0, PLAIN, NOTHING },
	{ ".nv.global", SHT_NOBITS, 0x70000007, 0, PLAIN, NOTHING },
};

static const struct form *
form_of(const char *name)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (forms[i].behind & NOTHING ? strcmp(name, forms[i].prefix) == 0
					      : begins_with(name, forms[i].prefix))
			return &forms[i];
	}
	return NULL;
}

/* Of what belongs to no kernel.  Notes refer to whatever they like. */
static int
check_references(uint64_t number, const Elf64_Shdr *section, enum content content)
{
	if (content == SYMBOLS || content == RELOCATIONS || content == CODE)
		return 0;
	if (section->sh_info && content != NOTES)
		return gp_elf_refuse(number, "it is about no section, but", section->sh_info);
	if (section->sh_link && (content == NAMES || (content == PLAIN && !section->sh_entsize)))
		return gp_elf_refuse(number, "it belongs to no section, but", section->sh_link);
	return 0;
}

/* Of a section whose name says nothing. */
static int
check_other(uint64_t number, const char *name, const Elf64_Shdr *section)
{
	if (*name != '.')
		return gp_elf_refuse(number, "it has no name, and is of type", section->sh_type);
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (section->sh_type == forms[i].type && forms[i].content != PLAIN &&
		    forms[i].content != CODE)
			return gp_elf_refuse(number, "it has not the name of its type,",
					     section->sh_type);
	}
	return 0;
}

static int
check_content(const struct gp_elf_check *check, uint64_t number, const Elf64_Shdr *section,
	      enum content content)
{
	switch (content) {
	case RELOCATIONS:
		return check_relocations(check, number, section);
	case CODE:
		return check_code(check, number, section);
	case ATTRIBUTES:
		return check_attributes(check, number, section);
	case CALLS:
		return check_calls(check, number, section);
	case NOTES:
		return check_notes(check, number, section);
	default:
		return 0;
	}
}

/* Assemblers of NVIDIA's other than ptxas write bytes for shared memory. */
static bool
is_of_form(const struct form *form, uint32_t type, uint32_t debug_type)
{
	return type == form->type || (debug_type && type == debug_type) ||
	       (form->type == SHT_NOBITS && type == SHT_PROGBITS);
}

static int
check_section(const struct gp_elf_check *check, uint64_t number, const Elf64_Shdr *section)
{
	const char *name = gp_elf_section_name(&check->elf, section);
	const struct form *form = form_of(name);
	const char *behind;
	char *end;
	uint32_t debug_type;
	int r;

	if (!form)
		return check_other(number, name, section);
	behind = name + strlen(form->prefix);
	debug_type = form->debug_type;
	if (form->behind & NUMBER) {
		debug_type += (uint32_t)strtoul(behind, &end, 10);
		behind = end;
	}
	if (!is_of_form(form, section->sh_type, debug_type))
		return gp_elf_refuse(number, "its type is not that of its name, but",
				     section->sh_type);
	if (form->entry_size && section->sh_entsize != form->entry_size)
		return gp_elf_refuse(number, "its entries have not their size, but",
				     section->sh_entsize);
	if (form->behind & KERNEL && *behind)
		r = check_owner(check, number, section, behind);
	else
		r = check_references(number, section, form->content);
	return r ? r : check_content(check, number, section, form->content);
}

int
gp_elf_check_code(struct gp_elf_check *check)
{
	int r = find_symbols(check);

	if (!r)
		r = check_symbols(check);
	for (uint64_t i = 1; !r && i < check->elf.section_count; i++) {
		Elf64_Shdr section = gp_elf_section(&check->elf, i);

		r = check_section(check, i, &section);
	}
	return r;
}
