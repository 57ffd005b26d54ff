/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies from the device to host memory. The thread that reads a connection stores the bytes at
 * their destination, before it processes the reply to a later wait for the stream or for an event.
 *
 * Ownership: the caller owns the destination, which must stay valid until the data has arrived. For
 * gpc_copy_out_async() this is when a later wait returns, for the stream or for an event that was
 * recorded after the copy. struct gpc_copy is not used after the call. Its destination is host
 * memory (copy->dst.host), its source is not, and it is not empty. The stream's context is active.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note).
 */
#ifndef GPC_COPY_OUT_H
#define GPC_COPY_OUT_H

#include "client/copy/copy_region.h"

struct gpc_stream;

/* Copies after the stream's earlier work, and blocks, without limit, until the data has arrived.
 * Returns CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, the error of the copy or of an earlier posted
 * call, or the session's error; the destination is undefined after an error. */
CUresult gpc_copy_out(struct gpc_stream *stream, const struct gpc_copy *copy);

/* Starts a copy that is ordered after the stream's earlier work, and returns without waiting for
 * the data. Returns CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY or the session's error; after an error a
 * part may have been started, so the destination must not be freed before a wait for the stream
 * returns. A later failure of the copy is returned to a thread that waits for the copy
 * (client/host/pending_copy.h). If no thread waits, it becomes a deferred error of the session,
 * which a later call returns. */
CUresult gpc_copy_out_async(struct gpc_stream *stream, const struct gpc_copy *copy);

#endif /* GPC_COPY_OUT_H */
