/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous copies of batches (cuMemcpyBatchAsync()) and of graph nodes. The cuMemcpy* functions
 * of the application are in copy.c, too.
 *
 * Ownership: parameters are read during the call. The copied memory must stay valid until the copy
 * is complete, as for cuMemcpyAsync().
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note). The current context is used, as by
 * cuMemcpyAsync().
 * Errors: the functions return CUDA_SUCCESS or an error of cuMemcpyAsync() or cuMemcpy3DAsync();
 * nothing is copied if the parameters are invalid. An error that occurs after the call has returned
 * becomes the session's deferred error, which a later call returns.
 */
#ifndef GPC_COPY_H
#define GPC_COPY_H

#include <cuda.h>
#include <stddef.h>

/*
 * Starts a copy of `size` bytes (0: has no effect) of a batch. order: when the source may be read:
 * in stream order, during this call, or at any time; the caller has checked the value. Unlike
 * cuMemcpyAsync(), does not wait for a copy within host memory, unless the source must be read
 * during the call. In this case, it also waits for a copy whose source the device reads from host
 * or managed memory.
 */
CUresult gpc_copy_linear_ordered(CUdeviceptr dst, CUdeviceptr src, size_t size,
				 CUmemcpySrcAccessOrder order, CUstream hStream);
/* Like gpc_copy_linear_ordered(), for a box. params must not be NULL. */
CUresult gpc_copy_3d_ordered(const CUDA_MEMCPY3D *params, CUmemcpySrcAccessOrder order,
			     CUstream hStream);
/*
 * Starts the copy of a graph node, when the graph is launched. params must not be NULL. A copy
 * within host memory waits for the stream's earlier work, as in NVIDIA's driver (measured with
 * version 580), and is complete when the call returns, as is a copy that involves several daemons.
 * Any other copy is only started; it may wait for managed memory that it uses, and for room for its
 * data.
 */
CUresult gpc_copy_node_run(const CUDA_MEMCPY3D *params, CUstream hStream);

#endif /* GPC_COPY_H */
