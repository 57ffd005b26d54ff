/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static scan of an image: which runtime features its code uses and how much variable memory it
 * needs, without loading it.
 *
 * Ownership: the caller owns the image and the result.
 * Threads: one thread at a time per image.
 * Errors: only those of the limiter; code that cannot be read is reported as having state.
 */
#ifndef GPD_IMAGE_SCAN_H
#define GPD_IMAGE_SCAN_H

#include <stdbool.h>
#include <stdint.h>

struct gp_image;
struct gp_unpack_limiter;

/* Features that an image's code uses. */
struct gpd_image_uses {
	bool print;   /* its kernels call printf */
	bool malloc;  /* its kernels call malloc or new */
	bool asserts; /* its kernels may fail an assertion */
	bool state;   /* it may have state, as defined in image_state.h */
	/* bytes of device memory for its variables; GPD_VARIABLES_UNKNOWN (image_state.h) or more:
	 * unknown */
	uint64_t variables;
};

/* Scans the image. The image is open (gp_image_open(), image/fatbin.h). Code too large to extract
 * within the budget, 64 MiB per image, is reported as using no print or malloc, because such images
 * are libraries of many kernels, as having assertions and state; its variables are not counted.
 * Compressed code is extracted through the limiter, which may wait (NULL: no limit). Returns 0 with
 * *uses_p set; or the limiter's -EDQUOT or -ECANCELED, and *uses_p must not be used. */
int gpd_image_scan(const struct gp_image *image, struct gp_unpack_limiter *limiter,
		   struct gpd_image_uses *uses_p) __attribute__((warn_unused_result));

#endif /* GPD_IMAGE_SCAN_H */
