/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of values, printed aligned for people, or as CSV or JSON for programs. The columns are set
 * by ctl_table_init(); then cells are added row by row, from left to right. When the table is
 * printed, the last row must be complete.
 *
 * Ownership: the caller provides struct ctl_table and frees its cells with ctl_table_fini().
 * Columns and the list of ctl_table_fit() are borrowed and must outlive the table; texts of cells
 * are copied.
 * Threads: called by the main thread only.
 * Errors: if memory is exhausted, the program exits with an error message.
 */
#ifndef CTL_TABLE_H
#define CTL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Number of elements of an array. */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Output format. */
enum ctl_format {
	CTL_FORMAT_TABLE,
	CTL_FORMAT_CSV,   /* with a header line; sizes in bytes, times in seconds */
	CTL_FORMAT_JSON,  /* an array of objects, in UTF-8; sizes in bytes, times in seconds */
	CTL_FORMAT_LINES, /* as CTL_FORMAT_JSON, but on one line, as another table may follow */
};

/* Kind of a column's values, which determines their format. */
enum ctl_kind {
	CTL_TEXT,
	CTL_NUMBER, /* UINT64_MAX: no value, printed as "-", empty or null */
	CTL_BYTES,
	CTL_LIMIT, /* bytes; UINT64_MAX: no limit, printed as "-", empty or null */
	CTL_NS,    /* a duration in nanoseconds; in seconds for programs */
	CTL_SINCE, /* seconds since 1970; as an age for people */
	CTL_DATE,  /* seconds since 1970; UINT64_MAX: no date */
	/* Hundredths of a percent; printed as a percentage with one decimal, for programs two. */
	CTL_PERCENT,
};

/* Description of a column. */
struct ctl_column {
	const char *title; /* heading for people */
	const char *key;   /* name for programs; NULL: not printed for programs */
	enum ctl_kind kind;
};

/* A value; for CTL_TEXT `text` (NULL: none), otherwise `number`. */
struct ctl_cell {
	char *text;
	uint64_t number;
};

/* A table. */
struct ctl_table {
	const struct ctl_column *columns;
	/* Numbers of columns and of cells added so far, and capacity of `cells`. */
	size_t column_count, cell_count, capacity;
	size_t width; /* maximum width of a line in bytes, from ctl_table_fit(); 0: no limit */
	/* Keys of columns that may be omitted, the last one of the list first; see
	 * ctl_table_fit(). */
	const char *const *least;
	size_t least_count;
	/* Whether programs also get the values under the keys of the last release; set by the
	 * caller after ctl_table_init(). */
	bool has_old_keys;
	struct ctl_cell *cells;
};

/* Initializes an empty table with `count` columns. */
void ctl_table_init(struct ctl_table *table, const struct ctl_column *columns, size_t count);
/* Frees the cells. ctl_table_init() must be called before the table is used again. */
void ctl_table_fini(struct ctl_table *table);
/* Adds a cell with a copy of the text, for a column of kind CTL_TEXT. NULL: no value, printed as
 * "-", empty or null. */
void ctl_table_text(struct ctl_table *table, const char *text);
/* Adds a cell with a number, for a column of another kind. */
void ctl_table_number(struct ctl_table *table, uint64_t number);

/* Returns the width of the terminal in characters; 0: standard output is not a terminal. */
size_t ctl_terminal_width(void);
/* Limits the width of lines for people: columns that do not fit are omitted, in the reverse order
 * of their keys in `least`. All columns must have a key. width 0: no limit. */
void ctl_table_fit(struct ctl_table *table, size_t width, const char *const *least, size_t count);
/* Prints the table to the file: for people and as CSV a header and one line per row; as JSON an
 * array. */
void ctl_table_print(const struct ctl_table *table, enum ctl_format format, FILE *file);
/* Prints each row as a record to the file. For people: one line per value, and an empty line
 * between records. For programs: as ctl_table_print(), but as JSON a single row is an object
 * without the array. */
void ctl_table_print_records(const struct ctl_table *table, enum ctl_format format, FILE *file);

#endif /* CTL_TABLE_H */
