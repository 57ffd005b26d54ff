/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/engine/parse/parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void __attribute__((format(printf, 2, 0)))
fail(struct gs_parser *parser, const char *format, va_list args)
{
	char reason[256];

	parser->failed = true;
	vsnprintf(reason, sizeof(reason), format, args);
	parser->error->code = GS_INVALID_PTX;
	snprintf(parser->error->text, sizeof(parser->error->text), "line %d: %s",
		 (int)parser->lexer.line, reason);
	gs_lexer_stop(&parser->lexer);
}

void
gs_parser_fail(struct gs_parser *parser, const char *format, ...)
{
	va_list args;

	if (parser->failed)
		return;
	va_start(args, format);
	fail(parser, format, args);
	va_end(args);
}

void
gs_parser_unsupported(struct gs_parser *parser, const char *format, ...)
{
	va_list args;

	if (parser->failed)
		return;
	parser->unsupported = true;
	va_start(args, format);
	fail(parser, format, args);
	va_end(args);
}

void
gs_parser_fail_memory(struct gs_parser *parser)
{
	gs_parser_fail(parser, "out of memory");
	parser->error->code = GS_OUT_OF_MEMORY;
}

void *
gs_parser_alloc(struct gs_parser *parser, size_t size)
{
	void *memory = gs_pool_alloc(&parser->ptx->pool, size);

	if (!memory)
		gs_parser_fail_memory(parser);
	return memory;
}

bool
gs_parser_grow(struct gs_parser *parser, void **array, size_t element, size_t count,
	       size_t *capacity, size_t limit, const char *what)
{
	void *grown;

	if (count >= limit) {
		gs_parser_fail(parser, "too many %s", what);
		return false;
	}
	grown = gs_pool_grow(&parser->ptx->pool, *array, element, count, capacity);
	if (!grown) {
		gs_parser_fail_memory(parser);
		return false;
	}
	*array = grown;
	return true;
}

bool
gs_parser_at_end(const struct gs_parser *parser)
{
	return parser->lexer.kind == GS_TOKEN_END;
}

bool
gs_parser_is(const struct gs_parser *parser, const char *text)
{
	return gs_lexer_is(&parser->lexer, text);
}

bool
gs_parser_accept(struct gs_parser *parser, const char *text)
{
	if (!gs_lexer_is(&parser->lexer, text))
		return false;
	gs_lexer_next(&parser->lexer);
	return true;
}

static int
shown_len(const struct gs_parser *parser)
{
	return parser->lexer.len > 40 ? 40 : (int)parser->lexer.len;
}

void
gs_parser_expect(struct gs_parser *parser, const char *text)
{
	if (gs_parser_accept(parser, text))
		return;
	if (gs_parser_at_end(parser))
		gs_parser_fail(parser, "expected '%s' before the end of the text", text);
	else
		gs_parser_fail(parser, "expected '%s' instead of '%.*s'", text, shown_len(parser),
			       parser->lexer.text);
}

void
gs_parser_skip_statement(struct gs_parser *parser)
{
	while (!gs_parser_at_end(parser) && !gs_parser_is(parser, ";"))
		gs_lexer_next(&parser->lexer);
	gs_parser_expect(parser, ";");
}

int64_t
gs_parser_integer(struct gs_parser *parser)
{
	bool negative = gs_parser_accept(parser, "-");
	uint64_t value = parser->lexer.number;

	if (parser->lexer.kind != GS_TOKEN_NUMBER) {
		gs_parser_fail(parser, "expected a number instead of '%.*s'", shown_len(parser),
			       parser->lexer.text);
		return 0;
	}
	gs_lexer_next(&parser->lexer);
	return (int64_t)(negative ? 0 - value : value);
}

uint64_t
gs_parser_count(struct gs_parser *parser, uint64_t limit, const char *what)
{
	int64_t value = gs_parser_integer(parser);

	if (value < 0 || (uint64_t)value > limit) {
		gs_parser_fail(parser, "%s out of range", what);
		return 0;
	}
	return (uint64_t)value;
}

const char *
gs_parser_word(struct gs_parser *parser, size_t *len_p)
{
	const char *text = parser->lexer.text;

	*len_p = parser->lexer.len;
	if (parser->lexer.kind != GS_TOKEN_WORD) {
		gs_parser_fail(parser, "expected a name instead of '%.*s'", shown_len(parser),
			       text);
		*len_p = 0;
		return "";
	}
	gs_lexer_next(&parser->lexer);
	return text;
}

static void
parse_version(struct gs_parser *parser)
{
	const char *text = parser->lexer.text;
	const char *dot = memchr(text, '.', parser->lexer.len);
	int major = atoi(text);
	int minor = dot ? atoi(dot + 1) : 0;

	if (parser->lexer.kind != GS_TOKEN_FLOAT || major < 1 || major > 99 || minor > 9) {
		gs_parser_fail(parser, "bad .version");
		return;
	}
	parser->ptx->version = major * 10 + minor;
	gs_lexer_next(&parser->lexer);
}

static void
parse_target(struct gs_parser *parser)
{
	if (parser->lexer.len > 3 && memcmp(parser->lexer.text, "sm_", 3) == 0)
		parser->ptx->target = atoi(parser->lexer.text + 3) % 10000;
	else
		gs_parser_fail(parser, "unknown .target");
	while (!gs_parser_at_end(parser) && parser->lexer.kind == GS_TOKEN_WORD) {
		gs_lexer_next(&parser->lexer);
		if (!gs_parser_accept(parser, ","))
			break;
	}
}

/* Debug sections contain no code. */
static void
skip_section(struct gs_parser *parser)
{
	while (!gs_parser_at_end(parser) && !gs_parser_is(parser, "{"))
		gs_lexer_next(&parser->lexer);
	while (!gs_parser_at_end(parser) && !gs_parser_is(parser, "}"))
		gs_lexer_next(&parser->lexer);
	gs_parser_expect(parser, "}");
}

static bool
parse_setting(struct gs_parser *parser)
{
	if (gs_parser_accept(parser, ".version")) {
		gs_link_next_text(parser);
		parse_version(parser);
	} else if (gs_parser_accept(parser, ".target")) {
		parse_target(parser);
	} else if (gs_parser_accept(parser, ".address_size")) {
		if (gs_parser_integer(parser) != 64)
			gs_parser_fail(parser, "only 64-bit addresses are supported");
	} else if (gs_parser_is(parser, ".file") || gs_parser_is(parser, ".loc")) {
		gs_lexer_skip_line(&parser->lexer);
	} else if (gs_parser_accept(parser, ".section")) {
		skip_section(parser);
	} else if (gs_parser_accept(parser, ".pragma")) {
		gs_parser_skip_statement(parser);
	} else if (!gs_parser_accept(parser, ";")) {
		return false;
	}
	return true;
}

static enum gs_space
accept_space(struct gs_parser *parser)
{
	if (gs_parser_accept(parser, ".global") || gs_parser_accept(parser, ".tex"))
		return GS_SPACE_GLOBAL;
	if (gs_parser_accept(parser, ".const"))
		return GS_SPACE_CONST;
	if (gs_parser_accept(parser, ".shared"))
		return GS_SPACE_SHARED;
	return GS_SPACE_GENERIC;
}

static void
skip_attributes(struct gs_parser *parser)
{
	while (parser->lexer.kind == GS_TOKEN_DIRECTIVE && !parser->failed) {
		gs_lexer_next(&parser->lexer);
		if (gs_parser_accept(parser, "(")) {
			while (!gs_parser_at_end(parser) && !gs_parser_is(parser, ")"))
				gs_lexer_next(&parser->lexer);
			gs_parser_expect(parser, ")");
		}
	}
}

static void
parse_declaration(struct gs_parser *parser)
{
	struct gs_linkage linkage = { 0 };
	enum gs_space space;

	while (gs_parser_is(parser, ".visible") || gs_parser_is(parser, ".extern") ||
	       gs_parser_is(parser, ".weak") || gs_parser_is(parser, ".common")) {
		linkage.is_visible |= gs_parser_is(parser, ".visible");
		linkage.is_extern |= gs_parser_is(parser, ".extern");
		linkage.is_weak |= gs_parser_is(parser, ".weak") || gs_parser_is(parser, ".common");
		gs_lexer_next(&parser->lexer);
	}
	if (gs_parser_accept(parser, ".entry")) {
		gs_parse_function(parser, true, &linkage);
		return;
	}
	if (gs_parser_accept(parser, ".func")) {
		skip_attributes(parser);
		gs_parse_function(parser, false, &linkage);
		return;
	}
	space = accept_space(parser);
	if (space == GS_SPACE_GENERIC) {
		gs_parser_fail(parser, "unexpected '%.*s'", shown_len(parser), parser->lexer.text);
		return;
	}
	(void)gs_parse_variables(parser, space, &linkage);
	gs_parser_expect(parser, ";");
}

static int
parse_module(struct gs_parser *parser)
{
	gs_lexer_init(&parser->lexer, parser->ptx->text, parser->ptx->size);
	while (!gs_parser_at_end(parser)) {
		if (!parse_setting(parser))
			parse_declaration(parser);
	}
	if (!parser->failed && (!parser->ptx->version || !parser->ptx->target))
		gs_parser_fail(parser, "no .version and .target: this is not PTX");
	if (!parser->failed)
		gs_link_finish(parser);
	return parser->failed ? parser->error->code : GS_OK;
}

int
gs_ptx_parse(const char *text, size_t size, struct gs_ptx **ptx_p, struct gs_error *error)
{
	struct gs_ptx *ptx = calloc(1, sizeof(*ptx));
	struct gs_parser parser = { .ptx = ptx, .error = error };
	int r;

	*error = (struct gs_error){ .code = GS_OUT_OF_MEMORY, .text = "out of memory" };
	if (!ptx)
		return GS_OUT_OF_MEMORY;
	ptx->size = strnlen(text, size);
	if (ptx->size > GS_PTX_MAX_BYTES) {
		gs_parser_fail(&parser, "the text is too long");
		gs_ptx_destroy(ptx);
		return GS_INVALID_PTX;
	}
	ptx->text = gs_pool_strndup(&ptx->pool, text, ptx->size);
	if (!ptx->text) {
		gs_ptx_destroy(ptx);
		return GS_OUT_OF_MEMORY;
	}
	r = parse_module(&parser);
	if (r != GS_OK) {
		gs_ptx_destroy(ptx);
		return r;
	}
	*error = (struct gs_error){ 0 };
	*ptx_p = ptx;
	return GS_OK;
}

void
gs_ptx_destroy(struct gs_ptx *ptx)
{
	if (!ptx)
		return;
	gs_pool_fini(&ptx->pool);
	free(ptx);
}
