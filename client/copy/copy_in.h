/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies from host memory to the device.
 *
 * Threads: any thread except the thread that reads the daemon's replies.
 */
#ifndef GPC_COPY_IN_H
#define GPC_COPY_IN_H

#include "client/copy/copy_region.h"

#include <stdbool.h>

struct gpc_session;
struct gpc_stream;

/* Returns whether a running kernel may poll a value in memory that the worker shares with the
 * program, so that stores of the program may start or stop the kernel's work. Does not query the
 * daemon. */
bool gpc_copy_kernels_may_poll(struct gpc_session *session);

/*
 * Posts the copy to the stream. Pageable memory has been read when this returns; pinned memory of a
 * copy without barrier may be read later, in stream order, and must stay valid until the copy is
 * complete. *copy is not used afterwards. barrier: all later work of the session waits for the
 * copy, as after a copy that CUDA calls synchronous; the call then also waits for earlier work of
 * the stream that the program may see.
 *
 * Waits for host functions before the copy, for pending copies that write its source, and while the
 * worker has no room for the data. Returns CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, the error of a
 * pending copy, or the session's error; a part of the data may have been copied.
 */
CUresult gpc_copy_in(struct gpc_stream *stream, const struct gpc_copy *copy, bool barrier);

#endif /* GPC_COPY_IN_H */
