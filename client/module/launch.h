/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions common to kernel launches, graph nodes and occupancy queries.
 *
 * Threads: any thread may call.
 */
#ifndef GPC_LAUNCH_H
#define GPC_LAUNCH_H

#include "protocol/enc.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPC_LAUNCH_ATTRIBUTES_MAX 16

struct gp_kernel_info;
struct gpc_device;
struct gpc_function;

/* Attributes of one launch, encoded for the wire. Lives in the caller's memory. */
struct gpc_launch_attributes {
	struct gp_bytes bytes; /* the encoding, stored in memory[] */
	uint32_t cluster[3];
	uint32_t preferred[3]; /* preferred cluster dimension */
	uint32_t policy;       /* cluster scheduling policy */
	uint32_t carveout; /* 1 + the preferred carveout of shared memory in percent; 0: default */
	bool clustered;
	bool cooperative;
	uint64_t memory[GPC_LAUNCH_ATTRIBUTES_MAX * 9];
};

/* Encodes the attributes of a launch. Errors: CUDA_ERROR_NOT_SUPPORTED: an attribute is not
 * supported; CUDA_ERROR_INVALID_VALUE. */
CUresult gpc_launch_attributes_encode(const CUlaunchConfig *config,
				      struct gpc_launch_attributes *attributes);

/*
 * Returns the event of a launch attribute, or NULL. CUDA records it when all blocks of the kernel
 * have started or have triggered it. Here it is recorded after the kernel, which is later and thus
 * safe for every waiter.
 */
CUevent gpc_launch_get_event(const CUlaunchAttribute *attribute);
/* Checks the events of a launch. Errors: CUDA_ERROR_INVALID_HANDLE: invalid event;
 * CUDA_ERROR_INVALID_VALUE: too many attributes. */
CUresult gpc_launch_check_events(const CUlaunchConfig *config);

/*
 * For graph nodes. check() returns the error with which CUDA would refuse a launch of this shape at
 * once, or CUDA_SUCCESS. pack() packs kernel parameters, which the application passes in values or
 * in extra, into new memory that the caller frees (NULL: no parameters).
 */
CUresult gpc_launch_check(const struct gpc_device *device, const struct gpc_function *function,
			  const CUlaunchConfig *config);
CUresult gpc_launch_params_pack(const struct gp_kernel_info *info, void **values, void **extra,
				void **packed_p, size_t *size_p);

/* Initializes a CUlaunchConfig from the parameters of cuLaunchKernel(). */
#define GPC_LAUNCH_SHAPE                                                                           \
	.gridDimX = gridDimX, .gridDimY = gridDimY, .gridDimZ = gridDimZ, .blockDimX = blockDimX,  \
	.blockDimY = blockDimY, .blockDimZ = blockDimZ, .sharedMemBytes = sharedMemBytes,          \
	.hStream = hStream

#endif /* GPC_LAUNCH_H */
