/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/table.h"

#include "ctl/value.h"
#include "protocol/printable.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static void *
require_memory(void *memory)
{
	if (memory)
		return memory;
	fprintf(stderr, "%s: out of memory\n", program_invocation_short_name);
	exit(1);
}

void
ctl_table_init(struct ctl_table *table, const struct ctl_column *columns, size_t count)
{
	*table = (struct ctl_table){ .columns = columns, .column_count = count };
}

void
ctl_table_fini(struct ctl_table *table)
{
	for (size_t i = 0; i < table->cell_count; i++)
		free(table->cells[i].text);
	free(table->cells);
	table->cells = NULL;
	table->cell_count = 0;
}

static struct ctl_cell *
cell_add(struct ctl_table *table)
{
	if (table->cell_count == table->capacity) {
		table->capacity = table->capacity ? 2 * table->capacity : 64;
		table->cells = require_memory(
			realloc(table->cells, table->capacity * sizeof(*table->cells)));
	}
	table->cells[table->cell_count] = (struct ctl_cell){ 0 };
	return &table->cells[table->cell_count++];
}

void
ctl_table_text(struct ctl_table *table, const char *text)
{
	struct ctl_cell *cell = cell_add(table);

	if (text)
		cell->text = require_memory(strdup(text));
}

void
ctl_table_number(struct ctl_table *table, uint64_t number)
{
	cell_add(table)->number = number;
}

/* For people. */

static const char *
cell_format(enum ctl_kind kind, const struct ctl_cell *cell, char *text)
{
	uint64_t now = (uint64_t)time(NULL);

	switch (kind) {
	case CTL_TEXT:
		return cell->text && *cell->text ? cell->text : "-";
	case CTL_BYTES:
		return ctl_format_bytes(cell->number, text);
	case CTL_LIMIT:
		return cell->number == UINT64_MAX ? "-" : ctl_format_bytes(cell->number, text);
	case CTL_NS:
		return ctl_format_ns(cell->number, text);
	case CTL_SINCE:
		return ctl_format_age(now > cell->number ? now - cell->number : 0, text);
	case CTL_DATE:
		return ctl_format_date(cell->number, text);
	case CTL_PERCENT:
		snprintf(text, CTL_VALUE_MAX, "%.1f %%", (double)cell->number / 100);
		return text;
	default:
		if (cell->number == UINT64_MAX)
			return "-";
		snprintf(text, CTL_VALUE_MAX, "%llu", (unsigned long long)cell->number);
		return text;
	}
}

size_t
ctl_terminal_width(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void
ctl_table_fit(struct ctl_table *table, size_t width, const char *const *least, size_t count)
{
	table->width = width;
	table->least = least;
	table->least_count = count;
}

/* Omits columns that do not fit, by setting their width to 0. */
static void
columns_fit(const struct ctl_table *t, size_t *widths)
{
	size_t sum = 0;

	for (size_t c = 0; c < t->column_count; c++)
		sum += widths[c] + 2;
	for (size_t i = t->least_count; t->width && i > 0 && sum > t->width + 2; i--) {
		for (size_t c = 0; c < t->column_count; c++) {
			if (strcmp(t->columns[c].key, t->least[i - 1]) != 0 || !widths[c])
				continue;
			sum -= widths[c] + 2;
			widths[c] = 0;
		}
	}
}

static size_t
get_last_visible(const struct ctl_table *t, const size_t *widths)
{
	size_t last = t->column_count - 1;

	while (last && !widths[last])
		last--;
	return last;
}

static void
print_aligned(const struct ctl_table *t, FILE *file)
{
	size_t *widths = require_memory(calloc(t->column_count, sizeof(*widths)));
	char text[CTL_VALUE_MAX];
	size_t end;

	for (size_t c = 0; c < t->column_count; c++)
		widths[c] = strlen(t->columns[c].title);
	for (size_t i = 0; i < t->cell_count; i++) {
		size_t c = i % t->column_count;
		size_t width = strlen(cell_format(t->columns[c].kind, &t->cells[i], text));

		if (width > widths[c])
			widths[c] = width;
	}
	columns_fit(t, widths);
	end = get_last_visible(t, widths);
	for (size_t i = 0; i < t->cell_count + t->column_count; i++) {
		size_t c = i % t->column_count;
		const char *shown = i < t->column_count
					    ? t->columns[c].title
					    : cell_format(t->columns[c].kind,
							  &t->cells[i - t->column_count], text);
		bool last = c == end;

		if (!widths[c])
			continue;

		/* Numbers are right-aligned. */
		if (t->columns[c].kind != CTL_TEXT)
			fprintf(file, "%*s%s", (int)widths[c], shown, last ? "\n" : "  ");
		else if (last)
			fprintf(file, "%s\n", shown);
		else
			fprintf(file, "%-*s  ", (int)widths[c], shown);
	}
	free(widths);
}

static void
print_lines(const struct ctl_table *t, FILE *file)
{
	char text[CTL_VALUE_MAX];
	size_t width = 0;

	for (size_t c = 0; c < t->column_count; c++) {
		if (strlen(t->columns[c].title) > width)
			width = strlen(t->columns[c].title);
	}
	for (size_t i = 0; i < t->cell_count; i++) {
		const struct ctl_column *column = &t->columns[i % t->column_count];

		if (i && i % t->column_count == 0)
			fprintf(file, "\n");
		fprintf(file, "%s:%*s %s\n", column->title, (int)(width - strlen(column->title)),
			"", cell_format(column->kind, &t->cells[i], text));
	}
}

/* For programs. */

/* Returns false if there is no value. */
static bool
cell_format_raw(enum ctl_kind kind, const struct ctl_cell *cell, char *text)
{
	if ((kind == CTL_LIMIT || kind == CTL_NUMBER || kind == CTL_DATE) &&
	    cell->number == UINT64_MAX)
		return false;
	if (kind == CTL_NS)
		snprintf(text, CTL_VALUE_MAX, "%llu.%09llu",
			 (unsigned long long)(cell->number / 1000000000),
			 (unsigned long long)(cell->number % 1000000000));
	else if (kind == CTL_PERCENT)
		snprintf(text, CTL_VALUE_MAX, "%llu.%02llu",
			 (unsigned long long)(cell->number / 100),
			 (unsigned long long)(cell->number % 100));
	else
		snprintf(text, CTL_VALUE_MAX, "%llu", (unsigned long long)cell->number);
	return true;
}

/* A text that a spreadsheet would interpret as a formula is prefixed with an apostrophe, as clients
 * choose names. */
static void
print_csv_text(const char *text, FILE *file)
{
	bool formula = gp_printable_is_formula(text);

	if (!formula && !strpbrk(text, ",\"\r\n")) {
		fputs(text, file);
		return;
	}
	fputc('"', file);
	if (formula)
		fputc('\'', file);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', file);
		fputc(*text, file);
	}
	fputc('"', file);
}

/* Keys that had another name in the previous release. */
static const struct {
	const char *key, *old_key;
} old_keys[] = {
	{ "certificate_expires", "certificate_until" },
	{ "crl_expires", "crl_until" },
	{ "next_token_expires", "next_token_until" },
	{ "sessions", "clients" },
	{ "sessions_max", "clients_max" },
	{ "sessions_total", "clients_total" },
	{ "valid_from", "begins" },
};

static const char *
get_old_key(const char *key)
{
	for (size_t i = 0; key && i < sizeof(old_keys) / sizeof(old_keys[0]); i++)
		if (strcmp(old_keys[i].key, key) == 0)
			return old_keys[i].old_key;
	return NULL;
}

/* The key at an index of a row for programs: all keys, then the old ones.  NULL: there is none. */
static const char *
get_key(const struct ctl_table *t, size_t index)
{
	if (index < t->column_count)
		return t->columns[index].key;
	return t->has_old_keys ? get_old_key(t->columns[index - t->column_count].key) : NULL;
}

/* cells NULL: the header. */
static void
print_csv_row(const struct ctl_table *t, const struct ctl_cell *cells, FILE *file)
{
	const char *separator = "";
	char text[CTL_VALUE_MAX];

	for (size_t index = 0; index < 2 * t->column_count; index++) {
		const char *key = get_key(t, index);
		size_t c = index % t->column_count;

		if (!key)
			continue;
		fputs(separator, file);
		separator = ",";
		if (!cells)
			fputs(key, file);
		else if (t->columns[c].kind == CTL_TEXT)
			print_csv_text(cells[c].text ? cells[c].text : "", file);
		else if (cell_format_raw(t->columns[c].kind, &cells[c], text))
			fputs(text, file);
	}
	fputc('\n', file);
}

static void
print_csv(const struct ctl_table *t, FILE *file)
{
	print_csv_row(t, NULL, file);
	for (size_t i = 0; i < t->cell_count; i += t->column_count)
		print_csv_row(t, &t->cells[i], file);
}

/* Returns the length of the UTF-8 character at this position, 0 if it is invalid. */
static size_t
utf8_length(const unsigned char *at)
{
	static const unsigned char least[] = { 0, 0, 0xc2, 0xe0, 0xf0 };
	size_t length = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;

	if (at[0] < least[length] || at[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < length; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong encodings, surrogates, and values above U+10FFFF. */
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
	    (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return length;
}

/* JSON is UTF-8, but a file name may contain any bytes; invalid text is escaped. */
static cJSON *
json_text(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t size = 4 * strlen(text) + 1;
	cJSON *value;
	char *printable;

	for (size_t length; *at && (length = utf8_length(at)); at += length)
		;
	if (!*at)
		return cJSON_CreateString(text);
	printable = require_memory(malloc(size));
	(void)gp_printable_text(printable, size, text);
	value = cJSON_CreateString(printable);
	free(printable);
	return value;
}

static cJSON *
json_value(enum ctl_kind kind, const struct ctl_cell *cell)
{
	char text[CTL_VALUE_MAX];

	if (kind == CTL_TEXT)
		return cell->text ? json_text(cell->text) : cJSON_CreateNull();
	/* cJSON stores numbers as doubles, which cannot represent all 64-bit values. */
	return cell_format_raw(kind, cell, text) ? cJSON_CreateRaw(text) : cJSON_CreateNull();
}

static void
print_json(const struct ctl_table *t, enum ctl_format format, bool single, FILE *file)
{
	cJSON *list = require_memory(cJSON_CreateArray()), *all;
	size_t rows = t->cell_count / t->column_count;
	char *text;

	for (size_t row = 0; row < rows; row++) {
		cJSON *object = require_memory(cJSON_CreateObject());

		cJSON_AddItemToArray(list, object);
		for (size_t index = 0; index < 2 * t->column_count; index++) {
			size_t c = index % t->column_count;
			const struct ctl_cell *cell = &t->cells[row * t->column_count + c];

			if (get_key(t, index))
				cJSON_AddItemToObject(
					object, get_key(t, index),
					require_memory(json_value(t->columns[c].kind, cell)));
		}
	}
	all = single && rows == 1 ? list->child : list;
	text = require_memory(format == CTL_FORMAT_LINES ? cJSON_PrintUnformatted(all)
							 : cJSON_Print(all));
	fprintf(file, "%s\n", text);
	cJSON_free(text);
	cJSON_Delete(list);
}

void
ctl_table_print(const struct ctl_table *table, enum ctl_format format, FILE *file)
{
	if (format == CTL_FORMAT_JSON || format == CTL_FORMAT_LINES)
		print_json(table, format, false, file);
	else if (format == CTL_FORMAT_CSV)
		print_csv(table, file);
	else
		print_aligned(table, file);
}

void
ctl_table_print_records(const struct ctl_table *table, enum ctl_format format, FILE *file)
{
	if (format == CTL_FORMAT_JSON || format == CTL_FORMAT_LINES)
		print_json(table, format, true, file);
	else if (format == CTL_FORMAT_CSV)
		print_csv(table, file);
	else
		print_lines(table, file);
}
