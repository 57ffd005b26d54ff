/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel launches from nodes of CUDA graphs.
 *
 * Threads: any; the caller has called gs_enter().
 * Errors: CUDA_SUCCESS, or the error that cuLaunchKernelEx() would return.
 */
#ifndef GS_DRIVER_LAUNCH_H
#define GS_DRIVER_LAUNCH_H

#include "softgpu/driver/driver.h"

struct gs_graphs;
struct gs_green;

/* Validates a launch without starting it. `params` and `extra` are those of cuLaunchKernel().
 * `green`: the green context to run on; NULL: the whole device. Stores the size of the kernel's
 * packed parameters in *params_size_p, in bytes; on failure it may or may not be set. */
CUresult gs_launch_check(const CUlaunchConfig *config, CUfunction function, void **params,
			 void **extra, struct gs_green *green, size_t *params_size_p);
/* Copies the parameters to `packed`, which has the number of bytes that gs_launch_check() returned.
 * Unknown kernels and mismatched sizes are errors. */
CUresult gs_launch_params(CUfunction function, void **params, void **extra, uint8_t *packed);

/* Enqueues a launch on config->hStream, on the multiprocessors of the green context (NULL: on all),
 * regardless of the stream's context. Does not wait. The parameters in `extra` are copied. `graphs`
 * provides the operations for kernels that launch or update graphs and must exist until the launch
 * is complete; NULL: no such operations. */
CUresult gs_launch_node(const CUlaunchConfig *config, CUfunction function, void **extra,
			struct gs_green *green, const struct gs_graphs *graphs);

#endif /* GS_DRIVER_LAUNCH_H */
