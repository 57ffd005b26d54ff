/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon tells of a loaded image: its kernels, with all that the client answers locally
 * from then on.  The index of a kernel in the list is its number in a gp_kernel.
 *
 * The daemon fills an array and encodes it; the client decodes into one allocation that it owns.
 */
#ifndef GP_IMAGE_INFO_H
#define GP_IMAGE_INFO_H

#include "base/sha256.h"
#include "protocol/dec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GP_KERNEL_ATTRIBUTES 16 /* CUfunction_attribute 0 … 15 */
/* A bit of attributes_known: the device cannot run the kernel; gpKernelUnsupported returns why. */
#define GP_KERNEL_UNSUPPORTED (1u << 16)
#define GP_IMAGE_KERNELS_MAX 65536
#define GP_KERNEL_PARAMS_MAX 4096

/* Of gpImageRetire: images, and their bytes in all.  Both ends count. */
#define GP_RETIRED_MAX 64
#define GP_RETIRED_BYTES ((uint64_t)16 << 20)

/* Of gpOccupancyBlocks, little-endian as on the wire. */
#define GP_OCCUPANCY_QUERIES_MAX 64
struct gp_occupancy_query {
	uint32_t size; /* of the block */
	uint32_t zero;
	uint64_t shared; /* dynamic, bytes */
};

/* Of gpOccupancyClusterSizes, likewise. */
struct gp_occupancy_clusters {
	uint32_t result; /* CUresult */
	uint32_t clusters;
};

struct gp_param_info {
	uint32_t offset; /* bytes into the packed parameter buffer */
	uint32_t size;
};

struct gp_kernel_info {
	const char *name;
	uint32_t attributes_known; /* bit i: attributes[i] holds CUfunction_attribute i */
	int32_t attributes[GP_KERNEL_ATTRIBUTES];
	uint32_t param_count;
	const struct gp_param_info *params; /* in order of the parameters */
	/* Not on the wire, the client's: */
	bool absent;     /* its image has no such kernel (image_check.h) */
	bool reported;   /* that the device cannot run it */
	uint32_t varies; /* bit i: attribute i was set, and differs between devices */
};

struct gp_image_info {
	uint32_t kernel_count;
	struct gp_kernel_info *kernels;
	bool prints; /* not on the wire, the client's: kernels may call printf (image_check.h) */
};

#define GP_KERNEL(image, index) ((uint64_t)(image) << 32 | (uint32_t)(index))
#define GP_KERNEL_IMAGE(kernel) ((uint32_t)((kernel) >> 32))
#define GP_KERNEL_INDEX(kernel) ((uint32_t)(kernel))

/* A malloc'ed encoding of info; 0 or -ENOMEM. */
int gp_image_info_encode(const struct gp_image_info *info, void **data_p, size_t *size_p);

/* 0; -EPROTO when the bytes are no such list, exceed a limit above, or have parameters that
 * overlap, descend or end beyond GP_LAUNCH_PARAMS_MAX; -ENOMEM. */
int gp_image_info_decode(struct gp_image_info **info_p, struct gp_bytes bytes);
/* Of an encoding: of the kernels' names and parameters in their order, without attributes.  0, or
 * as of gp_image_info_decode(). */
int gp_image_info_digest(struct gp_bytes bytes, uint8_t digest[GP_SHA256_SIZE]);
void gp_image_info_destroy(struct gp_image_info *info);

#endif /* GP_IMAGE_INFO_H */
