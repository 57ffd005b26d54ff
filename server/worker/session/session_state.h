/* SPDX-License-Identifier: Apache-2.0 */
/*
 * States of a session in the worker, in the order in which it passes through them; some may be
 * skipped. The initial state is GPD_SESSION_OPENED.
 *
 * Threads: any; gpd_session_set_state() changes the state atomically. The caller must prevent the
 * session from being freed (session.h).
 */
#ifndef GPD_SESSION_STATE_H
#define GPD_SESSION_STATE_H

#include <stdbool.h>

struct gpd_session;

enum gpd_session_state {
	/* The supervisor has opened the session: it has a window (its range of device addresses)
	 * and an entry in the ledger, but no connection and no thread. Its window may be replaced.
	 * Ends when lane 0 arrives or when the supervisor closes the session, which is then
	 * discarded. */
	GPD_SESSION_OPENED,
	/* Lane 0 has arrived and the executor is allocating the session's resources. Ends when they
	 * are complete or cannot be allocated. The session may get data lanes, be ended or lose its
	 * GPU contexts. */
	GPD_SESSION_STARTING,
	/* The executor carries out the client's calls. The session may get data lanes, be ended or
	 * lose its GPU contexts. */
	GPD_SESSION_SERVING,
	/* The GPU contexts are lost: every call fails with session->sticky. Ends when the client
	 * leaves, or with the process. */
	GPD_SESSION_LOST,
	/* The client, the supervisor, a limit or a violation has ended the session. Its threads
	 * abandon their waits (session->closing is set), and the executor returns from its current
	 * call. The session can still be found by its ID. */
	GPD_SESSION_ENDING,
	/* gpd_sessions_find_locked() no longer returns the session. Its work on the GPU continues
	 * and may still cause the loss of the GPU contexts. */
	GPD_SESSION_DRAINING,
	/* The session's work is done or canceled, and its resources are being freed. Only the
	 * executor may use the session. */
	GPD_SESSION_FREEING,
	/* The supervisor has been notified that the session is closed; the session is freed
	 * next. */
	GPD_SESSION_CLOSED,
	/* number of states */
	GPD_SESSION_STATES
};

/* Changes the state. Returns true; or false, without a change, if the present state does not allow
 * it, also if the session is in that state already. A change to GPD_SESSION_ENDING also sets
 * session->closing. Does not block. */
bool gpd_session_set_state(struct gpd_session *session, enum gpd_session_state to);

#endif /* GPD_SESSION_STATE_H */
