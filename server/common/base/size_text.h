/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats a number of bytes for people: "4 GiB", "1.5 MiB", "12 bytes".
 *
 * Threads: any; the function keeps no state.
 */
#ifndef GPD_SIZE_TEXT_H
#define GPD_SIZE_TEXT_H

#include <stdint.h>

/* Size of the buffer in bytes, including the terminating zero. */
#define GPD_SIZE_TEXT_MAX 32

/* Formats bytes into text, and returns text. */
char *gpd_size_format(uint64_t bytes, char text[GPD_SIZE_TEXT_MAX]);

#endif /* GPD_SIZE_TEXT_H */
