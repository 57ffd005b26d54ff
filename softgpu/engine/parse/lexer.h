/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lexer for PTX text.
 *
 * The lexer always has a current token, described by line, kind, text and len. After the end of the
 * text, and after gs_lexer_stop(), it is GS_TOKEN_END.
 * Ownership: the text is borrowed, must outlive the lexer, and must have a NUL at `end`. Tokens
 * point into it.
 * Threads: one thread.
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
	int32_t line; /* line of the current token, from 1 */
	enum gs_token kind;
	const char *text;
	size_t len;
	uint64_t number;    /* value of a GS_TOKEN_NUMBER, or the bits of a GS_TOKEN_FLOAT */
	uint8_t float_size; /* bytes of a GS_TOKEN_FLOAT: 4 or 8 */
};

/* Starts with the first token. The text ends after `size` bytes or at the first NUL. */
void gs_lexer_init(struct gs_lexer *lexer, const char *text, size_t size);
/* Moves to the next token; skips comments. */
void gs_lexer_next(struct gs_lexer *lexer);
/* Makes the current and every later token GS_TOKEN_END. */
void gs_lexer_stop(struct gs_lexer *lexer);
/* Moves to the first token of the next line. */
void gs_lexer_skip_line(struct gs_lexer *lexer);
/* Returns whether the current token has this text; false for strings and the end. */
bool gs_lexer_is(const struct gs_lexer *lexer, const char *text);
/* Returns whether the character may be part of a word. */
bool gs_is_word_char(char c);

#endif
