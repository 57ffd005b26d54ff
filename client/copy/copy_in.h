/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies from host memory to the device.
 *
 * Threads: any thread may call.
 */
#ifndef GPC_COPY_IN_H
#define GPC_COPY_IN_H

#include "client/copy/copy_region.h"

#include <stdbool.h>

struct gpc_session;
struct gpc_stream;

/* Returns whether a running kernel may poll a word of memory that it shares with the program. */
bool gpc_copy_kernels_may_poll(struct gpc_session *session);

/*
 * Posts the copy. Pageable memory has been read when this returns; pinned memory of a copy without
 * barrier may be read later, in stream order. barrier: all later work of the session waits for the
 * copy, as after a copy that CUDA calls synchronous. Returns the first error.
 */
CUresult gpc_copy_in(struct gpc_stream *stream, const struct gpc_copy *copy, bool barrier);

#endif /* GPC_COPY_IN_H */
