/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coherence of replicated host memory: keeps host memory of this process and the worker's replica,
 * which kernels access, identical (docs/host-memory.md).
 *
 * Each session has a list of replicated blocks and, from the first block on, a thread that
 * exchanges changes while work is in progress.
 *
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note). Nor may a caller hold a lock that such a
 * function acquires.
 * Errors: functions that return CUresult return CUDA_SUCCESS, the session's error,
 * CUDA_ERROR_OUT_OF_MEMORY, or the errors named at them. After an error some changes have not been
 * exchanged. A later call exchanges them, except those whose post has failed.
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

/* Number of replicated blocks of all sessions. If it is 0, nothing needs to be exchanged. */
extern atomic_uint gpc_replica_count;

/* Copies the block to the worker's replica at this address, and keeps both identical until
 * gpc_coherence_remove(). The memory must stay mapped until then; only registered memory may be
 * unmapped by the program, and is then removed from the list. host and address must be equal modulo
 * 8, and size not 0. The worker has memory at the address already (gpc_host_space_map() or
 * gpc_host_space_map_at_worker(), host_space.h, or gpHostPlace). Posts the contents and does not
 * wait for the worker. After an error the block is not in the list; the contents may have been
 * posted. */
CUresult gpc_coherence_add(struct gpc_context *context, void *host, uint64_t address, size_t size);
/* Removes the block whose replica starts at this address, if there is one; the caller frees the
 * worker's memory afterwards. Blocks while another thread sends changes of the session. Changes
 * that were not yet exchanged are lost. Nothing of the block is posted after the return. */
void gpc_coherence_remove(struct gpc_session *session, uint64_t address);

/* Sends the program's changes to the worker, in the order of posted calls. Does not wait for the
 * worker to store them. First makes blocks to which the changed memory points accessible to kernels
 * (gpc_host_block_map_pointers(), host_block.h), whose errors it returns, too; this waits for the
 * daemon. May also wait until data lanes have sent copies that it corrects (listed_copy.h). */
CUresult gpc_coherence_send(struct gpc_session *session);
/* Wakes the thread that exchanges changes, if it sleeps. Called after work was posted. */
void gpc_coherence_wake(struct gpc_session *session);
/* Fetches the changes that kernels have made so far, and blocks until they are stored in the
 * program's memory. Returns at once if all work is known to be done and its changes are stored. */
CUresult gpc_coherence_fetch(struct gpc_session *session);
/* Slow path of gpc_coherence_before_wait(), with the same contract. */
struct gpc_coherence_fetch *gpc_coherence_wait_begin(struct gpc_session *session,
						     enum gp_host_after kind, uint32_t name,
						     uint16_t call);
/* Slow path of gpc_coherence_after_wait(), with the same contract; frees the fetch. */
CUresult gpc_coherence_wait_end(struct gpc_session *session, struct gpc_coherence_fetch *fetch,
				CUresult result);

/* Called before work is posted that may read a block: sends the program's changes. Returns the
 * result of gpc_coherence_send(). */
static inline CUresult
gpc_coherence_before_work(struct gpc_session *session)
{
	return __builtin_expect(atomic_load(&gpc_replica_count) == 0, 1)
		       ? CUDA_SUCCESS
		       : gpc_coherence_send(session);
}

/* Called after work was posted: changes are exchanged while the work is in progress. Does not
 * wait. */
static inline void
gpc_coherence_after_work(struct gpc_session *session)
{
	if (__builtin_expect(atomic_load(&gpc_replica_count) != 0, 0))
		gpc_coherence_wake(session);
}

/* Called before a wait for the daemon is posted: requests the changes of the work that is waited
 * for, so that the wait takes one round trip. kind and name identify the work: a stream, an event
 * or a context (protocol/host_changes.h), and its wire ID. call: GP_CALL_* number of the waiting
 * call, for the statistics, which count everything until gpc_coherence_after_wait() as one wait.
 * Does not wait itself. Returns a fetch, which must be passed to gpc_coherence_after_wait() on
 * every path. Returns NULL if no fetch was started; gpc_coherence_after_wait() then fetches what is
 * needed. */
static inline struct gpc_coherence_fetch *
gpc_coherence_before_wait(struct gpc_session *session, enum gp_host_after kind, uint32_t name,
			  uint16_t call)
{
	return __builtin_expect(atomic_load(&gpc_replica_count) == 0, 1)
		       ? NULL
		       : gpc_coherence_wait_begin(session, kind, name, call);
}

/* Called after the wait, before the program learns that work is done: blocks until the changes of
 * the work are stored. fetch: return value of gpc_coherence_before_wait(), which is freed here, or
 * NULL. result: result of the wait. Returns `result` if that is an error, otherwise the result of
 * the fetch. */
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
