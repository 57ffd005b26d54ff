/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies from the device to this process.  Whoever reads the connection writes the rows to where
 * they belong; what a stream's or an event's wait was answered for has arrived before.
 */
#ifndef GPC_COPY_OUT_H
#define GPC_COPY_OUT_H

#include "client/copy/copy_region.h"

struct gpc_stream;

/* Returns when the bytes are there. */
CUresult gpc_copy_out(struct gpc_stream *stream, const struct gpc_copy *copy);

/* Returns at once; what fails later is a deferred error of the session. */
CUresult gpc_copy_out_async(struct gpc_stream *stream, const struct gpc_copy *copy);

/*
 * Waits for the asynchronous copies that write to [base, base + size): before this memory is read
 * for another copy, or freed.  Another result than CUDA_SUCCESS is that of such a copy, or an
 * earlier error.
 */
CUresult gpc_copy_out_settle(const void *base, uint64_t size);

#endif /* GPC_COPY_OUT_H */
