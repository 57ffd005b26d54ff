/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory of which the daemon has a copy that kernels reach, and which is kept like this
 * process's (docs/host-memory.md).
 *
 * A session has one list of such blocks, and a thread from its first block on.  Any thread may
 * call; no call is made with a lock that the reader of the connection takes.
 */
#ifndef GPC_MIRROR_H
#define GPC_MIRROR_H

#include "protocol/host_changes.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_context;
struct gpc_coherence_fetch;
struct gpc_session;

/* Blocks, of all sessions. */
extern atomic_uint gpc_replica_count;

/* The daemon's copy, at this address, becomes what the block is, and is kept so from then on.  Both
 * are equally aligned to 8. */
CUresult gpc_coherence_add(struct gpc_context *context, void *host, uint64_t address, size_t size);
/* The block that begins at this address, if there is one. */
void gpc_coherence_remove(struct gpc_session *session, uint64_t address);

CUresult gpc_coherence_send(struct gpc_session *session);
void gpc_coherence_wake(struct gpc_session *session);
CUresult gpc_coherence_fetch(struct gpc_session *session);
/* gpc_coherence_before_wait(), and the end of one that asked. */
struct gpc_coherence_fetch *gpc_coherence_wait_begin(struct gpc_session *session,
						     enum gp_host_after kind, uint32_t name,
						     uint16_t call);
CUresult gpc_coherence_wait_end(struct gpc_session *session, struct gpc_coherence_fetch *fetch,
				CUresult result);

/* Before work is posted that may read a block: what the program has changed is on its way. */
static inline CUresult
gpc_coherence_before_work(struct gpc_session *session)
{
	return __builtin_expect(atomic_load(&gpc_replica_count) == 0, 1)
		       ? CUDA_SUCCESS
		       : gpc_coherence_send(session);
}

/* And behind it: while it is under way changes are exchanged. */
static inline void
gpc_coherence_after_work(struct gpc_session *session)
{
	if (__builtin_expect(atomic_load(&gpc_replica_count) != 0, 0))
		gpc_coherence_wake(session);
}

/* Before a wait for the daemon, for work of what is named, is posted: what that will have changed
 * is asked for, so that the wait stays one round trip.  call: what waits, for the statistics, which
 * count all up to gpc_coherence_after_wait() as one wait.  NULL: it is asked behind the wait. */
static inline struct gpc_coherence_fetch *
gpc_coherence_before_wait(struct gpc_session *session, enum gp_host_after kind, uint32_t name,
			  uint16_t call)
{
	return __builtin_expect(atomic_load(&gpc_replica_count) == 0, 1)
		       ? NULL
		       : gpc_coherence_wait_begin(session, kind, name, call);
}

/* Before the program is told that work is done, with this result: what that has changed is here.
 * fetch: what gpc_coherence_before_wait() gave, or NULL. */
static inline CUresult
gpc_coherence_after_wait(struct gpc_session *session, struct gpc_coherence_fetch *fetch,
			 CUresult result)
{
	if (__builtin_expect(fetch != NULL, 0))
		return gpc_coherence_wait_end(session, fetch, result);
	return __builtin_expect(atomic_load(&gpc_replica_count) == 0, 1) || result != CUDA_SUCCESS
		       ? result
		       : gpc_coherence_fetch(session);
}

#endif /* GPC_MIRROR_H */
