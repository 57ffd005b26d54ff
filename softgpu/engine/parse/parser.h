/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PTX parser's own state, shared by its files. One thread, one module, used once.
 * Errors are sticky: after gs_parser_fail() every token is the end of the text, so each loop that
 * stops at the end unwinds, and nothing parsed later is looked at.  What is valid PTX and cannot
 * run here (gs_parser_unsupported()) ends the function that contains it, and no other.
 */
#ifndef GS_PARSER_H
#define GS_PARSER_H

#include "softgpu/engine/parse/lexer.h"
#include "softgpu/engine/parse/names.h"
#include "softgpu/engine/parse/ptx.h"

/* `.reg .b32 %r<10>` is one entry of 10; a name without a count is an entry of 0. */
struct gs_reg_name {
	const char *text;
	size_t len;
	uint32_t first;
	uint32_t count;
};

struct gs_local_name {
	const char *text;
	size_t len;
	int32_t symbol;
};

/* Labels belong to the block that defines them; until then to the innermost that names them. */
struct gs_label {
	const char *text;
	size_t len;
	int32_t at; /* -1: not defined yet */
	int32_t depth;
	int32_t shadowed;  /* the label of this name outside, or -1 */
	int32_t alias;     /* the label this turned out to be, or -1 */
	bool is_name_only; /* of a .callprototype or a .branchtargets */
	int32_t *targets;
};

struct gs_linkage {
	bool is_visible;
	bool is_extern;
	bool is_weak; /* or .common: of several definitions one is taken */
};

struct gs_parser {
	struct gs_ptx *ptx;
	struct gs_lexer lexer;
	struct gs_error *error;
	bool failed;
	bool unsupported; /* failed, and the text may be valid */
	struct gs_names symbol_names;
	struct gs_names function_names;
	bool is_linked; /* there is more than one text */
	size_t symbol_capacity;
	size_t function_capacity;

	const char *instruction; /* name of the one being parsed */
	bool takes_coordinates;  /* in an address: it names a texture or a surface */

	/* Of the function being parsed. */
	struct gs_ptx_function *function;
	struct gs_reg_name *regs;
	size_t reg_name_count, reg_name_capacity;
	struct gs_local_name *locals;
	size_t local_count, local_capacity;
	struct gs_label *labels;
	size_t label_count, label_capacity;
	int32_t *open_labels; /* of all open blocks, innermost last */
	size_t open_label_count, open_label_capacity;
	struct gs_names label_names;
	int32_t depth;
	size_t insn_capacity;
	size_t reg_capacity;
};

void gs_parser_fail(struct gs_parser *parser, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The same of valid PTX that the device does not run. */
void gs_parser_unsupported(struct gs_parser *parser, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void gs_parser_fail_memory(struct gs_parser *parser);
void *gs_parser_alloc(struct gs_parser *parser, size_t size);
/* Grows *array to hold count+1 elements; false when that failed. */
bool gs_parser_grow(struct gs_parser *parser, void **array, size_t element, size_t count,
		    size_t *capacity, size_t limit, const char *what);

bool gs_parser_at_end(const struct gs_parser *parser);
bool gs_parser_is(const struct gs_parser *parser, const char *text);
bool gs_parser_accept(struct gs_parser *parser, const char *text);
void gs_parser_expect(struct gs_parser *parser, const char *text);
/* Skips to behind the next ';'. */
void gs_parser_skip_statement(struct gs_parser *parser);
int64_t gs_parser_integer(struct gs_parser *parser);
/* Like gs_parser_integer, but fails unless within 0..limit. */
uint64_t gs_parser_count(struct gs_parser *parser, uint64_t limit, const char *what);
const char *gs_parser_word(struct gs_parser *parser, size_t *len_p);
enum gs_type gs_type_named(const char *text, size_t len);
/* A special register without its '%' and component; -1: there is none. */
int gs_special_named(const char *text, size_t len);
/* PTX that the device does not run: an opcode; a special register, without its '%'. */
bool gs_op_is_unsupported(const char *text, size_t len);
bool gs_special_is_unsupported(const char *text, size_t len);

/* parse_variable.c: after the state space; returns the last symbol declared, or -1. */
int32_t gs_parse_variables(struct gs_parser *parser, enum gs_space space,
			   const struct gs_linkage *linkage);
/* parse_function.c: after .entry or .func. */
void gs_parse_function(struct gs_parser *parser, bool is_entry, const struct gs_linkage *linkage);
/* link.c: another text begins; all texts have been read. */
void gs_link_next_text(struct gs_parser *parser);
void gs_link_finish(struct gs_parser *parser);
int32_t gs_parser_label(struct gs_parser *parser, const char *text, size_t len);
/* parse_insn.c */
void gs_parse_insn(struct gs_parser *parser);

int32_t gs_parser_find_reg(const struct gs_parser *parser, const char *text, size_t len);
int32_t gs_parser_find_symbol(const struct gs_parser *parser, const char *text, size_t len);

#endif
