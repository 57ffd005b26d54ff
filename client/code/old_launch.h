/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches as they were before CUDA 4: block, shared memory and parameters are set beforehand, and
 * the function keeps them.  Any thread may call; of two that set one function, the program keeps
 * the order.
 */
#ifndef GPC_OLD_LAUNCH_H
#define GPC_OLD_LAUNCH_H

#include <cuda.h>
#include <stddef.h>

/* What cuLaunchKernelEx() is given instead; in the caller's memory. */
struct gpc_old_call {
	CUlaunchConfig config;
	size_t size;
	void *extra[5];
};

/* CUDA_ERROR_INVALID_HANDLE; whatever else is wrong, the launch says. */
CUresult gpc_old_call_make(struct gpc_old_call *call, CUfunction f, int grid_width, int grid_height,
			   CUstream hStream);

#endif /* GPC_OLD_LAUNCH_H */
