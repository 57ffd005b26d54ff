/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header of a fatbin's entry.  The driver follows its offsets without a look, and a wrong one
 * ends the driver's process: so whatever is not as fatbinary writes it (of CUDA 8 to 13) is refused
 * here.  Any thread.
 */
#ifndef GP_FATBIN_ENTRY_H
#define GP_FATBIN_ENTRY_H

#include "image/fatbin.h"

/* The entry at bytes, of which left are there.  Returns: 0; -EBADMSG, and gp_image_get_error() says
 * what is wrong. */
int gp_fatbin_entry_parse(const uint8_t *bytes, size_t left, struct gp_fatbin_entry *entry_p)
	__attribute__((warn_unused_result));

/* For gp_image_get_error().  Returns: -EBADMSG. */
int gp_image_set_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* GP_FATBIN_ENTRY_H */
