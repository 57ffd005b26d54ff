/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies when there are several daemons, which know nothing of each other: the device memory says
 * whose the copy is, and what goes from one to another travels through this process.  Any thread.
 */
#ifndef GPC_COPY_BETWEEN_H
#define GPC_COPY_BETWEEN_H

#include "client/copy/copy_region.h"

#include <stdbool.h>
#include <stdint.h>

struct gpc_stream;

/*
 * Whether a copy given to this stream needs another one: *stream_p becomes a stream of the daemon
 * that has the device memory, and the work given to the first one so far is done.  The copy must
 * then be waited for.  CUDA_SUCCESS with *changed_p false: the stream will do.
 */
CUresult gpc_copy_route(struct gpc_stream **stream_p, uint64_t address, bool *changed_p);

/* Whether both sides are device memory, of two daemons. */
bool gpc_copy_is_between(const struct gpc_copy *copy);
/* Carries such a copy out, behind the work that was given to the stream; returns when it is done.
 */
CUresult gpc_copy_between(struct gpc_stream *stream, const struct gpc_copy *copy);

/* The same for a copy to or from an array.  CUDA_ERROR_NOT_SUPPORTED: its sides are on two daemons.
 */
CUresult gpc_copy_route_array(struct gpc_stream **stream_p, const struct gpc_copy *copy,
			      bool *changed_p);

#endif /* GPC_COPY_BETWEEN_H */
