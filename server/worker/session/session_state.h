/* SPDX-License-Identifier: Apache-2.0 */
/*
 * States of a session in the worker, in the order in which it passes through them. The initial
 * state is GPD_SESSION_OPENED.
 *
 * Threads: any; gpd_session_set_state() makes all changes atomically.
 */
#ifndef GPD_SESSION_STATE_H
#define GPD_SESSION_STATE_H

#include <stdbool.h>

struct gpd_session;

enum gpd_session_state {
	/* The supervisor has opened it: it has a window and a line in the ledger, but no connection
	 * and no thread. Ends when lane 0 arrives or the supervisor closes it. Its window may be
	 * replaced, and it may be discarded. */
	GPD_SESSION_OPENED,
	/* Lane 0 has arrived and the executor is allocating its resources. Ends when these are
	 * complete or cannot be allocated. The session may get data lanes, be ended or be lost. */
	GPD_SESSION_STARTING,
	/* The executor carries out the client's calls. Otherwise as before. */
	GPD_SESSION_SERVING,
	/* The GPU contexts are lost: every call fails with that error (session->sticky). Ends when
	 * the client leaves, or with the process. */
	GPD_SESSION_LOST,
	/* The client, the supervisor, a limit or a violation has ended it. Waits for it are
	 * abandoned (session->closing), and the executor leaves its current call. It can still be
	 * found by its number. */
	GPD_SESSION_ENDING,
	/* It is no longer found for lanes, messages of the supervisor or GPU errors. Its work on
	 * the GPU continues and may still cause the loss of the GPU. */
	GPD_SESSION_DRAINING,
	/* None of its work is running and its resources are being freed. Only the executor may use
	 * it. */
	GPD_SESSION_FREEING,
	/* The supervisor has been notified; it is freed next. */
	GPD_SESSION_CLOSED,
	GPD_SESSION_STATES
};

/* Changes the state. Returns false, without a change, if the present state does not allow it. Sets
 * session->closing for GPD_SESSION_ENDING. */
bool gpd_session_set_state(struct gpd_session *session, enum gpd_session_state to);

#endif /* GPD_SESSION_STATE_H */
