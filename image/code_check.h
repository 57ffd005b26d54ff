/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validation of machine code before it is passed to the driver: checks each ELF of an image or of
 * linker input, decompressed if necessary (elf_check.h). Used where images of untrusted clients are
 * loaded.
 *
 * Ownership: images and bytes are the caller's.
 * Threads: any.
 * Errors: 0; -EBADMSG, with the reason in gp_image_get_error(); -ENOMEM; -EFBIG; -EDQUOT or
 * -ECANCELED, from the limiter.
 */
#ifndef GP_CODE_CHECK_H
#define GP_CODE_CHECK_H

#include "image/fatbin.h"

/* Checks an image. The limiter (NULL: none) admits the decompression of each ELF. */
int gp_image_check_code(const struct gp_image *image, struct gp_unpack_limiter *limiter)
	__attribute__((warn_unused_result));

/* Checks the GPU ELF that the bytes are, or those that are members of the library that the bytes
 * are, and the code of each fatbin within the bytes, whose headers gp_fatbin_check_embedded() has
 * already validated. is_cubin: the bytes must be a GPU ELF. limiter: may be NULL. */
int gp_code_check_embedded(const void *bytes, size_t size, bool is_cubin,
			   struct gp_unpack_limiter *limiter) __attribute__((warn_unused_result));

/*
 * Returns the bytes that the driver allocates for decompressing and compiling an image that has
 * passed the check: for each fatbin the largest entry that the device may use, by the size in its
 * header. Compressed entries count, and PTX, which the driver copies.
 */
uint64_t gp_image_driver_size(const struct gp_image *image, const struct gp_image_target *target);
/* Returns the bytes that the driver allocates for the fatbins within bytes that have passed
 * gp_code_check_embedded(), as gp_image_driver_size(). */
uint64_t gp_code_driver_size(const void *bytes, size_t size, const struct gp_image_target *target);

#endif /* GP_CODE_CHECK_H */
