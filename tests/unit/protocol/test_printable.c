/* SPDX-License-Identifier: Apache-2.0 */
/* Text from a peer cannot affect a log or a terminal. */
#include "protocol/printable.h"
#include "tests/test.h"

#include <string.h>

static void
expect(const char *from, const char *expected)
{
	char text[256];

	assert_int_equal(gp_printable_text(text, sizeof(text), from), strlen(expected));
	assert_string_equal(text, expected);
	/* Once is enough. */
	assert_int_equal(gp_printable_text(text, sizeof(text), expected), strlen(expected));
	assert_string_equal(text, expected);
}

UNIT_TEST(whatever_is_not_printable_ascii_is_escaped)
{
	expect("", "");
	expect("gpunode 17 ./a.out ~", "gpunode 17 ./a.out ~");
	expect("a\nb\r\t\033[2J\a", "a\\x0ab\\x0d\\x09\\x1b[2J\\x07");
	expect("\x7f\x80\xff\xfe", "\\x7f\\x80\\xff\\xfe");
	/* CSI of C1, right-to-left override, line separator, next line. */
	expect("h\xc2\x9b"
	       "2J\u202eg\u2028x\xc2\x85",
	       "h\\xc2\\x9b2J\\xe2\\x80\\xaeg\\xe2\\x80\\xa8x\\xc2\\x85");
	expect("C:\\x", "C:\\x");
}

UNIT_TEST(every_byte_is_one_or_the_other)
{
	for (int c = 1; c < 256; c++) {
		char from[2] = { (char)c, 0 }, text[8];
		size_t length = gp_printable_text(text, sizeof(text), from);

		assert_int_equal(length, c >= 0x20 && c <= 0x7e ? 1 : 4);
		for (size_t i = 0; i < length; i++)
			assert_in_range(text[i], 0x20, 0x7e);
	}
}

UNIT_TEST(what_does_not_fit_is_left_out_whole)
{
	char text[16];

	memset(text, '#', sizeof(text));
	assert_int_equal(gp_printable_text(text, 8, "abcd\033e"), 4);
	assert_string_equal(text, "abcd");
	assert_int_equal(text[8], '#');
	assert_int_equal(gp_printable_text(text, 9, "abcd\033e"), 8);
	assert_string_equal(text, "abcd\\x1b");
	assert_int_equal(gp_printable_text(text, 1, "abc"), 0);
	assert_string_equal(text, "");
}

UNIT_TEST(name_that_could_be_mistaken_for_other_text_is_quoted)
{
	static const char *const cases[][2] = {
		{ "python3.11", "python3.11" },
		{ "gpu-node_1.example.org", "gpu-node_1.example.org" },
		{ "/usr/bin/a+b@c~", "/usr/bin/a+b@c~" },
		{ "", "\"\"" },
		{ "my program", "\"my program\"" },
		{ "x): open from tcp://10.0.0.1:1", "\"x): open from tcp://10.0.0.1:1\"" },
		{ "a\"b", "\"a\\\"b\"" },
		{ "a\\", "\"a\\\\\"" },
		{ "a\nb", "\"a\\x0ab\"" },
	};
	char text[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(gp_printable_name(text, sizeof(text), cases[i][0]),
				 strlen(cases[i][1]));
		assert_string_equal(text, cases[i][1]);
	}
	/* Truncated text ends with its quote, and no escape sequence is split. */
	for (size_t size = 3; size < 16; size++) {
		size_t length;

		memset(text, '#', sizeof(text));
		length = gp_printable_name(text, size, "a \"\\\n)");
		assert_true(length < size && strlen(text) == length && text[size] == '#');
		assert_true(text[0] == '"' && text[length - 1] == '"');
	}
	assert_int_equal(gp_printable_name(text, 6, "a\"\"\""), 5);
	assert_string_equal(text, "\"a\\\"\"");
}

UNIT_TEST(text_that_a_spreadsheet_would_calculate_is_a_formula)
{
	static const char *const formulas[] = { "=1+1", "+1", "-1", "@A1", "\t=1", "\r=1" };
	static const char *const others[] = { "", "-", "a=1", "1", "'=1", " =1", "\"=1" };

	for (size_t i = 0; i < sizeof(formulas) / sizeof(formulas[0]); i++)
		assert_true(gp_printable_is_formula(formulas[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(gp_printable_is_formula(others[i]));
}

UNIT_TEST_MAIN(NULL, NULL)
