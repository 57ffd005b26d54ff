/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a daemon tells of the kernels of an image, held against the image itself: a launch copies
 * parameters out of the program's memory, and how many bytes each has must not be for the daemon to
 * say.  Where they lie among a launch's parameters is: only the driver knows.  Any thread; an image
 * is used by one thread at a time.
 */
#ifndef GP_IMAGE_CHECK_H
#define GP_IMAGE_CHECK_H

#include "image/fatbin.h"
#include "image/image_variables.h"
#include "protocol/image_info.h"

/* Of the line that says what differs; longer names are cut. */
#define GP_IMAGE_DIFFERENCE_SIZE 512

enum {
	GP_IMAGE_E_DIFFERS = 3,
};

/*
 * Parts that the target can use are read first, and only as many as it takes to find all kernels.
 * A kernel is in order if one part describes it as info does, or if all that describe it do so in
 * a form that is not known.  A kernel that no part has, where every part was understood, is marked
 * in info as not there; where some were not, it is believed.
 * info says whether a part that was read calls printf.
 * variables: what the parts say of these that the device would take, and others that were read;
 * finished, to be destroyed; only if 0 is returned.
 * Returns: 0; GP_IMAGE_E_DIFFERS, and the text says of which kernel and what; -ENOMEM.
 */
int gp_image_check(const struct gp_image *image, const struct gp_image_target *target,
		   struct gp_image_info *info, struct gp_image_variables **variables,
		   char difference[GP_IMAGE_DIFFERENCE_SIZE]) __attribute__((warn_unused_result));

#endif /* GP_IMAGE_CHECK_H */
