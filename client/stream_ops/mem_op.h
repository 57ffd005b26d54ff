/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream memory operations (cuStreamWaitValue, cuStreamWriteValue, cuStreamBatchMemOp): validated
 * lists of operations, and their posting to a stream (docs/streams.md).
 *
 * Ownership: lists are reference-counted; the last gpc_mem_ops_unref() frees the list.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note); lists are immutable.
 */
#ifndef GPC_MEM_OP_H
#define GPC_MEM_OP_H

#include <cuda.h>
#include <stdatomic.h>

/* A list of operations, shared by graph nodes and by the steps of the executable graphs made from
 * them. */
struct gpc_mem_ops {
	atomic_uint refs; /* number of references */
	/* parameters as passed by the program, except that paramArray points to `list`, of
	 * given.count elements */
	CUDA_BATCH_MEM_OP_NODE_PARAMS
	given;
	CUstreamBatchMemOpParams list[];
};

/* Validates and copies a list (given->ctx is not used), and stores it in *ops_p with one reference,
 * which the caller owns. `given` and its array may be freed afterwards. Host memory that the
 * operations use is made accessible to the device, which may wait for the daemon. Returns
 * CUDA_SUCCESS; CUDA_ERROR_INVALID_VALUE for an invalid operation, flag or address, or for more
 * than 256 operations; CUDA_ERROR_NOT_SUPPORTED for CU_STREAM_WAIT_VALUE_FLUSH and
 * CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
 * CUDA_ERROR_OUT_OF_MEMORY; or the session's error. *ops_p is unchanged after an error. */
CUresult gpc_mem_ops_create(const CUDA_BATCH_MEM_OP_NODE_PARAMS *given, struct gpc_mem_ops **ops_p);
/* Acquires a reference and returns its argument. */
struct gpc_mem_ops *gpc_mem_ops_ref(struct gpc_mem_ops *ops);
/* Drops a reference. The argument must not be NULL. */
void gpc_mem_ops_unref(struct gpc_mem_ops *ops);

/* Posts operations, validated by gpc_mem_ops_create(), to a stream, which must not be
 * capturing. given->ctx is not used.
 * Does not wait for them; `given` may be freed afterwards. Called without gpc_graphs_lock
 * (client/graph/graph_root.h). Returns CUDA_SUCCESS, an error of gpc_stream_enter() or
 * gpc_pending_copy_before_work(), CUDA_ERROR_OUT_OF_MEMORY, or the session's error. After an error
 * a part of the operations may have been posted. */
CUresult gpc_mem_ops_post(CUstream hStream, const CUDA_BATCH_MEM_OP_NODE_PARAMS *given);

#endif /* GPC_MEM_OP_H */
