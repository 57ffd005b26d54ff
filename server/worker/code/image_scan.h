/* SPDX-License-Identifier: Apache-2.0 */
/* What can be read off an image without loading it.  One thread at a time per image. */
#ifndef GPD_IMAGE_SCAN_H
#define GPD_IMAGE_SCAN_H

#include <stdbool.h>
#include <stdint.h>

struct gp_image;
struct gp_unpack_limiter;

struct gpd_image_uses {
	bool print;         /* printf */
	bool malloc;        /* malloc, or new */
	bool state;         /* variables, or it may have: what sessions do must not meet in it */
	uint64_t variables; /* bytes of device memory that its variables take */
};

/* What its code calls and has.  Of what is so large that looking would take too long: it calls
 * nothing, for those are libraries of kernels, and has state. */
/* Compressed code passes the gate (NULL: there is none).  Returns 0; -EDQUOT or -ECANCELED of
 * the gate. */
int gpd_image_scan(const struct gp_image *image, struct gp_unpack_limiter *gate,
		   struct gpd_image_uses *uses_p) __attribute__((warn_unused_result));

#endif /* GPD_IMAGE_SCAN_H */
