/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies that involve several daemons, which have no connection to each other. The daemon that owns
 * the device memory executes the copy, even if the program's stream is on another daemon. A copy
 * from one daemon's memory to another's goes through this process.
 *
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note).
 * Errors: functions that return CUresult return CUDA_SUCCESS, the errors stated with the function,
 * or an error of gpc_stream_fence() (client/stream/stream.h).
 */
#ifndef GPC_COPY_BETWEEN_H
#define GPC_COPY_BETWEEN_H

#include "client/copy/copy_region.h"

#include <stdbool.h>
#include <stdint.h>

struct gpc_stream;

/*
 * Selects the stream for a copy to or from device memory or pinned memory at this address. If the
 * memory belongs to another daemon than *stream_p, waits until all work given to the stream is
 * done, and sets *stream_p to the default stream of the memory's context and *changed_p to true.
 * The caller must then wait for the copy, to keep the order of the program's stream. Otherwise sets
 * *changed_p to false; *stream_p is unchanged.
 * Errors: CUDA_ERROR_INVALID_CONTEXT: the memory's context is inactive. After an error *stream_p
 * may be NULL, and *changed_p is undefined.
 */
CUresult gpc_copy_route(struct gpc_stream **stream_p, uint64_t address, bool *changed_p);

/* Returns whether both sides of the copy, neither of which is an array, are device memory or
 * device-mapped host memory, of different daemons. */
bool gpc_copy_is_between(const struct gpc_copy *copy);
/* Executes a copy for which gpc_copy_is_between() is true, after the work given to the stream.
 * Blocks until it is complete. Errors: CUDA_ERROR_OUT_OF_MEMORY; CUDA_ERROR_INVALID_CONTEXT: the
 * context of a side is inactive; those of gpc_copy_out() and gpc_copy_in(). After an error a part
 * of the data may have been copied. */
CUresult gpc_copy_between(struct gpc_stream *stream, const struct gpc_copy *copy);

/* Selects the stream for a copy of which at least one side is an array, as gpc_copy_route() does.
 * Also returns CUDA_ERROR_NOT_SUPPORTED, after a report to the user (gpc_not_supported(),
 * client/base/unsupported_feature.h), if the sides of the copy are on different daemons. */
CUresult gpc_copy_route_array(struct gpc_stream **stream_p, const struct gpc_copy *copy,
			      bool *changed_p);

#endif /* GPC_COPY_BETWEEN_H */
