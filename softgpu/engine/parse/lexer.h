/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lexer for PTX text. The text must end with a NUL at `end`; it is borrowed. After the end, and
 * after gs_lexer_stop(), every token is GS_TOKEN_END.
 */
#ifndef GS_LEXER_H
#define GS_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gs_token {
	GS_TOKEN_END,
	GS_TOKEN_WORD,
	GS_TOKEN_DIRECTIVE, /* a word with a leading dot */
	GS_TOKEN_NUMBER,
	GS_TOKEN_FLOAT,
	GS_TOKEN_STRING,
	GS_TOKEN_PUNCT,
};

struct gs_lexer {
	const char *cursor;
	const char *end;
	int32_t line;
	enum gs_token kind;
	const char *text;
	size_t len;
	uint64_t number; /* value of GS_TOKEN_NUMBER, or the bits of GS_TOKEN_FLOAT */
	uint8_t float_size;
};

void gs_lexer_init(struct gs_lexer *lexer, const char *text, size_t size);
void gs_lexer_next(struct gs_lexer *lexer);
void gs_lexer_stop(struct gs_lexer *lexer);
/* Moves to the first token of the next line. */
void gs_lexer_skip_line(struct gs_lexer *lexer);
bool gs_lexer_is(const struct gs_lexer *lexer, const char *text);
bool gs_is_word_char(char c);

#endif
