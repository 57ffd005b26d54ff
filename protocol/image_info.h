/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Description of a loaded image: its kernels with their parameter layouts and attributes, which the
 * daemon returns when it loads an image and from which the client answers later queries locally. A
 * kernel's index in the list is part of its gp_kernel.
 *
 * Ownership: the daemon fills an array and encodes it; the client decodes into a single allocation
 * that it owns.
 * Threads: any; pure functions.
 */
#ifndef GP_IMAGE_INFO_H
#define GP_IMAGE_INFO_H

#include "base/sha256.h"
#include "protocol/dec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GP_KERNEL_ATTRIBUTES 16 /* CUfunction_attribute 0 to 15 */
/* Bit of attributes_known: the device cannot run the kernel; gpKernelUnsupported returns the
 * reason. */
#define GP_KERNEL_UNSUPPORTED (1u << 16)
#define GP_IMAGE_KERNELS_MAX 65536
#define GP_KERNEL_PARAMS_MAX 4096

/* Limits of retired images (gpImageRetire): their number and total bytes. Both ends count. */
#define GP_RETIRED_MAX 64
#define GP_RETIRED_BYTES ((uint64_t)16 << 20)

/* Parameters of gpOccupancyBlocks; little-endian on the wire. */
#define GP_OCCUPANCY_QUERIES_MAX 64
struct gp_occupancy_query {
	uint32_t size; /* threads of the block */
	uint32_t zero;
	uint64_t shared; /* dynamic shared memory, bytes */
};

/* Results of gpOccupancyClusterSizes; little-endian on the wire. */
struct gp_occupancy_clusters {
	uint32_t result; /* CUresult */
	uint32_t clusters;
};

struct gp_param_info {
	uint32_t offset; /* offset in the packed parameter buffer, bytes */
	uint32_t size;
};

struct gp_kernel_info {
	const char *name;
	uint32_t attributes_known; /* bit i: attributes[i] is the value of CUfunction_attribute i */
	int32_t attributes[GP_KERNEL_ATTRIBUTES];
	uint32_t param_count;
	const struct gp_param_info *params; /* in declaration order */
	/* Only in the client, not on the wire: */
	bool absent;     /* the image has no such kernel (image_check.h) */
	bool reported;   /* the failure that the device cannot run the kernel was reported */
	uint32_t varies; /* bit i: attribute i was set and differs between devices */
};

struct gp_image_info {
	uint32_t kernel_count;
	struct gp_kernel_info *kernels;
	bool prints; /* client only: kernels may call printf (image_check.h) */
};

#define GP_KERNEL(image, index) ((uint64_t)(image) << 32 | (uint32_t)(index))
#define GP_KERNEL_IMAGE(kernel) ((uint32_t)((kernel) >> 32))
#define GP_KERNEL_INDEX(kernel) ((uint32_t)(kernel))

/* Encodes info into malloc'ed memory, which the caller frees. Returns 0 or -ENOMEM. */
int gp_image_info_encode(const struct gp_image_info *info, void **data_p, size_t *size_p);

/* Decodes a list of kernels. Returns 0; -EPROTO if the bytes are malformed, exceed a limit above,
 * or have parameters that overlap, descend or end beyond GP_LAUNCH_PARAMS_MAX; or -ENOMEM. Freed
 * with gp_image_info_destroy(). */
int gp_image_info_decode(struct gp_image_info **info_p, struct gp_bytes bytes);
/* Computes a digest of an encoding: of the kernels' names and parameters in order, without
 * attributes. Returns 0 or an error of gp_image_info_decode(). */
int gp_image_info_digest(struct gp_bytes bytes, uint8_t digest[GP_SHA256_SIZE]);
void gp_image_info_destroy(struct gp_image_info *info);

#endif /* GP_IMAGE_INFO_H */
