/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions common to kernel launches, graph nodes and occupancy queries.
 *
 * Threads: any thread may call.
 * Errors: functions that return a CUresult return CUDA_SUCCESS or the errors stated with the
 * function.
 */
#ifndef GPC_LAUNCH_H
#define GPC_LAUNCH_H

#include "protocol/enc.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum number of encoded attributes of a launch. */
#define GPC_LAUNCH_ATTRIBUTES_MAX 16

struct gp_kernel_info;
struct gpc_device;
struct gpc_function;

/* Attributes of one launch, encoded for the daemon. Must not be moved or copied, because `bytes`
 * points into it; needs no freeing. */
struct gpc_launch_attributes {
	struct gp_bytes bytes; /* the encoding; points to memory[] */
	/* cluster dimension; 0: none */
	uint32_t cluster[3];
	uint32_t preferred[3]; /* preferred cluster dimension; 0: none */
	uint32_t policy;       /* CUclusterSchedulingPolicy; 0: default */
	uint32_t carveout; /* 1 + the preferred carveout of shared memory in percent; 0: default */
	bool clustered;    /* cluster or preferred was passed */
	bool cooperative;  /* cooperative launch: all blocks run at the same time */
	uint64_t memory[GPC_LAUNCH_ATTRIBUTES_MAX * 9];
};

/* Encodes the attributes of a launch, except events and CU_LAUNCH_ATTRIBUTE_IGNORE. Errors:
 * CUDA_ERROR_NOT_SUPPORTED: an attribute is not supported, which is also reported to the user;
 * CUDA_ERROR_INVALID_VALUE: more than GPC_LAUNCH_ATTRIBUTES_MAX attributes, or config->attrs is
 * NULL but numAttrs is not 0. After an error *attributes is undefined. */
CUresult gpc_launch_attributes_encode(const CUlaunchConfig *config,
				      struct gpc_launch_attributes *attributes);

/*
 * Returns the event of a launch attribute, or NULL if the attribute has none. CUDA records it when
 * all blocks of the kernel have started or have triggered it. Here it is recorded after the kernel,
 * which is later and thus safe for every waiter.
 */
CUevent gpc_launch_get_event(const CUlaunchAttribute *attribute);
/* Checks the number of attributes of a launch, and their events. Errors: CUDA_ERROR_INVALID_HANDLE:
 * invalid event; CUDA_ERROR_INVALID_VALUE: more than GPC_STREAM_LAUNCH_MAX attributes
 * (stream.h). */
CUresult gpc_launch_check_events(const CUlaunchConfig *config);

/*
 * Checks a launch, or a kernel node of a graph, before it is posted, with the limits of the device
 * and the attributes of the function that are known without a query. gpc_launch_check_events() must
 * have accepted config. function: in the session of the device (gpc_function_get_twin()).
 * Errors: CUDA_ERROR_INVALID_VALUE; CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: the block needs too many
 * registers; CUDA_ERROR_NOT_SUPPORTED: as gpc_function_check_supported(), which may wait for the
 * daemon.
 */
CUresult gpc_launch_check(const struct gpc_device *device, const struct gpc_function *function,
			  const CUlaunchConfig *config);
/* Packs kernel parameters, which the application passes in values or in extra (parameters of
 * cuLaunchKernel()), into malloc'ed memory of *size_p bytes. info: the kernel, which must not be
 * absent (protocol/image_info.h). *packed_p: NULL if there are no parameters; the caller frees it
 * with free(), also after an error. Errors: CUDA_ERROR_INVALID_VALUE: values and extra are both
 * set, incomplete or malformed, or more than GP_LAUNCH_PARAMS_MAX bytes;
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gpc_launch_params_pack(const struct gp_kernel_info *info, void **values, void **extra,
				void **packed_p, size_t *size_p);

/* Designated initializers of a CUlaunchConfig, from the parameters of cuLaunchKernel(), which must
 * have the names in cuda.h. */
#define GPC_LAUNCH_SHAPE                                                                           \
	.gridDimX = gridDimX, .gridDimY = gridDimY, .gridDimZ = gridDimZ, .blockDimX = blockDimX,  \
	.blockDimY = blockDimY, .blockDimZ = blockDimZ, .sharedMemBytes = sharedMemBytes,          \
	.hStream = hStream

#endif /* GPC_LAUNCH_H */
