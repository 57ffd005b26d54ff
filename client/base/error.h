/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversion of gpupool's error codes to CUresult, and the CUDA errors that stand for failures of
 * gpupool itself.
 *
 * Threads: any thread may call; there is no state.
 */
#ifndef GPC_ERROR_H
#define GPC_ERROR_H

#include <cuda.h>

/* Converts a result of the shared layers: 0 becomes CUDA_SUCCESS, -ENOMEM becomes
 * CUDA_ERROR_OUT_OF_MEMORY, any other negative errno or GP_E_* code becomes
 * GPC_ERROR_NO_SESSION. */
CUresult gpc_error_to_cuda(int r);

/* Returned by cuInit() if REMOTE_GPU is not set and this machine has no NVIDIA driver. */
#define GPC_ERROR_NO_DRIVER CUDA_ERROR_NO_DEVICE
/* Returned by calls that need a session while none can be opened. */
#define GPC_ERROR_NO_SESSION CUDA_ERROR_SYSTEM_NOT_READY
/* Returned by all calls of a session that was lost because its daemon, worker or connection
 * failed. */
#define GPC_ERROR_LOST CUDA_ERROR_DEVICE_UNAVAILABLE

#endif /* GPC_ERROR_H */
