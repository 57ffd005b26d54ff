/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations of variables and parameters, with their initializers. */
#include "softgpu/engine/parse/parser.h"

#include <string.h>

struct declaration {
	enum gs_space space;
	enum gs_type type;
	uint32_t align;
	uint32_t vector;
	uint8_t reference; /* enum gs_reference */
	struct gs_linkage linkage;
};

static uint32_t
parse_align(struct gs_parser *parser)
{
	uint64_t align = gs_parser_count(parser, 4096, ".align");

	if (!align || (align & (align - 1))) {
		gs_parser_fail(parser, ".align is not a power of two");
		return 1;
	}
	return (uint32_t)align;
}

static void
skip_parenthesis(struct gs_parser *parser)
{
	if (!gs_parser_accept(parser, "("))
		return;
	while (!gs_parser_at_end(parser) && !gs_parser_is(parser, ")"))
		gs_lexer_next(&parser->lexer);
	gs_parser_expect(parser, ")");
}

static void
parse_attributes(struct gs_parser *parser, struct declaration *decl)
{
	while (parser->lexer.kind == GS_TOKEN_DIRECTIVE && !parser->failed) {
		const struct gs_lexer *lexer = &parser->lexer;
		enum gs_type type = gs_type_named(lexer->text + 1, lexer->len - 1);

		if (gs_parser_accept(parser, ".align")) {
			decl->align = parse_align(parser);
			continue;
		}
		if (gs_parser_is(parser, ".v2") || gs_parser_is(parser, ".v4"))
			decl->vector = (uint32_t)(lexer->text[2] - '0');
		else if (gs_parser_is(parser, ".texref"))
			decl->reference = GS_REFERENCE_TEXTURE;
		else if (gs_parser_is(parser, ".surfref"))
			decl->reference = GS_REFERENCE_SURFACE;
		else if (gs_parser_is(parser, ".samplerref"))
			decl->reference = GS_REFERENCE_SAMPLER;
		else if (type)
			decl->type = type;
		/* The other directives (.ptr, .managed, .attribute(...), the target space) have no
		 * effect. */
		gs_lexer_next(&parser->lexer);
		skip_parenthesis(parser);
	}
}

static uint64_t
float_bits(const struct gs_lexer *lexer, enum gs_type type)
{
	uint64_t bits = lexer->number;

	if (lexer->float_size == 8 && type == GS_TYPE_F32) {
		double wide;
		float narrow;
		uint32_t narrow_bits;

		memcpy(&wide, &bits, sizeof(wide));
		narrow = (float)wide;
		memcpy(&narrow_bits, &narrow, sizeof(narrow_bits));
		bits = narrow_bits;
	} else if (lexer->float_size == 4 && type == GS_TYPE_F64) {
		uint32_t narrow_bits = (uint32_t)bits;
		float narrow;
		double wide;

		memcpy(&narrow, &narrow_bits, sizeof(narrow));
		wide = narrow;
		memcpy(&bits, &wide, sizeof(bits));
	}
	return bits;
}

/* name, name+4, generic(name), generic(name)+4 */
static void
parse_address(struct gs_parser *parser, struct gs_relocation *reloc)
{
	size_t len;
	const char *name = gs_parser_word(parser, &len);
	bool generic = len == 7 && memcmp(name, "generic", 7) == 0 && gs_parser_accept(parser, "(");

	if (generic)
		name = gs_parser_word(parser, &len);
	if (gs_parser_accept(parser, "+"))
		reloc->addend += gs_parser_integer(parser);
	if (generic) {
		gs_parser_expect(parser, ")");
		if (gs_parser_accept(parser, "+"))
			reloc->addend += gs_parser_integer(parser);
	}
	reloc->name = gs_pool_strndup(&parser->ptx->pool, name, len);
	if (!reloc->name)
		gs_parser_fail_memory(parser);
	reloc->symbol = gs_parser_find_symbol(parser, name, len);
	reloc->function = gs_names_find(&parser->function_names, name, len);
}

static struct gs_relocation *
add_relocation(struct gs_parser *parser, struct gs_symbol *symbol, uint64_t at, unsigned int size)
{
	struct gs_relocation *reloc = gs_parser_alloc(parser, sizeof(*reloc));

	if (!reloc)
		return NULL;
	reloc->at = at;
	reloc->size = (uint8_t)(size > 8 ? 8 : size);
	reloc->line = parser->lexer.line;
	reloc->next = symbol->relocations;
	symbol->relocations = reloc;
	return reloc;
}

static uint64_t
parse_value(struct gs_parser *parser, struct gs_symbol *symbol, enum gs_type type, uint64_t at)
{
	bool negative = gs_parser_accept(parser, "-");
	bool is_float = parser->lexer.kind == GS_TOKEN_FLOAT;
	unsigned int size = gs_type_size(type);
	struct gs_relocation *reloc;
	uint64_t value;

	if (parser->lexer.kind != GS_TOKEN_NUMBER && !is_float) {
		reloc = add_relocation(parser, symbol, at, size);
		if (reloc)
			parse_address(parser, reloc);
		return 0;
	}
	value = is_float ? float_bits(&parser->lexer, type) : parser->lexer.number;
	gs_lexer_next(&parser->lexer);
	if (!is_float && gs_parser_accept(parser, "(")) {
		/* mask(name): the bytes of the address selected by the mask */
		reloc = add_relocation(parser, symbol, at, size);
		if (reloc) {
			reloc->shift = (uint8_t)(value ? __builtin_ctzll(value) : 0);
			parse_address(parser, reloc);
		}
		gs_parser_expect(parser, ")");
		return 0;
	}
	if (negative)
		value = is_float ? value ^ 1ull << (size * 8 - 1) : 0 - value;
	return value;
}

static void
parse_initializer(struct gs_parser *parser, struct gs_symbol *symbol, enum gs_type type)
{
	unsigned int size = gs_type_size(type);
	uint64_t at = 0;
	int depth = 0;

	do {
		while (gs_parser_accept(parser, "{")) {
			if (++depth > GS_PTX_MAX_NESTING)
				gs_parser_fail(parser, "initializer nested too deep");
		}
		if (!gs_parser_is(parser, "}")) {
			uint64_t value = parse_value(parser, symbol, type, at);

			if (size > 8 || at + size > symbol->size)
				gs_parser_fail(parser, "initializer longer than %s", symbol->name);
			else
				memcpy(symbol->init + at, &value, size);
			at += size;
		}
		while (depth > 0 && gs_parser_accept(parser, "}"))
			depth--;
	} while (depth > 0 && gs_parser_accept(parser, ",") && !parser->failed);
	if (depth > 0)
		gs_parser_expect(parser, "}");
}

static uint64_t
parse_dimensions(struct gs_parser *parser, bool *dynamic_p)
{
	uint64_t count = 1;

	while (gs_parser_accept(parser, "[")) {
		uint64_t length;

		if (gs_parser_accept(parser, "]")) {
			*dynamic_p = true;
			count = 0;
			continue;
		}
		length = gs_parser_count(parser, GS_PTX_MAX_VARIABLE, "array size");
		if (length && count > GS_PTX_MAX_VARIABLE / length) {
			gs_parser_fail(parser, "array too large");
			length = 0;
		}
		count *= length;
		gs_parser_expect(parser, "]");
	}
	return count;
}

/* Links a symbol to an earlier declaration: a definition replaces a declaration; for .weak the
 * first definition counts. */
static void
link_symbol(struct gs_parser *parser, int32_t old_index, int32_t index, bool is_weak)
{
	struct gs_symbol *old = &parser->ptx->symbols[old_index];
	struct gs_symbol *symbol = &parser->ptx->symbols[index];

	if (symbol->is_extern || (!old->is_extern && is_weak))
		symbol->definition = old_index;
	else if (old->is_extern)
		old->definition = index;
	else
		gs_parser_fail(parser, "variable %s defined twice", symbol->name);
}

static void
name_symbol(struct gs_parser *parser, const char *text, size_t len, int32_t symbol, bool is_weak)
{
	if (!parser->function) {
		int32_t old = gs_names_find(&parser->symbol_names, text, len);

		if (old >= 0)
			link_symbol(parser, old, symbol, is_weak);
		if (parser->ptx->symbols[symbol].definition < 0 &&
		    gs_names_set(&parser->symbol_names, &parser->ptx->pool,
				 parser->ptx->symbols[symbol].name, len, symbol) != 0)
			gs_parser_fail_memory(parser);
		return;
	}
	if (!gs_parser_grow(parser, (void **)&parser->locals, sizeof(*parser->locals),
			    parser->local_count, &parser->local_capacity, GS_PTX_MAX_SYMBOLS,
			    "variables"))
		return;
	parser->locals[parser->local_count++] = (struct gs_local_name){ text, len, symbol };
}

static struct gs_symbol *
add_symbol(struct gs_parser *parser, const char *text, size_t len, int32_t *index_p)
{
	struct gs_ptx *ptx = parser->ptx;
	struct gs_symbol *symbol;

	if (!gs_parser_grow(parser, (void **)&ptx->symbols, sizeof(*ptx->symbols),
			    ptx->symbol_count, &parser->symbol_capacity, GS_PTX_MAX_SYMBOLS,
			    "symbols"))
		return NULL;
	symbol = &ptx->symbols[ptx->symbol_count];
	memset(symbol, 0, sizeof(*symbol));
	symbol->name = gs_pool_strndup(&ptx->pool, text, len);
	if (!symbol->name) {
		gs_parser_fail_memory(parser);
		return NULL;
	}
	symbol->is_function_local = parser->function != NULL;
	symbol->definition = -1;
	*index_p = (int32_t)ptx->symbol_count++;
	return symbol;
}

static void
set_layout(struct gs_parser *parser, struct gs_symbol *symbol, const struct declaration *decl,
	   uint64_t count)
{
	uint64_t element = (uint64_t)gs_type_size(decl->type) * decl->vector;

	symbol->space = (uint8_t)decl->space;
	symbol->is_extern = decl->linkage.is_extern;
	symbol->is_linkable =
		decl->linkage.is_extern || decl->linkage.is_visible || decl->linkage.is_weak;
	symbol->reference = decl->reference;
	if (decl->reference)
		element = 8;
	if (!element)
		gs_parser_fail(parser, "%s has no type", symbol->name);
	symbol->size = count * element;
	symbol->align = decl->align ? decl->align : (uint32_t)element;
	if (!symbol->align)
		symbol->align = 1;
	if (symbol->size > GS_PTX_MAX_VARIABLE)
		gs_parser_fail(parser, "%s is too large", symbol->name);
}

static int32_t
parse_variable(struct gs_parser *parser, const struct declaration *decl)
{
	size_t len;
	const char *text = gs_parser_word(parser, &len);
	bool dynamic = false;
	uint64_t count = parse_dimensions(parser, &dynamic);
	struct gs_symbol *symbol;
	int32_t index = -1;

	if (parser->failed)
		return -1;
	symbol = add_symbol(parser, text, len, &index);
	if (!symbol)
		return -1;
	symbol->is_dynamic = dynamic;
	set_layout(parser, symbol, decl, count);
	name_symbol(parser, text, len, index, decl->linkage.is_weak);
	if (gs_parser_accept(parser, "=")) {
		/* Only variables without an initializer may be large; an initializer's text is
		 * about as long as its data. */
		if (symbol->size > (uint64_t)parser->ptx->size * 64 + 65536)
			gs_parser_fail(parser, "%s is too large for an initializer", symbol->name);
		else
			symbol->init = gs_parser_alloc(parser, symbol->size + 16);
		if (symbol->init && !parser->failed)
			parse_initializer(parser, symbol, decl->type);
	}
	return parser->failed ? -1 : index;
}

int32_t
gs_parse_variables(struct gs_parser *parser, enum gs_space space, const struct gs_linkage *linkage)
{
	struct declaration decl = { .space = space, .vector = 1, .linkage = *linkage };
	int32_t index;

	parse_attributes(parser, &decl);
	do {
		index = parse_variable(parser, &decl);
		/* In a parameter list a comma begins the next parameter. */
	} while (space != GS_SPACE_PARAM && gs_parser_accept(parser, ","));
	return index;
}
