/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX grammar, outside of all braces. Kernels: [.visible] .entry NAME [ ( .param ..., .param ... )
 * ] ..., where .param is .param [.align N] .TYPE [.ptr [.SPACE] [.align N]] NAME [ '[' N ']' ... ].
 * Variables: .global or .const, [.attribute(...)] [.align N] [.vN] .TYPE, a list of NAME [ '[' N
 * ']' ... ] [ = ... ], and a semicolon; the first N may be omitted if { VALUE, ... } determines it.
 */
#include "image/image_params.h"
#include "protocol/frame.h"

#include <string.h>

/* In earlier versions parameters could be declared in the body. */
#define MAJOR_MIN 2
#define WARP_SIZE 32

struct text {
	const char *at, *end;
	bool understood;
};

static const struct {
	const char *word;
	uint32_t size;
} types[] = {
	{ ".b8", 1 },  { ".u8", 1 },  { ".s8", 1 },    { ".b16", 2 }, { ".u16", 2 },
	{ ".s16", 2 }, { ".f16", 2 }, { ".bf16", 2 },  { ".b32", 4 }, { ".u32", 4 },
	{ ".s32", 4 }, { ".f32", 4 }, { ".f16x2", 4 }, { ".b64", 8 }, { ".u64", 8 },
	{ ".s64", 8 }, { ".f64", 8 }, { ".b128", 16 },
};

/* Words that may follow .ptr. */
static const char *const spaces[] = { ".const", ".global", ".local", ".shared" };

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_name_char(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       c == '$' || c == '%';
}

/* Skips to the position after the next mark, or to the end of the text. */
static void
skip_past(struct text *text, const char *mark)
{
	const char *there = memmem(text->at, (size_t)(text->end - text->at), mark, strlen(mark));

	text->at = there ? there + strlen(mark) : text->end;
}

static bool
text_begins_with(const struct text *text, const char *word)
{
	size_t length = strlen(word);

	return (size_t)(text->end - text->at) >= length && memcmp(text->at, word, length) == 0;
}

/* Skips space and comments; also preprocessor directives, which could have changed the rest. */
static void
skip_space(struct text *text)
{
	while (text->at < text->end) {
		char c = *text->at;

		if (c == ' ' || (c >= '\t' && c <= '\r')) {
			text->at++;
		} else if (text_begins_with(text, "/*")) {
			text->at += 2;
			skip_past(text, "*/");
		} else if (c == '#' || text_begins_with(text, "//")) {
			text->understood = text->understood && c != '#';
			skip_past(text, "\n");
		} else {
			return;
		}
	}
}

static bool
accept_char(struct text *text, char c)
{
	skip_space(text);
	if (text->at == text->end || *text->at != c)
		return false;
	text->at++;
	return true;
}

/* A name, or a word with a leading dot. */
static struct gp_bytes
parse_word(struct text *text)
{
	const char *begin;

	skip_space(text);
	begin = text->at;
	if (text->at < text->end && *text->at == '.')
		text->at++;
	while (text->at < text->end && is_name_char(*text->at))
		text->at++;
	return (struct gp_bytes){ begin, (size_t)(text->at - begin) };
}

static bool
word_equals(struct gp_bytes word, const char *text)
{
	return word.size == strlen(text) && memcmp(word.data, text, word.size) == 0;
}

static uint32_t
digit_to_value(char c)
{
	if (is_digit(c))
		return (uint32_t)(c - '0');
	c |= ' ';
	return c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10 : UINT32_MAX;
}

/* Parses a PTX integer of up to 64 bits: 12, 0x1f, 017, 0b101, with an optional U suffix. */
static bool
parse_number(struct text *text, uint64_t *number_p)
{
	struct gp_bytes word = parse_word(text);
	const char *at = word.data, *end = at + word.size;
	uint64_t number = 0;
	uint32_t base = 10;

	if (word.size == 0 || !is_digit(*at))
		return false;
	if (end[-1] == 'U')
		end--;
	if (end - at > 2 && at[0] == '0' && ((at[1] | ' ') == 'x' || (at[1] | ' ') == 'b')) {
		base = (at[1] | ' ') == 'x' ? 16 : 2;
		at += 2;
	} else if (*at == '0') {
		base = 8;
	}
	for (; at < end; at++) {
		uint32_t value = digit_to_value(*at);

		if (value >= base || __builtin_mul_overflow(number, base, &number) ||
		    __builtin_add_overflow(number, value, &number))
			return false;
	}
	*number_p = number;
	return true;
}

static bool
parse_align(struct text *text, uint32_t *align_p)
{
	uint64_t align;

	if (!parse_number(text, &align) || align == 0 || align > GP_LAUNCH_PARAMS_MAX ||
	    (align & (align - 1)) != 0)
		return false;
	*align_p = (uint32_t)align;
	return true;
}

static uint32_t
type_get_size(struct gp_bytes word)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (word_equals(word, types[i].word))
			return types[i].size;
	}
	return 0;
}

static bool
word_is_space(struct gp_bytes word)
{
	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		if (word_equals(word, spaces[i]))
			return true;
	}
	return false;
}

/* [.align N] .TYPE [.ptr [.SPACE] [.align N]] NAME */
static bool
parse_declaration(struct text *text, uint32_t *size_p, uint32_t *align_p)
{
	uint32_t of_pointee;
	bool pointer = false;

	*size_p = *align_p = 0;
	for (;;) {
		struct gp_bytes word = parse_word(text);

		if (word.size == 0)
			return false;
		if (*(const char *)word.data != '.')
			return *size_p > 0;
		if (word_equals(word, ".align")) {
			if (!parse_align(text, pointer ? &of_pointee : align_p))
				return false;
		} else if (*size_p == 0) {
			*size_p = type_get_size(word);
			if (*size_p == 0)
				return false;
		} else if (word_equals(word, ".ptr") && !pointer) {
			pointer = true;
		} else if (!pointer || !word_is_space(word)) {
			return false;
		}
	}
}

/* Parses a parameter that follows the one that ends at `end`. */
static bool
parse_param(struct text *text, uint32_t end, struct gp_param_info *param)
{
	uint64_t total, count;
	uint32_t size, align;

	if (!word_equals(parse_word(text), ".param") || !parse_declaration(text, &size, &align))
		return false;
	total = size;
	if (align == 0)
		align = size;
	while (accept_char(text, '[')) {
		if (!parse_number(text, &count) || !accept_char(text, ']'))
			return false;
		if (__builtin_mul_overflow(total, count, &total) || total > GP_LAUNCH_PARAMS_MAX)
			return false;
	}
	param->offset = (end + align - 1) / align * align;
	param->size = (uint32_t)total;
	return param->offset + param->size <= GP_LAUNCH_PARAMS_MAX;
}

/* Parses the list after the opening parenthesis. If it returns false, the position is somewhere in
 * the list. */
static bool
parse_params(struct text *text, struct gp_params_reader *reader, uint32_t *count_p)
{
	uint32_t end = 0;

	*count_p = 0;
	if (accept_char(text, ')'))
		return true;
	do {
		struct gp_param_info *param = &reader->params[*count_p];

		if (*count_p == GP_KERNEL_PARAMS_MAX || !parse_param(text, end, param))
			return false;
		end = param->offset + param->size;
		++*count_p;
	} while (accept_char(text, ','));
	return accept_char(text, ')');
}

/* Parses a kernel after .entry. */
static void
parse_entry(struct text *text, struct gp_params_reader *reader)
{
	struct gp_bytes name = parse_word(text);
	struct gp_kernel_params found = { .name = name.data, .name_size = name.size };

	if (name.size == 0 || *found.name == '.') {
		text->understood = false;
		return;
	}
	found.readable = !accept_char(text, '(') || parse_params(text, reader, &found.count);
	found.params = reader->params;
	if (!found.readable)
		found.count = 0;
	reader->found(reader->data, &found);
}

static void
skip_string(struct text *text)
{
	while (++text->at < text->end && *text->at != '"' && *text->at != '\n') {
		if (*text->at == '\\' && text->at + 1 < text->end)
			text->at++;
	}
	if (text->at < text->end)
		text->at++;
}

/* Skips to the position after the matching closing brace. Most of the text is within braces. */
static void
skip_body(struct text *text)
{
	static const char marks[256] = { ['{'] = 1, ['}'] = 1, ['"'] = 1, ['/'] = 1, ['#'] = 1 };
	uint32_t depth = 0;

	while (text->at < text->end) {
		char c = *text->at;

		if (!marks[(uint8_t)c]) {
			text->at++;
		} else if (c == '"') {
			skip_string(text);
		} else if (c == '#' || text_begins_with(text, "//") ||
			   text_begins_with(text, "/*")) {
			skip_space(text);
		} else {
			text->at++;
			depth += c == '{';
			if (c == '}' && --depth == 0)
				return;
		}
	}
	text->understood = false;
}

/* Skips to the position after the matching closing parenthesis. */
static void
skip_parentheses(struct text *text)
{
	uint32_t depth = 0;

	while (skip_space(text), text->at < text->end) {
		char c = *text->at++;

		depth += c == '(';
		if (c == ')' && --depth == 0)
			return;
	}
	text->understood = false;
}

/* Skips a variable's initializer, up to the comma or semicolon. */
static void
skip_value(struct text *text)
{
	while (skip_space(text), text->at < text->end && *text->at != ',' && *text->at != ';') {
		if (*text->at == '{')
			skip_body(text);
		else if (*text->at == '"')
			skip_string(text);
		else if (*text->at == '(')
			skip_parentheses(text);
		else
			text->at++;
	}
}

/* After .attribute: whether the list contains this attribute. */
static bool
parse_attributes(struct text *text, const char *wanted)
{
	const char *begin = text->at;
	bool found = false;
	struct text inside;

	skip_parentheses(text);
	inside = (struct text){ begin, text->at, true };
	while (skip_space(&inside), inside.at < inside.end) {
		struct gp_bytes word = parse_word(&inside);

		found = found || word_equals(word, wanted);
		inside.at += word.size == 0;
	}
	return found;
}

/* Parses the words before a variable's name. *size_p: bytes of an element, 0: unknown. Returns
 * false if no name follows. */
static bool
parse_element(struct text *text, uint32_t *size_p, bool *managed_p)
{
	uint32_t vector = 1, align;
	bool known = true;

	*size_p = 0;
	*managed_p = false;
	while (skip_space(text), text->at < text->end && *text->at == '.') {
		struct gp_bytes word = parse_word(text);

		if (word_equals(word, ".attribute"))
			*managed_p = parse_attributes(text, ".managed") || *managed_p;
		else if (word_equals(word, ".align"))
			known = parse_align(text, &align) && known;
		else if (word_equals(word, ".v2") || word_equals(word, ".v4") ||
			 word_equals(word, ".v8"))
			vector = (uint32_t)(((const char *)word.data)[2] - '0');
		else if (*size_p == 0 && type_get_size(word))
			*size_p = type_get_size(word);
		else
			known = false;
	}
	*size_p = known ? *size_p * vector : 0;
	return text->at < text->end && is_name_char(*text->at) && !is_digit(*text->at);
}

/* Counts the values between braces; nested braces are skipped. Returns false for anything else, or
 * if there are none. */
static bool
parse_values(struct text *text, uint64_t *count)
{
	bool known = true, any = false;

	*count = 0;
	if (!accept_char(text, '{'))
		return false;
	while (skip_space(text), text->at < text->end) {
		char c = *text->at;

		if (c == ',' || c == '}') {
			text->at++;
			known = known && any;
			any = false;
			++*count;
			if (c == '}')
				return known;
			continue;
		}
		any = true;
		if (c == '{')
			skip_body(text);
		else if (c == '"')
			skip_string(text);
		else if (c == '(')
			skip_parentheses(text);
		else
			text->at++;
	}
	text->understood = false;
	return false;
}

static bool
parse_count(struct text *text, uint64_t *count)
{
	const char *begin = text->at;

	if (word_equals(parse_word(text), "WARP_SZ")) {
		*count = WARP_SIZE;
		return true;
	}
	text->at = begin;
	return parse_number(text, count);
}

/* Returns false if a dimension is unknown. *counted: the first dimension is determined by the
 * initializer. */
static bool
parse_dimensions(struct text *text, uint64_t *size, bool *counted)
{
	bool known = true, first = true;
	uint64_t count;

	for (*counted = false; accept_char(text, '['); first = false) {
		if (first && accept_char(text, ']')) {
			*counted = true;
			continue;
		}
		if (!parse_count(text, &count) || __builtin_mul_overflow(*size, count, size))
			known = false;
		if (!accept_char(text, ']')) {
			known = false;
			skip_past(text, "]");
		}
	}
	return known;
}

/* Parses the variables after .global or .const, which is at `space`. */
static void
parse_variables(struct text *text, struct gp_params_reader *reader, const char *space)
{
	bool counted, begun, managed;
	uint32_t element;
	uint64_t count;

	/* Numbered constant bank. */
	if (accept_char(text, '['))
		skip_past(text, "]");
	if (!parse_element(text, &element, &managed)) {
		text->understood = false;
		return;
	}
	do {
		struct gp_bytes name = parse_word(text);
		struct gp_variable_size found = { .name = name.data,
						  .name_size = name.size,
						  .managed = managed,
						  .size = element,
						  .space = space };

		if (name.size == 0 || *found.name == '.') {
			text->understood = false;
			return;
		}
		found.readable = parse_dimensions(text, &found.size, &counted) && element > 0;
		begun = accept_char(text, '=');
		if (counted)
			found.readable = begun && parse_values(text, &count) && found.readable &&
					 !__builtin_mul_overflow(found.size, count, &found.size);
		if (begun)
			skip_value(text);
		reader->found_variable(reader->data, &found);
	} while (accept_char(text, ','));
	text->understood = accept_char(text, ';') && text->understood;
}

/* Whether the text has a PTX version with the grammar above. */
static bool
text_has_version(const char *begin, size_t size)
{
	struct text text = { begin, begin + size, true };

	skip_space(&text);
	return word_equals(parse_word(&text), ".version") &&
	       (skip_space(&text), text.at < text.end) && is_digit(*text.at) &&
	       ((text.at + 1 < text.end && is_digit(text.at[1])) || *text.at - '0' >= MAJOR_MIN);
}

/* Excludes variables that another image defines (.extern), and the target space of pointer
 * parameters (.ptr). */
static bool
word_is_variable(struct gp_bytes before, struct gp_bytes word)
{
	return (word_equals(word, ".global") || word_equals(word, ".const")) &&
	       !word_equals(before, ".extern") && !word_equals(before, ".ptr");
}

bool
gp_params_read_ptx(struct gp_params_reader *reader, const char *begin, size_t size)
{
	struct text text = { begin, begin + strnlen(begin, size), true };
	struct gp_bytes before = { "", 0 };

	if (!text_has_version(begin, (size_t)(text.end - text.at)))
		return false;
	if (reader->found_variable &&
	    memmem(begin, (size_t)(text.end - begin), GP_PRINT_SYMBOL, strlen(GP_PRINT_SYMBOL)))
		reader->prints = true;
	while (skip_space(&text), text.at < text.end) {
		struct gp_bytes word;

		if (*text.at == '"') {
			skip_string(&text);
		} else if (*text.at == '{') {
			skip_body(&text);
		} else {
			word = parse_word(&text);
			if (word_equals(word, ".entry"))
				parse_entry(&text, reader);
			else if (word_is_variable(before, word) && reader->found_variable)
				parse_variables(&text, reader, word.data);
			else if (word.size == 0)
				text.at++;
			before = word;
		}
	}
	return text.understood;
}
