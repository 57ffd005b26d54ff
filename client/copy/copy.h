/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous copies whose caller says when the source is read (CUmemcpySrcAccessOrder): for the
 * calls that copy in batches, and for graphs (ANY).  Other than cuMemcpyAsync() they do not wait
 * for copies within the host, unless the source is to be read during the call.  Threads and errors
 * are those of the CUDA functions.
 */
#ifndef GPC_COPY_H
#define GPC_COPY_H

#include <cuda.h>
#include <stddef.h>

CUresult gpc_copy_linear_ordered(CUdeviceptr dst, CUdeviceptr src, size_t size,
				 CUmemcpySrcAccessOrder order, CUstream hStream);
CUresult gpc_copy_3d_ordered(const CUDA_MEMCPY3D *params, CUmemcpySrcAccessOrder order,
			     CUstream hStream);

#endif /* GPC_COPY_H */
