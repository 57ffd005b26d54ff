/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of the PTX parser, shared by its files; used for one gs_ptx_parse() call.
 *
 * Ownership: the parser belongs to gs_ptx_parse(); its arrays are allocated in the module's pool.
 * Names point into the module's text and are not NUL-terminated.
 * Threads: one thread.
 * Errors: sticky. After gs_parser_fail() every token is the end of the text, so that all loops
 * terminate and nothing else is parsed; functions then return 0, -1, "" or NULL. Valid PTX that the
 * device cannot run (gs_parser_unsupported()) only ends the function that contains it.
 */
#ifndef GS_PARSER_H
#define GS_PARSER_H

#include "softgpu/engine/parse/lexer.h"
#include "softgpu/engine/parse/names.h"
#include "softgpu/engine/parse/ptx.h"

/* A declaration of registers: `.reg .b32 %r<10>` has name %r and count 10. A name without a count
 * has count 0. `first` is the index of its first register. */
struct gs_reg_name {
	const char *text;
	size_t len;
	uint32_t first;
	uint32_t count;
};

/* A variable declared in the current function, and its symbol's index. */
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
	int32_t at;        /* index of the instruction that follows it; -1: not yet defined */
	int32_t depth;     /* nesting depth of its block */
	int32_t shadowed;  /* label of the same name in an outer block, or -1 */
	int32_t alias;     /* label of an enclosing block that this one was resolved to, or -1 */
	bool is_name_only; /* label of a .callprototype or a .branchtargets, which has no position
			    */
	int32_t *targets;  /* labels of a .branchtargets, terminated by -1; otherwise NULL */
};

struct gs_linkage {
	bool is_visible;
	bool is_extern;
	bool is_weak; /* also for .common: one of several definitions is used */
};

struct gs_parser {
	struct gs_ptx *ptx;
	struct gs_lexer lexer;
	struct gs_error *error;
	bool failed;
	bool unsupported; /* failed because of PTX that may be valid but is not supported */
	struct gs_names symbol_names;
	struct gs_names function_names;
	bool is_linked; /* there is more than one text */
	size_t symbol_capacity;
	size_t function_capacity;

	const char *instruction; /* spelling of the current instruction's opcode */
	bool takes_coordinates;  /* whether addresses may name a texture or surface */

	/* State of the current function. */
	struct gs_ptx_function *function;
	struct gs_reg_name *regs;
	size_t reg_name_count, reg_name_capacity;
	struct gs_local_name *locals;
	size_t local_count, local_capacity;
	struct gs_label *labels;
	size_t label_count, label_capacity;
	int32_t *open_labels; /* indices of the labels of all open blocks, innermost last */
	size_t open_label_count, open_label_capacity;
	struct gs_names label_names;
	int32_t depth;
	size_t insn_capacity;
	size_t reg_capacity;
};

/* Stores an error with the line of the current token, and stops the lexer. Later calls have no
 * effect. */
void gs_parser_fail(struct gs_parser *parser, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Like gs_parser_fail(), for valid PTX that the device cannot run. The error is stored for the
 * current function only. */
void gs_parser_unsupported(struct gs_parser *parser, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Fails with GS_OUT_OF_MEMORY. */
void gs_parser_fail_memory(struct gs_parser *parser);
/* Returns zeroed memory of the module's pool; NULL: out of memory, and the parser has failed. */
void *gs_parser_alloc(struct gs_parser *parser, size_t size);
/* Makes *array large enough for count + 1 elements of `element` bytes. Returns true, or false if
 * there are `limit` elements already or if out of memory; the parser has failed then and *array is
 * unchanged. `what` names the elements for the message. */
bool gs_parser_grow(struct gs_parser *parser, void **array, size_t element, size_t count,
		    size_t *capacity, size_t limit, const char *what);

/* Returns whether the current token is the end of the text. */
bool gs_parser_at_end(const struct gs_parser *parser);
/* Returns whether the current token has this text. */
bool gs_parser_is(const struct gs_parser *parser, const char *text);
/* Skips the current token and returns true if it has this text; otherwise returns false. */
bool gs_parser_accept(struct gs_parser *parser, const char *text);
/* Like gs_parser_accept(), but fails if the token has another text. */
void gs_parser_expect(struct gs_parser *parser, const char *text);
/* Skips the tokens up to and including the next ';'. */
void gs_parser_skip_statement(struct gs_parser *parser);
/* Parses an integer with an optional '-'. Returns its value, or 0 on failure. */
int64_t gs_parser_integer(struct gs_parser *parser);
/* Like gs_parser_integer(), but also fails unless the value is within 0..limit. `what` names the
 * value for the message. */
uint64_t gs_parser_count(struct gs_parser *parser, uint64_t limit, const char *what);
/* Parses a word. Returns its text in the module's text, with the length in *len_p; "" on
 * failure. */
const char *gs_parser_word(struct gs_parser *parser, size_t *len_p);
/* Returns the type of this name, without the dot; GS_TYPE_NONE: unknown. */
enum gs_type gs_type_named(const char *text, size_t len);
/* Returns the special register (enum gs_special) of this name, without '%' and component; -1:
 * unknown. */
int gs_special_named(const char *text, size_t len);
/* Return whether the opcode, or the special register without its '%', is valid PTX that the device
 * cannot run. */
bool gs_op_is_unsupported(const char *text, size_t len);
bool gs_special_is_unsupported(const char *text, size_t len);

/* parse_variable.c: parses a declaration after its state space. Returns the index of the last
 * declared symbol, or -1 on failure. */
int32_t gs_parse_variables(struct gs_parser *parser, enum gs_space space,
			   const struct gs_linkage *linkage);
/* parse_function.c: parses a function after .entry or .func. */
void gs_parse_function(struct gs_parser *parser, bool is_entry, const struct gs_linkage *linkage);
/* link.c: gs_link_next_text() is called at the start of each further text, gs_link_finish() after
 * the last one. It resolves extern symbols and functions. */
void gs_link_next_text(struct gs_parser *parser);
void gs_link_finish(struct gs_parser *parser);
/* parse_function.c: returns the index of a label in the current block, and creates it if
 * necessary. */
int32_t gs_parser_label(struct gs_parser *parser, const char *text, size_t len);
/* parse_insn.c: parses an instruction, with its guard, and appends it to the current function. */
void gs_parse_insn(struct gs_parser *parser);

/* Return the index of a register or symbol of this name that is visible here, or -1. */
int32_t gs_parser_find_reg(const struct gs_parser *parser, const char *text, size_t len);
int32_t gs_parser_find_symbol(const struct gs_parser *parser, const char *text, size_t len);

#endif
