/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from this process to the device. */
#ifndef GPC_COPY_IN_H
#define GPC_COPY_IN_H

#include "client/copy/copy_region.h"

#include <stdbool.h>

struct gpc_session;
struct gpc_stream;

/* Whether a kernel that is under way may wait for a word of memory that it shares with the
 * program. */
bool gpc_copy_kernels_may_poll(struct gpc_session *session);

/*
 * Posts the copy; the source may be changed when this returns.  barrier: all later work of the
 * session waits for it, as after a copy that CUDA calls synchronous.
 */
CUresult gpc_copy_in(struct gpc_stream *stream, const struct gpc_copy *copy, bool barrier);

#endif /* GPC_COPY_IN_H */
