/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of device memory that streams write and wait for: lists of such operations, checked, and
 * how a stream is given them (docs/streams.md).
 */
#ifndef GPC_MEM_OPS_H
#define GPC_MEM_OPS_H

#include <cuda.h>
#include <stdatomic.h>

/* Of nodes and of what is made of them, which share it; nobody changes it. */
struct gpc_mem_ops {
	atomic_uint refs;
	CUDA_BATCH_MEM_OP_NODE_PARAMS given; /* its list follows */
	CUstreamBatchMemOpParams list[];
};

/* The caller's, with one reference.  CUDA_ERROR_INVALID_VALUE: an operation, a flag or an address
 * is wrong; CUDA_ERROR_NOT_SUPPORTED: an operation that no device here has. */
CUresult gpc_mem_ops_create(const CUDA_BATCH_MEM_OP_NODE_PARAMS *given, struct gpc_mem_ops **ops_p);
struct gpc_mem_ops *gpc_mem_ops_ref(struct gpc_mem_ops *ops);
void gpc_mem_ops_unref(struct gpc_mem_ops *ops);

/* Puts them into the stream, which need not be one that is not captured.  Without gpc_graphs_lock.
 */
CUresult gpc_mem_ops_post(const struct gpc_mem_ops *ops, CUstream stream);

#endif /* GPC_MEM_OPS_H */
