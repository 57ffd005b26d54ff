/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validation of machine code before it is passed to the driver: checks each ELF of an image or of
 * linker input, decompressed if necessary (elf_check.h). Used where images of untrusted clients are
 * loaded.
 *
 * The checks block while the limiter's enter() waits for other decompressions.
 *
 * Ownership: images and bytes are the caller's.
 * Threads: any.
 * Errors: the checks return 0; -EBADMSG: invalid code, or more than GP_IMAGE_SIZE_MAX bytes to
 * decompress in one call, with the reason in gp_image_get_error(); -ENOMEM; -EDQUOT or -ECANCELED,
 * from the limiter.
 */
#ifndef GP_CODE_CHECK_H
#define GP_CODE_CHECK_H

#include "image/fatbin.h"

/* Checks an image: a bare ELF, or the ELF entries of its fatbins. PTX is not checked. limiter:
 * admits the decompression of each ELF (fatbin.h), and is left before the next one; NULL: none. */
int gp_image_check_code(const struct gp_image *image, struct gp_unpack_limiter *limiter)
	__attribute__((warn_unused_result));

/* Checks linker input, which gp_fatbin_check_embedded() must have accepted. A GPU ELF is checked as
 * such, and nothing else is. In any other input each fatbin is checked, and in an ar(1) archive
 * also each member that is a GPU ELF. must_be_cubin: the bytes must be a GPU ELF. limiter: as for
 * gp_image_check_code(). */
int gp_code_check_embedded(const void *bytes, size_t size, bool must_be_cubin,
			   struct gp_unpack_limiter *limiter) __attribute__((warn_unused_result));

/*
 * Returns the bytes that the driver allocates to decompress and compile an image that
 * gp_image_check_code() has accepted: the sum over its fatbins of the largest decompressed size of
 * an entry, by the entry's header. Only PTX entries, which the driver copies, and compressed
 * entries count, except compressed ELFs that the target cannot use. For a bare PTX image its size
 * is returned, for a bare ELF 0.
 */
uint64_t gp_image_driver_size(const struct gp_image *image, const struct gp_image_target *target);
/* Returns the bytes that the driver allocates to decompress and compile linker input that
 * gp_code_check_embedded() has accepted: the sum over the fatbins in it, computed as by
 * gp_image_driver_size(). */
uint64_t gp_code_driver_size(const void *bytes, size_t size, const struct gp_image_target *target);

#endif /* GP_CODE_CHECK_H */
