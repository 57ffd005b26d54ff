/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the machine code in device code is such that the driver may get it: each ELF of an image
 * or of what is to be linked, unpacked first if it is compressed (elf_check.h).  For whoever hands
 * images of others to the driver.  Any thread; images and bytes are the caller's.
 * Returns: 0; -EBADMSG, and gp_image_wrong() says what is wrong; -ENOMEM.
 */
#ifndef GP_CODE_CHECK_H
#define GP_CODE_CHECK_H

#include "image/fatbin.h"

/* Compressed code of any kind passes the gate (NULL: there is none): the driver unpacks it, too.
 * Returns also: -EDQUOT; -ECANCELED. */
int gp_image_check_code(const struct gp_image *image, struct gp_unpack_gate *gate)
	__attribute__((warn_unused_result));

/* The same of each fatbin in bytes whose headers are known to be right (gp_fatbin_check_within()),
 * and of each ELF for a GPU that they are, or that is a member of the library that they are.
 * is_cubin: they must be such an ELF. */
int gp_code_check_within(const void *bytes, size_t size, bool is_cubin, struct gp_unpack_gate *gate)
	__attribute__((warn_unused_result));

#endif /* GP_CODE_CHECK_H */
