/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client-side check of the worker's description of an image (device code) against the image itself.
 * A launch copies parameters out of the program's memory, so a daemon must not be able to choose
 * how many bytes are copied. The check compares number and sizes of the parameters, not their
 * offsets, which the driver determines.
 *
 * Ownership: image and description are the caller's.
 * Threads: any; one thread at a time per image.
 */
#ifndef GP_IMAGE_CHECK_H
#define GP_IMAGE_CHECK_H

#include "image/fatbin.h"
#include "image/image_variables.h"
#include "protocol/image_info.h"

/* Size of the text that describes a difference, with its NUL; longer names are truncated. */
#define GP_IMAGE_DIFFERENCE_SIZE 512

enum {
	/* the description contradicts the image; continues GP_IMAGE_E_* of fatbin.h, and is not a
	 * GP_E_* of base/status.h */
	GP_IMAGE_E_DIFFERS = 3,
};

/*
 * Checks info against the parts of the image: its fatbin entries, or a bare ELF or PTX text as a
 * single part. The parts that the target would use are read first; the others are only read until
 * the parts read so far describe every kernel as info does. A kernel is accepted if one part
 * describes it as info does, or if all parts that describe it use an unknown form. A kernel that no
 * part contains is marked as `absent` in info if all parts were understood; otherwise it is
 * accepted.
 *
 * Sets info->prints to whether a part that was read may call printf (image_params.h). *variables:
 * the variables of the parts that were read, after gp_image_variables_finish(); set only if 0 is
 * returned, and freed by the caller with gp_image_variables_destroy().
 *
 * Returns 0; GP_IMAGE_E_DIFFERS, with a text in `difference` that names the kernel and the
 * difference; or -ENOMEM. After an error, `absent` of the kernels and `prints` are undefined.
 */
int gp_image_check(const struct gp_image *image, const struct gp_image_target *target,
		   struct gp_image_info *info, struct gp_image_variables **variables,
		   char difference[GP_IMAGE_DIFFERENCE_SIZE]) __attribute__((warn_unused_result));

#endif /* GP_IMAGE_CHECK_H */
