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

#endif /* GS_SOFT_CUDA_H */
