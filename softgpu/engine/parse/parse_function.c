/* SPDX-License-Identifier: Apache-2.0 */
/* Functions: parameters, blocks and the names declared in them. */
#include "softgpu/engine/parse/parser.h"

#include <stdlib.h>
#include <string.h>

struct block_scope {
	size_t reg_names;
	size_t locals;
	size_t open_labels;
};

static uint64_t
align_up(uint64_t value, uint64_t align)
{
	return (value + align - 1) / align * align;
}

int32_t
gs_parser_find_reg(const struct gs_parser *parser, const char *text, size_t len)
{
	for (size_t i = parser->reg_name_count; i-- > 0;) {
		const struct gs_reg_name *name = &parser->regs[i];
		uint64_t number = 0;
		size_t at = name->len;

		if (len < name->len || memcmp(name->text, text, name->len) != 0)
			continue;
		if (!name->count) {
			if (len == name->len)
				return (int32_t)name->first;
			continue;
		}
		while (at < len && text[at] >= '0' && text[at] <= '9' && number < name->count)
			number = number * 10 + (uint64_t)(text[at++] - '0');
		if (at == len && len > name->len && number < name->count)
			return (int32_t)(name->first + number);
	}
	return -1;
}

int32_t
gs_parser_find_symbol(const struct gs_parser *parser, const char *text, size_t len)
{
	for (size_t i = parser->local_count; i-- > 0;) {
		const struct gs_local_name *name = &parser->locals[i];

		if (name->len == len && memcmp(name->text, text, len) == 0)
			return name->symbol;
	}
	return gs_names_find(&parser->symbol_names, text, len);
}

static int32_t
resolve_alias(const struct gs_parser *parser, int32_t label)
{
	while (label >= 0 && parser->labels[label].alias >= 0)
		label = parser->labels[label].alias;
	return label;
}

int32_t
gs_parser_label(struct gs_parser *parser, const char *text, size_t len)
{
	int32_t top = gs_names_find(&parser->label_names, text, len);
	int32_t index = (int32_t)parser->label_count;

	if (top >= 0 && parser->labels[top].depth == parser->depth)
		return top;
	if (!gs_parser_grow(parser, (void **)&parser->labels, sizeof(*parser->labels),
			    parser->label_count, &parser->label_capacity, GS_PTX_MAX_LABELS,
			    "labels") ||
	    !gs_parser_grow(parser, (void **)&parser->open_labels, sizeof(*parser->open_labels),
			    parser->open_label_count, &parser->open_label_capacity,
			    GS_PTX_MAX_LABELS, "labels"))
		return 0;
	parser->labels[index] = (struct gs_label){ .text = text,
						   .len = len,
						   .at = -1,
						   .depth = parser->depth,
						   .shadowed = top,
						   .alias = -1 };
	parser->label_count++;
	parser->open_labels[parser->open_label_count++] = index;
	if (gs_names_set(&parser->label_names, &parser->ptx->pool, text, len, index) != 0)
		gs_parser_fail_memory(parser);
	return index;
}

static void
define_label(struct gs_parser *parser, const char *text, size_t len, bool is_name_only)
{
	int32_t index = gs_parser_label(parser, text, len);

	if (parser->failed)
		return;
	if (parser->labels[index].at >= 0) {
		gs_parser_fail(parser, "label %.*s defined twice", (int)(len > 80 ? 80 : len),
			       text);
		return;
	}
	parser->labels[index].at = (int32_t)parser->function->insn_count;
	parser->labels[index].is_name_only = is_name_only;
}

/* Labels that the block does not define belong to the enclosing block. */
static void
close_labels(struct gs_parser *parser, size_t first)
{
	size_t kept = first;

	for (size_t i = first; i < parser->open_label_count; i++) {
		int32_t index = parser->open_labels[i];
		struct gs_label *label = &parser->labels[index];
		int32_t outer = label->shadowed;

		if (label->at < 0 &&
		    (outer < 0 || parser->labels[outer].depth != label->depth - 1)) {
			label->depth--;
			parser->open_labels[kept++] = index;
			continue;
		}
		if (label->at < 0)
			label->alias = outer;
		if (gs_names_set(&parser->label_names, &parser->ptx->pool, label->text, label->len,
				 outer) != 0)
			gs_parser_fail_memory(parser);
	}
	parser->open_label_count = kept;
}

static void
add_reg(struct gs_parser *parser, const char *text, size_t len, enum gs_type type, uint32_t count)
{
	struct gs_ptx_function *function = parser->function;
	uint32_t total = count ? count : 1;

	if (!gs_parser_grow(parser, (void **)&parser->regs, sizeof(*parser->regs),
			    parser->reg_name_count, &parser->reg_name_capacity, 65536,
			    "register names"))
		return;
	parser->regs[parser->reg_name_count++] =
		(struct gs_reg_name){ text, len, function->reg_count, count };
	for (uint32_t i = 0; i < total; i++) {
		if (!gs_parser_grow(parser, (void **)&function->reg_types, 1, function->reg_count,
				    &parser->reg_capacity, GS_PTX_MAX_REGS, "registers"))
			return;
		function->reg_types[function->reg_count++] = (uint8_t)type;
	}
}

static void
parse_registers(struct gs_parser *parser)
{
	enum gs_type type = GS_TYPE_NONE;

	while (parser->lexer.kind == GS_TOKEN_DIRECTIVE) {
		enum gs_type named = gs_type_named(parser->lexer.text + 1, parser->lexer.len - 1);

		if (named)
			type = named;
		gs_lexer_next(&parser->lexer);
	}
	if (type == GS_TYPE_NONE || type == GS_TYPE_B128) {
		gs_parser_unsupported(parser, "registers of this type are not supported");
		return;
	}
	do {
		size_t len;
		const char *text = gs_parser_word(parser, &len);
		uint32_t count = 0;

		if (gs_parser_accept(parser, "<")) {
			count = (uint32_t)gs_parser_count(parser, GS_PTX_MAX_REGS,
							  "register count");
			gs_parser_expect(parser, ">");
			if (!count)
				continue;
		}
		if (!parser->failed)
			add_reg(parser, text, len, type, count);
	} while (gs_parser_accept(parser, ","));
	gs_parser_expect(parser, ";");
}

/* Arguments and results of calls are variables in the caller's local frame. */
static void
place_local(struct gs_parser *parser, struct gs_symbol *symbol)
{
	struct gs_ptx_function *function = parser->function;

	if (symbol->space != GS_SPACE_LOCAL && symbol->space != GS_SPACE_PARAM)
		return;
	symbol->offset = align_up(function->local_bytes, symbol->align);
	function->local_bytes = symbol->offset + symbol->size;
	if (function->local_bytes > GS_PTX_MAX_LOCAL)
		gs_parser_fail(parser, "too much local memory");
}

static bool
parse_local_variables(struct gs_parser *parser)
{
	static const struct {
		const char *word;
		enum gs_space space;
	} spaces[] = {
		{ ".local", GS_SPACE_LOCAL },   { ".shared", GS_SPACE_SHARED },
		{ ".param", GS_SPACE_PARAM },   { ".const", GS_SPACE_CONST },
		{ ".global", GS_SPACE_GLOBAL },
	};
	const struct gs_linkage none = { 0 };
	uint32_t first = parser->ptx->symbol_count;

	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		if (!gs_parser_accept(parser, spaces[i].word))
			continue;
		(void)gs_parse_variables(parser, spaces[i].space, &none);
		for (uint32_t k = first; k < parser->ptx->symbol_count; k++)
			place_local(parser, &parser->ptx->symbols[k]);
		gs_parser_expect(parser, ";");
		return true;
	}
	return false;
}

static void
parse_block_directive(struct gs_parser *parser)
{
	if (gs_parser_accept(parser, ".reg"))
		parse_registers(parser);
	else if (gs_parser_is(parser, ".loc") || gs_parser_is(parser, ".file"))
		gs_lexer_skip_line(&parser->lexer);
	else if (!parse_local_variables(parser))
		gs_parser_skip_statement(parser); /* .pragma and the like */
}

static bool
add_target(struct gs_parser *parser, int32_t **targets, size_t count, size_t *capacity,
	   int32_t label)
{
	if (!gs_parser_grow(parser, (void **)targets, sizeof(**targets), count, capacity, 65536,
			    "branch targets"))
		return false;
	(*targets)[count] = label;
	return true;
}

static void
parse_branch_targets(struct gs_parser *parser, int32_t label)
{
	int32_t *targets = NULL;
	size_t count = 0;
	size_t capacity = 0;

	do {
		size_t len;
		const char *text = gs_parser_word(parser, &len);
		int32_t target = parser->failed ? 0 : gs_parser_label(parser, text, len);

		if (!add_target(parser, &targets, count++, &capacity, target))
			return;
	} while (gs_parser_accept(parser, ","));
	if (!add_target(parser, &targets, count, &capacity, -1))
		return;
	parser->labels[label].targets = targets;
	gs_parser_expect(parser, ";");
}

/* Returns false, with nothing consumed, unless the next word is a label. */
static bool
parse_label(struct gs_parser *parser)
{
	struct gs_lexer saved = parser->lexer;
	const char *text = saved.text;

	gs_lexer_next(&parser->lexer);
	if (!gs_parser_accept(parser, ":")) {
		parser->lexer = saved;
		return false;
	}
	if (gs_parser_accept(parser, ".branchtargets")) {
		define_label(parser, text, saved.len, true);
		if (!parser->failed)
			parse_branch_targets(parser, gs_parser_label(parser, text, saved.len));
	} else if (gs_parser_is(parser, ".callprototype") || gs_parser_is(parser, ".calltargets")) {
		define_label(parser, text, saved.len, true);
		gs_parser_skip_statement(parser);
	} else {
		define_label(parser, text, saved.len, false);
	}
	return true;
}

static void
open_block(struct gs_parser *parser, struct block_scope *scopes)
{
	if (parser->depth + 1 >= GS_PTX_MAX_NESTING) {
		gs_parser_fail(parser, "blocks nested too deep");
		return;
	}
	scopes[++parser->depth] = (struct block_scope){ parser->reg_name_count, parser->local_count,
							parser->open_label_count };
}

static void
close_block(struct gs_parser *parser, const struct block_scope *scopes)
{
	const struct block_scope *scope = &scopes[parser->depth];

	parser->reg_name_count = scope->reg_names;
	parser->local_count = scope->locals;
	if (parser->depth > 1)
		close_labels(parser, scope->open_labels);
	parser->depth--;
}

/* Parses after the '{' of a function, up to and including its '}'. */
static void
parse_body(struct gs_parser *parser)
{
	struct block_scope scopes[GS_PTX_MAX_NESTING];

	open_block(parser, scopes);
	while (parser->depth > 0 && !parser->failed) {
		if (gs_parser_at_end(parser))
			gs_parser_fail(parser, "the text ends inside function %s",
				       parser->function->name);
		else if (gs_parser_accept(parser, "{"))
			open_block(parser, scopes);
		else if (gs_parser_accept(parser, "}"))
			close_block(parser, scopes);
		else if (gs_parser_accept(parser, ";"))
			continue;
		else if (parser->lexer.kind == GS_TOKEN_DIRECTIVE)
			parse_block_directive(parser);
		else if (parser->lexer.kind != GS_TOKEN_WORD || !parse_label(parser))
			gs_parse_insn(parser);
	}
}

static int32_t
final_label(const struct gs_parser *parser, int32_t label)
{
	int32_t index = resolve_alias(parser, label);
	const struct gs_label *found = index < 0 ? NULL : &parser->labels[index];

	return found && !found->is_name_only ? found->at : -1;
}

static void
finish_labels(struct gs_parser *parser, struct gs_ptx_function *function)
{
	uint32_t count = (uint32_t)parser->label_count;

	function->label_count = count;
	function->label_at = gs_parser_alloc(parser, sizeof(int32_t) * (count + 1));
	function->branch_targets = gs_parser_alloc(parser, sizeof(int32_t *) * (count + 1));
	if (parser->failed)
		return;
	for (uint32_t i = 0; i < count; i++) {
		int32_t index = resolve_alias(parser, (int32_t)i);

		function->label_at[i] = final_label(parser, (int32_t)i);
		function->branch_targets[i] = parser->labels[index].targets;
	}
}

static void
parse_parameters(struct gs_parser *parser, struct gs_ptx_function *function, int32_t **list_p,
		 uint32_t *count_p, bool is_launch)
{
	const struct gs_linkage none = { 0 };
	size_t capacity = 0;

	while (!gs_parser_is(parser, ")") && !parser->failed) {
		struct gs_symbol *symbol;
		int32_t index;

		gs_parser_expect(parser, ".param");
		index = gs_parse_variables(parser, GS_SPACE_PARAM, &none);
		if (index < 0 ||
		    !gs_parser_grow(parser, (void **)list_p, sizeof(**list_p), *count_p, &capacity,
				    GS_PTX_MAX_PARAMS, "parameters"))
			return;
		symbol = &parser->ptx->symbols[index];
		if (is_launch) {
			symbol->is_launch_param = true;
			symbol->offset = align_up(function->param_bytes, symbol->align);
			function->param_bytes = symbol->offset + symbol->size;
			if (function->param_bytes > GS_PTX_MAX_PARAM_BYTES)
				gs_parser_fail(parser, "too many bytes of parameters");
		} else {
			place_local(parser, symbol);
		}
		(*list_p)[(*count_p)++] = index;
		if (!gs_parser_accept(parser, ","))
			break;
	}
	gs_parser_expect(parser, ")");
}

static void
parse_limits(struct gs_parser *parser, struct gs_ptx_function *function)
{
	uint64_t product = 1;

	while (parser->lexer.kind == GS_TOKEN_DIRECTIVE && !parser->failed) {
		bool required = gs_parser_is(parser, ".reqntid");
		bool counts = required || gs_parser_is(parser, ".maxntid");
		uint32_t values[3] = { 1, 1, 1 };
		int n = 0;

		gs_lexer_next(&parser->lexer);
		while (parser->lexer.kind == GS_TOKEN_NUMBER && n < 16) {
			uint32_t value = (uint32_t)gs_parser_count(parser, 1u << 20, "limit");

			if (n < 3)
				values[n] = value;
			n++;
			if (!gs_parser_accept(parser, ","))
				break;
		}
		if (!counts || n == 0 || n > 3)
			continue;
		product = (uint64_t)values[0] * values[1] * values[2];
		function->max_threads = product && product < 1024 ? (uint32_t)product : 1024;
		if (required)
			memcpy(function->required_block, values, sizeof(values));
	}
}

/* Skips the body; the lexer is after its '{', as before parse_body(). */
static void
skip_body(struct gs_parser *parser)
{
	int depth = 1;

	while (depth > 0 && !gs_parser_at_end(parser)) {
		depth += gs_parser_is(parser, "{");
		depth -= gs_parser_is(parser, "}");
		gs_lexer_next(&parser->lexer);
	}
	if (depth > 0)
		gs_parser_fail(parser, "the text ends inside function %s", parser->function->name);
}

/* The device cannot run the body: the function is retained without it, and parsing continues. */
static void
drop_body(struct gs_parser *parser, struct gs_ptx_function *function, const struct gs_lexer *start)
{
	const char *why = parser->error->text;

	function->unsupported = gs_pool_strndup(&parser->ptx->pool, why, strlen(why));
	if (!function->unsupported) {
		parser->error->code = GS_OUT_OF_MEMORY;
		return;
	}
	parser->failed = parser->unsupported = false;
	parser->lexer = *start;
	function->insns = NULL;
	function->insn_count = 0;
	parser->label_count = 0;
	skip_body(parser);
}

static int32_t
register_function(struct gs_parser *parser, const char *text, size_t len)
{
	struct gs_ptx *ptx = parser->ptx;
	int32_t index = gs_names_find(&parser->function_names, text, len);

	if (index >= 0)
		return index;
	index = (int32_t)ptx->function_count;
	if (!gs_parser_grow(parser, (void **)&ptx->functions, sizeof(*ptx->functions),
			    ptx->function_count, &parser->function_capacity, GS_PTX_MAX_FUNCTIONS,
			    "functions"))
		return -1;
	memset(&ptx->functions[index], 0, sizeof(ptx->functions[index]));
	ptx->functions[index].name = gs_pool_strndup(&ptx->pool, text, len);
	if (!ptx->functions[index].name ||
	    gs_names_set(&parser->function_names, &ptx->pool, ptx->functions[index].name, len,
			 index) != 0) {
		gs_parser_fail_memory(parser);
		return -1;
	}
	ptx->function_count++;
	return index;
}

static void
reset_function_state(struct gs_parser *parser, struct gs_ptx_function *function)
{
	parser->function = function;
	parser->reg_name_count = 0;
	parser->local_count = 0;
	parser->labels = NULL;
	parser->label_count = parser->label_capacity = 0;
	parser->open_label_count = 0;
	parser->label_names = (struct gs_names){ 0 };
	parser->depth = 0;
	parser->insn_capacity = 0;
	parser->reg_capacity = 0;
}

void
gs_parse_function(struct gs_parser *parser, bool is_entry, const struct gs_linkage *linkage)
{
	struct gs_ptx_function function = { .is_entry = is_entry, .line = parser->lexer.line };
	struct gs_lexer start;
	const char *text;
	size_t len;
	int32_t index;

	reset_function_state(parser, &function);
	if (!is_entry && gs_parser_accept(parser, "("))
		parse_parameters(parser, &function, &function.returns, &function.return_count,
				 false);
	text = gs_parser_word(parser, &len);
	if (gs_parser_accept(parser, "("))
		parse_parameters(parser, &function, &function.params, &function.param_count,
				 is_entry);
	function.max_threads = 1024;
	parse_limits(parser, &function);
	index = parser->failed ? -1 : register_function(parser, text, len);
	if (index < 0)
		return;
	function.name = parser->ptx->functions[index].name;
	if (!gs_parser_accept(parser, ";")) {
		if (parser->ptx->functions[index].has_body && !linkage->is_weak)
			gs_parser_fail(parser, "function %s defined twice", function.name);
		gs_parser_expect(parser, "{");
		start = parser->lexer;
		parse_body(parser);
		if (parser->unsupported)
			drop_body(parser, &function, &start);
		finish_labels(parser, &function);
		function.has_body = true;
	}
	parser->function = NULL;
	function.is_linkable = parser->ptx->functions[index].is_linkable || linkage->is_extern ||
			       linkage->is_visible || linkage->is_weak;
	if (!parser->ptx->functions[index].has_body)
		parser->ptx->functions[index] = function;
}
