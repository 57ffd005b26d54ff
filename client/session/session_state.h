/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State machine of a session.
 *
 * One atomic word contains the state and the CUresult that calls return in that state. A zeroed
 * word is STARTING.
 * Threads: any thread may read the word and change the state; no lock is needed.
 */
#ifndef GPC_SESSION_STATE_H
#define GPC_SESSION_STATE_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>

enum gpc_session_state {
	/*
	 * gpc_session_create() is starting the threads; only these and the creating thread know the
	 * session. Next: OPEN when the threads run, FAILED if the connection is lost first, CLOSED
	 * if a thread cannot be started.
	 */
	GPC_SESSION_STARTING,
	/*
	 * Calls are sent and receive replies. Next: CLOSING by gpc_session_close(); FAILED by
	 * gpc_session_fail(), gpc_session_fault(), gpc_session_lost() or gpc_session_lost_on();
	 * ABANDONED.
	 */
	GPC_SESSION_OPEN,
	/*
	 * Posted calls are being sent until the timeout of gpc_session_close(). Calls are still
	 * accepted, because other threads may be inside a call. Next: CLOSED, FAILED or ABANDONED.
	 */
	GPC_SESSION_CLOSING,
	/*
	 * A kernel faulted, a connection is lost, the daemon ended the session, or a thread of a
	 * data lane could not be started. Calls return the error at once; outstanding requests are
	 * completed with it. The session's threads end. Next: CLOSED by gpc_session_close(), or
	 * ABANDONED.
	 */
	GPC_SESSION_FAILED,
	/*
	 * The threads have been requested to end. Calls return CUDA_ERROR_DEINITIALIZED, or the
	 * error of FAILED. gpc_session_destroy() may follow when no other thread uses the session.
	 */
	GPC_SESSION_CLOSED,
	/*
	 * The child of a fork, from any other state: the connections belong to the parent, and
	 * there are no threads. Calls return CUDA_ERROR_NOT_INITIALIZED. Final state.
	 */
	GPC_SESSION_ABANDONED,
	GPC_SESSION_STATE_COUNT
};

/*
 * Changes the state to `to`. error: the result of calls in FAILED, not CUDA_SUCCESS; ignored for
 * other states. Returns true, or false without any change if the current state has no such
 * transition; in particular, if several threads change to the same state, one of them gets true.
 */
bool gpc_session_state_move(atomic_uint *word, enum gpc_session_state to, CUresult error);

/* Number of low bits of the word that contain the CUresult; the bits above them contain the
 * state. */
#define GPC_SESSION_RESULT_BITS 16

/* Returns the current state. */
static inline enum gpc_session_state
gpc_session_state_get(const atomic_uint *word)
{
	return (enum gpc_session_state)(atomic_load_explicit(word, memory_order_relaxed) >>
					GPC_SESSION_RESULT_BITS);
}

/* Returns CUDA_SUCCESS or the error that calls return in the current state. */
static inline CUresult
gpc_session_state_result(const atomic_uint *word)
{
	return (CUresult)(atomic_load_explicit(word, memory_order_relaxed) &
			  ((1u << GPC_SESSION_RESULT_BITS) - 1));
}

#endif /* GPC_SESSION_STATE_H */
