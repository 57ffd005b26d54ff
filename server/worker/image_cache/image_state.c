/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/image_cache/image_state.h"

#include "image/elf_file.h"
#include "image/image_params.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTION ".nv.global"
#define STATE_SPACE ".global"
#define NAME_SIZE 512
/* Limit on the sections and symbols scanned in one ELF; more than that is not a linker's output. */
#define SCANNED_MAX ((uint64_t)1 << 26)

static uint64_t
size_add(uint64_t a, uint64_t b)
{
	return b < GPD_VARIABLES_UNKNOWN - a ? a + b : GPD_VARIABLES_UNKNOWN;
}

/* ELF: the sections .nv.global and .nv.global.init contain the variables. */

struct elf {
	struct gp_elf file;
	uint64_t scanned; /* sections and symbols scanned so far */
};

static bool
begins_with(const char *name, const char *start)
{
	return strncmp(name, start, strlen(start)) == 0;
}

/* Tables and strings that the compiler generates and that are never written: those of sin(),
 * printf() and assert(). Also the objects without members that NVIDIA's headers define, which have
 * nothing to write. */
static bool
is_constant(const char *name, uint64_t size)
{
	if (begins_with(name, "__cudart_") || begins_with(name, "$str") ||
	    begins_with(name, "__unnamed_"))
		return true;
	return size == 1 && (strstr(name, "4cuda3std") || strstr(name, "6thrust"));
}

static bool
is_inside(const struct gp_elf *elf, const Elf64_Shdr *section)
{
	return gp_elf_is_within(elf, section->sh_offset, section->sh_size);
}

typedef bool symbol_check(const struct gp_elf *elf, const Elf64_Shdr *texts,
			  const Elf64_Sym *symbol, void *arg);

/* Returns whether the predicate is true of all symbols and all symbol tables are well-formed. */
static bool
elf_check_symbols(struct elf *elf, symbol_check *is_so, void *arg)
{
	const struct gp_elf *file = &elf->file;

	for (uint64_t i = 0; i < file->section_count; i++) {
		Elf64_Shdr texts, table = gp_elf_get_section(file, i);

		elf->scanned +=
			1 + (table.sh_type == SHT_SYMTAB ? table.sh_size / sizeof(Elf64_Sym) : 0);
		if (elf->scanned > SCANNED_MAX)
			return false;
		if (table.sh_type != SHT_SYMTAB)
			continue;
		if (table.sh_link >= file->section_count || !is_inside(file, &table))
			return false;
		texts = gp_elf_get_section(file, table.sh_link);
		if (!is_inside(file, &texts))
			return false;
		for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size;
		     at += sizeof(Elf64_Sym)) {
			Elf64_Sym symbol;

			memcpy(&symbol, file->bytes + table.sh_offset + at, sizeof(symbol));
			if (!is_so(file, &texts, &symbol, arg))
				return false;
		}
	}
	return true;
}

/* References to textures, surfaces and samplers are symbols of OS-specific types. */
static bool
is_no_reference(const struct gp_elf *elf, const Elf64_Shdr *texts, const Elf64_Sym *symbol,
		void *arg)
{
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);

	return type < STT_LOOS || type > STT_HIOS;
}

struct cover {
	uint64_t index; /* of the section */
	uint64_t padding, bytes;
};

static bool
is_constant_or_elsewhere(const struct gp_elf *elf, const Elf64_Shdr *texts, const Elf64_Sym *symbol,
			 void *arg)
{
	struct cover *cover = arg;
	const char *name;

	if (symbol->st_shndx != cover->index || ELF64_ST_TYPE(symbol->st_info) == STT_SECTION)
		return true;
	name = gp_elf_get_string(elf, texts, symbol->st_name, NULL);
	if (!name || !is_constant(name, symbol->st_size))
		return false;
	cover->bytes = size_add(cover->bytes, size_add(symbol->st_size, cover->padding));
	return true;
}

/* Whether constants cover the whole section. */
static bool
are_constants(struct elf *elf, uint64_t index, const Elf64_Shdr *section)
{
	struct cover cover = {
		.index = index,
		.padding = section->sh_addralign ? section->sh_addralign - 1 : 0,
	};

	return elf_check_symbols(elf, is_constant_or_elsewhere, &cover) &&
	       cover.bytes >= section->sh_size;
}

/* Sections that exist per block or per launch: parameters, literals, addresses. */
static bool
section_is_transient(const char *name)
{
	return begins_with(name, ".nv.shared") || begins_with(name, ".nv.local") ||
	       begins_with(name, ".nv.reservedSmem") || begins_with(name, ".nv.constant0.") ||
	       begins_with(name, ".nv.constant2.") || strcmp(name, ".nv.constant4") == 0;
}

static bool
section_keeps_state(struct elf *elf, uint64_t index, const Elf64_Shdr *section)
{
	const char *name = gp_elf_get_string(&elf->file, &elf->file.names, section->sh_name, NULL);

	if (!name)
		return true;
	if (!(section->sh_flags & SHF_WRITE) && !begins_with(name, SECTION) &&
	    !begins_with(name, ".nv.constant"))
		return false;
	return !section_is_transient(name) && section->sh_size &&
	       !(begins_with(name, SECTION) && are_constants(elf, index, section));
}

/* A section whose name cannot be read counts as one. */
static bool
has_variables(const struct gp_elf *elf, const Elf64_Shdr *section)
{
	const char *name = gp_elf_get_string(elf, &elf->names, section->sh_name, NULL);

	return !name || begins_with(name, SECTION);
}

static void
set_unknown(struct gpd_variables *variables)
{
	*variables = (struct gpd_variables){ .size = GPD_VARIABLES_UNKNOWN, .state = true };
}

static struct gpd_variables
elf_scan(const uint8_t *bytes, size_t size)
{
	struct gpd_variables variables = { 0 };
	struct elf elf = { .scanned = 0 };

	if (!gp_elf_open(&elf.file, bytes, size)) {
		set_unknown(&variables);
		return variables;
	}
	variables.state = !elf_check_symbols(&elf, is_no_reference, NULL);
	for (uint64_t i = 0; i < elf.file.section_count; i++) {
		Elf64_Shdr section = gp_elf_get_section(&elf.file, i);

		variables.state = variables.state || section_keeps_state(&elf, i, &section);
		if (has_variables(&elf.file, &section))
			variables.size = size_add(variables.size, section.sh_size);
	}
	return variables;
}

/* PTX: the readers of image/ find the declarations outside of function bodies. */

static bool
is_in_word(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_$%.", c));
}

/* Whether this word comes right before `at`. */
static bool
word_follows(const char *begin, const char *at, const char *word)
{
	size_t length = strlen(word);

	while (at > begin && isspace((unsigned char)at[-1]))
		at--;
	return (size_t)(at - begin) >= length && memcmp(at - length, word, length) == 0;
}

const char *
gpd_text_find_word(const char *begin, const char *at, const char *end, const char *word)
{
	size_t length = strlen(word);

	while ((at = memmem(at, (size_t)(end - at), word, length))) {
		if ((at == begin || !is_in_word(at[-1])) &&
		    (at + length == end || !is_in_word(at[length])))
			return at;
		at += length;
	}
	return NULL;
}

/* Constant variables or references; code with any of them has state. */
static bool
has_others(const char *begin, const char *end)
{
	static const char *const others[] = { ".const", ".texref", ".surfref", ".samplerref" };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		for (const char *at = begin; (at = gpd_text_find_word(begin, at, end, others[i]));
		     at++) {
			if (!word_follows(begin, at, ".ptr"))
				return true;
		}
	}
	return false;
}

/* A PTX text; the reader reports its variables in the order of the text. */
struct ptx {
	const char *begin, *end;
	const char *at; /* after the name of the last variable */
	struct gpd_variables variables;
};

/* Returns the .global word of the next declaration before `end`, or NULL. */
static const char *
next_declaration(struct ptx *ptx, const char *end)
{
	const char *at = ptx->at;

	while ((at = gpd_text_find_word(ptx->begin, at, end, STATE_SPACE))) {
		if (word_follows(ptx->begin, at, ".extern"))
			ptx->variables.state = true;
		else if (!word_follows(ptx->begin, at, ".ptr"))
			return at;
		at++;
	}
	return NULL;
}

/* The variable is in constant memory, which is not counted, or is a reference. Only its type is
 * searched, not the comments around it. */
static bool
declaration_uses_no_memory(const char *space, const char *name)
{
	const char *type = space + strlen(STATE_SPACE), *end;

	if (space[1] == 'c')
		return true;
	while (type < name && isspace((unsigned char)*type))
		type++;
	for (end = type; end < name && is_in_word(*end); end++)
		;
	return has_others(type, end);
}

static void
add_variable(void *data, const struct gp_variable_size *variable)
{
	struct ptx *ptx = data;
	uint64_t size = variable->readable ? variable->size : GPD_VARIABLES_UNKNOWN;
	char name[NAME_SIZE];

	/* The text declares another variable before this one, at a place that the reader skips. */
	if (variable->space > ptx->at && next_declaration(ptx, variable->space))
		set_unknown(&ptx->variables);
	ptx->at = variable->name + variable->name_size;
	(void)snprintf(name, sizeof(name), "%.*s", (int)variable->name_size, variable->name);
	ptx->variables.state = ptx->variables.state || !is_constant(name, size);
	if (!declaration_uses_no_memory(variable->space, variable->name))
		ptx->variables.size = size_add(ptx->variables.size, size);
}

static void
kernel_ignore(void *data, const struct gp_kernel_params *kernel)
{
}

static struct gpd_variables
ptx_scan(const char *begin, size_t size)
{
	struct ptx ptx = { .begin = begin, .at = begin, .end = begin + size };
	struct gp_params_reader *reader = calloc(1, sizeof(*reader));

	ptx.variables.state = has_others(begin, ptx.end);
	if (reader) {
		reader->found = kernel_ignore;
		reader->found_variable = add_variable;
		reader->data = &ptx;
	}
	if (!reader || !gp_params_read_ptx(reader, begin, size) || next_declaration(&ptx, ptx.end))
		set_unknown(&ptx.variables);
	free(reader);
	return ptx.variables;
}

/* Binary code that is not an ELF does not contain this directive. */
static bool
is_ptx(const void *bytes, size_t size)
{
	return memmem(bytes, size < 65536 ? size : 65536, ".version", 8) != NULL;
}

struct gpd_variables
gpd_variables_from_code(const void *bytes, size_t size)
{
	if (size >= SELFMAG && memcmp(bytes, ELFMAG, SELFMAG) == 0)
		return elf_scan(bytes, size);
	return is_ptx(bytes, size) ? ptx_scan(bytes, size)
				   : (struct gpd_variables){ .state = true };
}
