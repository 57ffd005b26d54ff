/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libcuda-soft.so has beyond the CUDA driver API. Found with dlsym(); NVIDIA's driver has
 * none of it. Results are CUresult values.
 */
#ifndef GS_SOFT_CUDA_H
#define GS_SOFT_CUDA_H

#include <cuda.h>

/*
 * Drops what is queued on the stream, stops what runs on it and returns when it is idle, within
 * about 100 ms unless a host function is running. Later work on the stream is dropped too, except
 * that events recorded on it complete; the context stays healthy. Not for the default streams.
 */
CUresult CUDAAPI gpSoftStreamCancel(CUstream stream);

/* Why launches of the kernel are CUDA_ERROR_NOT_SUPPORTED: "line N: ..." of its PTX, which lasts as
 * long as the library; *why_p is NULL where the device runs it. */
CUresult CUDAAPI gpSoftKernelUnsupported(CUkernel kernel, const char **why_p);

#endif /* GS_SOFT_CUDA_H */
