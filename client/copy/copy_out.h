/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies from the device to host memory. The thread that reads the connection stores the rows at
 * their destination, before it processes the reply to a later wait for the stream or for an event.
 *
 * Threads: any thread may call.
 */
#ifndef GPC_COPY_OUT_H
#define GPC_COPY_OUT_H

#include "client/copy/copy_region.h"

struct gpc_stream;

/* Copies and returns when the data has arrived. */
CUresult gpc_copy_out(struct gpc_stream *stream, const struct gpc_copy *copy);

/* Starts the copy and returns. A later failure becomes a deferred error of the session. */
CUresult gpc_copy_out_async(struct gpc_stream *stream, const struct gpc_copy *copy);

#endif /* GPC_COPY_OUT_H */
