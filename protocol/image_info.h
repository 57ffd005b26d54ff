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
/* Maximum number of kernels of an image, and of parameters of a kernel. */
#define GP_IMAGE_KERNELS_MAX 65536
#define GP_KERNEL_PARAMS_MAX 4096

/* Limits of a session's retired images, whose bytes the worker retains after gpImageRetire for a
 * later load: their number and total bytes. Both ends count them. */
#define GP_RETIRED_MAX 64
#define GP_RETIRED_BYTES ((uint64_t)16 << 20)

/* Maximum number of queries in a gpOccupancyBlocks. */
#define GP_OCCUPANCY_QUERIES_MAX 64
/* A parameter of gpOccupancyBlocks; little-endian on the wire. */
struct gp_occupancy_query {
	uint32_t size;   /* number of threads of the block */
	uint32_t zero;   /* reserved */
	uint64_t shared; /* dynamic shared memory, bytes */
};

/* A result of gpOccupancyClusterSizes; little-endian on the wire. */
struct gp_occupancy_clusters {
	uint32_t result;   /* CUresult */
	uint32_t clusters; /* number of active clusters, valid if result is CUDA_SUCCESS */
};

/* Layout of a kernel parameter. */
struct gp_param_info {
	uint32_t offset; /* offset in the packed parameter buffer, in bytes */
	uint32_t size;   /* in bytes */
};

/* Description of a kernel. */
struct gp_kernel_info {
	const char *name;
	uint32_t attributes_known; /* bit i: attributes[i] is valid; also GP_KERNEL_UNSUPPORTED */
	int32_t attributes[GP_KERNEL_ATTRIBUTES]; /* by CUfunction_attribute */
	uint32_t param_count;
	const struct gp_param_info *params; /* in declaration order */

	/* Only in the client, not on the wire; the decoder sets the members to 0. */

	bool absent; /* the image does not contain the kernel (image/image_check.h) */
	/* a message that the device cannot run the kernel was printed for the user */
	bool reported;
	uint32_t varies; /* bit i: attribute i was set by the program and differs between devices */
};

/* Description of an image. */
struct gp_image_info {
	uint32_t kernel_count;
	struct gp_kernel_info *kernels;
	bool prints; /* only in the client: kernels may call printf (image/image_check.h) */
};

/* ID of a kernel (gp_kernel): the session's ID of its image, and its index. */
#define GP_KERNEL(image, index) ((uint64_t)(image) << 32 | (uint32_t)(index))
#define GP_KERNEL_IMAGE(kernel) ((uint32_t)((kernel) >> 32))
#define GP_KERNEL_INDEX(kernel) ((uint32_t)(kernel))

/* Encodes the kernels into malloc'ed memory. Returns 0, and the caller frees *data_p with free();
 * or -ENOMEM. */
int gp_image_info_encode(const struct gp_image_info *info, void **data_p, size_t *size_p);

/* Decodes a list of kernels, which comes from the network; the result does not refer to the bytes.
 * Returns 0, and the caller frees *info_p with gp_image_info_destroy(); -ENOMEM; or -EPROTO: the
 * bytes are malformed, exceed a limit above, or have parameters that overlap, descend or end beyond
 * GP_LAUNCH_PARAMS_MAX (frame.h). The attributes are not checked. */
int gp_image_info_decode(struct gp_image_info **info_p, struct gp_bytes bytes);
/* Computes a SHA-256 digest of an encoding in which all attributes are replaced by 0, that is, of
 * the kernels' names and parameters in order. The client compares it with that of its own list
 * (image/image_list.h). Returns 0 or an error of gp_image_info_decode(). */
int gp_image_info_digest(struct gp_bytes bytes, uint8_t digest[GP_SHA256_SIZE]);
/* Frees a decoded description; accepts NULL. */
void gp_image_info_destroy(struct gp_image_info *info);

#endif /* GP_IMAGE_INFO_H */
