/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies that involve several daemons, which have no connection to each other. A copy is executed
 * by the daemon that owns the device memory; data between two daemons is transferred through this
 * process.
 *
 * Threads: any thread except the thread that reads the daemon's replies.
 * Errors: functions that return CUresult return CUDA_SUCCESS, the errors named at them, or an error
 * of gpc_stream_fence().
 */
#ifndef GPC_COPY_BETWEEN_H
#define GPC_COPY_BETWEEN_H

#include "client/copy/copy_region.h"

#include <stdbool.h>
#include <stdint.h>

struct gpc_stream;

/*
 * Selects the stream for a copy to or from device memory or pinned memory at the address. If the
 * memory belongs to another daemon than the stream, waits until all work given to the stream is
 * done, *stream_p becomes a stream of the other daemon and *changed_p true; the caller must then
 * wait for the copy. Otherwise *changed_p is false and *stream_p is unchanged.
 * Errors: CUDA_ERROR_INVALID_CONTEXT: the memory's context is inactive. The copy must not be
 * started after an error.
 */
CUresult gpc_copy_route(struct gpc_stream **stream_p, uint64_t address, bool *changed_p);

/* Returns whether both sides of the copy are device memory, of different daemons. */
bool gpc_copy_is_between(const struct gpc_copy *copy);
/* Executes a copy for which gpc_copy_is_between() is true, after the work given to the stream.
 * Blocks until it is complete. Returns CUDA_ERROR_OUT_OF_MEMORY or CUDA_ERROR_INVALID_CONTEXT if it
 * cannot start; after another error a part of the data may have been copied. */
CUresult gpc_copy_between(struct gpc_stream *stream, const struct gpc_copy *copy);

/* Selects the stream for a copy to or from an array, as gpc_copy_route() does. Returns
 * CUDA_ERROR_NOT_SUPPORTED if the sides of the copy are on different daemons. */
CUresult gpc_copy_route_array(struct gpc_stream **stream_p, const struct gpc_copy *copy,
			      bool *changed_p);

#endif /* GPC_COPY_BETWEEN_H */
