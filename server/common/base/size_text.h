/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats a number of bytes for people: "4 GiB", "1.5 MiB", "12 bytes".
 *
 * Threads: any.
 */
#ifndef GPD_SIZE_TEXT_H
#define GPD_SIZE_TEXT_H

#include <stdint.h>

#define GPD_SIZE_TEXT_MAX 32

/* Formats into text, and returns it. */
char *gpd_size_format(uint64_t bytes, char text[GPD_SIZE_TEXT_MAX]);

#endif /* GPD_SIZE_TEXT_H */
