/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous copies that are not calls of the application's.
 *
 * gpc_copy_linear_ordered(), gpc_copy_3d_ordered(): copies of a batch, whose caller says when the
 * source is read.  Unlike cuMemcpyAsync() they do not wait for copies within host memory, unless
 * the source is to be read during the call. gpc_copy_node_run(): the copy of a graph's node, when
 * the graph is launched.  A copy within host memory waits for the stream's earlier work, as in
 * NVIDIA's driver (measured with 580), and its bytes are there when the call returns; any other
 * copy returns at once.
 *
 * Threads and errors: those of the CUDA functions.
 */
#ifndef GPC_COPY_H
#define GPC_COPY_H

#include <cuda.h>
#include <stddef.h>

CUresult gpc_copy_linear_ordered(CUdeviceptr dst, CUdeviceptr src, size_t size,
				 CUmemcpySrcAccessOrder order, CUstream hStream);
CUresult gpc_copy_3d_ordered(const CUDA_MEMCPY3D *params, CUmemcpySrcAccessOrder order,
			     CUstream hStream);
CUresult gpc_copy_node_run(const CUDA_MEMCPY3D *params, CUstream hStream);

#endif /* GPC_COPY_H */
