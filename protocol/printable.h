/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What somebody else says, made fit for a log, a table or a terminal: pure functions, any thread.
 */
#ifndef GP_PRINTABLE_H
#define GP_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Copies as much of a text as fits with its zero.  Printable ASCII stays as it is, every other byte
 * becomes \xNN, and no such four are cut in two.  Of UTF-8, too: what it has of line ends, of
 * controls and of writing from right to left changes with its versions, and with terminals.  A
 * backslash stays, so that what was made printable once does not change any more.  Returns the
 * length; the two may not overlap.
 */
size_t gp_printable_text(char *to, size_t size, const char *from);

/*
 * Copies a name for a line of the log, so that it cannot be mistaken for the text around it.  A
 * name of letters, digits and ._-+@/~ stays as it is.  Any other one, and an empty one, stands
 * between double quotes, with a backslash before each quote and backslash of its own.  A name that
 * does not fit is cut.  size: at least 3.  Returns the length.
 */
size_t gp_printable_name(char *to, size_t size, const char *from);

/*
 * Whether a spreadsheet would take the text for a formula: a text in CSV gets an apostrophe before
 * it then.
 */
bool gp_printable_is_formula(const char *text);

#endif /* GP_PRINTABLE_H */
