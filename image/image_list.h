/* SPDX-License-Identifier: Apache-2.0 */
/*
 * List of an image's kernels, read from the code that a device would use. The client derives from
 * its image which kernels a worker finds in it, and in which order, so that the worker only needs
 * to send a digest of the list (gp_image_info_digest() in protocol/image_info.h).
 *
 * Ownership: the list does not refer to the image.
 * Threads: any; one thread at a time per image.
 */
#ifndef GP_IMAGE_LIST_H
#define GP_IMAGE_LIST_H

#include "image/fatbin.h"
#include "protocol/image_info.h"

/*
 * Lists the kernels with their parameters in order of their names, without attributes. Returns 0,
 * and the caller frees *info_p with gp_image_info_destroy(); GP_IMAGE_E_NONE: there is no list,
 * because the image is a wrapper of several fatbins, has no code for the device, has code in an
 * unknown form, or exceeds a limit of protocol/image_info.h; or -ENOMEM.
 */
int gp_image_list(const struct gp_image *image, const struct gp_image_target *target,
		  struct gp_image_info **info_p) __attribute__((warn_unused_result));

#endif /* GP_IMAGE_LIST_H */
