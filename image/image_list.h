/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of an image, read off the code that a device would take.
 *
 * Who has the image can tell by this which kernels a daemon has found in it, and in which order, so
 * that only a digest of that list has to travel (gp_image_info_digest()).  Any thread; an image is
 * used by one thread at a time.
 */
#ifndef GP_IMAGE_LIST_H
#define GP_IMAGE_LIST_H

#include "image/fatbin.h"
#include "protocol/image_info.h"

/*
 * In the order of names, without attributes; to be destroyed with gp_image_info_destroy().
 * Returns: 0; GP_IMAGE_E_NONE: there is no such code, or some of it is in a form that is not known;
 * -ENOMEM.
 */
int gp_image_list(const struct gp_image *image, const struct gp_image_target *target,
		  struct gp_image_info **info_p) __attribute__((warn_unused_result));

#endif /* GP_IMAGE_LIST_H */
