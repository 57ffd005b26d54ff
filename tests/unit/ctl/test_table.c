/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for people and for programs. */
#include "ctl/table.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

static const struct ctl_column columns[] = {
	{ "ID", "id", CTL_NUMBER },       { "NAME", "name", CTL_TEXT },
	{ "MEMORY", "bytes", CTL_BYTES }, { "LIMIT", "limit", CTL_LIMIT },
	{ "TIME", "seconds", CTL_NS },    { "SHARE", "percent", CTL_PERCENT },
	{ "NOTE", NULL, CTL_TEXT },
};

static struct ctl_table table;
static char *text;

static int
set_up(void **state)
{
	ctl_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	return 0;
}

static int
tear_down(void **state)
{
	ctl_table_fini(&table);
	free(text);
	text = NULL;
	return 0;
}

static void
add(uint64_t id, const char *name, uint64_t limit)
{
	ctl_table_number(&table, id);
	ctl_table_text(&table, name);
	ctl_table_number(&table, 3 << 19);
	ctl_table_number(&table, limit);
	ctl_table_number(&table, 1000000002);
	ctl_table_number(&table, 1205);
	ctl_table_text(&table, "note");
}

static const char *
print(void (*how)(const struct ctl_table *, enum ctl_format, FILE *), enum ctl_format format)
{
	size_t size;
	FILE *file;

	free(text);
	file = open_memstream(&text, &size);
	assert_non_null(file);
	how(&table, format, file);
	assert_int_equal(fclose(file), 0);
	return text;
}

#define TEST(test) UNIT_TEST_WITH(test, set_up, tear_down)

TEST(columns_are_as_wide_as_their_widest_cell)
{
	add(7, "a", UINT64_MAX);
	add(1234, "longer", 1 << 30);
	assert_string_equal(print(ctl_table_print, CTL_FORMAT_TABLE),
			    "  ID  NAME     MEMORY  LIMIT    TIME   SHARE  NOTE\n"
			    "   7  a       1.5 MiB      -  1.00 s  12.1 %  note\n"
			    "1234  longer  1.5 MiB  1 GiB  1.00 s  12.1 %  note\n");
}

TEST(csv_has_a_header_raw_numbers_and_quotes_where_they_are_needed)
{
	add(7, "a,\"b\"\nc", UINT64_MAX);
	add(UINT64_MAX, NULL, 5);
	assert_string_equal(print(ctl_table_print, CTL_FORMAT_CSV),
			    "id,name,bytes,limit,seconds,percent\n"
			    "7,\"a,\"\"b\"\"\nc\",1572864,,1.000000002,12.05\n"
			    ",,1572864,5,1.000000002,12.05\n");
}

TEST(json_is_an_array_and_keeps_every_digit)
{
	add(UINT64_MAX - 1, "a\"b", UINT64_MAX);
	assert_non_null(
		strstr(print(ctl_table_print, CTL_FORMAT_JSON), "\"id\":\t18446744073709551614"));
	assert_int_equal(text[0], '[');
	assert_non_null(strstr(text, "\"a\\\"b\""));
	assert_non_null(strstr(text, "\"limit\":\tnull"));
	assert_null(strstr(text, "note"));
}

TEST(json_is_utf8_whatever_the_text_is)
{
	static const struct {
		const char *text, *shown;
	} rows[] = {
		{ "J\u00f6rg \u20ac \U0001f600", "J\u00f6rg \u20ac \U0001f600" },
		{ "caf\xe9", "caf\\\\xe9" },
		{ "\xc3", "\\\\xc3" },
		{ "\xc0\xaf", "\\\\xc0\\\\xaf" },
		{ "\xed\xa0\x80", "\\\\xed\\\\xa0\\\\x80" },
		{ "\xe0\x80\x80", "\\\\xe0" },
		{ "\xf4\x90\x80\x80", "\\\\xf4" },
		{ "\xf0\x80\x80\x80", "\\\\xf0" },
		{ "\x80", "\\\\x80" },
		{ "\xff", "\\\\xff" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char wanted[64];

		(void)snprintf(wanted, sizeof(wanted), "\"name\":\"%s", rows[i].shown);
		ctl_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
		add(7, rows[i].text, 5);
		if (!strstr(print(ctl_table_print, CTL_FORMAT_LINES), wanted))
			fail_msg("%s is not in %s", wanted, text);
		ctl_table_fini(&table);
	}
}

TEST(json_that_others_follow_is_one_line)
{
	assert_string_equal(print(ctl_table_print, CTL_FORMAT_LINES), "[]\n");
	add(7, "a\nb", 5);
	add(8, "c", UINT64_MAX);
	assert_string_equal(print(ctl_table_print, CTL_FORMAT_LINES),
			    "[{\"id\":7,\"name\":\"a\\nb\",\"bytes\":1572864,\"limit\":5,"
			    "\"seconds\":1.000000002,\"percent\":12.05},"
			    "{\"id\":8,\"name\":\"c\",\"bytes\":1572864,\"limit\":null,"
			    "\"seconds\":1.000000002,\"percent\":12.05}]\n");
}

TEST(nobody_is_an_empty_list)
{
	assert_string_equal(print(ctl_table_print, CTL_FORMAT_JSON), "[]\n");
	assert_string_equal(print(ctl_table_print, CTL_FORMAT_CSV),
			    "id,name,bytes,limit,seconds,percent\n");
	assert_string_equal(print(ctl_table_print, CTL_FORMAT_TABLE),
			    "ID  NAME  MEMORY  LIMIT  TIME  SHARE  NOTE\n");
}

TEST(a_record_is_a_line_for_each_value_and_an_object)
{
	add(7, "", 5);
	assert_non_null(strstr(print(ctl_table_print_records, CTL_FORMAT_TABLE),
			       "ID:     7\nNAME:   -\nMEMORY: 1.5 MiB\nLIMIT:  5 B\n"));
	assert_int_equal(print(ctl_table_print_records, CTL_FORMAT_JSON)[0], '{');
	add(8, "", 5);
	assert_int_equal(print(ctl_table_print_records, CTL_FORMAT_JSON)[0], '[');
}

UNIT_TEST_MAIN(NULL, NULL)
