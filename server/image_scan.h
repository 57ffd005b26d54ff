/* SPDX-License-Identifier: Apache-2.0 */
/* What can be read off an image without loading it.  One thread at a time per image. */
#ifndef GPD_IMAGE_SCAN_H
#define GPD_IMAGE_SCAN_H

#include <stdbool.h>
#include <stdint.h>

struct gp_image;

struct gpd_image_uses {
	bool print;         /* printf */
	bool malloc;        /* malloc, or new */
	uint64_t variables; /* bytes of device memory that its variables take */
};

/* What its code calls and has; nothing for what of an image is so large that looking would take too
 * long: those are libraries of kernels, which do neither. */
struct gpd_image_uses gpd_image_scan(const struct gp_image *image);

#endif /* GPD_IMAGE_SCAN_H */
