/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of a session, and how it gets from one to another.  A session has its state and, once
 * calls fail, what they answer in one word, which any thread may read and move.
 */
#ifndef GPC_SESSION_STATE_H
#define GPC_SESSION_STATE_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>

enum gpc_session_state {
	/*
	 * gpc_session_create() makes it; its threads are being started, and nobody else knows it.
	 * Left for OPEN when they run, for FAILED if the connection is lost before, for CLOSED if
	 * one cannot be started.
	 */
	GPC_SESSION_STARTING,
	/*
	 * Calls are sent and answered.  Left for CLOSING by gpc_session_close(), for FAILED by
	 * gpc_session_fail() and gpc_session_lost().
	 */
	GPC_SESSION_OPEN,
	/*
	 * What was posted is being sent, for as long as the deadline allows.  Calls are still
	 * taken, for those of other threads may be under way.  Left for CLOSED, or for FAILED.
	 */
	GPC_SESSION_CLOSING,
	/*
	 * A kernel faulted, or the connection is lost, or the daemon ended the session.  Calls
	 * answer with that error at once; what was outstanding has been completed with it.  The
	 * session's threads end.  Left for CLOSED by gpc_session_close().
	 */
	GPC_SESSION_FAILED,
	/*
	 * Its threads have been told to end.  Calls answer CUDA_ERROR_DEINITIALIZED, or the error
	 * of FAILED.  gpc_session_destroy() may follow when no thread is inside.
	 */
	GPC_SESSION_CLOSED,
	/*
	 * In the child of a fork, from any other: the connections are the parent's, and there are
	 * no threads.  Calls answer CUDA_ERROR_NOT_INITIALIZED.  It is never left.
	 */
	GPC_SESSION_ABANDONED,
	GPC_SESSION_STATE_COUNT
};

/*
 * Moves to another state; error is what FAILED answers.  false: the state that it is in does not
 * lead there, and nothing has changed.  Of several threads that move to the same one succeeds.
 */
bool gpc_session_state_move(atomic_uint *word, enum gpc_session_state to, CUresult error);

#define GPC_SESSION_RESULT_BITS 16

static inline enum gpc_session_state
gpc_session_state_get(const atomic_uint *word)
{
	return (enum gpc_session_state)(atomic_load_explicit(word, memory_order_relaxed) >>
					GPC_SESSION_RESULT_BITS);
}

/* CUDA_SUCCESS, or what calls answer. */
static inline CUresult
gpc_session_state_result(const atomic_uint *word)
{
	return (CUresult)(atomic_load_explicit(word, memory_order_relaxed) &
			  ((1u << GPC_SESSION_RESULT_BITS) - 1));
}

#endif /* GPC_SESSION_STATE_H */
