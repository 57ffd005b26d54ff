/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of values, printed aligned for people, or as CSV or JSON for programs.
 *
 * Columns are described once; cells are added row by row, from left to right.
 *
 * Threads: one.
 * Errors: without memory the program exits with an error message.
 */
#ifndef CTL_TABLE_H
#define CTL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum ctl_format {
	CTL_FORMAT_TABLE,
	CTL_FORMAT_CSV,   /* with a header; sizes in bytes, times in seconds */
	CTL_FORMAT_JSON,  /* the same as an array of objects, in UTF-8 */
	CTL_FORMAT_LINES, /* JSON on one line, as another table may follow */
};

enum ctl_kind {
	CTL_TEXT,
	CTL_NUMBER, /* UINT64_MAX: none, printed as "-", empty or null */
	CTL_BYTES,
	CTL_LIMIT,   /* bytes; UINT64_MAX as above */
	CTL_NS,      /* a duration; in seconds for programs */
	CTL_SINCE,   /* seconds since 1970; as an age for people */
	CTL_DATE,    /* seconds since 1970; UINT64_MAX as above */
	CTL_PERCENT, /* hundredths of a percent */
};

struct ctl_column {
	const char *title; /* for people */
	const char *key;   /* for programs; NULL: not printed for them */
	enum ctl_kind kind;
};

struct ctl_cell {
	char *text;
	uint64_t number;
};

struct ctl_table {
	const struct ctl_column *columns;
	size_t column_count, cell_count, room;
	size_t width;             /* of a line in characters; 0: no limit */
	const char *const *least; /* keys of columns that may be omitted, from the end first */
	size_t least_count;
	bool has_old_keys; /* for programs: the values again under the keys of the last release */
	struct ctl_cell *cells;
};

void ctl_table_init(struct ctl_table *table, const struct ctl_column *columns, size_t count);
void ctl_table_fini(struct ctl_table *table);
/* Adds a cell with a copy of the text; NULL: no value. ctl_table_number() adds one with a
 * number. */
void ctl_table_text(struct ctl_table *table, const char *text);
void ctl_table_number(struct ctl_table *table, uint64_t number);

/* Returns the width of the terminal in characters; 0: standard output is not a terminal. */
size_t ctl_terminal_width(void);
/* Limits the width of lines for people by omitting columns: those with the keys in `least`, from
 * its end. width 0: no limit. */
void ctl_table_fit(struct ctl_table *table, size_t width, const char *const *least, size_t count);
/* Prints a header and one line per row. */
void ctl_table_print(const struct ctl_table *table, enum ctl_format format, FILE *file);
/* Prints each row as a record: for people one line per value; for programs as ctl_table_print(),
 * but a single row as a JSON object without the array. */
void ctl_table_print_records(const struct ctl_table *table, enum ctl_format format, FILE *file);

#endif /* CTL_TABLE_H */
