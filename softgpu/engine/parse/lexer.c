/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/engine/parse/lexer.h"

#include <stdlib.h>
#include <string.h>

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int
digit_value(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 99;
}

bool
gs_is_word_char(char c)
{
	return is_alpha(c) || is_digit(c) || c == '_' || c == '$' || c == '%';
}

void
gs_lexer_init(struct gs_lexer *lexer, const char *text, size_t size)
{
	*lexer = (struct gs_lexer){ .cursor = text, .end = text + size, .line = 1 };
	gs_lexer_next(lexer);
}

void
gs_lexer_stop(struct gs_lexer *lexer)
{
	lexer->cursor = lexer->end;
	lexer->kind = GS_TOKEN_END;
	lexer->text = lexer->end;
	lexer->len = 0;
}

/* The text's NUL makes one byte of lookahead always readable. */
static void
skip_comment(struct gs_lexer *lexer)
{
	lexer->cursor += 2;
	while (lexer->cursor < lexer->end) {
		if (lexer->cursor[0] == '*' && lexer->cursor[1] == '/') {
			lexer->cursor += 2;
			return;
		}
		if (*lexer->cursor == '\n')
			lexer->line++;
		lexer->cursor++;
	}
}

static void
skip_blank(struct gs_lexer *lexer)
{
	while (lexer->cursor < lexer->end) {
		char c = *lexer->cursor;

		if (c == '\n') {
			lexer->line++;
			lexer->cursor++;
		} else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
			lexer->cursor++;
		} else if (c == '/' && lexer->cursor[1] == '/') {
			while (lexer->cursor < lexer->end && *lexer->cursor != '\n')
				lexer->cursor++;
		} else if (c == '/' && lexer->cursor[1] == '*') {
			skip_comment(lexer);
		} else {
			return;
		}
	}
}

static uint64_t
parse_digits(struct gs_lexer *lexer, int base)
{
	uint64_t value = 0;

	while (lexer->cursor < lexer->end && digit_value(*lexer->cursor) < base)
		value = value * (uint64_t)base + (uint64_t)digit_value(*lexer->cursor++);
	return value;
}

static void
parse_float_bits(struct gs_lexer *lexer, uint8_t size)
{
	lexer->cursor += 2;
	lexer->number = parse_digits(lexer, 16);
	lexer->kind = GS_TOKEN_FLOAT;
	lexer->float_size = size;
}

static void
parse_decimal_float(struct gs_lexer *lexer)
{
	char *stop;
	double value = strtod(lexer->text, &stop);

	memcpy(&lexer->number, &value, sizeof(value));
	lexer->cursor = stop > lexer->end ? lexer->end : stop;
	lexer->kind = GS_TOKEN_FLOAT;
	lexer->float_size = 8;
}

static void
parse_number(struct gs_lexer *lexer)
{
	const char *s = lexer->text;
	char second = s[0] == '0' ? s[1] : '\0';

	lexer->kind = GS_TOKEN_NUMBER;
	if (second == 'f' || second == 'F') {
		parse_float_bits(lexer, 4);
		return;
	}
	if (second == 'd' || second == 'D') {
		parse_float_bits(lexer, 8);
		return;
	}
	if (second == 'x' || second == 'X') {
		lexer->cursor += 2;
		lexer->number = parse_digits(lexer, 16);
	} else if (second == 'b' || second == 'B') {
		lexer->cursor += 2;
		lexer->number = parse_digits(lexer, 2);
	} else {
		lexer->number = parse_digits(lexer, is_digit(second) ? 8 : 10);
		if ((*lexer->cursor == '.' && is_digit(lexer->cursor[1])) ||
		    *lexer->cursor == 'e' || *lexer->cursor == 'E') {
			parse_decimal_float(lexer);
			return;
		}
	}
	if (*lexer->cursor == 'U' || *lexer->cursor == 'u')
		lexer->cursor++;
}

static void
parse_string(struct gs_lexer *lexer)
{
	lexer->kind = GS_TOKEN_STRING;
	lexer->cursor++;
	while (lexer->cursor < lexer->end && *lexer->cursor != '"') {
		if (*lexer->cursor == '\n')
			lexer->line++;
		lexer->cursor++;
	}
	if (lexer->cursor < lexer->end)
		lexer->cursor++;
}

static void
parse_word(struct gs_lexer *lexer, enum gs_token kind)
{
	lexer->kind = kind;
	lexer->cursor++;
	while (lexer->cursor < lexer->end && gs_is_word_char(*lexer->cursor))
		lexer->cursor++;
}

void
gs_lexer_next(struct gs_lexer *lexer)
{
	const char *s;

	skip_blank(lexer);
	s = lexer->cursor;
	lexer->text = s;
	/* The driver's fatbins pad PTX with NULs: the text ends at the first. */
	if (s >= lexer->end || *s == '\0') {
		gs_lexer_stop(lexer);
		return;
	}
	if (is_digit(*s)) {
		parse_number(lexer);
	} else if (*s == '"') {
		parse_string(lexer);
	} else if (*s == '.' && (is_alpha(s[1]) || s[1] == '_')) {
		parse_word(lexer, GS_TOKEN_DIRECTIVE);
	} else if (gs_is_word_char(*s)) {
		parse_word(lexer, GS_TOKEN_WORD);
	} else {
		lexer->kind = GS_TOKEN_PUNCT;
		lexer->cursor++;
	}
	lexer->len = (size_t)(lexer->cursor - s);
}

void
gs_lexer_skip_line(struct gs_lexer *lexer)
{
	while (lexer->cursor < lexer->end && *lexer->cursor != '\n')
		lexer->cursor++;
	gs_lexer_next(lexer);
}

bool
gs_lexer_is(const struct gs_lexer *lexer, const char *text)
{
	size_t len = strlen(text);

	if (lexer->kind == GS_TOKEN_END || lexer->kind == GS_TOKEN_STRING)
		return false;
	return lexer->len == len && memcmp(lexer->text, text, len) == 0;
}
