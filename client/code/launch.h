/* SPDX-License-Identifier: Apache-2.0 */
/* What launches and questions about launches have in common.  Any thread may call. */
#ifndef GPC_LAUNCH_H
#define GPC_LAUNCH_H

#include "protocol/enc.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPC_LAUNCH_ATTRIBUTES_MAX 16

struct gp_kernel_info;
struct gpc_context;
struct gpc_device;
struct gpc_function;

/* Of one launch; in the caller's memory. */
struct gpc_launch_attributes {
	struct gp_bytes bytes; /* for the wire, in memory */
	uint32_t cluster[3];
	uint32_t preferred[3]; /* cluster */
	uint32_t policy;       /* by which clusters are distributed */
	uint32_t carveout;     /* the preferred one of shared memory; 0: none is said */
	bool clustered;
	bool cooperative;
	uint64_t memory[GPC_LAUNCH_ATTRIBUTES_MAX * 9];
};

/* CUDA_ERROR_NOT_SUPPORTED: there are attributes that are not remoted. */
CUresult gpc_launch_attributes_encode(const CUlaunchConfig *config,
				      struct gpc_launch_attributes *attributes);

/*
 * The event that a launch's attribute names, or NULL.  It would come when the kernel's blocks have
 * begun, or have said so; here it is recorded behind the kernel, and who waits for it sees no less.
 */
CUevent gpc_launch_get_event(const CUlaunchAttribute *attribute);
/* CUDA_ERROR_INVALID_HANDLE: one of them is none.  CUDA_ERROR_INVALID_VALUE: too many attributes.
 */
CUresult gpc_launch_check_events(const CUlaunchConfig *config);

/*
 * For nodes of graphs.  Whether a launch of this shape would be refused at once; and the parameters
 * of one, as the application gives them, packed into memory that free() frees (NULL: there are
 * none).
 */
CUresult gpc_launch_check(const struct gpc_device *device, const struct gpc_function *function,
			  const CUlaunchConfig *config);
CUresult gpc_launch_params_pack(const struct gp_kernel_info *info, void **values, void **extra,
				void **packed_p, size_t *size_p);

#endif /* GPC_LAUNCH_H */
