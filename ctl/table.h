/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of values, printed as an aligned table for people, or as CSV or JSON for programs.
 *
 * Columns are described once; cells are added from left to right and from top to bottom.  One
 * thread; memory that cannot be had ends the program.
 */
#ifndef CTL_TABLE_H
#define CTL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum ctl_format {
	CTL_FORMAT_TABLE,
	CTL_FORMAT_CSV,   /* with a header; sizes in bytes, times in seconds */
	CTL_FORMAT_JSON,  /* the same as an array of objects; all text is UTF-8 */
	CTL_FORMAT_LINES, /* JSON in one line, as another table may follow */
};

enum ctl_kind {
	CTL_TEXT,
	CTL_NUMBER, /* all ones are none: "-", empty, null */
	CTL_BYTES,
	CTL_LIMIT,   /* bytes; the same */
	CTL_NS,      /* a duration; for programs in seconds */
	CTL_SINCE,   /* seconds since 1970; for people how long ago */
	CTL_DATE,    /* seconds since 1970; all ones are none */
	CTL_PERCENT, /* hundredths */
};

struct ctl_column {
	const char *title; /* for people */
	const char *key;   /* for programs; NULL: not for them */
	enum ctl_kind kind;
};

struct ctl_cell {
	char *text;
	uint64_t number;
};

struct ctl_table {
	const struct ctl_column *columns;
	size_t column_count, cell_count, room;
	size_t width;             /* of a line; 0: any */
	const char *const *least; /* keys, those that go first at the end */
	size_t least_count;
	bool has_old_keys; /* for programs: the values again under the keys of the last release */
	struct ctl_cell *cells;
};

void ctl_table_init(struct ctl_table *table, const struct ctl_column *columns, size_t count);
void ctl_table_fini(struct ctl_table *table);
/* NULL: there is no value. */
void ctl_table_text(struct ctl_table *table, const char *text);
void ctl_table_number(struct ctl_table *table, uint64_t number);

/* Characters of a line; 0: standard output is no terminal. */
size_t ctl_terminal_width(void);
/* For people, no line is longer than so many characters, as far as columns can be left out: those
 * from the end of this list, of their keys; 0: no limit. */
void ctl_table_fit(struct ctl_table *table, size_t width, const char *const *least, size_t count);
/* One line for each row, under the titles. */
void ctl_table_print(const struct ctl_table *table, enum ctl_format format, FILE *file);
/* Each row is a record: for people one line for each value; JSON without the array if there is one
 * row. */
void ctl_table_print_records(const struct ctl_table *table, enum ctl_format format, FILE *file);

#endif /* CTL_TABLE_H */
