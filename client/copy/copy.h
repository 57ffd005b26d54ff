/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous copies on behalf of batches and graphs, which are not cuMemcpy* calls of the
 * application.
 *
 * gpc_copy_linear_ordered(), gpc_copy_3d_ordered(): copies of a batch; `order` states when the
 * source may be read. Unlike cuMemcpyAsync() they do not wait for copies within host memory, unless
 * the source must be read during the call.
 *
 * gpc_copy_node_run(): the copy of a graph node, when the graph is launched. A copy within host
 * memory waits for the stream's earlier work, as in NVIDIA's driver (measured with version 580),
 * and is complete when the call returns; any other copy returns at once.
 *
 * Threads: as cuMemcpyAsync().
 * Errors: as cuMemcpyAsync().
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
