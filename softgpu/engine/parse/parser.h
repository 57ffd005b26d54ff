/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of the PTX parser, shared by its files; used for a single module.
 *
 * Threads: one thread.
 * Errors: sticky: after gs_parser_fail() every token is the end of the text, so that all loops
 * terminate and nothing else is parsed. Valid PTX that the device cannot run
 * (gs_parser_unsupported()) only ends the function that contains it.
 */
#ifndef GS_PARSER_H
#define GS_PARSER_H

#include "softgpu/engine/parse/lexer.h"
#include "softgpu/engine/parse/names.h"
#include "softgpu/engine/parse/ptx.h"

/* `.reg .b32 %r<10>` is an entry with count 10; a name without a count has count 0. */
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

/* A label belongs to the block that defines it; until then, to the innermost block that refers to
 * it. */
struct gs_label {
	const char *text;
	size_t len;
	int32_t at; /* -1: not yet defined */
	int32_t depth;
	int32_t shadowed;  /* label of the same name in an outer block, or -1 */
	int32_t alias;     /* label that this one was resolved to, or -1 */
	bool is_name_only; /* of a .callprototype or a .branchtargets */
	int32_t *targets;
};

struct gs_linkage {
	bool is_visible;
	bool is_extern;
	bool is_weak; /* also .common: one of several definitions is used */
};

struct gs_parser {
	struct gs_ptx *ptx;
	struct gs_lexer lexer;
	struct gs_error *error;
	bool failed;
	bool unsupported; /* failed, but the text may be valid */
	struct gs_names symbol_names;
	struct gs_names function_names;
	bool is_linked; /* there is more than one text */
	size_t symbol_capacity;
	size_t function_capacity;

	const char *instruction; /* name of the current instruction */
	bool takes_coordinates;  /* addresses may name a texture or surface */

	/* State of the current function. */
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
/* The same for valid PTX that the device cannot run. */
void gs_parser_unsupported(struct gs_parser *parser, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void gs_parser_fail_memory(struct gs_parser *parser);
void *gs_parser_alloc(struct gs_parser *parser, size_t size);
/* Grows *array to hold count + 1 elements; returns false on failure. */
bool gs_parser_grow(struct gs_parser *parser, void **array, size_t element, size_t count,
		    size_t *capacity, size_t limit, const char *what);

bool gs_parser_at_end(const struct gs_parser *parser);
bool gs_parser_is(const struct gs_parser *parser, const char *text);
bool gs_parser_accept(struct gs_parser *parser, const char *text);
void gs_parser_expect(struct gs_parser *parser, const char *text);
/* Skips past the next ';'. */
void gs_parser_skip_statement(struct gs_parser *parser);
int64_t gs_parser_integer(struct gs_parser *parser);
/* Like gs_parser_integer(), but fails unless the value is within 0..limit. */
uint64_t gs_parser_count(struct gs_parser *parser, uint64_t limit, const char *what);
const char *gs_parser_word(struct gs_parser *parser, size_t *len_p);
enum gs_type gs_type_named(const char *text, size_t len);
/* Returns a special register by its name without '%' and component; -1: unknown. */
int gs_special_named(const char *text, size_t len);
/* Whether the opcode, or the special register without its '%', is PTX that the device cannot
 * run. */
bool gs_op_is_unsupported(const char *text, size_t len);
bool gs_special_is_unsupported(const char *text, size_t len);

/* parse_variable.c: called after the state space; returns the last declared symbol, or -1. */
int32_t gs_parse_variables(struct gs_parser *parser, enum gs_space space,
			   const struct gs_linkage *linkage);
/* parse_function.c: called after .entry or .func. */
void gs_parse_function(struct gs_parser *parser, bool is_entry, const struct gs_linkage *linkage);
/* link.c: called at the start of each further text, and after the last one. */
void gs_link_next_text(struct gs_parser *parser);
void gs_link_finish(struct gs_parser *parser);
int32_t gs_parser_label(struct gs_parser *parser, const char *text, size_t len);
/* parse_insn.c */
void gs_parse_insn(struct gs_parser *parser);

int32_t gs_parser_find_reg(const struct gs_parser *parser, const char *text, size_t len);
int32_t gs_parser_find_symbol(const struct gs_parser *parser, const char *text, size_t len);

#endif
