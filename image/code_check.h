/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the machine code in device code is such that the driver may get it: each ELF of an image
 * or of what is to be linked, unpacked first if it is compressed (elf_check.h).  For whoever hands
 * images of others to the driver.  Any thread; images and bytes are the caller's.
 * Returns: 0; -EBADMSG, and gp_image_get_error() says what is wrong; -ENOMEM.
 */
#ifndef GP_CODE_CHECK_H
#define GP_CODE_CHECK_H

#include "image/fatbin.h"

/* Compressed ELFs pass the gate (NULL: there is none).  Returns also: -EDQUOT; -ECANCELED. */
int gp_image_check_code(const struct gp_image *image, struct gp_unpack_limiter *gate)
	__attribute__((warn_unused_result));

/* The same of each fatbin in bytes whose headers are known to be right
 * (gp_fatbin_check_embedded()), and of each ELF for a GPU that they are, or that is a member of the
 * library that they are. is_cubin: they must be such an ELF. */
int gp_code_check_embedded(const void *bytes, size_t size, bool is_cubin,
			   struct gp_unpack_limiter *gate) __attribute__((warn_unused_result));

/*
 * Bytes that the driver allocates for what it unpacks and compiles of code that has passed the
 * checks above: of each fatbin the largest entry that the device may use, as its header announces
 * it.  Compressed entries count, and PTX, of which the driver makes a copy.
 */
uint64_t gp_image_driver_size(const struct gp_image *image, const struct gp_image_target *target);
uint64_t gp_code_driver_size(const void *bytes, size_t size, const struct gp_image_target *target);

#endif /* GP_CODE_CHECK_H */
