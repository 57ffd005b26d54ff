/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synchronization of whole contexts: cuCtxSynchronize(), and the calls that NVIDIA's driver
 * synchronizes implicitly (docs/streams.md#implicit-synchronization).
 *
 * Such a call waits only for work whose effects the program or another process may see
 * (gpc_session_issued_visible()).  Other work is *implied* to be done: work that is given later
 * comes after it, and a query about it waits first.  So the program cannot tell the difference.
 *
 * Threads: any.  Errors: those of earlier work are reported by a later call.
 */
#ifndef GPC_SYNC_H
#define GPC_SYNC_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_context;
struct gpc_stream;

/* Blocks until all that the context's streams were given is done. */
CUresult gpc_sync_context(struct gpc_context *context);

/* Before a call that synchronizes with all work of: the context; the current context, if
 * any; the context of the memory at the address, if CUDA synchronizes when it is freed. */
void gpc_sync_implicitly(struct gpc_context *context);
void gpc_sync_implicitly_current(void);
void gpc_sync_implicitly_owner(uint64_t address);
/* The same with the work that the stream waits for. */
void gpc_sync_implicitly_stream(struct gpc_stream *stream);

/* By cuInit(): no call waits implicitly once the process is in exit(). */
void gpc_sync_watch_exit(void);

/* Whether the stream's work up to this record (client/wire/session.h) is implied to be done. */
bool gpc_sync_is_implied(const struct gpc_stream *stream, uint64_t issued);
/* Whether all work up to this record, of whatever stream of the context, is. */
bool gpc_sync_is_all_implied(const struct gpc_context *context, uint64_t issued);

#endif /* GPC_SYNC_H */
