/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synchronization of whole contexts: cuCtxSynchronize(), and calls in which NVIDIA's driver
 * synchronizes implicitly, such as cuMemFree().
 *
 * An implicit synchronization waits only if there is work whose effects the program or another
 * process may see (gpc_session_issued_visible(), client/session/session.h). Other work is *implied*
 * to be done: work that is given later comes after it, and a query about it waits first. So the
 * program cannot observe the difference.
 *
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note), and outside of critical sections
 * (gpc_pages_begin(), client/pages/pages.h).
 * Errors: an error of earlier work that gpc_sync_implicitly*() encounter becomes the session's
 * deferred error, which a later call returns. gpc_sync_context() returns it.
 * Units: work numbers are those of client/session/session.h.
 * Source: docs/streams.md#implicit-synchronization.
 */
#ifndef GPC_SYNC_H
#define GPC_SYNC_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_context;
struct gpc_stream;

/* Blocks, without limit, until all work given to the context's streams is done and its changes of
 * host memory are stored. For a green context, only the work of its own streams. The context must
 * be active. Memory of pools that was freed before may then be reused. Returns CUDA_SUCCESS, the
 * error of an earlier posted call, or the session's error. */
CUresult gpc_sync_context(struct gpc_context *context);

/* Called before a call that synchronizes with all work of the context. Also the callback leave() of
 * struct gpc_context_part (client/context/context.h), for a context that is destroyed or reset. For
 * a green context, for which only that callback is called, only the work of its own streams counts.
 * If the program may see effects of work in progress, blocks, without limit, until all work of the
 * context is done. Otherwise posts a barrier, which orders later work after that in progress, or
 * blocks too if the daemon does not support barriers. Has no effect if there is no work in
 * progress, if the context is inactive, or after the start of exit(). */
void gpc_sync_implicitly(struct gpc_context *context);
/* Calls gpc_sync_implicitly() for the current context or, if that is a green context, for its
 * primary context. Has no effect without a current context or in a host function. */
void gpc_sync_implicitly_current(void);
/* Calls gpc_sync_implicitly() for the context that owns the memory at the address. Has no effect if
 * freeing that memory does not synchronize in CUDA (address 0, memory of pools, memory unknown to
 * CUDA), or in a host function. */
void gpc_sync_implicitly_owner(uint64_t address);
/* Called before a call that synchronizes with one stream. If the program may see effects of work in
 * progress, blocks, without limit, until the work of the stream, and the work that the stream waits
 * for, is done. Otherwise marks the stream's work as implied to be done. Has no effect if there is
 * no work in progress, or after the start of exit(). */
void gpc_sync_implicitly_stream(struct gpc_stream *stream);

/* Called once by cuInit(): registers a handler with atexit(), so that no call synchronizes
 * implicitly after the start of exit(). */
void gpc_sync_watch_exit(void);

/* Returns whether the stream's work up to this work number is implied to be done: the program may
 * consider it done, although the client has not waited for it. */
bool gpc_sync_is_implied(const struct gpc_stream *stream, uint64_t issued);
/* Returns whether all work of the context's streams up to this work number is implied to be
 * done. */
bool gpc_sync_is_all_implied(const struct gpc_context *context, uint64_t issued);

#endif /* GPC_SYNC_H */
