/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading an image into the driver, and finding out what the client wants to know of its kernels.
 * Any thread, with the device current on which the attributes are asked for.
 */
#ifndef GPD_IMAGE_LOAD_H
#define GPD_IMAGE_LOAD_H

#include "protocol/enc.h"

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

struct gpd_image;

/* The kernels' attributes travel with the load of images with at most so many. */
#define GPD_IMAGE_ATTRIBUTES_MAX 64

/* image->blob is set; fills library and kernels.  options as in gpImageLoad.  The compiler's text
 * and the encoded struct gp_image_info are malloc'ed; the text comes with failures, too. */
CUresult gpd_image_load(struct gpd_image *image, struct gp_bytes options, struct gp_bytes *info_p,
			struct gp_bytes *log_p);

#endif /* GPD_IMAGE_LOAD_H */
