/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parser for the header of a fatbin entry. The driver follows the header's offsets without checks,
 * and a wrong one crashes its process. A header is therefore rejected if its version, sizes or
 * offsets are not of the form that fatbinary of CUDA 8 to 13 writes. Unknown kinds and flags are
 * accepted.
 *
 * Ownership: the parsed entry points into the bytes.
 * Threads: any.
 */
#ifndef GP_FATBIN_ENTRY_H
#define GP_FATBIN_ENTRY_H

#include "image/fatbin.h"

/* Parses the entry at `bytes`, of which `left` are available, unchecked. Returns 0, or -EBADMSG
 * with the reason in gp_image_get_error(); *entry_p is then undefined. */
int gp_fatbin_entry_parse(const uint8_t *bytes, size_t left, struct gp_fatbin_entry *entry_p)
	__attribute__((warn_unused_result));

/* Sets the text of gp_image_get_error() in this thread, truncated to 159 characters. Returns
 * -EBADMSG. */
int gp_image_set_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* GP_FATBIN_ENTRY_H */
