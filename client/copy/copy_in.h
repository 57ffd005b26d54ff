/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies from host memory to the device.
 *
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note).
 */
#ifndef GPC_COPY_IN_H
#define GPC_COPY_IN_H

#include "client/copy/copy_region.h"

#include <stdbool.h>

struct gpc_session;
struct gpc_stream;

/* Returns whether a running kernel may be polling a value in host memory that the worker shares
 * with the program. If so, a store of the program alone may let the kernel go on, so data that the
 * program has stored before must reach the device first. Does not query the daemon. */
bool gpc_copy_kernels_may_poll(struct gpc_session *session);

/*
 * Posts a copy whose source is host memory (copy->src.host) and whose destination is not. The
 * stream's context is active. With `barrier`, all later work of the session waits for the copy, as
 * after a synchronous copy of CUDA; the source has been read when this returns. Without it,
 * pageable memory has been read when this returns, but pinned memory (copy->src.pinned) may be read
 * later, in stream order, and must stay valid until the copy is complete. *copy is not used
 * afterwards, and must not be empty.
 *
 * May wait: for host functions and other earlier work of the stream on which the source's contents
 * may depend, for pending copies that write the source, and while the worker has no room for the
 * data. Returns CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, the error of a pending copy, or the
 * session's error; a part of the data may have been copied then.
 */
CUresult gpc_copy_in(struct gpc_stream *stream, const struct gpc_copy *copy, bool barrier);

#endif /* GPC_COPY_IN_H */
