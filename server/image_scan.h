/* SPDX-License-Identifier: Apache-2.0 */
/* What can be read off an image without loading it.  One thread at a time per image. */
#ifndef GPD_IMAGE_SCAN_H
#define GPD_IMAGE_SCAN_H

#include <stdbool.h>

struct gp_image;

/* Whether its code calls printf; false for images so large that looking would take too long, which
 * are libraries of kernels and do not print. */
bool gpd_image_prints(const struct gp_image *image);

#endif /* GPD_IMAGE_SCAN_H */
