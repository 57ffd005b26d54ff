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

#endif /* GPC_COPY_OUT_H */
