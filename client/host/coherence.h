/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coherence of replicated host memory: keeps host memory of this process and the daemon's replica,
 * which kernels access, identical (docs/host-memory.md).
 *
 * Each session has a list of replicated blocks and, from the first block on, a thread that
 * exchanges changes while work is in progress.
 * Threads: any. No function may be called with a lock that the reader of the connection acquires.
 * Errors: functions that return CUresult return the session's error or CUDA_ERROR_OUT_OF_MEMORY.
 */
#ifndef GPC_COHERENCE_H
#define GPC_COHERENCE_H

#include "protocol/host_changes.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_context;
struct gpc_coherence_fetch;
struct gpc_session;

/* Number of blocks of all sessions. */
extern atomic_uint gpc_replica_count;

/* Copies the block to the daemon's replica at this address, and keeps both identical from then on.
 * The memory must stay mapped until gpc_coherence_remove(). host and address must be equally
 * aligned modulo 8. */
CUresult gpc_coherence_add(struct gpc_context *context, void *host, uint64_t address, size_t size);
/* Removes the block whose replica starts at this address, if there is one. */
void gpc_coherence_remove(struct gpc_session *session, uint64_t address);

/* Sends the program's changes; wakes the exchange thread; fetches the changes of kernels and waits
 * until they are stored. */
CUresult gpc_coherence_send(struct gpc_session *session);
void gpc_coherence_wake(struct gpc_session *session);
CUresult gpc_coherence_fetch(struct gpc_session *session);
/* Slow paths of gpc_coherence_before_wait() and gpc_coherence_after_wait(), for a fetch that was
 * started. */
struct gpc_coherence_fetch *gpc_coherence_wait_begin(struct gpc_session *session,
						     enum gp_host_after kind, uint32_t name,
						     uint16_t call);
CUresult gpc_coherence_wait_end(struct gpc_session *session, struct gpc_coherence_fetch *fetch,
				CUresult result);

/* Called before work is posted that may read a block: sends the program's changes. */
static inline CUresult
gpc_coherence_before_work(struct gpc_session *session)
{
	return __builtin_expect(atomic_load(&gpc_replica_count) == 0, 1)
		       ? CUDA_SUCCESS
		       : gpc_coherence_send(session);
}

/* Called after work was posted: changes are exchanged while it is in progress. */
static inline void
gpc_coherence_after_work(struct gpc_session *session)
{
	if (__builtin_expect(atomic_load(&gpc_replica_count) != 0, 0))
		gpc_coherence_wake(session);
}

/* Called before a wait for the daemon is posted, for the work that kind and name denote: requests
 * the changes of that work, so that the wait takes one round trip. call: the waiting call, for the
 * statistics, which count everything until gpc_coherence_after_wait() as one wait. Returns NULL if
 * the changes are fetched after the wait instead. */
static inline struct gpc_coherence_fetch *
gpc_coherence_before_wait(struct gpc_session *session, enum gp_host_after kind, uint32_t name,
			  uint16_t call)
{
	return __builtin_expect(atomic_load(&gpc_replica_count) == 0, 1)
		       ? NULL
		       : gpc_coherence_wait_begin(session, kind, name, call);
}

/* Called before the program learns that work is done, with this result: waits until the changes of
 * the work have been stored. fetch: result of gpc_coherence_before_wait(), or NULL. */
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

#endif /* GPC_COHERENCE_H */
