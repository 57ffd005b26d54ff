/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Description of a loaded image (device code that a program has passed to the driver): its kernels
 * with their parameter layouts and attributes. The worker returns it when it loads an image, and
 * the client answers later queries from it without a round trip. A kernel's index in the list is
 * part of its ID, a gp_kernel.
 *
 * Ownership: the worker fills an array and encodes it; the client decodes into a single allocation,
 * freed with gp_image_info_destroy().
 * Threads: any; pure functions.
 */
#ifndef GP_IMAGE_INFO_H
#define GP_IMAGE_INFO_H

#include "base/sha256.h"
#include "protocol/dec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GP_KERNEL_ATTRIBUTES 16 /* number of attributes: CUfunction_attribute 0 to 15 */
/* Bit of attributes_known: the device cannot run the kernel; gpKernelUnsupported returns the
 * reason. */
#define GP_KERNEL_UNSUPPORTED (1u << 16)
#define GP_IMAGE_KERNELS_MAX 65536
#define GP_KERNEL_PARAMS_MAX 4096

/* Limits of retired images, whose bytes the worker retains after gpImageRetire for a later load:
 * their number and total bytes. Both ends count them. */
#define GP_RETIRED_MAX 64
#define GP_RETIRED_BYTES ((uint64_t)16 << 20)

/* Maximum number of queries in a gpOccupancyBlocks. */
#define GP_OCCUPANCY_QUERIES_MAX 64
/* A parameter of gpOccupancyBlocks; little-endian on the wire. */
struct gp_occupancy_query {
	uint32_t size; /* number of threads of the block */
	uint32_t zero;
	uint64_t shared; /* dynamic shared memory, bytes */
};

/* A result of gpOccupancyClusterSizes; little-endian on the wire. */
struct gp_occupancy_clusters {
	uint32_t result; /* CUresult */
	uint32_t clusters;
};

/* Layout of a kernel parameter. */
struct gp_param_info {
	uint32_t offset; /* offset in the packed parameter buffer, bytes */
	uint32_t size;
};

/* Description of a kernel. */
struct gp_kernel_info {
	const char *name;
	uint32_t attributes_known; /* bit i: attributes[i] is the value of CUfunction_attribute i */
	int32_t attributes[GP_KERNEL_ATTRIBUTES];
	uint32_t param_count;
	const struct gp_param_info *params; /* in declaration order */
	/* This member and those below are set and used only in the client, and are not on the
	 * wire. */
	bool absent; /* the image does not contain the kernel (image_check.h) */
	/* the failure that the device cannot run the kernel was reported to the user */
	bool reported;
	uint32_t varies; /* bit i: attribute i was set by the program and differs between devices */
};

struct gp_image_info {
	uint32_t kernel_count;
	struct gp_kernel_info *kernels;
	bool prints; /* only in the client: kernels may call printf (image_check.h) */
};

/* ID of a kernel (gp_kernel): the session's ID of its image, and its index. */
#define GP_KERNEL(image, index) ((uint64_t)(image) << 32 | (uint32_t)(index))
#define GP_KERNEL_IMAGE(kernel) ((uint32_t)((kernel) >> 32))
#define GP_KERNEL_INDEX(kernel) ((uint32_t)(kernel))

/* Encodes the kernels into malloc'ed memory, which the caller frees. Returns 0 or -ENOMEM. */
int gp_image_info_encode(const struct gp_image_info *info, void **data_p, size_t *size_p);

/* Decodes a list of kernels; the bytes may be freed on return. Returns 0, and the caller frees
 * *info_p with gp_image_info_destroy(); -EPROTO if the bytes are malformed, exceed a limit above,
 * or have parameters that overlap, descend or end beyond GP_LAUNCH_PARAMS_MAX; or -ENOMEM. */
int gp_image_info_decode(struct gp_image_info **info_p, struct gp_bytes bytes);
/* Computes the SHA-256 digest of an encoding, without the kernels' attributes: of their names and
 * parameters in order. Returns 0 or an error of gp_image_info_decode(). */
int gp_image_info_digest(struct gp_bytes bytes, uint8_t digest[GP_SHA256_SIZE]);
/* Frees a decoded description; accepts NULL. */
void gp_image_info_destroy(struct gp_image_info *info);

#endif /* GP_IMAGE_INFO_H */
