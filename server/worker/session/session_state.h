/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of a session at the worker, in the order in which it goes through them.
 *
 * It begins as GPD_SESSION_OPENED.  gpd_session_set_state() makes every change; any thread.
 */
#ifndef GPD_SESSION_STATE_H
#define GPD_SESSION_STATE_H

#include <stdbool.h>

struct gpd_session;

enum gpd_session_state {
	/* The supervisor has opened it: it has a window and a line in the ledger, no connection and
	 * no thread.  Left when lane 0 comes, or the supervisor closes it.  It may be given another
	 * window, or be discarded. */
	GPD_SESSION_OPENED,
	/* Lane 0 has come: the executor makes what it works with.  Left when that is made, or
	 * cannot be.  It may get data lanes, be ended, be lost. */
	GPD_SESSION_STARTING,
	/* The executor carries out calls.  As before; what the client asks is done. */
	GPD_SESSION_SERVING,
	/* The GPU's contexts are lost: every call is answered with that error (session->sticky).
	 * Left when the client goes, or with the process. */
	GPD_SESSION_LOST,
	/* Somebody has said that it must end: the client, the supervisor, a limit, a mistake.
	 * Whoever waits for it gives up (session->closing); the executor leaves the call that it is
	 * at.  It is still found by its number. */
	GPD_SESSION_ENDING,
	/* Nobody finds it any more, for lanes, messages of the supervisor or news of the GPU; its
	 * work on the GPU goes on, and may be what the GPU is lost by. */
	GPD_SESSION_DRAINING,
	/* Nothing of it runs: what it has is given back.  Only the executor may ask it anything. */
	GPD_SESSION_FREEING,
	/* The supervisor is told; it is freed next. */
	GPD_SESSION_CLOSED,
	GPD_SESSION_STATES
};

/* false, and nothing changes: the present state has no such change. */
bool gpd_session_set_state(struct gpd_session *session, enum gpd_session_state to);

#endif /* GPD_SESSION_STATE_H */
