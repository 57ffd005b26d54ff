/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extensions of libcuda-soft.so to the CUDA driver API, found with dlsym(); NVIDIA's driver has
 * none of them.
 *
 * Threads: any.
 * Errors: CUresult.
 */
#ifndef GS_SOFT_CUDA_H
#define GS_SOFT_CUDA_H

#include <cuda.h>

/*
 * Drops the operations queued on the stream and stops the running one. Waits until the stream is
 * idle: about 100 ms, or until a running host function returns. Later operations on the stream are
 * dropped as well, except that events recorded on it complete. The context remains usable. Returns
 * CUDA_SUCCESS, CUDA_ERROR_INVALID_HANDLE for a default stream or an unknown handle, or the
 * context's sticky error.
 */
CUresult CUDAAPI gpSoftStreamCancel(CUstream stream);

/* Sets *why_p to the reason why launches of the kernel fail with CUDA_ERROR_NOT_SUPPORTED, in the
 * form "line N: ..." (a line of its PTX), or to NULL if the device can run the kernel. The text is
 * borrowed and valid until the library is unloaded. Returns CUDA_SUCCESS; CUDA_ERROR_INVALID_VALUE
 * if why_p is NULL; CUDA_ERROR_INVALID_HANDLE for an unknown kernel; CUDA_ERROR_NOT_INITIALIZED
 * before cuInit(); or the process's sticky error. On failure *why_p is unchanged. */
CUresult CUDAAPI gpSoftKernelUnsupported(CUkernel kernel, const char **why_p);

#endif /* GS_SOFT_CUDA_H */
