/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions: guard, opcode, modifiers, operands. */
#include "softgpu/engine/parse/parser.h"

#include <stdlib.h>
#include <string.h>

enum modifier_field {
	FIELD_NOTHING, /* no effect here: caching, ordering (all accesses are ordered), ftz */
	FIELD_SPACE,
	FIELD_VECTOR,
	FIELD_MUL_MODE,
	FIELD_ROUNDING,
	FIELD_SUB,
	FIELD_SATURATE,
	FIELD_CARRY_OUT,
	FIELD_CLAMP,
	FIELD_COMPARE, /* set and setp only */
	FIELD_BOOL,    /* set, setp and barrier reductions only */
	FIELD_TESTP,   /* read from the spelling */
};

struct modifier {
	const char *word;
	uint8_t field;
	uint8_t value;
};

/* Sorted by word. A word may occur twice, distinguished by the opcode. */
static const struct modifier modifiers[] = {
	{ "acq_rel", FIELD_NOTHING, 0 },
	{ "acquire", FIELD_NOTHING, 0 },
	{ "add", FIELD_SUB, GS_SUB_ADD },
	{ "aligned", FIELD_NOTHING, 0 },
	{ "all", FIELD_SUB, GS_SUB_ALL },
	{ "and", FIELD_SUB, GS_SUB_AND },
	{ "any", FIELD_SUB, GS_SUB_ANY },
	{ "approx", FIELD_NOTHING, 0 },
	{ "arrive", FIELD_SUB, GS_SUB_ARRIVE },
	{ "arrive_drop", FIELD_SUB, GS_SUB_ARRIVE_DROP },
	{ "async", FIELD_NOTHING, 0 },
	{ "ballot", FIELD_SUB, GS_SUB_BALLOT },
	{ "bfly", FIELD_SUB, GS_SUB_BFLY },
	{ "ca", FIELD_NOTHING, 0 },
	{ "cas", FIELD_SUB, GS_SUB_CAS },
	{ "cc", FIELD_CARRY_OUT, 1 },
	{ "cg", FIELD_NOTHING, 0 },
	{ "clamp", FIELD_CLAMP, 1 },
	{ "cluster", FIELD_NOTHING, 0 },
	{ "commit_group", FIELD_NOTHING, 0 },
	{ "const", FIELD_SPACE, GS_SPACE_CONST },
	{ "cs", FIELD_NOTHING, 0 },
	{ "cta", FIELD_NOTHING, 0 },
	{ "cv", FIELD_NOTHING, 0 },
	{ "dec", FIELD_SUB, GS_SUB_DEC },
	{ "down", FIELD_SUB, GS_SUB_DOWN },
	{ "exch", FIELD_SUB, GS_SUB_EXCH },
	{ "finite", FIELD_TESTP, 0 },
	{ "ftz", FIELD_NOTHING, 0 },
	{ "full", FIELD_NOTHING, 0 },
	{ "gl", FIELD_NOTHING, 0 },
	{ "global", FIELD_SPACE, GS_SPACE_GLOBAL },
	{ "gpu", FIELD_NOTHING, 0 },
	{ "hi", FIELD_MUL_MODE, GS_MUL_HI },
	{ "idx", FIELD_SUB, GS_SUB_IDX },
	{ "inc", FIELD_SUB, GS_SUB_INC },
	{ "infinite", FIELD_TESTP, 1 },
	{ "init", FIELD_SUB, GS_SUB_INIT },
	{ "inval", FIELD_SUB, GS_SUB_INVAL },
	{ "l", FIELD_SUB, GS_SUB_LEFT },
	{ "launch_dependents", FIELD_NOTHING, 0 },
	{ "lo", FIELD_MUL_MODE, GS_MUL_LO },
	{ "local", FIELD_SPACE, GS_SPACE_LOCAL },
	{ "lu", FIELD_NOTHING, 0 },
	{ "max", FIELD_SUB, GS_SUB_MAX },
	{ "mbarrier", FIELD_NOTHING, 0 },
	{ "min", FIELD_SUB, GS_SUB_MIN },
	{ "mmio", FIELD_NOTHING, 0 },
	{ "nc", FIELD_NOTHING, 0 },
	{ "noComplete", FIELD_NOTHING, 0 },
	{ "noftz", FIELD_NOTHING, 0 },
	{ "noinc", FIELD_NOTHING, 0 },
	{ "normal", FIELD_TESTP, 4 },
	{ "notanumber", FIELD_TESTP, 3 },
	{ "number", FIELD_TESTP, 2 },
	{ "or", FIELD_SUB, GS_SUB_OR },
	{ "param", FIELD_SPACE, GS_SPACE_PARAM },
	{ "parity", FIELD_NOTHING, 0 },
	{ "pending_count", FIELD_SUB, GS_SUB_PENDING_COUNT },
	{ "popc", FIELD_BOOL, GS_BOOL_POPC },
	{ "r", FIELD_SUB, GS_SUB_RIGHT },
	{ "red", FIELD_SUB, GS_SUB_RED },
	{ "relaxed", FIELD_NOTHING, 0 },
	{ "release", FIELD_NOTHING, 0 },
	{ "rm", FIELD_ROUNDING, GS_ROUND_DOWN },
	{ "rmi", FIELD_ROUNDING, GS_ROUND_DOWN_INT },
	{ "rn", FIELD_ROUNDING, GS_ROUND_NEAREST },
	{ "rni", FIELD_ROUNDING, GS_ROUND_NEAREST_INT },
	{ "rp", FIELD_ROUNDING, GS_ROUND_UP },
	{ "rpi", FIELD_ROUNDING, GS_ROUND_UP_INT },
	{ "rz", FIELD_ROUNDING, GS_ROUND_ZERO },
	{ "rzi", FIELD_ROUNDING, GS_ROUND_ZERO_INT },
	{ "sat", FIELD_SATURATE, 1 },
	{ "sc", FIELD_NOTHING, 0 },
	{ "shared", FIELD_SPACE, GS_SPACE_SHARED },
	{ "shared::cta", FIELD_SPACE, GS_SPACE_SHARED },
	{ "shiftamt", FIELD_SUB, GS_SUB_SHIFTAMT },
	{ "subnormal", FIELD_TESTP, 5 },
	{ "sync", FIELD_NOTHING, 0 },
	{ "sys", FIELD_NOTHING, 0 },
	{ "test_wait", FIELD_SUB, GS_SUB_TEST_WAIT },
	{ "to", FIELD_SUB, GS_SUB_TO },
	{ "try_wait", FIELD_SUB, GS_SUB_TEST_WAIT },
	{ "uni", FIELD_SUB, GS_SUB_UNI },
	{ "up", FIELD_SUB, GS_SUB_UP },
	{ "v2", FIELD_VECTOR, 2 },
	{ "v4", FIELD_VECTOR, 4 },
	{ "v8", FIELD_VECTOR, 8 },
	{ "volatile", FIELD_NOTHING, 0 },
	{ "wait", FIELD_NOTHING, 0 },
	{ "wait_all", FIELD_NOTHING, 0 },
	{ "wait_group", FIELD_NOTHING, 0 },
	{ "warp", FIELD_SUB, GS_SUB_WARP },
	{ "wb", FIELD_NOTHING, 0 },
	{ "weak", FIELD_NOTHING, 0 },
	{ "wide", FIELD_MUL_MODE, GS_MUL_WIDE },
	{ "wrap", FIELD_CLAMP, 0 },
	{ "wt", FIELD_NOTHING, 0 },
	{ "xor", FIELD_SUB, GS_SUB_XOR },
};

static const struct modifier compares[] = {
	{ "and", FIELD_BOOL, GS_BOOL_AND },   { "eq", FIELD_COMPARE, GS_CMP_EQ },
	{ "equ", FIELD_COMPARE, GS_CMP_EQU }, { "ge", FIELD_COMPARE, GS_CMP_GE },
	{ "geu", FIELD_COMPARE, GS_CMP_GEU }, { "gt", FIELD_COMPARE, GS_CMP_GT },
	{ "gtu", FIELD_COMPARE, GS_CMP_GTU }, { "hi", FIELD_COMPARE, GS_CMP_GT },
	{ "hs", FIELD_COMPARE, GS_CMP_GE },   { "le", FIELD_COMPARE, GS_CMP_LE },
	{ "leu", FIELD_COMPARE, GS_CMP_LEU }, { "lo", FIELD_COMPARE, GS_CMP_LT },
	{ "ls", FIELD_COMPARE, GS_CMP_LE },   { "lt", FIELD_COMPARE, GS_CMP_LT },
	{ "ltu", FIELD_COMPARE, GS_CMP_LTU }, { "nan", FIELD_COMPARE, GS_CMP_NAN },
	{ "ne", FIELD_COMPARE, GS_CMP_NE },   { "neu", FIELD_COMPARE, GS_CMP_NEU },
	{ "num", FIELD_COMPARE, GS_CMP_NUM }, { "or", FIELD_BOOL, GS_BOOL_OR },
	{ "xor", FIELD_BOOL, GS_BOOL_XOR },
};

static const struct modifier reductions[] = {
	{ "and", FIELD_BOOL, GS_BOOL_AND },
	{ "or", FIELD_BOOL, GS_BOOL_OR },
	{ "popc", FIELD_BOOL, GS_BOOL_POPC },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool
same_word(const char *word, const char *text, size_t len)
{
	return strlen(word) == len && memcmp(word, text, len) == 0;
}

static const struct modifier *
find_modifier(const struct modifier *table, size_t count, const char *text, size_t len)
{
	for (size_t i = 0; i < count; i++) {
		if (same_word(table[i].word, text, len))
			return &table[i];
	}
	return NULL;
}

static const struct modifier *
lookup_modifier(const struct gs_insn *insn, const char *text, size_t len)
{
	const struct modifier *found = NULL;

	if (insn->op == GS_OP_set || insn->op == GS_OP_setp)
		found = find_modifier(compares, COUNT(compares), text, len);
	else if ((insn->op == GS_OP_bar || insn->op == GS_OP_barrier) && insn->sub == GS_SUB_RED)
		found = find_modifier(reductions, COUNT(reductions), text, len);
	return found ? found : find_modifier(modifiers, COUNT(modifiers), text, len);
}

static void
apply_modifier(struct gs_insn *insn, const struct modifier *modifier)
{
	switch ((enum modifier_field)modifier->field) {
	case FIELD_NOTHING:
	case FIELD_TESTP:
		break;
	case FIELD_SPACE:
		insn->space = modifier->value;
		break;
	case FIELD_VECTOR:
		insn->vector = modifier->value;
		break;
	case FIELD_MUL_MODE:
		insn->mul_mode = modifier->value;
		break;
	case FIELD_ROUNDING:
		insn->rounding = modifier->value;
		break;
	case FIELD_SUB:
		/* In "bar.warp.sync" or "red.async.add" the last word counts, but never ".uni". */
		if (modifier->value != GS_SUB_UNI || insn->op == GS_OP_vote)
			insn->sub = modifier->value;
		break;
	case FIELD_SATURATE:
		insn->saturate = true;
		break;
	case FIELD_CARRY_OUT:
		insn->carry_out = true;
		break;
	case FIELD_CLAMP:
		insn->clamp = modifier->value;
		break;
	case FIELD_COMPARE:
		insn->compare = modifier->value;
		break;
	case FIELD_BOOL:
		insn->bool_op = modifier->value;
		break;
	}
}

/* Texture instructions have special modifiers, which the decoder checks. */
static bool
is_of_textures(const struct gs_insn *insn)
{
	return insn->op == GS_OP_tex || insn->op == GS_OP_tld4 || insn->op == GS_OP_suld ||
	       insn->op == GS_OP_sust;
}

static void
parse_modifier(struct gs_insn *insn, const char *text, size_t len)
{
	enum gs_type type = gs_type_named(text, len);
	const struct modifier *modifier;

	if (type) {
		if (insn->type_count < 3)
			insn->type[insn->type_count++] = (uint8_t)type;
		else
			insn->unknown_modifier = true;
		return;
	}
	modifier = lookup_modifier(insn, text, len);
	if (modifier)
		apply_modifier(insn, modifier);
	else if (!is_of_textures(insn) &&
		 (len < 4 || (memcmp(text, "L1::", 4) != 0 && memcmp(text, "L2::", 4) != 0)))
		insn->unknown_modifier = true;
}

/* The modifiers follow the opcode without blanks, as in ld.global.L1::no_allocate.v4.f32 */
static void
parse_modifiers(struct gs_parser *parser, struct gs_insn *insn)
{
	const char *s = parser->lexer.cursor;
	const char *end = s;

	while (end < parser->lexer.end && (*end == '.' || *end == ':' || gs_is_word_char(*end)))
		end++;
	insn->spelling_len = (uint32_t)(end - insn->spelling);
	while (s < end) {
		const char *word = s + 1;
		const char *stop = memchr(word, '.', (size_t)(end - word));

		if (*s != '.')
			break;
		s = stop ? stop : end;
		parse_modifier(insn, word, (size_t)(s - word));
	}
	parser->lexer.cursor = end;
	gs_lexer_next(&parser->lexer);
}

static int
compare_op(const void *key, const void *element)
{
	return strcmp(key, *(const char *const *)element);
}

static bool
parse_opcode(struct gs_parser *parser, struct gs_insn *insn)
{
	static const char *const names[GS_OP_COUNT] = {
#define X(name) #name,
		GS_OPS(X)
#undef X
	};
	const struct gs_lexer *lexer = &parser->lexer;
	size_t len = lexer->len;
	const char *const *found;
	char name[24];

	if (lexer->kind != GS_TOKEN_WORD || len >= sizeof(name)) {
		gs_parser_fail(parser, "expected an instruction instead of '%.*s'",
			       (int)(len > 40 ? 40 : len), lexer->text);
		return false;
	}
	memcpy(name, lexer->text, len);
	name[len] = '\0';
	found = bsearch(name, names, GS_OP_COUNT, sizeof(names[0]), compare_op);
	if (!found && gs_op_is_unsupported(name, len))
		gs_parser_unsupported(parser, "instruction '%s' is not supported", name);
	else if (!found)
		gs_parser_fail(parser, "unknown instruction '%s'", name);
	if (!found)
		return false;
	insn->op = (uint16_t)(found - names);
	parser->instruction = *found;
	insn->spelling = lexer->text;
	return true;
}

static void
parse_guard(struct gs_parser *parser, struct gs_insn *insn)
{
	if (!gs_parser_accept(parser, "@"))
		return;
	insn->pred_negated = gs_parser_accept(parser, "!");
	insn->pred = gs_parser_find_reg(parser, parser->lexer.text, parser->lexer.len);
	if (insn->pred < 0 || parser->function->reg_types[insn->pred] != GS_TYPE_PRED)
		gs_parser_fail(parser, "the guard is no predicate");
	else
		gs_lexer_next(&parser->lexer);
}

static void
parse_offset(struct gs_parser *parser, struct gs_operand *operand)
{
	if (gs_parser_accept(parser, "+") || gs_parser_is(parser, "-"))
		operand->imm = gs_parser_integer(parser);
}

static void parse_list(struct gs_parser *parser, struct gs_operand *operand, const char *close,
		       size_t limit);

/* Coordinates of a texture or surface: the elements of the address. */
static void
parse_coordinates(struct gs_parser *parser, struct gs_operand *operand)
{
	struct gs_operand list;

	gs_parser_expect(parser, "{");
	parser->takes_coordinates = false;
	parse_list(parser, &list, "}", GS_PTX_MAX_VECTOR);
	operand->elements = list.elements;
	operand->count = list.count;
}

/* After '['. */
static void
parse_address(struct gs_parser *parser, struct gs_operand *operand)
{
	const struct gs_lexer *lexer = &parser->lexer;

	operand->kind = GS_OPERAND_ADDRESS;
	if (lexer->kind == GS_TOKEN_NUMBER || gs_parser_is(parser, "-")) {
		operand->imm = gs_parser_integer(parser);
	} else {
		operand->reg = gs_parser_find_reg(parser, lexer->text, lexer->len);
		if (operand->reg < 0)
			operand->symbol = gs_parser_find_symbol(parser, lexer->text, lexer->len);
		if (operand->reg < 0 && operand->symbol < 0) {
			gs_parser_fail(parser, "unknown name '%.*s' in an address",
				       (int)(lexer->len > 80 ? 80 : lexer->len), lexer->text);
			return;
		}
		gs_lexer_next(&parser->lexer);
		parse_offset(parser, operand);
	}
	if (gs_parser_is(parser, ",") && !parser->takes_coordinates)
		gs_parser_unsupported(parser,
				      "instruction '%s' with texture operands is not supported",
				      parser->instruction);
	else if (gs_parser_accept(parser, ","))
		parse_coordinates(parser, operand);
	gs_parser_expect(parser, "]");
}

static void
parse_special(struct gs_parser *parser, struct gs_operand *operand)
{
	const char *text = parser->lexer.text + 1;
	size_t len = parser->lexer.len - 1;
	size_t envreg = strlen("envreg");
	int found = -1;

	if (len > envreg && len <= envreg + 2 && memcmp(text, "envreg", envreg) == 0) {
		found = GS_SPECIAL_ENVREG;
		operand->dim = (uint8_t)atoi(text + envreg);
	}
	if (found < 0)
		found = gs_special_named(text, len);
	if (found < 0 && gs_special_is_unsupported(text, len)) {
		gs_parser_unsupported(parser, "register '%%%.*s' is not supported",
				      (int)(len > 80 ? 80 : len), text);
		return;
	}
	if (found < 0) {
		gs_parser_fail(parser, "unknown register '%%%.*s'", (int)(len > 80 ? 80 : len),
			       text);
		return;
	}
	operand->kind = GS_OPERAND_SPECIAL;
	operand->reg = found;
	gs_lexer_next(&parser->lexer);
	if (parser->lexer.kind == GS_TOKEN_DIRECTIVE && parser->lexer.len == 2 &&
	    memchr("xyzw", parser->lexer.text[1], 4)) {
		operand->dim =
			parser->lexer.text[1] == 'w' ? 3 : (uint8_t)(parser->lexer.text[1] - 'x');
		gs_lexer_next(&parser->lexer);
	}
}

static void
parse_name(struct gs_parser *parser, struct gs_operand *operand)
{
	const char *text = parser->lexer.text;
	size_t len = parser->lexer.len;

	operand->reg = gs_parser_find_reg(parser, text, len);
	if (operand->reg >= 0) {
		operand->kind = GS_OPERAND_REG;
		gs_lexer_next(&parser->lexer);
		return;
	}
	if (text[0] == '%') {
		parse_special(parser, operand);
		return;
	}
	gs_lexer_next(&parser->lexer);
	if (same_word("_", text, len)) {
		operand->kind = GS_OPERAND_SINK;
		return;
	}
	if (same_word("WARP_SZ", text, len)) {
		operand->kind = GS_OPERAND_IMM;
		operand->imm = 32;
		return;
	}
	operand->symbol = gs_parser_find_symbol(parser, text, len);
	if (operand->symbol >= 0) {
		operand->kind = GS_OPERAND_SYMBOL;
		parse_offset(parser, operand);
		return;
	}
	operand->symbol = gs_names_find(&parser->function_names, text, len);
	if (operand->symbol >= 0) {
		operand->kind = GS_OPERAND_FUNCTION;
		return;
	}
	operand->kind = GS_OPERAND_LABEL;
	operand->reg = gs_parser_label(parser, text, len);
}

static void
parse_literal(struct gs_parser *parser, struct gs_operand *operand)
{
	bool negative = gs_parser_accept(parser, "-");
	const struct gs_lexer *lexer = &parser->lexer;
	bool is_float = lexer->kind == GS_TOKEN_FLOAT;

	if (lexer->kind != GS_TOKEN_NUMBER && !is_float) {
		gs_parser_fail(parser, "expected an operand instead of '%.*s'",
			       (int)(lexer->len > 40 ? 40 : lexer->len), lexer->text);
		return;
	}
	operand->kind = GS_OPERAND_IMM;
	operand->imm = (int64_t)lexer->number;
	if (is_float)
		operand->float_size = lexer->float_size;
	if (negative && is_float)
		operand->imm ^= (int64_t)(1ull << (lexer->float_size * 8 - 1));
	else if (negative)
		operand->imm = (int64_t)(0 - lexer->number);
	gs_lexer_next(&parser->lexer);
}

static void
parse_scalar(struct gs_parser *parser, struct gs_operand *operand)
{
	*operand = (struct gs_operand){ .reg = -1, .symbol = -1 };
	if (gs_parser_accept(parser, "["))
		parse_address(parser, operand);
	else if (gs_parser_accept(parser, "!")) {
		parse_name(parser, operand);
		operand->negated = true;
		if (operand->kind != GS_OPERAND_REG)
			gs_parser_fail(parser, "'!' before something else than a register");
	} else if (parser->lexer.kind == GS_TOKEN_WORD)
		parse_name(parser, operand);
	else
		parse_literal(parser, operand);
}

/* Parses a list up to the closing character as a vector operand. */
static void
parse_list(struct gs_parser *parser, struct gs_operand *operand, const char *close, size_t limit)
{
	struct gs_operand *elements = NULL;
	size_t capacity = 0;
	size_t count = 0;

	*operand = (struct gs_operand){ .kind = GS_OPERAND_VECTOR, .reg = -1, .symbol = -1 };
	while (!gs_parser_is(parser, close) && !parser->failed) {
		if (!gs_parser_grow(parser, (void **)&elements, sizeof(*elements), count, &capacity,
				    limit, "elements"))
			return;
		parse_scalar(parser, &elements[count++]);
		if (!gs_parser_accept(parser, ","))
			break;
	}
	gs_parser_expect(parser, close);
	operand->elements = elements;
	operand->count = (uint8_t)count;
}

static void
parse_operand(struct gs_parser *parser, struct gs_operand *operand)
{
	if (gs_parser_accept(parser, "{"))
		parse_list(parser, operand, "}", GS_PTX_MAX_VECTOR);
	else
		parse_scalar(parser, operand);
}

/* call (results), target, (arguments), prototype: the operands are always results, target,
 * arguments. */
static int
parse_call(struct gs_parser *parser, struct gs_operand *operands)
{
	const struct gs_operand empty = { .kind = GS_OPERAND_VECTOR, .reg = -1, .symbol = -1 };

	operands[0] = operands[2] = empty;
	if (gs_parser_accept(parser, "(")) {
		parse_list(parser, &operands[0], ")", 255);
		gs_parser_expect(parser, ",");
	}
	parse_operand(parser, &operands[1]);
	if (operands[1].kind != GS_OPERAND_REG && operands[1].kind != GS_OPERAND_FUNCTION)
		gs_parser_fail(parser, "the call's target is no declared function");
	if (!gs_parser_accept(parser, ","))
		return 3;
	if (gs_parser_accept(parser, "(")) {
		parse_list(parser, &operands[2], ")", 255);
		if (!gs_parser_accept(parser, ","))
			return 3;
	}
	/* The prototype adds nothing to the arguments. */
	if (parser->lexer.kind == GS_TOKEN_WORD)
		gs_lexer_next(&parser->lexer);
	return 3;
}

static int
parse_operands(struct gs_parser *parser, struct gs_insn *insn, struct gs_operand *operands)
{
	int count = 0;

	if (insn->op == GS_OP_call)
		return parse_call(parser, operands);
	if (gs_parser_is(parser, ";"))
		return 0;
	do {
		if (count + 2 > GS_PTX_MAX_OPERANDS) {
			gs_parser_fail(parser, "too many operands");
			return 0;
		}
		parse_operand(parser, &operands[count++]);
		if (gs_parser_accept(parser, "|")) {
			parse_operand(parser, &operands[count++]);
			insn->pair = count == 2;
		}
	} while (gs_parser_accept(parser, ",") && !parser->failed);
	return count;
}

void
gs_parse_insn(struct gs_parser *parser)
{
	struct gs_ptx_function *function = parser->function;
	struct gs_insn insn = { .pred = -1, .line = parser->lexer.line };
	struct gs_operand operands[GS_PTX_MAX_OPERANDS];
	struct gs_operand *kept;
	int count;

	parse_guard(parser, &insn);
	if (parser->failed || !parse_opcode(parser, &insn))
		return;
	parse_modifiers(parser, &insn);
	/* Its operands may have any form. */
	if (insn.unknown_modifier) {
		gs_parser_unsupported(parser, "instruction '%.*s': not supported",
				      (int)(insn.spelling_len > 100 ? 100 : insn.spelling_len),
				      insn.spelling);
		return;
	}
	parser->takes_coordinates = is_of_textures(&insn);
	count = parse_operands(parser, &insn, operands);
	gs_parser_expect(parser, ";");
	if (parser->failed)
		return;
	kept = gs_parser_alloc(parser, sizeof(*kept) * (size_t)(count + 1));
	if (!kept || !gs_parser_grow(parser, (void **)&function->insns, sizeof(*function->insns),
				     function->insn_count, &parser->insn_capacity, GS_PTX_MAX_INSNS,
				     "instructions"))
		return;
	memcpy(kept, operands, sizeof(*kept) * (size_t)count);
	insn.operands = kept;
	insn.operand_count = (uint8_t)count;
	function->insns[function->insn_count++] = insn;
}
