/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synchronization of whole contexts: cuCtxSynchronize(), and calls that NVIDIA's driver
 * synchronizes implicitly.
 *
 * Such a call waits only for work whose effects the program or another process may see
 * (gpc_session_issued_visible()). Other work is *implied* to be done: work that is given later
 * comes after it, and a query about it waits first. So the program cannot observe the difference.
 *
 * Threads: any.
 * Errors: errors of earlier work are reported by a later call.
 * Source: docs/streams.md#implicit-synchronization.
 */
#ifndef GPC_SYNC_H
#define GPC_SYNC_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_context;
struct gpc_stream;

/* Blocks until all work given to the context's streams is done. */
CUresult gpc_sync_context(struct gpc_context *context);

/* Called before a call that synchronizes with all work of: the context; the current context, if
 * any; the context that owns the memory at the address, if freeing that memory synchronizes in
 * CUDA. */
void gpc_sync_implicitly(struct gpc_context *context);
void gpc_sync_implicitly_current(void);
void gpc_sync_implicitly_owner(uint64_t address);
/* The same for the work that the stream waits for. */
void gpc_sync_implicitly_stream(struct gpc_stream *stream);

/* Called by cuInit(): from the start of exit() on, no call waits implicitly. */
void gpc_sync_watch_exit(void);

/* Returns whether the stream's work up to this work number (client/session/session.h) is implied to
 * be done. */
bool gpc_sync_is_implied(const struct gpc_stream *stream, uint64_t issued);
/* Returns whether all work of the context's streams up to this work number is implied to be
 * done. */
bool gpc_sync_is_all_implied(const struct gpc_context *context, uint64_t issued);

#endif /* GPC_SYNC_H */
