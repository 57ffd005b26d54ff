/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies with several daemons, which do not know each other. A copy is executed by the daemon that
 * owns the device memory; data between two daemons is transferred through this process.
 *
 * Threads: any thread may call.
 */
#ifndef GPC_COPY_BETWEEN_H
#define GPC_COPY_BETWEEN_H

#include "client/copy/copy_region.h"

#include <stdbool.h>
#include <stdint.h>

struct gpc_stream;

/*
 * Selects the stream for a copy to or from address. If the memory belongs to another daemon than
 * the stream, *stream_p becomes a stream of that daemon and *changed_p true, after all work given
 * to the original stream is done; the caller must then wait for the copy. Otherwise *changed_p is
 * false.
 * Errors: those of waiting; CUDA_ERROR_INVALID_CONTEXT.
 */
CUresult gpc_copy_route(struct gpc_stream **stream_p, uint64_t address, bool *changed_p);

/* Returns whether both sides are device memory, of different daemons. */
bool gpc_copy_is_between(const struct gpc_copy *copy);
/* Executes such a copy after the work given to the stream. Returns when it is complete. */
CUresult gpc_copy_between(struct gpc_stream *stream, const struct gpc_copy *copy);

/* Like gpc_copy_route(), for a copy to or from an array. CUDA_ERROR_NOT_SUPPORTED: its sides are on
 * different daemons. */
CUresult gpc_copy_route_array(struct gpc_stream **stream_p, const struct gpc_copy *copy,
			      bool *changed_p);

#endif /* GPC_COPY_BETWEEN_H */
