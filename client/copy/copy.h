/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous copies on behalf of batches and graphs, which are not cuMemcpy* calls of the
 * application.
 *
 * Ownership: parameters are read during the call. The memory must stay valid until the copy is
 * complete, as for cuMemcpyAsync().
 * Threads: any thread except the thread that reads the daemon's replies; the current context is
 * used, as by cuMemcpyAsync().
 * Errors: return CUDA_SUCCESS or an error of cuMemcpyAsync() or cuMemcpy3DAsync(); nothing is
 * copied if the parameters are invalid. An error of the copy itself becomes the session's deferred
 * error.
 */
#ifndef GPC_COPY_H
#define GPC_COPY_H

#include <cuda.h>
#include <stddef.h>

/*
 * Starts a copy of `size` bytes of a batch. order: when the source may be read. Unlike
 * cuMemcpyAsync(), does not wait for a copy within host memory, unless the source must be read
 * during the call.
 */
CUresult gpc_copy_linear_ordered(CUdeviceptr dst, CUdeviceptr src, size_t size,
				 CUmemcpySrcAccessOrder order, CUstream hStream);
/* Starts a copy of a box of a batch, as gpc_copy_linear_ordered() does. */
CUresult gpc_copy_3d_ordered(const CUDA_MEMCPY3D *params, CUmemcpySrcAccessOrder order,
			     CUstream hStream);
/*
 * Starts the copy of a graph node, when the graph is launched. A copy within host memory waits
 * for the stream's earlier work, as in NVIDIA's driver (measured with version 580), and is
 * complete when the call returns. Any other copy returns at once.
 */
CUresult gpc_copy_node_run(const CUDA_MEMCPY3D *params, CUstream hStream);

#endif /* GPC_COPY_H */
