/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream memory operations (cuStreamWaitValue, cuStreamWriteValue, cuStreamBatchMemOp): validated
 * lists of operations, and their posting to a stream (docs/streams.md).
 *
 * Ownership: lists are reference-counted.
 * Threads: any; lists are immutable.
 */
#ifndef GPC_MEM_OP_H
#define GPC_MEM_OP_H

#include <cuda.h>
#include <stdatomic.h>

/* A list, shared by nodes and by the steps made from them. */
struct gpc_mem_ops {
	atomic_uint refs;
	CUDA_BATCH_MEM_OP_NODE_PARAMS given; /* the parameters; paramArray points to `list` */
	CUstreamBatchMemOpParams list[];
};

/* Validates and copies a list; the caller owns one reference. Returns CUDA_ERROR_INVALID_VALUE for
 * an invalid operation, flag or address, CUDA_ERROR_NOT_SUPPORTED for an operation that no device
 * here supports. */
CUresult gpc_mem_ops_create(const CUDA_BATCH_MEM_OP_NODE_PARAMS *given, struct gpc_mem_ops **ops_p);
struct gpc_mem_ops *gpc_mem_ops_ref(struct gpc_mem_ops *ops);
void gpc_mem_ops_unref(struct gpc_mem_ops *ops);

/* Posts the operations to a stream, which must not be captured. Called without gpc_graphs_lock. */
CUresult gpc_mem_ops_post(CUstream hStream, const CUDA_BATCH_MEM_OP_NODE_PARAMS *given);

#endif /* GPC_MEM_OP_H */
