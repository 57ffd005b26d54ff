/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extensions of libcuda-soft.so to the CUDA driver API, found with dlsym(); NVIDIA's driver has
 * none of them.
 *
 * Errors: CUresult.
 */
#ifndef GS_SOFT_CUDA_H
#define GS_SOFT_CUDA_H

#include <cuda.h>

/*
 * Drops the operations queued on the stream, stops the running one and returns when the stream is
 * idle, within about 100 ms unless a host function is running. Later operations on the stream are
 * dropped as well, except that events recorded on it complete. The context remains usable. Not for
 * the default streams.
 */
CUresult CUDAAPI gpSoftStreamCancel(CUstream stream);

/* Returns why launches of the kernel fail with CUDA_ERROR_NOT_SUPPORTED: "line N: ..." of its PTX.
 * *why_p is valid as long as the library is loaded; NULL if the device can run the kernel. */
CUresult CUDAAPI gpSoftKernelUnsupported(CUkernel kernel, const char **why_p);

#endif /* GS_SOFT_CUDA_H */
