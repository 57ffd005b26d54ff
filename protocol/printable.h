/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sanitizes text that comes from a peer, for logs, tables and terminals.
 *
 * Threads: any; pure functions.
 */
#ifndef GP_PRINTABLE_H
#define GP_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Copies a text to `to`, truncated to `size` bytes (at least 1) with its NUL. Printable ASCII is
 * copied unchanged; every other byte becomes \xNN, which is never truncated in the middle. Bytes of
 * UTF-8 are replaced, too: the set of its line ends, control characters and right-to-left marks
 * depends on the version of Unicode and on the terminal. A backslash is copied unchanged, so
 * sanitizing twice has no further effect. Returns the length without the NUL. The buffers must not
 * overlap.
 */
size_t gp_printable_text(char *to, size_t size, const char *from);

/*
 * Copies a name for a log line to `to` so that it cannot be confused with the surrounding text. A
 * name of letters, digits and ._-+@/~ is copied unchanged. Any other name, and an empty one, is put
 * in double quotes, with a backslash before each quote and backslash; its other bytes are copied as
 * by gp_printable_text(). Truncates a name that does not fit. size: at least 3. Returns the length
 * without the NUL.
 */
size_t gp_printable_name(char *to, size_t size, const char *from);

/*
 * Returns whether a spreadsheet would interpret the text as a formula: it begins with =, +, -, @, a
 * tab or a carriage return, and is not "-". The CSV output then puts an apostrophe before it.
 */
bool gp_printable_is_formula(const char *text);

#endif /* GP_PRINTABLE_H */
